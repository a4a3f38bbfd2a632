package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type fleetModel struct {
	Account    types.String      `tfsdk:"account"`
	Region     types.String      `tfsdk:"region"`
	Labels     map[string]string `tfsdk:"labels"`
	Servers    types.Int64       `tfsdk:"servers"`
	ByVerdict  map[string]int64  `tfsdk:"by_verdict"`
	ByVersion  map[string]int64  `tfsdk:"by_version"`
	ByDeclared map[string]int64  `tfsdk:"by_declared_version"`
	ByRegion   map[string]int64  `tfsdk:"by_region"`
}

func newFleetDataSource() datasource.DataSource {
	return &source[fleetModel]{
		typeName: "kura_fleet",
		about:    "How many servers there are, and how they are: counts for `check` blocks and outputs.",
		attributes: map[string]schema.Attribute{
			"account": filterText("Only servers of this account, such as `acme`."),
			"region":  filterText("Only servers in this region, such as `eu-central`."),
			"labels":  filterLabels("servers"),
			"servers": shownNumber("How many servers there are, of those that are asked for."),
			"by_verdict": shownNumbers("How many are of each verdict: `converged`, `progressing`, `held`, `stalled`, `failed`, `unobserved`, `destroying`, `drifted` and `absent`. " +
				"All of them are keys, 0 included, so that `by_verdict[\"failed\"]` is always a number."),
			"by_version":          shownNumbers("How many serve each version; one that never answered is counted nowhere here."),
			"by_declared_version": shownNumbers("How many are declared with each version."),
			"by_region":           shownNumbers("How many are in each region that has any."),
		},
		what: always[fleetModel]("List servers"),
		fill: func(ctx context.Context, c *api.Client, m *fleetModel, _ *diag.Diagnostics) error {
			views, err := c.ListServers(ctx, api.ServerFilter{Account: m.Account.ValueString(), Region: m.Region.ValueString()})
			m.count(views)
			return err
		},
	}
}

// count fills in the counts of those servers that bear the labels.
func (m *fleetModel) count(views []fleet.ServerView) {
	m.ByVerdict, m.ByVersion, m.ByDeclared, m.ByRegion = map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, v := range verdicts() {
		m.ByVerdict[v] = 0
	}
	var n int64
	for _, v := range views {
		if !bears(v.Intent.Labels, m.Labels) {
			continue
		}
		n++
		m.ByVerdict[string(v.Verdict)]++
		m.ByDeclared[v.Intent.ImageTag]++
		m.ByRegion[v.Region]++
		if v.ServingImageTag != "" {
			m.ByVersion[v.ServingImageTag]++
		}
	}
	m.Servers = types.Int64Value(n)
}
