package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// withGlobal gives a region the global host {account_handle}-global.
func withGlobal(r fleet.Region) fleet.Region {
	r.Hosts.Global, r.Location = "global", &fleet.Location{Latitude: 1, Longitude: 2}
	return r
}

// globals declares the template of global hosts, the regions with one, and accounts.
func (w *world) globals(regions []string, accounts ...string) {
	w.t.Helper()
	w.must(w.client.PutHostTemplate(w.t.Context(), fleet.HostTemplate{Name: "global", Pattern: "{account_handle}-global{env_suffix}.kura.test"}, api.PutOptions{}))
	w.seed(regions, accounts...)
	for _, name := range regions {
		w.must(w.client.PutRegion(w.t.Context(), withGlobal(region(name)), api.PutOptions{}))
	}
}

// fleetOf declares n servers, twenty of each account, with or without a global host.
func fleetOf(t testing.TB, n int, global bool) (*world, *api.Client) {
	const each = 20
	w := newWorld(t)
	w.runtimes.last = 65535
	var regions, accounts []string
	for i := range each {
		regions = append(regions, fmt.Sprintf("r%02d", i))
		w.runtimes.more = append(w.runtimes.more, fmt.Sprintf("podman%d", i))
	}
	for i := range n / each {
		accounts = append(accounts, fmt.Sprintf("a%03d", i))
	}
	w.seed(nil, accounts...)
	if global {
		w.globals(nil)
	}
	for i, name := range regions {
		r := region(name)
		if r.Containers.Endpoint = fmt.Sprintf("podman%d", i); global {
			r = withGlobal(r)
		}
		w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
		for _, a := range accounts {
			w.must(w.client.PutServer(t.Context(), srv(a, name, "v1"), api.PutOptions{}))
		}
	}
	w.viewed()
	return w, w.client
}

// Issue 9, E4: one server's write costs what concerns it, however many others have a global
// host, and runs beside them.
func TestH4_aWriteOfAServerWithAGlobalHostRendersThatServerAloneAndRunsBesideOthers(t *testing.T) {
	for _, n := range []int{20, 200} {
		w, c := fleetOf(t, n, true)
		other := store.NewRecords(w.below, w.env.Name) // another replica's
		lock, err := other.RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.renders.Store(0)
		w.must(c.PutServer(t.Context(), srv("a000", "r00", "v2"), api.PutOptions{}))
		if got := w.renders.Load(); got > 2 { // for the store, and for the answer
			t.Errorf("of %d servers one is written, and %d are rendered", n, got)
		}
		tx := other.Begin()
		tx.Under(lock)
		if _, err := tx.Commit(t.Context()); err != nil {
			t.Errorf("the write ran alone: %v", err)
		}
	}
}

// While one account's write is about to be stored another's is made, from the first word to
// the last, in the same kurad and in another: neither waits, and neither begins again.
func TestH4_writesOfTwoAccountsInARegionWithAGlobalHostDoNotWaitForEachOther(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("in %d processes", replicas), func(t *testing.T) {
			below := &beforehand{Store: conformance.NewMemory(), key: "/kura/v1/staging/" + store.ReserveGlobal("acme-global-staging.kura.test").Key()}
			w := newWorldOn(t, below)
			w.globals([]string{"eu"}, "acme", "beta")
			other := w
			if replicas == 2 {
				other = newWorldOn(t, &beforehand{Store: below})
			}
			below.then = func() { w.must(other.client.PutServer(t.Context(), srv("beta", "eu", "v1"), api.PutOptions{})) }
			w.must(w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}))
			if below.then != nil || below.n != 1 {
				t.Errorf("the other write was made: %t; this one was tried %d times", below.then == nil, below.n)
			}
		})
	}
}

