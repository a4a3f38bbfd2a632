package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func newVersionDataSource() datasource.DataSource {
	return &source{
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
			"zones":               shownTexts("DNS zones that it was given, by domain: hosts of regions whose `dns.mode` is another than `none` lie in them."),
		},
		what: always("Read the daemon's version"),
		answer: func(ctx context.Context, c *api.Client, _ question, _ *diag.Diagnostics) (any, error) {
			v, err := c.Version(ctx)
			return struct {
				api.VersionInfo
				api.Capabilities
			}{v, v.Capabilities}, err
		},
	}
}
