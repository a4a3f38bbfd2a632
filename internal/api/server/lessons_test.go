package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func urls(endpoints []api.Endpoint) string {
	var all []string
	for _, e := range endpoints {
		all = append(all, e.URL)
	}
	return strings.Join(all, " ")
}

// There is no mirror of endpoints that could lack a row: what clients get is the status
// of the servers, and no other record holds it.
func TestL7_endpointsDeriveFromServers(t *testing.T) {
	below := conformance.NewMemory()
	w := newWorldOn(t, below)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	const url = "https://published.example:20001"
	w.turn(key("acme", "eu"), active("v1", url))
	all, err := below.List(t.Context(), "/", kv.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var holders []string
	for _, kv := range all.Items {
		if strings.Contains(string(kv.Value), url) {
			holders = append(holders, kv.Key)
		}
	}
	if diff := cmp.Diff([]string{"/kura/v1/staging/servers/eu/acme/status"}, holders); diff != "" {
		t.Errorf("records that hold the url (-want +got):\n%s", diff)
	}
	if got, err := w.client.Resolve(t.Context(), "acme"); urls(got) != url || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestL19_destroyingOneServerKeepsTheEndpointOfTheOther(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu", "us"}, "acme")
	for _, r := range []string{"eu", "us"} {
		w.put(srv("acme", r, "v1"))
		w.turn(key("acme", r), active("v1", "https://"+r+".kura.test"))
	}
	for _, c := range []struct{ destroyed, left string }{{"eu", "https://us.kura.test"}, {"us", ""}} {
		w.must(w.client.DeleteServer(ctx, key("acme", c.destroyed)))
		for range 2 { // while it is destroyed, and when it is gone
			if got, err := w.client.Resolve(ctx, "acme"); urls(got) != c.left || err != nil {
				t.Errorf("%s destroyed: %q, %v, want %q", c.destroyed, urls(got), err, c.left)
			}
			if _, err := w.client.GetServer(ctx, key("acme", c.destroyed), api.GetOptions{}); err == nil {
				w.remove(key("acme", c.destroyed))
			}
		}
	}
}

// A pause is no quiet channel: it reads from the region, from each server that it holds,
// and a list finds them.
func TestL28_aPauseIsVisibleInTheAPI(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu", "us"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	r := region("eu")
	r.Paused = true
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	if got, err := w.client.GetRegion(ctx, "eu"); err != nil || !got.Paused {
		t.Errorf("%+v, %v", got, err)
	}
	w.turn(key("acme", "eu"), func(s *fleet.Status) {
		s.Verdict, s.VerdictReason = fleet.VerdictHeld, fleet.ReasonPaused
		s.Holds = []fleet.Hold{{Kind: fleet.HoldPaused, Message: `region "eu" is paused`}}
		s.Runtime.Intended = &fleet.Plan{Kind: fleet.PlanApply}
	})
	got, err := w.client.GetServer(ctx, key("acme", "eu"), api.GetOptions{})
	if err != nil || got.Verdict != fleet.VerdictHeld || len(got.Holds) != 1 || got.Holds[0].Kind != fleet.HoldPaused || got.Plan != nil || got.IntendedPlan == nil {
		t.Errorf("%+v, %v", got, err)
	}
	held, err := w.client.ListServers(ctx, api.ServerFilter{Verdict: fleet.VerdictHeld})
	if err != nil || len(held) != 1 || held[0].Region != "eu" {
		t.Errorf("%+v, %v", held, err)
	}
}

// Nothing cascades: an account goes when its last server is gone, and not before.
func TestL30_anAccountEndsAfterItsServers(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), active("v1", "https://acme-eu-staging.kura.test"))
	refused := func() {
		t.Helper()
		wantFault(t, w.client.DeleteAccount(ctx, "acme"), fleet.CodeConflict, "", `account "acme"`, "server acme/eu", "destroy its servers first")
		if got, err := w.client.GetServer(ctx, key("acme", "eu"), api.GetOptions{}); err != nil || got.Instance == "" {
			t.Errorf("the server lost what names its instance: %+v, %v", got, err)
		}
	}
	refused()
	w.must(w.client.DeleteServer(ctx, key("acme", "eu")))
	refused() // its instance may still be there
	w.remove(key("acme", "eu"))
	if err := w.client.DeleteAccount(ctx, "acme"); err != nil {
		t.Error(err)
	}
}

// A region that is retired, even one whose endpoint this kurad was not given any more,
// stays until its servers are gone, takes no new ones, and lets its own go.
func TestL31_aRetiredRegionStaysForItsServersToGo(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	wantFault(t, w.client.DeleteRegion(ctx, "eu"), fleet.CodeConflict, "", `region "eu"`, "server acme/eu", "destroy its servers first")
	r := region("eu")
	r.Cordoned = true
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	_, err := w.client.PutServer(ctx, srv("beta", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/region", "cordoned")

	w.runtimes.first, w.runtimes.last = 0, 0 // the endpoint is gone from the flags
	_, err = w.client.PutServer(ctx, srv("beta", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "")
	if got, err := w.client.DeleteServer(ctx, key("acme", "eu")); err != nil || got.Verdict != fleet.VerdictDestroying || got.Instance == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	w.remove(key("acme", "eu"))
	if err := w.client.DeleteRegion(ctx, "eu"); err != nil {
		t.Error(err)
	}
	_, err = w.client.PutServer(ctx, srv("beta", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/region", `region "eu" does not exist`)
}

func TestL33_aRenameChangesHostsAndNothingElse(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	before := w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), active("v1", before.DeclaredURL))
	out, err := w.client.PutAccount(ctx, fleet.Account{ID: "acme", Handle: "apex"}, api.PutOptions{})
	if err != nil || len(out.Warnings) == 0 || !strings.Contains(out.Warnings[0].Detail, "acme-eu-staging.kura.test to apex-eu-staging.kura.test") {
		t.Errorf("%+v, %v", out, err)
	}
	after, err := w.client.GetServer(ctx, key("acme", "eu"), api.GetOptions{})
	w.must(nil, err)
	if after.Hosts.Public != "apex-eu-staging.kura.test" || after.Instance != before.Instance || after.Instance != "kura-acme-eu" || !cmp.Equal(after.Ports, before.Ports) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	if after.PublishedURL != before.DeclaredURL {
		t.Errorf("published %s before the new host served", after.PublishedURL)
	}
	// The old host stays the server's own while it is published.
	beta := w.lookalike("beta", "acme-eu-staging.kura.test")
	_, err = w.client.PutServer(ctx, beta, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "acme-eu-staging.kura.test", "server acme/eu", "server beta/bare")
	// And, once the new host is published, while it is kept as an alias (H4).
	w.turn(key("acme", "eu"), func(s *fleet.Status) {
		s.PublishedURL, s.Aliases = after.DeclaredURL, []fleet.Alias{{Host: "acme-eu-staging.kura.test"}}
	})
	_, err = w.client.PutServer(ctx, beta, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "acme-eu-staging.kura.test", "server acme/eu")
	w.turn(key("acme", "eu"), func(s *fleet.Status) { s.Aliases = nil })
	if _, err := w.client.PutServer(ctx, beta, api.PutOptions{}); err != nil {
		t.Errorf("the alias is over, and its host free: %v", err)
	}
}
