package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ function.Function = hostFunction{}

func newHostFunction() function.Function { return hostFunction{} }

// hostFunction renders a host with the daemon's own code, so that modules and outputs
// name every host that a plan will mint.
type hostFunction struct{}

func (hostFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "host"
}

func (hostFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Host that a server will have",
		MarkdownDescription: "Renders a host template's pattern exactly as the daemon does, before anything is applied: " +
			"`provider::kura::host(\"{account_handle}-{cluster_id}{env_suffix}.kura.example.dev\", { account_handle = \"acme\", cluster_id = \"eu-central\", environment = \"staging\" })` " +
			"is `acme-eu-central-staging.kura.example.dev`. It needs no provider configuration and asks nobody.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "pattern", MarkdownDescription: "Pattern of a host template, such as `kura_host_template.public.pattern`."},
			function.DynamicParameter{
				Name: "server",
				MarkdownDescription: "Object of strings: `account_handle`, `cluster_id` and `environment`; where the pattern holds `{region}`, also `region`; " +
					"for an environment other than production, staging and canary, also its `env_suffix`, such as `-preview`.",
			},
		},
		Return: function.StringReturn{},
	}
}

func (hostFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var pattern string
	var server types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &pattern, &server); resp.Error != nil {
		return
	}
	if err := fleet.CheckPattern(pattern); err != nil {
		resp.Error = function.NewArgumentFuncError(0, sentence(err.Error()))
		return
	}
	in, known, err := hostArguments(server.UnderlyingValue())
	if err != nil {
		resp.Error = function.NewArgumentFuncError(1, sentence(err.Error()))
		return
	}
	if !known {
		resp.Error = resp.Result.Set(ctx, types.StringUnknown())
		return
	}
	host, err := renderHost(pattern, in)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(1, sentence(err.Error()))
		return
	}
	resp.Error = resp.Result.Set(ctx, host)
}

func renderHost(pattern string, in map[string]string) (string, error) {
	e, err := fleet.NewEnvironment(in["environment"], in["env_suffix"], nil)
	if err != nil {
		return "", err
	}
	return e.RenderHost(pattern, fleet.HostInput{AccountHandle: in["account_handle"], ClusterID: in["cluster_id"], Region: in["region"]})
}

// hostArguments reads the object: which of its keys must be there, and which may.
// known is false where a value is only known after an apply.
func hostArguments(v attr.Value) (in map[string]string, known bool, err error) {
	must := map[string]bool{"account_handle": true, "cluster_id": true, "environment": true, "region": false, "env_suffix": false}
	var given map[string]attr.Value
	switch v := v.(type) {
	case types.Object:
		given = v.Attributes()
	case types.Map:
		given = v.Elements()
	default:
		return nil, false, fmt.Errorf("an object is needed, such as { account_handle = \"acme\", cluster_id = \"eu-central\", environment = \"staging\" }")
	}
	in, known = map[string]string{}, true
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if _, ok := must[key]; !ok {
			return nil, false, fmt.Errorf("%q is no part of a host; there are %s", key, strings.Join(slices.Sorted(maps.Keys(must)), ", "))
		}
		s, ok := given[key].(types.String)
		switch {
		case given[key].IsUnknown():
			known = false
		case given[key].IsNull():
		case !ok:
			return nil, false, fmt.Errorf("%q must be a string", key)
		default:
			in[key] = s.ValueString()
		}
	}
	for _, key := range slices.Sorted(maps.Keys(must)) {
		if given[key] == nil && must[key] || given[key] != nil && given[key].IsNull() && must[key] {
			return nil, false, fmt.Errorf("%q is missing", key)
		}
	}
	return in, known, nil
}