// An account's host is about to be taken back, for none of its servers needs it, and in that
// moment one is declared that does.
func TestH4_aGlobalHostIsNotTakenBackFromAnAccountWhoseServerComes(t *testing.T) {
	const host = "acme-global-staging.kura.test"
	below := &beforehand{Store: conformance.NewMemory(), key: "/kura/v1/staging/" + store.ReserveGlobal(host).Key()}
	w := newWorldOn(t, below)
	w.globals([]string{"eu", "us"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.must(w.client.DeleteServer(t.Context(), key("acme", "eu")))
	w.remove(key("acme", "eu"))
	w.clock.advance(aliasPeriod)
	thief := w.lookalike("sly", host)
	below.then = func() { w.must(w.client.PutServer(t.Context(), srv("acme", "us", "v1"), api.PutOptions{})) }
	_, err := w.client.PutServer(t.Context(), thief, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "server acme/us has", host)
	if below.then != nil {
		t.Error("nothing was taken back")
	}
}

// The records of the last kurad of schema 2, in which acme's servers have shares in its host
// and beta's only one is gone, are opened by this one: the hosts stay whose they are.
func TestG7_globalHostsOfSchema2StayTheirAccounts(t *testing.T) {
	raw, err := os.ReadFile("testdata/globalhosts-schema2.json")
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	below := conformance.NewMemory()
	for k, v := range stored {
		if _, err := below.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/kura/v1/staging/"+k, v)}}); err != nil {
			t.Fatal(err)
		}
	}
	w, ctx := newWorldOn(t, below), t.Context()
	w.viewed()
	if page, err := below.List(ctx, "/kura/v1/staging/shares/", kv.ListOptions{}); len(page.Items) > 0 || err != nil {
		t.Errorf("shares are left: %v, %v", page.Items, err)
	}
	w.must(nil, w.declarer.ReserveGlobals(ctx))
	w.must(nil, w.declarer.GiveBack(ctx))
	wants := func(account, why string) {
		t.Helper()
		host := account + "-global-staging.kura.test"
		_, err := w.client.PutServer(ctx, w.lookalike("sly", host), api.PutOptions{})
		wantFault(t, err, fleet.CodeConflict, "/account", why, host)
	}
	wants("acme", "server acme/eu has")
	wants("beta", "gave it up")
	tx := w.records.Begin()
	tx.Claim(key("acme", "eu"), store.ReservePort("podman", 20999))
	w.must(tx.Commit(ctx))
	if item, err := below.Get(ctx, "/kura/v1/staging/servers/eu/acme/claims"); err != nil || !strings.HasPrefix(string(item.Value), `{"schema":3,`) || !strings.Contains(string(item.Value), `"globals/acme-global-staging.kura.test"`) {
		t.Errorf("claims are written as %s, %v", item.Value, err)
	}
	for _, r := range []string{"eu", "us"} { // one that was written since, and one that was not
		wants("acme", "server acme/")
		w.must(w.client.DeleteServer(ctx, key("acme", r)))
		w.remove(key("acme", r))
	}
	wants("acme", "gave it up")
}

// BenchmarkPutServer says what a write of one server costs in a fleet of 100 and of 2,000,
// with and without global hosts. The number to look at is the ratio of the ratios.
func BenchmarkPutServer(b *testing.B) {
	type at struct {
		n      int
		global bool
	}
	took := map[at]time.Duration{}
	clients := map[at]*api.Client{}
	for _, f := range []at{{100, false}, {100, true}, {2000, false}, {2000, true}} {
		_, clients[f] = fleetOf(b, f.n, f.global)
	}
	for i := 0; b.Loop(); i++ {
		for f, c := range clients { // by turns: whatever else the machine does, it does to all
			start := time.Now()
			if _, err := c.PutServer(b.Context(), srv("a000", "r00", fmt.Sprint("v", i+2)), api.PutOptions{}); err != nil {
				b.Fatal(err)
			}
			took[f] += time.Since(start)
		}
	}
	ratio := func(global bool) float64 {
		return float64(took[at{2000, global}]) / float64(took[at{100, global}])
	}
	for f, d := range took {
		b.ReportMetric(float64(d.Microseconds())/float64(b.N), fmt.Sprintf("µs/put-of-%d-global-%t", f.n, f.global))
	}
	b.ReportMetric(ratio(false), "2000/100-without")
	b.ReportMetric(ratio(true), "2000/100-with")
}

// The servers of one account share its global host, whoever is quicker; nobody else has it,
// be it as a global or as its own.
func TestH4_ofAccountsThatWantOneGlobalHostAtOnceOneGetsIt(t *testing.T) {
	const n = 8
	w, ctx := newWorld(t), t.Context()
	var accounts []string
	for i := range n {
		accounts = append(accounts, fmt.Sprintf("a%d", i))
	}
	w.seed([]string{"eu", "us"}, accounts...)
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "one", Pattern: "everybody{env_suffix}.kura.test"}, api.PutOptions{}))
	for _, name := range []string{"eu", "us"} {
		r := withGlobal(region(name))
		r.Hosts.Global = "one"
		w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	}
	var mu sync.Mutex
	won := map[string]int{}
	var wg sync.WaitGroup
	for _, a := range accounts {
		for _, name := range []string{"eu", "us"} {
			wg.Go(func() {
				_, err := w.client.PutServer(ctx, srv(a, name, "v1"), api.PutOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won[a]++
				} else if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "everybody-staging.kura.test") {
					t.Errorf("%s/%s: %v", a, name, err)
				}
			})
		}
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("accounts %v share one global host", won)
	}
	for a, servers := range won {
		if servers != 2 {
			t.Errorf("%d servers of %s have it, want both", servers, a)
		}
	}
}

