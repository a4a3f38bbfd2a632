package dns_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/dns/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// cloud is a zone at an emulated Cloudflare, and who changes it by cloudflare-go.
type cloud struct {
	t *testing.T
	*emulator.Emulator
	zone      dns.Zone
	api       dns.API
	publisher *dns.Publisher
	balancers *dns.Balancers
}

func newCloud(t *testing.T, limit emulator.Limit) *cloud {
	t.Helper()
	e, err := emulator.New(emulator.Options{
		Zones:  []emulator.Zone{{Name: "kura.test", Plan: emulator.PlanFree}},
		Tokens: []emulator.Token{{Value: "secret", Name: "staging"}}, Limit: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cloud{t: t, Emulator: e, zone: dns.Zone{Domain: "kura.test", Token: file, API: e.URL(), BatchLimit: 200}}
	zones, err := cloudflare.Open([]dns.Zone{c.zone})
	if err != nil {
		t.Fatal(err)
	}
	c.use(zones[c.zone.Domain])
	return c
}

// use starts anew with an API.
func (c *cloud) use(api dns.API) {
	staging := fleet.Environment{Name: "staging", Suffix: "-staging"}
	c.api = api
	c.publisher = &dns.Publisher{Zone: c.zone, Environment: staging, API: api}
	c.balancers = &dns.Balancers{Zone: c.zone, Environment: staging, API: api}
}

func task(kind fleet.TaskKind, i int, region string) fleet.Effect {
	key := fleet.ServerKey{Account: fmt.Sprintf("a%03d", i), Region: region}
	e := fleet.Effect{Kind: kind, Name: fmt.Sprintf("a%03d-%s-staging.kura.test", i, region), DNS: fleet.DNSChange{Owner: "kura-staging", Resource: fleet.ResourceOf("staging", key)}}
	switch kind {
	case fleet.TaskPublish:
		e.DNS.Type, e.DNS.Content = "A", fmt.Sprintf("192.0.2.%d", i%250)
	case fleet.TaskJoin, fleet.TaskLeave:
		e.DNS.Origin, e.Name = e.Name, fmt.Sprintf("a%03d-staging.kura.test", i)
		e.DNS.Pool, e.DNS.Latitude, e.DNS.Longitude = fleet.PoolName("staging", key), 50.11, 8.68
	}
	return e
}

func (c *cloud) expectOK(answers []fleet.Outcome) {
	c.t.Helper()
	for i, o := range answers {
		if o.Class != fleet.ClassOK {
			c.t.Errorf("task %d answered %+v", i, o)
		}
	}
}

// peace checks that Cloudflare never said that it was asked too often.
func (c *cloud) peace() emulator.Counters {
	c.t.Helper()
	is := c.Counters()
	if is.Limited > 0 || is.Statuses[429] > 0 {
		c.t.Errorf("%d calls beyond the limit, of %s", is.Limited, is)
	}
	c.ResetCounters()
	return is
}

func TestD7_500changesAtCloudflare(t *testing.T) {
	t.Parallel()
	c := newCloud(t, emulator.Limit{})
	var tasks []fleet.Effect
	for i := range 500 {
		tasks = append(tasks, task(fleet.TaskPublish, i, "eu"))
	}
	c.expectOK(c.publisher.Run(t.Context(), tasks))
	if is := c.peace(); is.Calls["POST batch"] > 6 || is.Batched != 1000 {
		t.Errorf("%d operations by %s", is.Batched, is)
	}
	for i := range tasks {
		tasks[i].DNS.Content = fmt.Sprintf("198.51.100.%d", i%250)
	}
	tasks[123].DNS.Content = "300.0.0.1"
	answers := c.publisher.Run(t.Context(), tasks)
	if o := answers[123]; o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonInvalid || !strings.Contains(o.Message, "9005") {
		t.Errorf("the bad change is answered %+v", o)
	}
	c.expectOK(append(answers[:123:123], answers[124:]...))
	is := c.peace()
	if n := strings.Count(c.Table(), "A 198.51.100."); n != 499 || is.Calls["POST batch"] > 3+2*9 {
		t.Errorf("%d records were changed, by %s", n, is)
	}
	for i := range tasks {
		tasks[i] = task(fleet.TaskWithdraw, i, "eu")
	}
	c.expectOK(c.publisher.Run(t.Context(), tasks))
	if is := c.peace(); c.Table() != "" || is.Calls["POST batch"] > 6 {
		t.Errorf("by %s, and there is left:\n%s", is, c.Table())
	}
}

func TestD1_joinsAndLeavesAtCloudflare(t *testing.T) {
	t.Parallel()
	c := newCloud(t, emulator.Limit{Calls: 100_000})
	const accounts = 100
	var first, rest, leave []fleet.Effect
	for i := range accounts {
		first = append(first, task(fleet.TaskJoin, i, "eu"))
		rest = append(rest, task(fleet.TaskJoin, i, "us"), task(fleet.TaskJoin, i, "ap"))
		if i < 50 {
			leave = append(leave, task(fleet.TaskLeave, i, []string{"ap", "eu", "us"}[i%3]))
		}
	}
	c.expectOK(c.balancers.Run(t.Context(), first))
	c.expectOK(c.balancers.Run(t.Context(), rest))
	for host, n := range c.peace().Writes {
		if n > 2 {
			t.Errorf("%d writes of %s", n, host)
		}
	}
	c.expectOK(c.balancers.Run(t.Context(), leave))
	c.peace()
	l, err := c.api.List(t.Context(), dns.Parts{Balancers: true})
	if err != nil || len(l.Balancers) != accounts || len(l.Pools) != 3*accounts-50 {
		t.Fatalf("%d balancers, %d pools, %v", len(l.Balancers), len(l.Pools), err)
	}
	x := dns.NewIndex(l, c.zone, fleet.Environment{Name: "staging", Suffix: "-staging"})
	for i := range accounts {
		for r, region := range []string{"ap", "eu", "us"} {
			key := fleet.ServerKey{Account: fmt.Sprintf("a%03d", i), Region: region}
			is := x.Pool(task(fleet.TaskJoin, i, region).Name, "kura-staging", key)
			if left := i < 50 && r == i%3; is.Joined == left || is.Foreign != "" || is.Drift != "" {
				t.Errorf("%s: %+v", key, is)
			}
		}
	}
}

// Whoever lists: what is left out of a listing though it is there stays, however long that lasts, and
// what is gone is believed at once.
func TestD5_halfAListingIsNone(t *testing.T) {
	t.Parallel()
	c := newCloud(t, emulator.Limit{})
	var publish, withdraw, join, leave []fleet.Effect
	for i := range 20 {
		publish, withdraw = append(publish, task(fleet.TaskPublish, i, "eu")), append(withdraw, task(fleet.TaskWithdraw, i, "eu"))
		join, leave = append(join, task(fleet.TaskJoin, i, "eu")), append(leave, task(fleet.TaskLeave, i, "eu"))
	}
	c.expectOK(slices.Concat(c.publisher.Run(t.Context(), publish), c.balancers.Run(t.Context(), join)))
	before := c.Table()
	for _, only := range []string{"GET records", "GET balancers", "GET pools"} {
		for _, kind := range []emulator.FaultKind{emulator.EmptyListing, emulator.HalfListing} {
			c.Break(emulator.Fault{Kind: kind, Only: only})
			for range 3 {
				answers := c.balancers.Run(t.Context(), slices.Concat(join[:10], leave[10:]))
				if only == "GET records" {
					answers = append(answers, c.publisher.Run(t.Context(), slices.Concat(publish[:10], withdraw[10:]))...)
				}
				for _, o := range answers {
					if o.Class != fleet.ClassTransient || o.Reason != fleet.ReasonZoneUnreachable || !strings.Contains(o.Message, "which is there") {
						t.Fatalf("%s of %s: answered %+v", kind, only, o)
					}
				}
			}
			c.Heal()
			if c.Table() != before {
				t.Fatalf("%s of %s changed it to\n%s\nwas\n%s", kind, only, c.Table(), before)
			}
		}
	}
	for i := range publish[:15] {
		c.Delete(publish[i].Name, "")
		c.Delete("a-"+publish[i].Name, "")
	}
	c.expectOK(c.publisher.Run(t.Context(), publish))
	c.expectOK(c.balancers.Run(t.Context(), leave))
	c.expectOK(c.balancers.Run(t.Context(), join))
	if c.Table() != before {
		t.Errorf("after it there is\n%s\nwas\n%s", c.Table(), before)
	}
}

// killed is an API that its caller does not live to use any more after so many writes; the last
// one it has no answer to.
type killed struct {
	dns.API
	writes int
}

var errGone = &dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Message: "killed"}

func (k *killed) List(ctx context.Context, p dns.Parts) (dns.Listing, error) {
	if k.writes <= 0 {
		return dns.Listing{}, errGone
	}
	return k.API.List(ctx, p)
}

func (k *killed) write(do func() error) error {
	if k.writes--; k.writes < 0 {
		return errGone
	}
	if err := do(); err != nil || k.writes > 0 {
		return err
	}
	return errGone
}

func (k *killed) Apply(ctx context.Context, b dns.Batch) error {
	return k.write(func() error { return k.API.Apply(ctx, b) })
}

func (k *killed) PutBalancer(ctx context.Context, b dns.Balancer) (is dns.Balancer, err error) {
	err = k.write(func() error { is, err = k.API.PutBalancer(ctx, b); return err })
	return is, err
}

func (k *killed) DeleteBalancer(ctx context.Context, id string) error {
	return k.write(func() error { return k.API.DeleteBalancer(ctx, id) })
}

func (k *killed) PutPool(ctx context.Context, p dns.Pool) (is dns.Pool, err error) {
	err = k.write(func() error { is, err = k.API.PutPool(ctx, p); return err })
	return is, err
}

func (k *killed) DeletePool(ctx context.Context, id string) error {
	return k.write(func() error { return k.API.DeletePool(ctx, id) })
}

func TestS5_killedAfterEachEffectAtCloudflare(t *testing.T) {
	t.Parallel()
	for stop := 1; ; stop++ {
		c := newCloud(t, emulator.Limit{})
		var others []emulator.Record
		for i := range 20 {
			others = append(others, emulator.Record{Name: fmt.Sprintf("other-%d.kura.test", i), Type: "A", Content: "203.0.113.9", TTL: 300})
		}
		shadowed := task(fleet.TaskPublish, 3, "eu")
		others = append(others, emulator.Record{Name: shadowed.Name, Type: "A", Content: "203.0.113.9", TTL: 300})
		if err := c.SeedExternalDNS("production", "ingress/prod/web", emulator.TXTBoth, others...); err != nil {
			t.Fatal(err)
		}
		before, real := c.Table(), c.api
		k := &killed{real, stop}
		c.use(k)
		moved := task(fleet.TaskPublish, 1, "eu")
		moved.DNS.Type, moved.DNS.Content = "CNAME", "lb.example.test"
		for _, step := range []struct{ records, balancers []fleet.Effect }{
			{records: []fleet.Effect{task(fleet.TaskPublish, 1, "eu"), task(fleet.TaskPublish, 2, "eu"), shadowed}},
			{balancers: []fleet.Effect{task(fleet.TaskJoin, 1, "eu"), task(fleet.TaskJoin, 1, "us")}},
			{records: []fleet.Effect{moved}, balancers: []fleet.Effect{task(fleet.TaskLeave, 1, "us")}},
			{balancers: []fleet.Effect{task(fleet.TaskLeave, 1, "eu")}},
			{records: []fleet.Effect{task(fleet.TaskWithdraw, 1, "eu"), task(fleet.TaskWithdraw, 2, "eu"), task(fleet.TaskWithdraw, 3, "eu")}},
		} {
			run := func() (answers []fleet.Outcome) {
				for _, o := range append(c.publisher.Run(t.Context(), step.records), c.balancers.Run(t.Context(), step.balancers)...) {
					if o.Reason != fleet.ReasonForeignOwner {
						answers = append(answers, o)
					}
				}
				return answers
			}
			answers := run()
			if k.writes <= 0 && c.api == dns.API(k) {
				c.use(real)
				answers = run()
			}
			c.expectOK(answers)
		}
		if c.Table() != before {
			t.Errorf("killed after effect %d there is left:\n%s\nwant\n%s", stop, c.Table(), before)
		}
		for _, change := range c.History() {
			if change.By == "staging" && (strings.HasPrefix(change.Name, "other-") || strings.Contains(change.Name, shadowed.Name)) {
				t.Errorf("killed after effect %d: touched what is another's: %s", stop, change)
			}
		}
		if k.writes > 0 {
			return
		}
	}
}
