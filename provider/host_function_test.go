package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// callHost runs the function as core does.
func callHost(t *testing.T, pattern string, server attr.Value) (types.String, *function.FuncError) {
	t.Helper()
	resp := function.RunResponse{Result: function.NewResultData(types.StringUnknown())}
	newHostFunction().Run(t.Context(), function.RunRequest{
		Arguments: function.NewArgumentsData([]attr.Value{types.StringValue(pattern), types.DynamicValue(server)}),
	}, &resp)
	got, ok := resp.Result.Value().(types.String)
	if !ok && resp.Error == nil {
		t.Fatalf("result is %T", resp.Result.Value())
	}
	return got, resp.Error
}

func object(values map[string]string) types.Object {
	kinds, attrs := map[string]attr.Type{}, map[string]attr.Value{}
	for k, v := range values {
		kinds[k], attrs[k] = types.StringType, types.StringValue(v)
		if v == "?" {
			attrs[k] = types.StringUnknown()
		}
	}
	return types.ObjectValueMust(kinds, attrs)
}

func TestHostFunction_rendersWhatTheDaemonWill(t *testing.T) {
	const pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.example.dev"
	for _, c := range []struct {
		pattern string
		server  map[string]string
		want    string
	}{
		{pattern, map[string]string{"account_handle": "Acme", "cluster_id": "eu-central", "environment": "production"}, "acme-eu-central.kura.example.dev"},
		{pattern, map[string]string{"account_handle": "acme", "cluster_id": "eu-central", "environment": "staging"}, "acme-eu-central-staging.kura.example.dev"},
		{pattern, map[string]string{"account_handle": "acme", "cluster_id": "eu", "environment": "preview", "env_suffix": "-preview"}, "acme-eu-preview.kura.example.dev"},
		{"{account_handle}-{region}{env_suffix}.kura.example.dev", map[string]string{"account_handle": "acme", "cluster_id": "eu", "environment": "canary", "region": "eu-1"}, "acme-eu-1-canary.kura.example.dev"},
	} {
		got, err := callHost(t, c.pattern, object(c.server))
		if err != nil || got.ValueString() != c.want {
			t.Errorf("host(%q, %v) = %s, %v; want %q", c.pattern, c.server, got, err, c.want)
		}
	}
	got, err := callHost(t, pattern, object(map[string]string{"account_handle": "?", "cluster_id": "eu", "environment": "staging"}))
	if err != nil || !got.IsUnknown() {
		t.Errorf("of an unknown handle: %s, %v; want unknown", got, err)
	}
}

func TestHostFunction_saysWhichArgumentIsWrong(t *testing.T) {
	const pattern = "{account_handle}{env_suffix}.kura.example.dev"
	good := map[string]string{"account_handle": "acme", "cluster_id": "eu", "environment": "staging"}
	but := func(k, v string) map[string]string {
		m := map[string]string{k: v}
		for key, value := range good {
			if key != k {
				m[key] = value
			}
		}
		if v == "" {
			delete(m, k)
		}
		return m
	}
	for _, c := range []struct {
		name, pattern string
		server        attr.Value
		argument      int64
		want          string
	}{
		{"no suffix token", "{account_handle}.kura.example.dev", object(good), 0, "{env_suffix}"},
		{"no environment", pattern, object(but("environment", "")), 1, `"environment" is missing`},
		{"custom environment without a suffix", pattern, object(but("environment", "preview")), 1, "needs a suffix of its own"},
		{"another environment's host", pattern, object(but("account_handle", "acme-canary")), 1, "canary"},
		{"unheard-of key", pattern, object(but("handle", "x")), 1, `"handle" is no part of a host`},
		{"no object", pattern, types.StringValue("acme"), 1, "an object is needed"},
		{"number", pattern, types.ObjectValueMust(map[string]attr.Type{"environment": types.NumberType}, map[string]attr.Value{"environment": types.NumberValue(nil)}), 1, "missing"},
	} {
		_, err := callHost(t, c.pattern, c.server)
		if err == nil || err.FunctionArgument == nil || *err.FunctionArgument != c.argument || !strings.Contains(strings.ToLower(err.Text), strings.ToLower(c.want)) {
			t.Errorf("%s: error %+v, want argument %d and %q", c.name, err, c.argument, c.want)
		}
	}
}
