package provider

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
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
	got := count(views, gold)
	none := map[string]int{}
	for _, v := range verdicts() {
		none[v] = 0
	}
	if len(none) != 9 {
		t.Errorf("verdicts: %v", none)
	}
	none["converged"], none["failed"], none["progressing"] = 1, 1, 1
	want := counts{
		Servers: 3, ByVerdict: none, ByVersion: map[string]int{"v1": 1, "v2": 1},
		ByDeclaredVersion: map[string]int{"v2": 3}, ByRegion: map[string]int{"eu": 2, "us": 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestRegionRow_showsTheDefaults(t *testing.T) {
	r := api.Region{Generation: 3, Region: fleet.Region{Name: "eu", Hosts: fleet.RegionHosts{Public: "public"}, Kubernetes: &fleet.Kubernetes{Cluster: "prod"}}}
	row, diags := encode(t.Context(), objects("", regionShown()).NestedObject.Type(), regionRow(r))
	got, _, ok := entries(row, row)
	if diags.HasError() || !ok {
		t.Fatal(diags)
	}
	for what, want := range map[string]tftypes.Value{
		"cluster_id": hcl("eu"), "runtime": hcl("kubernetes"), "target": hcl("prod"),
		"stall_after": hcl("15m"), "max_unsettled": tftypes.NewValue(tftypes.Number, 10), "remediation": hcl("heal"),
	} {
		if !got[what].Equal(want) {
			t.Errorf("%s is %s, want %s", what, got[what], want)
		}
	}
}

func TestModel_cacheEndpointRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.CacheEndpoint](t).WithDefaults()
		got := roundTrip[fleet.CacheEndpoint](t, newCacheEndpointResource(), want)
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
	got, err := s.client.GetCacheEndpoint(t.Context(), e)
	if err != nil || got.CacheEndpoint != e || !strings.HasSuffix(path, "/v1/cache-endpoints/acme/"+e.Key()) {
		t.Errorf("%+v, %v at %s", got, err, path)
	}
}

// full is a value of which every field is set.
func full[T any]() (out T) {
	fill(reflect.ValueOf(&out).Elem())
	return out
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), e)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(time.Second))
	case reflect.Float64:
		v.SetFloat(1)
	default:
	}
}

// An attribute of a name that the answer does not have would be null for ever.
func TestSource_everyAttributeIsShown(t *testing.T) {
	server := full[fleet.ServerView]()
	server.Status, server.Plan.Tasks[0].Kind, server.IntendedPlan.Tasks[0].Kind = fleet.StatusActive, fleet.TaskStart, fleet.TaskStart
	dnsAudit := full[api.DNSAudit]()
	dnsAudit.Next = ""
	d := &told{answers: map[string]any{
		"GET /v1/version":    full[api.VersionInfo](),
		"GET /v1/accounts/x": full[api.Account](), "GET /v1/accounts": api.List[api.Account]{Items: full[[]api.Account]()},
		"GET /v1/host-templates/x": full[api.HostTemplate](), "GET /v1/host-templates": api.List[api.HostTemplate]{Items: full[[]api.HostTemplate]()},
		"GET /v1/regions/x": full[api.Region](), "GET /v1/regions": api.List[api.Region]{Items: full[[]api.Region]()},
		"GET /v1/servers/x/x": server, "GET /v1/servers": api.List[fleet.ServerView]{Items: []fleet.ServerView{server}},
		"GET /v1/servers/x/x/deployments": api.List[fleet.Deployment]{Items: full[[]fleet.Deployment]()},
		"GET /v1/dns/audit":               dnsAudit,
		"GET /v1/accounts/x/endpoints":    api.List[api.Endpoint]{Items: full[[]api.Endpoint]()},
	}}
	s, _ := sessionWith(t, d.ServeHTTP)
	for _, made := range New("test")().DataSources(t.Context()) {
		src, ok := made().(*source)
		if !ok {
			t.Fatalf("a data source is a %T", made())
		}
		var diags diag.Diagnostics
		answer, err := src.answer(t.Context(), s.client, question{ID: "x", Name: "x", Account: "x", Region: "x"}, &diags)
		if err != nil {
			t.Errorf("%s: %v", src.typeName, err)
			continue
		}
		var schema datasource.SchemaResponse
		src.Schema(t.Context(), datasource.SchemaRequest{}, &schema)
		v, diags := encode(t.Context(), schema.Schema.Type(), answer)
		shown, _, ok := entries(v, v)
		if diags.HasError() || !ok {
			t.Fatal(diags)
		}
		for name, a := range src.attributes {
			if !a.IsComputed() {
				continue
			}
			if err := tftypes.Walk(shown[name], func(at *tftypes.AttributePath, v tftypes.Value) (bool, error) {
				if unclean := src.typeName == "kura_dns_audit" && name == "clean"; v.IsNull() || v.Equal(tftypes.NewValue(tftypes.Bool, false)) && !unclean {
					t.Errorf("%s: %s %s is %s, and the daemon told something", src.typeName, name, at, v)
				}
				return true, nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestD6_theAuditIsCleanWhereAllOfItCouldBeReadAndNothingIsWrong(t *testing.T) {
	ours := map[fleet.FindingKind]int{fleet.FindingOurs: 2}
	for name, c := range map[string]struct {
		audit api.DNSAudit
		clean bool
	}{
		"no zone":            {api.DNSAudit{}, true},
		"all is well":        {api.DNSAudit{Zones: []fleet.AuditedZone{{Zone: "kura.test"}}, Counts: ours}, true},
		"something":          {api.DNSAudit{Counts: map[fleet.FindingKind]int{fleet.FindingOurs: 2, fleet.FindingStale: 1}}, false},
		"a zone is not read": {api.DNSAudit{Zones: []fleet.AuditedZone{{Zone: "kura.test", Reason: fleet.ReasonZoneUnreachable}}, Counts: ours}, false},
	} {
		d := &told{answers: map[string]any{"GET /v1/dns/audit": c.audit}}
		s, _ := sessionWith(t, d.ServeHTTP)
		src, ok := newDNSAuditDataSource().(*source)
		if !ok {
			t.Fatal("it is no source")
		}
		answer, err := src.answer(t.Context(), s.client, question{}, &diag.Diagnostics{})
		got, _ := answer.(map[string]any)
		counted, _ := got["counts"].(map[string]int)
		if err != nil || got["clean"] != c.clean || len(counted) != len(fleet.FindingKinds()) || counted["wanted-ours"] != c.audit.Counts[fleet.FindingOurs] {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
