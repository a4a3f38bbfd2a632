package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/dns/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// cloud is the zone of a world at an emulated Cloudflare, which kurads publish in.
type cloud struct {
	*emulator.Emulator
	w   *world
	api *cloudflare.Zone
}

// cloud makes the region eu publish in kura.test, and returns what a kurad needs for it.
func (w *world) cloud() (*cloud, options) {
	w.t.Helper()
	e, err := emulator.New(emulator.Options{Zones: []emulator.Zone{{Name: "kura.test"}}, Tokens: []emulator.Token{{Value: "secret", Name: "kurad"}}, Socketless: true})
	w.must(err)
	token := filepath.Join(w.t.TempDir(), "token")
	w.must(os.WriteFile(token, []byte("secret\n"), 0o600))
	zone := dns.Zone{Domain: "kura.test", Name: "kura", Token: token, API: e.URL()}
	opened, err := cloudflare.Open([]dns.Zone{zone})
	w.must(err)
	c := &cloud{Emulator: e, w: w, api: opened["kura.test"]}
	c.api.Through(e.Client().Transport)
	tx := w.records.Begin()
	tx.PutTemplate(store.Versioned[fleet.HostTemplate]{}, fleet.HostTemplate{Name: "global", Pattern: "{account_handle}{env_suffix}.kura.test"})
	w.commit(tx)
	w.answers = true // the global host, which is not of one server
	w.region("eu", func(r *fleet.Region) {
		r.Hosts.Global, r.Location = "global", &fleet.Location{Latitude: 50.11, Longitude: 8.68}
		r.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: "kura-staging", Target: "192.0.2.1"}
		r.MaxUnsettled = 100
	})
	return c, options{
		tracks: []projection.Track{projection.Records{Environment: w.env.Name}, projection.Balancer{Environment: w.env.Name}},
		hosts: func(k *kurad) *dns.Watch {
			return dns.NewWatch(dns.WatchConfig{
				Environment: w.env, Zones: dns.Zones{zone}, APIs: map[string]dns.API{"kura.test": c.api.Observing()}, Now: time.Now, Log: hclog.NewNullLogger(),
				Changed: func(key fleet.ServerKey) { k.loop.Kick(key) },
				Queries: func(ask func(context.Context, dns.Question) fleet.HostRead, changed func(fleet.ServerKey)) dns.Queries {
					return readiness.NewWatcher(ask, changed, readiness.Pace{})
				},
			})
		},
		executors: func(*kurad) map[fleet.Executor]reconcile.Executor {
			publisher := &dns.Publisher{Zone: zone, Environment: w.env, API: c.api}
			balancers := &dns.Balancers{Zone: zone, Environment: w.env, API: c.api}
			return map[fleet.Executor]reconcile.Executor{fleet.ExecutorRecords: newTogether(publisher.Run), fleet.ExecutorBalancers: newTogether(balancers.Run)}
		},
	}
}

// together is an executor whose tasks are done by one call.
type together struct {
	run func(context.Context, reconcile.Call) fleet.Outcome
}

func newTogether(run func(context.Context, []fleet.Effect) []fleet.Outcome) together {
	return together{reconcile.Coalesce(1000, func(ctx context.Context, calls []reconcile.Call) []fleet.Outcome {
		var effects []fleet.Effect
		for _, c := range calls {
			effects = append(effects, c.Task.Effect)
		}
		return run(ctx, effects)
	})}
}

func (together) Room(fleet.Region, fleet.Task) reconcile.Room {
	return reconcile.Room{Name: "kura.test", Slots: 1000}
}

func (x together) Execute(ctx context.Context, c reconcile.Call) fleet.Outcome { return x.run(ctx, c) }

// said is what is said of all servers, by server and condition, with the verdict.
func (w *world) said(accounts []string) map[string]string {
	said := map[string]string{}
	for _, account := range accounts {
		s := w.status(account)
		said[account+" verdict"] = fmt.Sprintf("%s/%s", s.Verdict, s.VerdictReason)
		said[account+" status"] = fmt.Sprintf("%s %s", s.Status, s.PublishedURL)
		for _, c := range s.Conditions {
			said[account+" "+string(c.Type)] = fmt.Sprintf("%s/%s", c.Status, c.Reason)
		}
	}
	return said
}