// Nor may a server have as its own what is its account's.
func TestH4_aGlobalHostIsNoServersOwn(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.globals([]string{"eu"}, "acme", "acme-x")
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "alike", Pattern: "{account_handle}-global{env_suffix}.kura.test"}, api.PutOptions{}))
	own := region("own")
	own.Hosts.Public = "alike"
	w.must(w.client.PutRegion(ctx, own, api.PutOptions{}))
	both := withGlobal(region("both"))
	both.Hosts.Public = "alike"
	w.must(w.client.PutRegion(ctx, both, api.PutOptions{}))
	for _, dry := range []bool{true, false} {
		_, err := w.client.PutServer(ctx, srv("acme-x", "both", "v1"), api.PutOptions{DryRun: dry})
		wantFault(t, err, fleet.CodeConflict, "/account", `host "acme-x-global-staging.kura.test"`, "server acme-x/both")
	}
	w.put(srv("acme", "eu", "v1"))
	for _, dry := range []bool{true, false} {
		_, err := w.client.PutServer(ctx, srv("acme", "own", "v1"), api.PutOptions{DryRun: dry})
		wantFault(t, err, fleet.CodeConflict, "/account", `host "acme-global-staging.kura.test"`, "server acme/eu has")
	}
	// And the other way round, also where a region is about to have one.
	w.put(srv("acme-x", "own", "v1"))
	_, err := w.client.PutServer(ctx, srv("acme-x", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", `host "acme-x-global-staging.kura.test"`, "server acme-x/own has")
	w.must(w.client.PutRegion(ctx, region("plain"), api.PutOptions{}))
	w.put(srv("acme-x", "plain", "v1"))
	for _, dry := range []bool{true, false} {
		_, err = w.client.PutRegion(ctx, withGlobal(region("plain")), api.PutOptions{DryRun: dry})
		if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "acme-x-global-staging") {
			t.Errorf("dry %t: %v", dry, err)
		}
	}
}

