package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func endpoint(account, url string) fleet.CacheEndpoint {
	return fleet.CacheEndpoint{Account: account, Technology: fleet.TechnologyDefault, URL: url}
}

func TestCacheEndpoints_areWrittenReadListedAndRemoved(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil, "acme", "bravo")
	e := endpoint("acme", "https://cache.example.dev/bazel")
	made, err := w.client.PutCacheEndpoint(ctx, fleet.CacheEndpoint{Account: e.Account, URL: e.URL}, api.PutOptions{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	want := api.CacheEndpoint{Generation: 1, Key: e.Key(), CacheEndpoint: e}
	if diff := cmp.Diff(api.Written[api.CacheEndpoint]{Object: want, Created: true, Changed: true}, made); diff != "" {
		t.Error(diff)
	}
	got, err := w.client.GetCacheEndpoint(ctx, e)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	again, err := w.client.PutCacheEndpoint(ctx, e, api.PutOptions{})
	if err != nil || again.Changed || again.Created {
		t.Errorf("an equal declaration: %+v, %v; want no change", again, err)
	}
	_, err = w.client.PutCacheEndpoint(ctx, e, api.PutOptions{IfNoneMatch: true})
	wantFault(t, err, fleet.CodeConflict, "", "cache endpoint acme/default/https://cache.example.dev/bazel exists already")

	other := fleet.CacheEndpoint{Account: "acme", Technology: "bazel", URL: e.URL}
	w.must(w.client.PutCacheEndpoint(ctx, other, api.PutOptions{}))
	w.must(w.client.PutCacheEndpoint(ctx, endpoint("bravo", e.URL), api.PutOptions{}))
	for _, c := range []struct {
		filter api.CacheEndpointFilter
		want   []string
	}{
		{api.CacheEndpointFilter{}, []string{e.String(), other.String(), endpoint("bravo", e.URL).String()}},
		{api.CacheEndpointFilter{Account: "acme"}, []string{e.String(), other.String()}},
		{api.CacheEndpointFilter{Technology: "bazel"}, []string{other.String()}},
		{api.CacheEndpointFilter{Account: "nobody"}, nil},
	} {
		list, err := w.client.ListCacheEndpoints(ctx, c.filter)
		var names []string
		for _, v := range list {
			names = append(names, v.String())
		}
		slices.Sort(names)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, names); diff != "" || err != nil {
			t.Errorf("%+v: %s %v", c.filter, diff, err)
		}
	}
	wantFault(t, w.client.DeleteAccount(ctx, "bravo"), fleet.CodeConflict, "", `account "bravo" is still used by cache endpoint bravo/default/https://cache.example.dev/bazel`, "delete its cache endpoints")
	for _, err := range []error{w.client.DeleteCacheEndpoint(ctx, e), w.client.DeleteCacheEndpoint(ctx, endpoint("bravo", e.URL)), w.client.DeleteAccount(ctx, "bravo")} {
		if err != nil {
			t.Error(err)
		}
	}
	_, err = w.client.GetCacheEndpoint(ctx, e)
	wantFault(t, err, fleet.CodeNotFound, "", "does not exist")
	wantFault(t, w.client.DeleteCacheEndpoint(ctx, e), fleet.CodeNotFound, "", "does not exist")
}

func TestCacheEndpoints_areCutIntoPages(t *testing.T) {
	w := newWorld(t)
	w.seed(nil, "acme")
	for i := range 5 {
		w.must(w.client.PutCacheEndpoint(t.Context(), endpoint("acme", fmt.Sprintf("https://c%d.example.dev", i)), api.PutOptions{}))
	}
	for _, query := range []string{"", "account=acme&"} {
		var keys []string
		for next := ""; ; {
			var got api.List[api.CacheEndpoint]
			w.getJSON("/v1/cache-endpoints?"+query+"limit=2&page="+next, &got)
			for _, e := range got.Items {
				keys = append(keys, e.Key)
			}
			if next = got.Next; next == "" {
				break
			}
		}
		if len(keys) != 5 || !slices.IsSorted(keys) {
			t.Errorf("%q: %v", query, keys)
		}
	}
}