// An API that is down for an hour, that lists nothing or half of what there is: no record changes, no
// server says anything but that its zone cannot be read, once, and there is no storm when it is over.
func TestD5_anHourWithoutAWholeListingChangesNothing(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"down":         {Kind: emulator.Unavailable},
		"hangs":        {Kind: emulator.Hang},
		"rate limited": {Kind: emulator.RateLimited, Form: emulator.Form10100},
		"lists none":   {Kind: emulator.EmptyListing},
		"lists half":   {Kind: emulator.HalfListing},
		"cuts half":    {Kind: emulator.ShortListing},
		"no balancers": {Kind: emulator.EmptyListing, Only: "GET balancers"},
		"half pools":   {Kind: emulator.HalfListing, Only: "GET pools"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				c, o := w.cloud()
				k := w.start(o)
				defer k.stop()
				var accounts []string
				for i := range 10 {
					accounts = append(accounts, fmt.Sprintf("s%02d", i))
					w.declare(accounts[i], "v1")
				}
				w.until("all are published", 5*time.Minute, func() bool { return w.count("v1") == len(accounts) })
				w.pass(10 * time.Minute)
				before, table, commits := w.said(accounts), c.Table(), k.commits.Load()
				is, changed := before, map[string][]string{}
				minutes := func(n, most int, what string) {
					for range n {
						calls := c.Counters().Total()
						for range 3 {
							w.pass(20 * time.Second)
							now := w.said(accounts)
							for of, say := range now {
								if is[of] != say {
									changed[of] = append(changed[of], say)
								}
							}
							is = now
						}
						if d := c.Counters().Total() - calls; d > most {
							t.Errorf("%d calls in a minute %s", d, what)
						}
					}
				}
				minutes(15, 12, "at rest")
				if len(changed) > 0 || k.commits.Load() > commits || k.tries.Load() > 0 {
					t.Errorf("at rest it says %v, by %d writes and %d", changed, k.commits.Load()-commits, k.tries.Load())
				}
				c.Break(fault)
				minutes(60, 24, "of the fault")
				if len(changed) == 0 {
					t.Error("nobody heard of it")
				}
				c.Heal()
				minutes(15, 24, "after it")
				if c.Table() != table {
					t.Errorf("there is\n%s\nwas\n%s", c.Table(), table)
				}
				for of, says := range changed {
					if len(says) != 2 || says[1] != before[of] || !strings.HasPrefix(says[0], "Unknown/") {
						t.Errorf("%s: %s, then %q", of, before[of], says)
					}
				}
				if d := k.commits.Load() - commits; d > int64(3*len(accounts)) || k.tries.Load() > 0 {
					t.Errorf("%d writes of %d servers, and %d", d, len(accounts), k.tries.Load())
				}
			})
		})
	}
}

// H8, P18: a region that stops declaring a global host takes its servers' pools out of the load balancers of
// their accounts, which lead on to other regions' pools, and go with the last one; so does what is left
// after somebody deleted the load balancer alone.
func TestH8_aRegionThatGivesUpItsGlobalHostLeavesItsLoadBalancers(t *testing.T) {
	virtual(t, func(w *world) {
		c, o := w.cloud()
		k := w.start(o)
		defer k.stop()
		for _, account := range []string{"one", "two", "bare"} {
			w.declare(account, "v1")
		}
		w.until("all are published", 5*time.Minute, func() bool { return w.count("v1") == 3 })
		others := dns.DeclaredPool(w.env.Name, fleet.ServerKey{Account: "two", Region: "us"}, fleet.DNSChange{Origin: "two-us-staging.kura.test"})
		others, err := c.api.PutPool(w.t.Context(), others)
		w.must(err)
		l, err := c.api.List(w.t.Context(), dns.Parts{Balancers: true})
		w.must(err)
		for _, b := range l.Balancers {
			switch b.Name {
			case "two-staging.kura.test":
				b.Pools = append(b.Pools, others.ID)
				_, err = c.api.PutBalancer(w.t.Context(), b)
			case "bare-staging.kura.test":
				err = c.api.DeleteBalancer(w.t.Context(), b.ID)
			}
			w.must(err)
		}
		w.region("eu", func(r *fleet.Region) { r.Hosts.Global = "" })
		w.until("no pool of the region is left", 10*time.Minute, func() bool {
			return w.count("v1") == 3 && !strings.Contains(c.Table(), "_eu") && strings.Contains(c.Table(), "LB proximity pools="+others.Name)
		})
		if table := c.Table(); strings.Count(table, "LB ") != 1 || strings.Count(table, "A 192.0.2.1 ") != 3 {
			t.Errorf("there is\n%s", table)
		}
		w.pass(time.Minute)
		c.ResetCounters()
		if w.pass(10 * time.Minute); len(c.Counters().Writes) > 0 {
			t.Errorf("it goes on writing: %s", c.Counters())
		}
	})
}

