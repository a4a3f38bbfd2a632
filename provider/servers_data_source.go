package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type serversModel struct {
	Account types.String      `tfsdk:"account"`
	Region  types.String      `tfsdk:"region"`
	Verdict types.String      `tfsdk:"verdict"`
	Labels  map[string]string `tfsdk:"labels"`
	Servers []serverRowModel  `tfsdk:"servers"`
}

type serverRowModel struct {
	Account          types.String      `tfsdk:"account"`
	Region           types.String      `tfsdk:"region"`
	ImageTag         types.String      `tfsdk:"image_tag"`
	Labels           map[string]string `tfsdk:"labels"`
	Status           types.String      `tfsdk:"status"`
	Verdict          types.String      `tfsdk:"verdict"`
	Reason           types.String      `tfsdk:"reason"`
	Active           types.Bool        `tfsdk:"active"`
	ServingImageTag  types.String      `tfsdk:"serving_image_tag"`
	ObservedImageTag types.String      `tfsdk:"observed_image_tag"`
	Host             types.String      `tfsdk:"host"`
	PublishedURL     types.String      `tfsdk:"published_url"`
}

func newServersDataSource() datasource.DataSource {
	all, row := serverShown(), map[string]schema.Attribute{
		"account": shownText("Id of the account."),
		"region":  shownText("Name of the region."),
	}
	for _, name := range []string{"image_tag", "labels", "status", "verdict", "reason", "active", "serving_image_tag", "observed_image_tag", "host", "published_url"} {
		row[name] = all[name]
	}
	return &source[serversModel]{
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
		what: always[serversModel]("List servers"),
		fill: listServers,
	}
}

func listServers(ctx context.Context, c *api.Client, m *serversModel, _ *diag.Diagnostics) error {
	views, err := c.ListServers(ctx, api.ServerFilter{
		Account: m.Account.ValueString(), Region: m.Region.ValueString(), Verdict: fleet.Verdict(m.Verdict.ValueString()),
	})
	m.Servers = rows(views, func(v fleet.ServerView) bool { return bears(v.Intent.Labels, m.Labels) }, func(v fleet.ServerView) serverRowModel {
		all := flattenServerData(v, nil, types.BoolNull())
		return serverRowModel{
			Account: all.Account, Region: all.Region, ImageTag: all.ImageTag, Labels: all.Labels, Status: all.Status, Verdict: all.Verdict, Reason: all.Reason,
			Active: all.Active, ServingImageTag: all.ServingImageTag, ObservedImageTag: all.ObservedImageTag, Host: all.Host, PublishedURL: all.PublishedURL,
		}
	})
	return err
}

func verdicts() []string {
	return []string{
		string(fleet.VerdictConverged), string(fleet.VerdictProgressing), string(fleet.VerdictHeld), string(fleet.VerdictStalled), string(fleet.VerdictFailed),
		string(fleet.VerdictUnobserved), string(fleet.VerdictDestroying), string(fleet.VerdictDrifted), string(fleet.VerdictAbsent),
	}
}
