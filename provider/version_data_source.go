package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

type versionModel struct {
	Environment        types.String      `tfsdk:"environment"`
	Suffix             types.String      `tfsdk:"suffix"`
	Suffixes           map[string]string `tfsdk:"suffixes"`
	Version            types.String      `tfsdk:"version"`
	APIVersion         types.String      `tfsdk:"api_version"`
	Runtimes           []string          `tfsdk:"runtimes"`
	ContainerEndpoints []string          `tfsdk:"container_endpoints"`
	Clusters           []string          `tfsdk:"clusters"`
	DNSModes           []string          `tfsdk:"dns_modes"`
}

func newVersionDataSource() datasource.DataSource {
	return &source[versionModel]{
		typeName: "kura_version",
		about:    "Which daemon the provider talks to, and what it can do.",
		attributes: map[string]schema.Attribute{
			"environment":         shownText("Environment that it serves, such as `staging`."),
			"suffix":              shownText("What the first label of this environment's hosts ends in, such as `-staging`; empty in production."),
			"suffixes":            shownTextMap("Suffix of every environment that shares the zone, by environment."),
			"version":             shownText("Version of the daemon."),
			"api_version":         shownText("Version of the API that it speaks."),
			"runtimes":            shownTexts("What it can run servers with: `containers`, `kubernetes`."),
			"container_endpoints": shownTexts("Container endpoints that it was given, by name: what regions may name."),
			"clusters":            shownTexts("Kubernetes clusters that it was given, by name: what regions may name."),
			"dns_modes":           shownTexts("What a region's `dns.mode` may be."),
		},
		what: always[versionModel]("Read the daemon's version"),
		fill: func(ctx context.Context, c *api.Client, m *versionModel, _ *diag.Diagnostics) error {
			v, err := c.Version(ctx)
			*m = versionModel{
				Environment: types.StringValue(v.Environment), Suffix: types.StringValue(v.Suffix), Suffixes: v.Suffixes,
				Version: types.StringValue(v.Version), APIVersion: types.StringValue(v.APIVersion),
				Runtimes: texts(v.Capabilities.Runtimes), ContainerEndpoints: texts(v.Capabilities.ContainerEndpoints), Clusters: texts(v.Capabilities.Clusters), DNSModes: texts(v.Capabilities.DNSModes),
			}
			return err
		},
	}
}
