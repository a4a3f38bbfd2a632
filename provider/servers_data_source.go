package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func newServersDataSource() datasource.DataSource {
	all, row := serverShown(), map[string]schema.Attribute{
		"account": shownText("Id of the account."),
		"region":  shownText("Name of the region."),
	}
	for _, name := range []string{"image_tag", "labels", "status", "verdict", "reason", "active", "serving_image_tag", "observed_image_tag", "host", "published_url"} {
		row[name] = all[name]
	}
	return &source{
		typeName: "kura_servers",
		about:    "Servers as they are now, in short; `kura_server` tells all about one.",
		attributes: map[string]schema.Attribute{
			"account": filterText("Only those of this account, such as `acme`."),
			"region":  filterText("Only those in this region, such as `eu-central`."),
			"verdict": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only those of this verdict, such as `failed`. Default: all.",
				Validators: []validator.String{stringvalidator.OneOf(verdicts()...)},
			},
			"labels":  filterLabels("those"),
			"servers": objects("The servers, by region and account.", row),
		},
		what: always("List servers"),
		answer: func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
			views, err := c.ListServers(ctx, api.ServerFilter{Account: q.Account, Region: q.Region, Verdict: q.Verdict})
			return map[string]any{"servers": rows(views, func(v fleet.ServerView) bool { return bears(v.Intent.Labels, q.Labels) }, func(v fleet.ServerView) any {
				return serverFields(v, nil)
			})}, err
		},
	}
}

func verdicts() []string {
	return []string{
		string(fleet.VerdictConverged), string(fleet.VerdictProgressing), string(fleet.VerdictHeld), string(fleet.VerdictStalled), string(fleet.VerdictFailed),
		string(fleet.VerdictUnobserved), string(fleet.VerdictDestroying), string(fleet.VerdictDrifted), string(fleet.VerdictAbsent),
	}
}
