package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
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

// A kurad from before hosts of accounts were reserved left servers without a share: they get it
// before anybody else has the host.
func TestH4_serversThatAnOlderKuradStoredGetTheirShareInTheGlobalHost(t *testing.T) {
	const host = "acme-global-staging.kura.test"
	w, ctx := newWorld(t), t.Context()
	w.globals([]string{"eu", "us"}, "acme")
	strip := func() {
		t.Helper()
		for _, k := range []fleet.ServerKey{key("acme", "eu"), key("acme", "us")} {
			tx := w.records.Begin()
			tx.Release(k, store.ReserveShare(host, k))
			w.must(tx.Commit(ctx))
		}
	}
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	strip()
	thief := w.lookalike("sly", host)
	w.must(w.client.PutServer(ctx, thief, api.PutOptions{DryRun: true})) // nothing holds it
	for range 2 {
		w.must(nil, w.declarer.ShareGlobals(ctx))
	}
	if sharers, err := w.records.Sharers(ctx, host); len(sharers) != 2 || err != nil {
		t.Errorf("the host is shared by %v, %v", sharers, err)
	}
	_, err := w.client.PutServer(ctx, thief, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "server acme/", host)

	strip()
	w.must(w.client.PutServer(ctx, thief, api.PutOptions{})) // too late: it stays who has it
	w.must(nil, w.declarer.ShareGlobals(ctx))
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
	for range 3 { // one stale share a time
		w.must(nil, w.declarer.GiveBack(ctx))
	}
	for host, want := range map[string]bool{"acme": true, "apex": false} {
		h, held, err := w.records.Holder(ctx, store.ReserveHost(host+"-global-staging.kura.test"))
		sharers, err2 := w.records.Sharers(ctx, host+"-global-staging.kura.test")
		if held != want || (len(sharers) == 2) != want || (len(sharers) == 0) == want || err != nil || err2 != nil {
			t.Errorf("%s: held %t by %+v, shared by %v, %v, %v", host, held, h, sharers, err, err2)
		}
	}
}