// H10 holds of a global host as well: the account's until the alias period is over, once the
// last server gave it up.
func TestH10_aGlobalHostThatIsGivenUpStaysItsAccountsForTheAliasPeriod(t *testing.T) {
	const host = "acme-global-staging.kura.test"
	for name, giveUp := range map[string]func(*world){
		"renamed": func(w *world) { w.must(nil, w.handle(w.client, "acme", "apex")) },
		"removed": func(w *world) {
			for _, r := range []string{"eu", "us"} {
				w.must(w.client.DeleteServer(w.t.Context(), key("acme", r)))
				w.remove(key("acme", r))
			}
		},
		"no more declared": func(w *world) {
			for _, r := range []string{"eu", "us"} {
				w.must(w.client.PutRegion(w.t.Context(), region(r), api.PutOptions{}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			w.globals([]string{"eu", "us"}, "acme")
			w.put(srv("acme", "eu", "v1"))
			w.put(srv("acme", "us", "v1"))
			// One server less gives nothing up.
			w.must(w.client.DeleteServer(ctx, key("acme", "us")))
			w.remove(key("acme", "us"))
			w.clock.advance(2 * aliasPeriod)
			w.must(nil, w.declarer.GiveBack(ctx))
			thief := w.lookalike("sly", host)
			_, err := w.client.PutServer(ctx, thief, api.PutOptions{})
			wantFault(t, err, fleet.CodeConflict, "/account", "server acme/eu has", host)
			w.put(srv("acme", "us", "v1"))

			giveUp(w)
			for _, dry := range []bool{true, false} {
				if _, err := w.client.PutServer(ctx, thief, api.PutOptions{DryRun: dry}); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "gave it up") {
					t.Errorf("given up, and at once another's (dry %t): %v", dry, err)
				}
			}
			w.clock.advance(aliasPeriod - time.Second)
			w.must(nil, w.declarer.GiveBack(ctx)) // too early
			if _, err := w.client.PutServer(ctx, thief, api.PutOptions{}); fleet.CodeOf(err) != fleet.CodeConflict {
				t.Errorf("a second before the end: %v", err)
			}
			w.clock.advance(time.Second)
			w.must(w.client.PutServer(ctx, thief, api.PutOptions{DryRun: true}))
			w.must(w.client.PutServer(ctx, thief, api.PutOptions{}))
		})
	}
}

// A kurad from before hosts of accounts were reserved left servers without one: their account gets
// it before anybody else does.
func TestH4_serversThatAnOlderKuradStoredGetTheirGlobalHost(t *testing.T) {
	const host = "acme-global-staging.kura.test"
	w, ctx := newWorld(t), t.Context()
	w.globals([]string{"eu", "us"}, "acme")
	res := store.ReserveGlobal(host)
	strip := func() {
		t.Helper()
		for _, k := range []fleet.ServerKey{key("acme", "eu"), key("acme", "us")} {
			tx := w.records.Begin()
			tx.Release(k, res)
			w.must(tx.Commit(ctx))
		}
		used, _ := errors.AsType[*store.UsedError](w.records.Free(ctx, w.clock.now(), key("sly", "eu"), res))
		tx := w.records.Begin()
		tx.Forget(res, used.Revision)
		w.must(tx.Commit(ctx))
	}
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	strip()
	thief := w.lookalike("sly", host)
	w.must(w.client.PutServer(ctx, thief, api.PutOptions{DryRun: true})) // nothing holds it
	for range 2 {
		w.must(nil, w.declarer.ReserveGlobals(ctx))
	}
	for _, r := range []string{"eu", "us"} {
		if claims, err := w.records.Claims(ctx, key("acme", r)); !slices.Contains(claims.Value.Held, res) || err != nil {
			t.Errorf("server acme/%s holds %v, %v", r, claims.Value.Held, err)
		}
	}
	_, err := w.client.PutServer(ctx, thief, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "server acme/", host)

	strip()
	w.must(w.client.PutServer(ctx, thief, api.PutOptions{})) // too late: it stays who has it
	w.must(nil, w.declarer.ReserveGlobals(ctx))
	if h, _, err := w.records.Holder(ctx, store.ReserveHost(host)); h.Account != "sly" || err != nil {
		t.Errorf("the host is held by %+v, %v", h, err)
	}
}

// What nobody asks for is swept, and what is needed again is not.
func TestH10_aGlobalHostWhoseTimeIsOverIsGivenBack(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.globals([]string{"eu", "us"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	w.must(nil, w.handle(w.client, "acme", "apex"))
	w.must(nil, w.handle(w.client, "acme", ""))
	w.clock.advance(aliasPeriod)
	w.must(nil, w.declarer.GiveBack(ctx))
	for host, want := range map[string]bool{"acme": true, "apex": false} {
		h, held, err := w.records.Holder(ctx, store.ReserveHost(host+"-global-staging.kura.test"))
		if held != want || err != nil {
			t.Errorf("%s: held %t by %+v, %v", host, held, h, err)
		}
	}
}