// D0, D2: what is declared while the API is down is done by the runtime, and what leads there follows.
func TestD2_whatIsDeclaredWhileTheAPIIsDownIsDoneAndRecordsFollow(t *testing.T) {
	virtual(t, func(w *world) {
		c, o := w.cloud()
		k := w.start(o)
		defer k.stop()
		for i := range 10 {
			w.declare(fmt.Sprintf("s%02d", i), "v1")
		}
		w.until("all are published", 5*time.Minute, func() bool { return w.count("v1") == 10 })
		c.Break(emulator.Fault{Kind: emulator.Unavailable})
		w.pass(5 * time.Minute)
		w.declare("s00", "v2")
		w.declare("new", "v1")
		w.destroy("s01")
		runs := func(account, tag string) bool {
			boxes := w.engine().of(account)
			return len(boxes) == 1 && boxes[0].State == fleet.ContainerRunning && strings.HasSuffix(boxes[0].Image, ":"+tag)
		}
		w.until("they run as declared", time.Minute, func() bool { return runs("s00", "v2") && runs("new", "v1") })
		w.pass(10 * time.Minute)
		if len(w.engine().of("s01")) != 1 || w.status("new").Status == fleet.StatusActive {
			t.Errorf("s01 has %v before its records went; new is %s", w.engine().of("s01"), w.status("new").Status)
		}
		w.until("what cannot be withdrawn from goes all the same", 6*time.Minute, func() bool { return len(w.engine().of("s01")) == 0 })
		w.pass(40 * time.Minute)
		if n := len(c.Records("s01-eu-staging.kura.test", "A")); n != 1 {
			t.Errorf("there are %d records of s01", n)
		}
		c.ResetCounters()
		c.Heal()
		w.until("all is as declared", 5*time.Minute, func() bool { return w.converged("s00", "v2") && w.converged("new", "v1") && w.gone("s01") })
		if is := c.Counters(); strings.Contains(c.Table(), "s01") || is.Total() > 60 || is.Limited > 0 {
			t.Errorf("after %s there is\n%s", is, c.Table())
		}
	})
}

// A fleet that comes at once needs more calls than its token has in five minutes: nobody is told that
// it calls too often, each balancer is written once, and nothing of it fails meanwhile.
func TestD7_aFleetThatComesAtOnceKeepsToTheBudget(t *testing.T) {
	virtual(t, func(w *world) {
		const n = 50
		c, o := w.cloud()
		c.SetLimit(emulator.Limit{Calls: 150}) // of which kurad takes 90 for changes
		k := w.start(o)
		defer k.stop()
		for i := range n {
			w.declare(fmt.Sprintf("s%03d", i), "v1")
		}
		w.until("all converge", 15*time.Minute, func() bool { return w.count("v1") == n })
		is := c.Counters()
		if is.Limited > 0 || is.Calls["POST batch"] > n*2/200+2 || is.Calls["POST balancers"] != n || is.Calls["POST pools"] != n {
			t.Errorf("%d calls beyond the limit, of %s", is.Limited, is)
		}
		for host, writes := range is.Writes {
			if writes > 2 {
				t.Errorf("the balancer %s was written %d times", host, writes)
			}
		}
		for i := range n {
			if s := w.status(fmt.Sprintf("s%03d", i)); s.Tracks[fleet.TrackBalancer] != nil && s.Tracks[fleet.TrackBalancer].Refusal != nil || w.events(fmt.Sprintf("s%03d", i), "Failed") > 0 {
				t.Errorf("s%03d was refused: %+v", i, s.Tracks[fleet.TrackBalancer].Refusal)
			}
		}
		w.pass(10 * time.Minute)
		c.ResetCounters()
		w.region("eu", func(r *fleet.Region) { r.DNS.Target = "192.0.2.2" })
		w.until("all lead elsewhere", 10*time.Minute, func() bool {
			return w.count("v1") == n && strings.Count(c.Table(), "A 192.0.2.2 ") == n
		})
		if is := c.Counters(); is.Limited > 0 || is.Calls["POST batch"] > n/200+1 || is.Total() > 20 {
			t.Errorf("%d records led elsewhere by %s", n, is)
		}
	})
}