func TestCacheEndpoints_whatIsWrongIsSaidAtItsField(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil, "acme")
	put := func(e fleet.CacheEndpoint) error {
		_, err := w.client.PutCacheEndpoint(ctx, e, api.PutOptions{})
		return err
	}
	wantFault(t, put(endpoint("acme", "http://cache.example.dev")), fleet.CodeInvalid, "/url", "https")
	wantFault(t, put(fleet.CacheEndpoint{Account: "acme", Technology: "kura", URL: "https://cache.example.dev"}), fleet.CodeInvalid, "/technology", "derives")
	wantFault(t, put(endpoint("nobody", "https://cache.example.dev")), fleet.CodeInvalid, "/account", `account "nobody" does not exist`, "kura_account")
	// A dry run takes an account for one that the same apply declares.
	dry, err := w.client.PutCacheEndpoint(ctx, endpoint("nobody", "https://cache.example.dev"), api.PutOptions{DryRun: true})
	if err != nil || len(dry.Warnings) != 1 || dry.Warnings[0].Code != fleet.WarnNeighbourUnknown || dry.Warnings[0].Pointer != "/account" {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	e := endpoint("acme", "https://cache.example.dev")
	for path, words := range map[string][]string{
		"/v1/cache-endpoints/acme/0123456789abcdef": {"/url", "have the key " + e.Key(), "/v1/cache-endpoints/acme/" + e.Key()},
		"/v1/cache-endpoints/bravo/" + e.Key():      {"/account", `must be "bravo"`},
	} {
		p := w.problem("PUT", path, `{"account":"acme","url":"https://cache.example.dev"}`, w.admin)
		if text := fmt.Sprint(p); p.Status != 422 && p.Status != 400 || slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(text, s) }) {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if _, err := w.client.PutCacheEndpoint(ctx, e, api.PutOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if list, err := w.client.ListCacheEndpoints(ctx, api.CacheEndpointFilter{}); len(list) != 0 || err != nil {
		t.Errorf("written: %+v, %v", list, err)
	}
}

func TestH9_aStaleEndpointIsRefusedAsSoonAsItsZoneIsKnown(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil, "acme")
	stale := endpoint("acme", "https://acme-eu-central-1.kura.test")
	for _, dry := range []bool{true, false} {
		_, err := w.client.PutCacheEndpoint(ctx, stale, api.PutOptions{DryRun: dry})
		wantFault(t, err, fleet.CodeInvalid, "/url", `host "acme-eu-central-1.kura.test" is stale in environment "staging"`, `host template "public"`, `"-staging"`)
	}
	w.must(w.client.PutCacheEndpoint(ctx, endpoint("acme", "https://acme-eu-central-1-staging.kura.test"), api.PutOptions{}))
	w.must(w.client.PutCacheEndpoint(ctx, endpoint("acme", "https://old.other.test"), api.PutOptions{}))
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "other", Pattern: "{account_handle}{env_suffix}.other.test"}, api.PutOptions{}))
	_, err := w.client.PutCacheEndpoint(ctx, endpoint("acme", "https://new.other.test"), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/url", `host template "other"`)
	// What was declared before its zone was known stays, and declaring it again is no write.
	if again, err := w.client.PutCacheEndpoint(ctx, endpoint("acme", "https://old.other.test"), api.PutOptions{}); err != nil || again.Changed {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestCacheEndpoints_anAccountHasABoundedNumber(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil, "acme", "bravo")
	url := func(i int) string { return fmt.Sprintf("https://c%d.example.dev", i) }
	for i := range fleet.MaxCacheEndpoints {
		w.must(w.client.PutCacheEndpoint(ctx, endpoint("acme", url(i)), api.PutOptions{}))
	}
	_, err := w.client.PutCacheEndpoint(ctx, endpoint("acme", url(fleet.MaxCacheEndpoints)), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", `account "acme" has 64 declared endpoints`, "delete one")
	w.must(w.client.PutCacheEndpoint(ctx, endpoint("bravo", url(0)), api.PutOptions{}))
	w.must(nil, w.client.DeleteCacheEndpoint(ctx, endpoint("acme", url(3))))
	w.must(w.client.PutCacheEndpoint(ctx, endpoint("acme", url(fleet.MaxCacheEndpoints)), api.PutOptions{}))
}

// What clients get is ordered by what answers; what nobody has asked yet may well answer.
func TestEndpoints_thoseThatAnswerComeFirst(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"ap", "eu", "us"}, "acme")
	condition := func(status fleet.ConditionStatus) func(*fleet.Status) {
		return func(s *fleet.Status) {
			s.Conditions = []fleet.Condition{{Type: fleet.ConditionEndpointReady, Status: status}}
		}
	}
	for r, status := range map[string]fleet.ConditionStatus{"ap": fleet.False, "eu": fleet.True, "us": fleet.Unknown} {
		w.put(srv("acme", r, "v1"))
		w.turn(key("acme", r), active("v1", "https://"+r+".kura.test"))
		w.turn(key("acme", r), condition(status))
	}
	for _, url := range []string{"https://down.example.dev", "https://new.example.dev", "https://up.example.dev"} {
		w.must(w.client.PutCacheEndpoint(ctx, endpoint("acme", url), api.PutOptions{}))
	}
	w.declared.answers("https://up.example.dev", true)
	w.declared.answers("https://down.example.dev", false)
	got, err := w.client.Resolve(ctx, "acme")
	want := []api.Endpoint{
		{URL: "https://eu.kura.test", Technology: "kura", Region: "eu", Ready: true},
		{URL: "https://up.example.dev", Technology: "default", Ready: true},
		{URL: "https://us.kura.test", Technology: "kura", Region: "us"},
		{URL: "https://new.example.dev", Technology: "default"},
		{URL: "https://ap.kura.test", Technology: "kura", Region: "ap"},
		{URL: "https://down.example.dev", Technology: "default"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if list, err := w.client.Resolve(ctx, "nobody"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("an account that does not exist: %v, %v", list, err)
	}
}

// Only what a turn withholds is withheld: that another host of the server is somebody else's, or
// that nobody checks, is in the condition as well.
func TestD3_onlyAForeignNameIsWithheldFromClients(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	for withheld, listed := range map[fleet.Reason]int{"": 1, fleet.ReasonForeignOwner: 0, fleet.ReasonAmbiguousOwner: 0} {
		w.turn(key("acme", "eu"), func(s *fleet.Status) {
			active("v1", "https://eu.kura.test")(s)
			s.Withheld = withheld
			s.Conditions = append(s.Conditions, fleet.Condition{Type: fleet.ConditionDNSOwned, Status: fleet.False, Reason: fleet.ReasonForeignOwner})
		})
		if got, err := w.client.Resolve(ctx, "acme"); len(got) != listed || err != nil {
			t.Errorf("%q: %v, %v, want %d", withheld, got, err, listed)
		}
	}
}

// One url with several owners: the end of one owner takes away its own endpoint only.
func TestL19_theEndOfOneOwnerOfAURLKeepsTheOthers(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "bravo")
	const url = "https://acme-eu-staging.kura.test"
	w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), active("v1", url))
	first, second := endpoint("acme", url), fleet.CacheEndpoint{Account: "acme", Technology: "bazel", URL: url}
	for _, e := range []fleet.CacheEndpoint{first, second, endpoint("bravo", url)} {
		w.must(w.client.PutCacheEndpoint(ctx, e, api.PutOptions{}))
	}
	left := func(after string, want ...string) {
		t.Helper()
		got, err := w.client.Resolve(ctx, "acme")
		var technologies []string
		for _, e := range got {
			if e.URL != url {
				t.Errorf("%s: url %q", after, e.URL)
			}
			technologies = append(technologies, e.Technology)
		}
		slices.Sort(technologies)
		if diff := cmp.Diff(want, technologies); diff != "" || err != nil {
			t.Errorf("%s: %s %v", after, diff, err)
		}
		if other, err := w.client.Resolve(ctx, "bravo"); len(other) != 1 || err != nil {
			t.Errorf("%s: the other account has %v, %v", after, other, err)
		}
	}
	left("all are there", "bazel", "default", "kura")
	w.must(nil, w.client.DeleteCacheEndpoint(ctx, first))
	left("one declaration is gone", "bazel", "kura")
	w.must(w.client.DeleteServer(ctx, key("acme", "eu")))
	left("the server is being destroyed", "bazel")
	w.remove(key("acme", "eu"))
	left("the server is gone", "bazel")
	w.must(nil, w.client.DeleteCacheEndpoint(ctx, second))
	left("the last is gone")
}
