package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// regionRow is what others want to know of a region, with its defaults filled in. What its
// servers run is the resource's business.
func regionRow(r api.Region) any {
	all := r.WithDefaults()
	fields := map[string]any{"generation": r.Generation, "runtime": r.Runtime(), "stall_after": all.StallAfter.Short(), "labels": orEmpty(r.Labels)}
	switch {
	case r.Containers != nil:
		fields["target"] = r.Containers.Endpoint
	case r.Kubernetes != nil:
		fields["target"] = r.Kubernetes.Cluster
	}
	return amended{all, fields}
}

func regionShown() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":         shownText("Name, by which servers refer to it."),
		"display_name": shownText("Name for people; null where none is declared."),
		"cluster_id":   shownText("What `{cluster_id}` stands for: the declared one, or the name."),
		"hosts": shownObject("Names of the host templates that its servers' hosts are rendered from.", map[string]schema.Attribute{
			"public": shownText("Template of the public host."),
			"grpc":   shownText("Template of the gRPC host; null where there is none."),
			"global": shownText("Template of the host that all regions of an account share; null where there is none."),
		}),
		"location": shownObject("Where it is; null where that is not declared.", map[string]schema.Attribute{
			"latitude":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Degrees north."},
			"longitude": schema.Float64Attribute{Computed: true, MarkdownDescription: "Degrees east."},
		}),
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
	return one(source{
		typeName:   "kura_region",
		about:      "A region as it is declared, with its defaults filled in. One that does not exist is an error.",
		attributes: with(regionShown(), map[string]schema.Attribute{"name": askedText("Name of the region, such as `eu-central`.")}),
	}, "region", (*api.Client).GetRegion, regionRow)
}

func newRegionsDataSource() datasource.DataSource {
	return list(source{
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
	}, "regions", (*api.Client).ListRegions, func(q question, r api.Region) bool {
		return bears(r.Labels, q.Labels) && asked(q.Runtime, string(r.Runtime()))
	}, regionRow)
}
