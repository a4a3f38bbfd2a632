package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestFleet_countsEveryVerdictAndOnlyWhatIsAskedFor(t *testing.T) {
	server := func(region, declared, serving string, verdict fleet.Verdict, labels map[string]string) fleet.ServerView {
		return fleet.ServerView{
			Region: region, Verdict: verdict, ServingImageTag: serving,
			Intent: fleet.Intent{Server: fleet.Server{ImageTag: declared, Labels: labels}},
		}
	}
	gold := map[string]string{"tier": "gold"}
	views := []fleet.ServerView{
		server("eu", "v2", "v2", fleet.VerdictConverged, gold), server("eu", "v2", "v1", fleet.VerdictFailed, gold),
		server("us", "v2", "", fleet.VerdictProgressing, gold), server("us", "v1", "v1", fleet.VerdictConverged, nil),
	}
	m := fleetModel{Labels: gold}
	m.count(views)
	none := map[string]int64{}
	for _, v := range verdicts() {
		none[v] = 0
	}
	if len(none) != 9 {
		t.Errorf("verdicts: %v", none)
	}
	none["converged"], none["failed"], none["progressing"] = 1, 1, 1
	want := fleetModel{
		Labels: gold, Servers: types.Int64Value(3), ByVerdict: none, ByVersion: map[string]int64{"v1": 1, "v2": 1},
		ByDeclared: map[string]int64{"v2": 3}, ByRegion: map[string]int64{"eu": 2, "us": 1},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestRegionRow_showsTheDefaults(t *testing.T) {
	r := api.Region{Generation: 3, Region: fleet.Region{Name: "eu", Hosts: fleet.RegionHosts{Public: "public"}, Kubernetes: &fleet.Kubernetes{Cluster: "prod"}}}
	got := flattenRegionRow(r)
	for what, pair := range map[string][2]string{
		"cluster_id": {got.ClusterID.ValueString(), "eu"}, "runtime": {got.Runtime.ValueString(), "kubernetes"}, "target": {got.Target.ValueString(), "prod"},
		"stall_after": {got.StallAfter.ValueString(), "15m"}, "max_unsettled": {got.MaxUnsettled.String(), "10"}, "remediation": {got.Remediation.ValueString(), "heal"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestModel_cacheEndpointRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.CacheEndpoint](t).WithDefaults()
		got := roundTrip(t, newCacheEndpointResource(), flattenCacheEndpoint(want)).expand()
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func TestLabels_areAllAskedFor(t *testing.T) {
	have := map[string]string{"a": "1", "b": ""}
	for _, c := range []struct {
		want  map[string]string
		bears bool
	}{{nil, true}, {map[string]string{"a": "1"}, true}, {map[string]string{"b": ""}, true}, {map[string]string{"a": "2"}, false}, {map[string]string{"c": ""}, false}} {
		if got := bears(have, c.want); got != c.bears {
			t.Errorf("%v: %v", c.want, got)
		}
	}
}

// The key is in the path, so that nothing but account, technology and url names it.
func TestCacheEndpoint_isAskedForByItsKey(t *testing.T) {
	e := fleet.CacheEndpoint{Account: "acme", Technology: "default", URL: "https://cache.example.dev"}
	var path string
	s, _ := sessionWith(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.CacheEndpoint{Generation: 1, Key: e.Key(), CacheEndpoint: e})
	})
	got, err := s.client.GetCacheEndpoint(t.Context(), flattenCacheEndpoint(e).expand())
	if err != nil || got.CacheEndpoint != e || !strings.HasSuffix(path, "/v1/cache-endpoints/acme/"+e.Key()) {
		t.Errorf("%+v, %v at %s", got, err, path)
	}
}
