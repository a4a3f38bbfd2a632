package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func newCacheEndpointsDataSource() datasource.DataSource {
	return &source{
		typeName: "kura_cache_endpoints",
		about: "What clients of an account are given: the urls that its servers publish and those that `kura_cache_endpoint` declares, the ones that answer first, those that did not answer last. " +
			"An account that does not exist is an error.",
		attributes: map[string]schema.Attribute{
			"account":    askedText("Id of the account, such as `acme`."),
			"technology": filterText("Only those of this technology, such as `kura`."),
			"region":     filterText("Only those of servers in this region, such as `eu-central`."),
			"endpoints": objects("The endpoints, in the order in which clients should try them.", map[string]schema.Attribute{
				"url":        shownText("Where it is."),
				"technology": shownText("`kura` for the url of a server, else what was declared."),
				"region":     shownText("Region of the server; null for a declared endpoint."),
				"ready":      shownBool("Whether it answered when the daemon last asked; false as well where it has not been asked yet."),
			}),
		},
		what: func(q question) string { return fmt.Sprintf("Read endpoints of account %q", q.Account) },
		answer: func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
			all, err := c.Resolve(ctx, q.Account)
			return map[string]any{"endpoints": rows(all, func(e api.Endpoint) bool { return asked(q.Technology, e.Technology) && asked(q.Region, e.Region) }, asIs)}, err
		},
	}
}
