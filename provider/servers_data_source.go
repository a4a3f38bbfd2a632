package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ datasource.DataSourceWithConfigure = (*serversDataSource)(nil)

func newServersDataSource() datasource.DataSource { return &serversDataSource{} }

type serversDataSource struct{ session *session }

type serversModel struct {
	Account types.String     `tfsdk:"account"`
	Region  types.String     `tfsdk:"region"`
	Verdict types.String     `tfsdk:"verdict"`
	Servers []serverRowModel `tfsdk:"servers"`
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

func (d *serversDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "kura_servers"
}

func (d *serversDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	all, row := serverShown(), map[string]schema.Attribute{
		"account": shownText("Id of the account."),
		"region":  shownText("Name of the region."),
	}
	for _, name := range []string{"image_tag", "labels", "status", "verdict", "reason", "active", "serving_image_tag", "observed_image_tag", "host", "published_url"} {
		row[name] = all[name]
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Servers as they are now, in short; `kura_server` tells all about one.",
		Attributes: map[string]schema.Attribute{
			"account": schema.StringAttribute{Optional: true, MarkdownDescription: "Only those of this account, such as `acme`. Default: all."},
			"region":  schema.StringAttribute{Optional: true, MarkdownDescription: "Only those in this region, such as `eu-central`. Default: all."},
			"verdict": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only those of this verdict, such as `failed`. Default: all.",
				Validators: []validator.String{stringvalidator.OneOf(verdicts()...)},
			},
			"servers": objects("The servers, by region and account.", row),
		},
	}
}

func (d *serversDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *serversDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m serversModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	client := d.session.use(ctx, "List servers", &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	views, err := client.ListServers(ctx, api.ServerFilter{
		Account: m.Account.ValueString(), Region: m.Region.ValueString(), Verdict: fleet.Verdict(m.Verdict.ValueString()),
	})
	if err != nil {
		report(&resp.Diagnostics, req.Config.Schema.Type(), "List servers", err)
		return
	}
	m.Servers = make([]serverRowModel, len(views))
	for i, v := range views {
		all := flattenServerData(v, nil, types.BoolNull())
		m.Servers[i] = serverRowModel{
			Account: all.Account, Region: all.Region, ImageTag: all.ImageTag, Labels: all.Labels, Status: all.Status, Verdict: all.Verdict, Reason: all.Reason,
			Active: all.Active, ServingImageTag: all.ServingImageTag, ObservedImageTag: all.ObservedImageTag, Host: all.Host, PublishedURL: all.PublishedURL,
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func verdicts() []string {
	return []string{
		string(fleet.VerdictConverged), string(fleet.VerdictProgressing), string(fleet.VerdictHeld), string(fleet.VerdictStalled), string(fleet.VerdictFailed),
		string(fleet.VerdictUnobserved), string(fleet.VerdictDestroying), string(fleet.VerdictDrifted), string(fleet.VerdictAbsent),
	}
}
