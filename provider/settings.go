package provider

import (
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

// Environment variables that stand in for attributes of the provider block.
const (
	envEndpoint    = "KURA_ENDPOINT"
	envToken       = "KURA_TOKEN"
	envTokenFile   = "KURA_TOKEN_FILE"
	envEnvironment = "KURA_ENVIRONMENT"
)

// unknown names the attributes whose values come from something that is not applied yet.
func (m providerModel) unknown() []string {
	var names []string
	for _, a := range []struct {
		name  string
		value attr.Value
	}{
		{"endpoint", m.Endpoint}, {"token", m.Token}, {"token_file", m.TokenFile}, {"environment", m.Environment},
		{"ca_certificate", m.CACertificate}, {"request_timeout", m.RequestTimeout},
		{"max_concurrent_requests", m.MaxConcurrentRequests}, {"wait_for", m.WaitFor},
	} {
		if a.value.IsUnknown() {
			names = append(names, a.name)
		}
	}
	return names
}

// session makes the client that the settings describe; it does not connect.
func (m providerModel) session(userAgent string, diags *diag.Diagnostics) *session {
	environment := setting(m.Environment, envEnvironment)
	if environment == "" {
		diags.AddAttributeError(path.Root("environment"), "No environment",
			"The provider acts on one environment only and has no default for it. Set `environment` in the provider block, or "+envEnvironment+", to the one the daemon serves, such as \"staging\".")
		return nil
	}
	token, err := m.token()
	if err != nil {
		diags.AddAttributeError(path.Root("token_file"), "The token file cannot be read", err.Error())
		return nil
	}
	if token == "" {
		diags.AddAttributeError(path.Root("token"), "No token",
			"kurad answers nobody without a token. Set `token` or `token_file` in the provider block, or "+envToken+" or "+envTokenFile+". `kurad token create` makes one; the daemon's first start wrote one to <data-dir>/token.")
		return nil
	}
	client, err := api.New(api.Config{
		Endpoint: setting(m.Endpoint, envEndpoint), Token: api.NewSecret(token), CACertificate: m.CACertificate.ValueString(),
		Environment: environment, RequestTimeout: m.RequestTimeout.fleet().Std(), MaxConcurrent: int(m.MaxConcurrentRequests.ValueInt64()),
		UserAgent: userAgent,
	})
	if err != nil {
		at := path.Root("endpoint")
		if strings.Contains(err.Error(), "ca_certificate") {
			at = path.Root("ca_certificate")
		}
		diags.AddAttributeError(at, "The daemon cannot be reached like this", err.Error())
		return nil
	}
	waitFor := m.WaitFor.ValueString()
	if waitFor == "" {
		waitFor = waitActive
	}
	return &session{client: client, environment: environment, waitFor: waitFor, watches: newWatches(client)}
}

// token returns the first that is set of: token, token_file and their variables.
func (m providerModel) token() (string, error) {
	file := m.TokenFile.ValueString()
	if t := m.Token.ValueString(); t != "" {
		return t, nil
	}
	if file == "" {
		if t := os.Getenv(envToken); t != "" {
			return t, nil
		}
		file = os.Getenv(envTokenFile)
	}
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return token, nil
}

func setting(v types.String, variable string) string {
	if s := v.ValueString(); s != "" {
		return s
	}
	return os.Getenv(variable)
}
