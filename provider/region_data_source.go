package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// regionRowModel is what others want to know of a region, with its defaults filled in.
// What its servers run is the resource's business.
type regionRowModel struct {
	Name               types.String      `tfsdk:"name"`
	DisplayName        types.String      `tfsdk:"display_name"`
	ClusterID          types.String      `tfsdk:"cluster_id"`
	Hosts              *hostsModel       `tfsdk:"hosts"`
	Location           *locationModel    `tfsdk:"location"`
	Runtime            types.String      `tfsdk:"runtime"`
	Target             types.String      `tfsdk:"target"`
	StallAfter         types.String      `tfsdk:"stall_after"`
	MaxUnsettled       types.Int64       `tfsdk:"max_unsettled"`
	Remediation        types.String      `tfsdk:"remediation"`
	Paused             types.Bool        `tfsdk:"paused"`
	Cordoned           types.Bool        `tfsdk:"cordoned"`
	Labels             map[string]string `tfsdk:"labels"`
	DeletionProtection types.Bool        `tfsdk:"deletion_protection"`
	Generation         types.Int64       `tfsdk:"generation"`
}

func flattenRegionRow(r api.Region) regionRowModel {
	all := flattenRegion(r.WithDefaults())
	m := regionRowModel{
		Name: all.Name, DisplayName: all.DisplayName, ClusterID: all.ClusterID, Hosts: all.Hosts, Location: all.Location,
		Runtime: text(r.Runtime()), StallAfter: all.StallAfter.StringValue, MaxUnsettled: all.MaxUnsettled, Remediation: all.Remediation,
		Paused: all.Paused, Cordoned: all.Cordoned, Labels: orEmpty(r.Labels), DeletionProtection: all.DeletionProtection, Generation: types.Int64Value(r.Generation),
	}
	switch {
	case r.Containers != nil:
		m.Target = text(r.Containers.Endpoint)
	case r.Kubernetes != nil:
		m.Target = text(r.Kubernetes.Cluster)
	}
	return m
}

func regionShown() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":         shownText("Name, by which servers refer to it."),
		"display_name": shownText("Name for people; null where none is declared."),
		"cluster_id":   shownText("What `{cluster_id}` stands for: the declared one, or the name."),
		"hosts": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "Names of the host templates that its servers' hosts are rendered from.", Attributes: map[string]schema.Attribute{
			"public": shownText("Template of the public host."),
			"grpc":   shownText("Template of the gRPC host; null where there is none."),
			"global": shownText("Template of the host that all regions of an account share; null where there is none."),
		}},
		"location": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "Where it is; null where that is not declared.", Attributes: map[string]schema.Attribute{
			"latitude":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Degrees north."},
			"longitude": schema.Float64Attribute{Computed: true, MarkdownDescription: "Degrees east."},
		}},
		"runtime":             shownText("What runs its servers: `containers` or `kubernetes`."),
		"target":              shownText("Name of the daemon's container endpoint or cluster on which they run."),
		"stall_after":         shownText("How long a roll-out may take before it counts as stalled, such as `15m`."),
		"max_unsettled":       shownNumber("How many of its servers may be changed at once."),
		"remediation":         shownText("`heal`, where the daemon corrects drift by itself, or `observe`."),
		"paused":              shownBool("Whether nothing is changed there for now."),
		"cordoned":            shownBool("Whether it takes no new servers."),
		"labels":              shownTextMap("Declared labels; empty where there are none."),
		"deletion_protection": shownBool("Whether a plan that destroys it is refused."),
		"generation":          shownNumber("How many times its declaration was written."),
	}
}

func newRegionDataSource() datasource.DataSource {
	return &source[regionRowModel]{
		typeName:   "kura_region",
		about:      "A region as it is declared, with its defaults filled in. One that does not exist is an error.",
		attributes: with(regionShown(), map[string]schema.Attribute{"name": askedText("Name of the region, such as `eu-central`.")}),
		what:       func(m regionRowModel) string { return fmt.Sprintf("Read region %q", m.Name.ValueString()) },
		fill: func(ctx context.Context, c *api.Client, m *regionRowModel, _ *diag.Diagnostics) error {
			r, err := c.GetRegion(ctx, m.Name.ValueString())
			*m = flattenRegionRow(r)
			return err
		},
	}
}

type regionsModel struct {
	Runtime types.String      `tfsdk:"runtime"`
	Labels  map[string]string `tfsdk:"labels"`
	Regions []regionRowModel  `tfsdk:"regions"`
}

func newRegionsDataSource() datasource.DataSource {
	return &source[regionsModel]{
		typeName: "kura_regions",
		about:    "Regions as they are declared, with their defaults filled in.",
		attributes: map[string]schema.Attribute{
			"runtime": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only regions of this runtime, `containers` or `kubernetes`. Default: all.",
				Validators: []validator.String{stringvalidator.OneOf(string(fleet.RuntimeContainers), string(fleet.RuntimeKubernetes))},
			},
			"labels":  filterLabels("regions"),
			"regions": objects("The regions, by name.", regionShown()),
		},
		what: always[regionsModel]("List regions"),
		fill: func(ctx context.Context, c *api.Client, m *regionsModel, _ *diag.Diagnostics) error {
			all, err := c.ListRegions(ctx)
			m.Regions = rows(all, func(r api.Region) bool { return bears(r.Labels, m.Labels) && asked(m.Runtime, string(r.Runtime())) }, flattenRegionRow)
			return err
		},
	}
}
