package cloudflare

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

type noQueries struct{ dns.Queries }

func (noQueries) Run(context.Context)                        {}
func (noQueries) Set(fleet.ServerKey, []dns.Question, bool)  {}
func (noQueries) Now(context.Context, fleet.ServerKey) error { return nil }
func quiet(func(context.Context, dns.Question) fleet.HostRead, func(fleet.ServerKey)) dns.Queries {
	return noQueries{}
}

// Counted where they arrive: pages, and what is asked for beside them. No server hears of news, so
// none has a turn, and nothing is stored.
func TestD7_10000HostsAtRestTakeUnder12CallsInAnyFiveMinutes(t *testing.T) {
	atRest(t, 10_000, 20*time.Minute)
}

// What the token may is asked once an hour.
func TestD7_aSmallFleetAtRestTakesUnder12CallsInAnyFiveMinutes(t *testing.T) {
	atRest(t, 100, 3*time.Hour)
}

func atRest(t *testing.T, hosts int, lasts time.Duration) {
	t.Helper()
	const step = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		z, e := emulate(t, func(o *emulator.Options) { o.Socketless = true })
		z.Through(e.Client().Transport)
		var heard atomic.Int64
		watch := dns.NewWatch(dns.WatchConfig{
			Environment: fleet.Environment{Name: "staging", Suffix: "-staging"}, Zones: dns.Zones{z.zone.Zone}, APIs: map[string]dns.API{domain: z.Observing()},
			Queries: quiet, Changed: func(fleet.ServerKey) { heard.Add(1) }, Now: time.Now, Log: hclog.NewNullLogger(),
		})
		wish := func(i int, pending bool) {
			key := fleet.ServerKey{Account: fmt.Sprintf("a%05d", i), Region: "eu"}
			watch.Set(key, fleet.HostsWish{
				Owner: "staging", Resource: fleet.ResourceOf("staging", key), Hosts: []string{fmt.Sprintf("a%05d-eu-staging.%s", i, domain)}, Pending: pending,
			})
		}
		var records []emulator.Record
		for i := range hosts {
			records = append(records, emulator.Record{Name: fmt.Sprintf("a%05d-eu-staging.%s", i, domain), Type: "A", Content: "192.0.2.1"})
			wish(i, true)
		}
		if err := e.SeedExternalDNS("staging", "ingress/kura/a", emulator.TXTNew, records...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); watch.Run(ctx) }()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Minute) // the bubble's
		synctest.Wait()
		if heard.Load() != int64(hosts) {
			t.Fatalf("%d heard of %d hosts", heard.Load(), hosts)
		}
		for i := range hosts {
			wish(i, false)
		}
		heard.Store(0)
		time.Sleep(time.Minute) // the bubble's
		var calls []int
		for range lasts / step {
			calls = append(calls, e.Counters().Total())
			if first := max(0, len(calls)-1-int(5*time.Minute/step)); calls[len(calls)-1]-calls[first] >= 12 {
				t.Fatalf("%d calls in the five minutes before %s: %s", calls[len(calls)-1]-calls[first], time.Duration(len(calls))*step, e.Counters())
			}
			time.Sleep(step) // the bubble's
		}
		if c := e.Counters(); heard.Load() > 0 || c.Calls["GET records"] < int(lasts/(5*time.Minute)) || c.Statuses[200] != c.Total() {
			t.Errorf("%d pieces of news, %s, %v", heard.Load(), c, c.Statuses)
		}
	})
}
