package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func newFleetDataSource() datasource.DataSource {
	return &source{
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
		what: always("List servers"),
		answer: func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
			views, err := c.ListServers(ctx, api.ServerFilter{Account: q.Account, Region: q.Region})
			return count(views, q.Labels), err
		},
	}
}

// counts are the computed attributes.
type counts struct {
	Servers           int            `json:"servers"`
	ByVerdict         map[string]int `json:"by_verdict"`
	ByVersion         map[string]int `json:"by_version"`
	ByDeclaredVersion map[string]int `json:"by_declared_version"`
	ByRegion          map[string]int `json:"by_region"`
}

// count counts those servers that bear the labels.
func count(views []fleet.ServerView, labels map[string]string) counts {
	n := counts{ByVerdict: map[string]int{}, ByVersion: map[string]int{}, ByDeclaredVersion: map[string]int{}, ByRegion: map[string]int{}}
	for _, v := range verdicts() {
		n.ByVerdict[v] = 0
	}
	for _, v := range views {
		if !bears(v.Intent.Labels, labels) {
			continue
		}
		n.Servers++
		n.ByVerdict[string(v.Verdict)]++
		n.ByDeclaredVersion[v.Intent.ImageTag]++
		n.ByRegion[v.Region]++
		if v.ServingImageTag != "" {
			n.ByVersion[v.ServingImageTag]++
		}
	}
	return n
}
