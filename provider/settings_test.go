package provider

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// clearEnvironment makes the test independent of the machine's KURA_* variables.
func clearEnvironment(t *testing.T) {
	for _, name := range []string{envEndpoint, envToken, envTokenFile, envEnvironment} {
		t.Setenv(name, "")
	}
}

func TestSettings_attributesWinOverVariables(t *testing.T) {
	clearEnvironment(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		model providerModel
		env   map[string]string
		want  string
	}{
		{"attribute", providerModel{Token: types.StringValue("from-attribute")}, map[string]string{envToken: "from-env"}, "from-attribute"},
		{"file attribute", providerModel{TokenFile: types.StringValue(file)}, map[string]string{envToken: "from-env"}, "from-file"},
		{"variable", providerModel{}, map[string]string{envToken: "from-env", envTokenFile: "/none"}, "from-env"},
		{"file variable", providerModel{}, map[string]string{envTokenFile: file}, "from-file"},
		{"nothing", providerModel{}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			clearEnvironment(t)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			if got, err := c.model.token(); err != nil || got != c.want {
				t.Errorf("token = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestSettings_whatIsMissingIsNamedAtItsAttribute(t *testing.T) {
	clearEnvironment(t)
	value := types.StringValue
	for _, c := range []struct {
		name  string
		model providerModel
		at    string
		want  string
	}{
		{"no environment", providerModel{Token: value("t")}, "environment", "KURA_ENVIRONMENT"},
		{"no token", providerModel{Environment: value("staging")}, "token", "kurad token create"},
		{"no such file", providerModel{Environment: value("staging"), TokenFile: value("/none/token")}, "token_file", "/none/token"},
		{"no url", providerModel{Environment: value("staging"), Token: value("t"), Endpoint: value("kurad:7433")}, "endpoint", "kurad:7433"},
		{"token in the clear", providerModel{Environment: value("staging"), Token: value("t"), Endpoint: value("http://kurad.example.dev")}, "endpoint", "https"},
		{"no certificate", providerModel{Environment: value("staging"), Token: value("t"), Endpoint: value("https://kurad.example.dev"), CACertificate: value("ca.pem")}, "ca_certificate", "BEGIN CERTIFICATE"},
	} {
		var diags diag.Diagnostics
		c.model.session("test", &diags)
		if len(diags) != 1 {
			t.Errorf("%s: %d diagnostics, want one: %v", c.name, len(diags), diags)
			continue
		}
		at, ok := diags[0].(diag.DiagnosticWithPath)
		if !ok || !at.Path().Equal(path.Root(c.at)) || !strings.Contains(diags[0].Detail(), c.want) {
			t.Errorf("%s: %v, want it at %s with %q", c.name, diags[0], c.at, c.want)
		}
	}
}

// The endpoint may come from something that the apply only creates: that is an error
// when the daemon has to be asked, and not before.
func TestConfigure_unknownSettingsFailOnlyWhenACallIsNeeded(t *testing.T) {
	clearEnvironment(t)
	p := New("test")()
	var s provider.SchemaResponse
	p.Schema(t.Context(), provider.SchemaRequest{}, &s)
	object, ok := s.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	if !ok {
		t.Fatal("the provider's schema is no object")
	}
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, nil)
	}
	values["endpoint"] = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	config := tfsdk.Config{Schema: s.Schema, Raw: tftypes.NewValue(object, values)}

	for _, allowed := range []bool{false, true} {
		var resp provider.ConfigureResponse
		p.Configure(t.Context(), provider.ConfigureRequest{Config: config, ClientCapabilities: provider.ConfigureProviderClientCapabilities{DeferralAllowed: allowed}}, &resp)
		if resp.Diagnostics.HasError() || (resp.Deferred != nil) != allowed {
			t.Errorf("deferral allowed %v: %v, deferred %v", allowed, resp.Diagnostics, resp.Deferred)
		}
		got, ok := resp.ResourceData.(*session)
		if !ok || !slices.Equal(got.unknown, []string{"endpoint"}) || resp.DataSourceData != resp.ResourceData {
			t.Fatalf("session = %+v", resp.ResourceData)
		}
		var diags diag.Diagnostics
		if got.use(t.Context(), "Read server acme/eu", &diags) != nil || len(diags) != 1 || !strings.Contains(diags[0].Summary(), "endpoint is not known yet") {
			t.Errorf("a call with an unknown endpoint: %v", diags)
		}
		if got.answering() != nil {
			t.Error("a plan would ask a daemon that is not known yet")
		}
	}
}
