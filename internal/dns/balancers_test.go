package dns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func (z *rude) joiner() *Balancers {
	return &Balancers{Zone: Zone{Domain: "kura.test"}, Environment: staging(z.t), API: z}
}

func globalHost(i int) string { return fmt.Sprintf("s%04d-staging.kura.test", i) }

func joins(i int, region string) fleet.Effect {
	key := fleet.ServerKey{Account: account(i).Account, Region: region}
	return fleet.Effect{Kind: fleet.TaskJoin, Name: globalHost(i), DNS: fleet.DNSChange{
		Owner: "kura-staging", Resource: fleet.ResourceOf("staging", key), Pool: fleet.PoolName("staging", key),
		Origin: fmt.Sprintf("s%04d-%s-staging.kura.test", i, region), Latitude: 50.1, Longitude: 8.7,
	}}
}

func leaves(i int, region string) fleet.Effect {
	e := joins(i, region)
	e.Kind = fleet.TaskLeave
	return e
}

// balancer says which regions the balancer of a global host has, in its order.
func (z *rude) balancer(i int) string {
	for _, b := range z.balancers {
		if b.Name == globalHost(i) {
			var regions []string
			for _, id := range b.Pools {
				_, key, _ := ParseResource(z.pools[id].Description)
				regions = append(regions, key.Region)
			}
			return strings.Join(regions, " ")
		}
	}
	return "none"
}

func TestD1_poolsJoinAndLeaveTheirBalancer(t *testing.T) {
	z := newRude(t)
	p := z.joiner()
	step := func(want string, writes int, effects ...fleet.Effect) {
		t.Helper()
		was := z.writes
		expectOK(t, p.Run(t.Context(), effects))
		if z.balancer(1) != want || z.writes-was != writes {
			t.Errorf("the balancer has %q after %d writes, want %q after %d", z.balancer(1), z.writes-was, want, writes)
		}
	}
	step("eu us", 3, joins(1, "us"), joins(1, "eu"))
	for _, pool := range z.pools {
		if len(pool.Origins) != 1 || pool.Origins[0].Host != pool.Origins[0].Address || !pool.Enabled || pool.Latitude != 50.1 {
			t.Errorf("pool %+v", pool)
		}
	}
	step("eu us", 0, joins(1, "us"))
	step("ap eu us", 2, joins(1, "ap"))
	step("ap us", 2, leaves(1, "eu"))
	step("ap us", 0, leaves(1, "eu"))
	step("ap eu", 3, leaves(1, "us"), joins(1, "eu")) // its pool, the balancer, the other's pool
	moved := joins(1, "eu")
	moved.DNS.Origin = "renamed-eu-staging.kura.test"
	step("ap eu", 1, moved)
	for id, b := range z.balancers { // by hand
		b.Proxied, b.TTL, b.Steering, b.Enabled, b.Pools = true, 300, "random", false, append([]string{z.id()}, b.Pools[1], b.Pools[0])
		z.balancers[id] = b
	}
	step("ap eu", 1, joins(1, "ap"))
	step("none", 3, leaves(1, "ap"), leaves(1, "eu"))
	if z.table() != "" {
		t.Errorf("left over:\n%s", z.table())
	}
}

func TestD1_1000accountsJoinIn3regions(t *testing.T) {
	z := newRude(t)
	p := z.joiner()
	var first, rest []fleet.Effect
	for i := range 1000 {
		first = append(first, joins(i, "us"))
		rest = append(rest, joins(i, "eu"), joins(i, "ap"))
	}
	expectOK(t, p.Run(t.Context(), first))
	expectOK(t, p.Run(t.Context(), rest))
	var leaving []fleet.Effect
	for i := range 1000 {
		if z.balancer(i) != "ap eu us" || z.putOf[globalHost(i)] > 2 {
			t.Fatalf("the balancer of %d has %q after %d writes", i, z.balancer(i), z.putOf[globalHost(i)])
		}
	}
	for i := range 50 {
		leaving = append(leaving, leaves(i, []string{"ap", "eu", "us"}[i%3]))
	}
	z.lists = 0
	expectOK(t, p.Run(t.Context(), leaving))
	for i := range 60 {
		want := []string{"eu us", "ap us", "ap eu"}[i%3]
		if i >= 50 {
			want = "ap eu us"
		}
		if z.balancer(i) != want {
			t.Errorf("the balancer of %d has %q, want %q", i, z.balancer(i), want)
		}
	}
	if z.lists != 2 || len(z.pools) != 2950 {
		t.Errorf("%d listings, %d pools", z.lists, len(z.pools))
	}
}

func TestD1_whatIsNotOursIsLeftAlone(t *testing.T) {
	foreign := func(z *rude, b Balancer) {
		b.ID, b.Name = z.id(), globalHost(1)
		z.balancers[b.ID], z.others[b.ID] = b, true
	}
	for name, c := range map[string]struct {
		seed func(z *rude)
		text string
	}{
		"a balancer without a description": {func(z *rude) { foreign(z, Balancer{}) }, "not ours (\"without a description\")"},
		"another account's":                {func(z *rude) { foreign(z, Balancer{Description: "kura-staging/other"}) }, "kura-staging/other"},
		"another environment's":            {func(z *rude) { foreign(z, Balancer{Description: "kura-production/a0001"}) }, "kura-production/a0001"},
		"a pool of that name": {func(z *rude) {
			id := z.id()
			z.pools[id], z.others[id] = Pool{ID: id, Name: joins(1, "eu").DNS.Pool}, true
		}, "the pool kura_staging_a0001_eu is not ours"},
		"a record": {func(z *rude) { z.seed("A", globalHost(1), "192.0.2.9"); z.seedTXT("a-"+globalHost(1), "prod") }, `belongs to "prod"`},
	} {
		t.Run(name, func(t *testing.T) {
			z := newRude(t)
			c.seed(z)
			before := z.table()
			p := z.joiner()
			answers := p.Run(t.Context(), []fleet.Effect{joins(1, "eu"), joins(2, "eu")})
			expect(t, answers[0], fleet.ClassRefused, fleet.ReasonForeignBalancer, c.text)
			expectOK(t, answers[1:])
			expectOK(t, p.Run(t.Context(), []fleet.Effect{leaves(1, "eu"), leaves(2, "eu")}))
			if z.table() != before {
				t.Errorf("there is\n%s\nwant\n%s", z.table(), before)
			}
		})
	}
}

func TestD1_aPoolInUseStays(t *testing.T) {
	z := newRude(t)
	before := z.table()
	p := z.joiner()
	expectOK(t, p.Run(t.Context(), []fleet.Effect{joins(1, "eu")}))
	moved := joins(1, "eu")
	moved.Name = globalHost(2) // the account's global host is another one
	expectOK(t, p.Run(t.Context(), []fleet.Effect{moved}))
	expectOK(t, p.Run(t.Context(), []fleet.Effect{leaves(1, "eu")}))
	if z.balancer(1) != "none" || z.balancer(2) != "eu" {
		t.Errorf("there is\n%s", z.table())
	}
	elsewhere := z.id()
	z.balancers[elsewhere], z.others[elsewhere] = Balancer{ID: elsewhere, Name: "x.kura.test", Pools: slices.Collect(maps.Keys(z.pools))}, true
	moved.Kind = fleet.TaskLeave
	answers := p.Run(t.Context(), []fleet.Effect{moved})
	expect(t, answers[0], fleet.ClassTransient, fleet.ReasonForeignBalancer, "1005 pool is referenced by x.kura.test")
	delete(z.balancers, elsewhere)
	expectOK(t, p.Run(t.Context(), []fleet.Effect{moved}))
	if z.table() != before {
		t.Errorf("left over:\n%s", z.table())
	}
}

// D2: what the account may have no more of is answered for all at the cost of one call, and
// stops no one who needs none.
func TestD2_aQuotaStopsNobodyElse(t *testing.T) {
	z := newRude(t)
	p := z.joiner()
	expectOK(t, p.Run(t.Context(), []fleet.Effect{joins(0, "eu"), joins(0, "us"), joins(1, "eu")}))
	z.quota, z.writes = true, 0
	var tasks []fleet.Effect
	for i := 10; i < 30; i++ {
		tasks = append(tasks, joins(i, "eu"))
	}
	answers := p.Run(t.Context(), append(tasks, leaves(1, "eu")))
	for _, o := range answers[:20] {
		expect(t, o, fleet.ClassRefused, fleet.ReasonQuotaExceeded, "quota of load balancers")
	}
	expectOK(t, answers[20:])
	if z.writes > 20+1+2 {
		t.Errorf("%d writes", z.writes)
	}
	z.quota = false
	expectOK(t, p.Run(t.Context(), tasks))
	z.fail = func(int) (error, bool) {
		return &Error{Class: fleet.ClassRefused, Reason: fleet.ReasonNotSubscribed, Answered: true, Message: "1002 not enabled"}, false
	}
	z.writes = 0
	for _, o := range p.Run(t.Context(), []fleet.Effect{joins(50, "eu"), joins(51, "eu")}) {
		expect(t, o, fleet.ClassRefused, fleet.ReasonNotSubscribed, "not enabled")
	}
	z.fail = func(int) (error, bool) {
		return &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, After: time.Minute, Answered: true, Message: "too many"}, false
	}
	for _, o := range p.Run(t.Context(), []fleet.Effect{joins(50, "eu"), joins(51, "eu")}) {
		if expect(t, o, fleet.ClassTransient, fleet.ReasonRateLimited, "too many"); o.After.Std() != time.Minute {
			t.Errorf("after %s", o.After)
		}
	}
	if z.writes != 2 {
		t.Errorf("%d writes, want one of each call", z.writes)
	}
}

// R2: the answer to a join is what was read back, whatever the write was answered.
func TestR2_whatIsReadBackCounts(t *testing.T) {
	z := newRude(t)
	p := z.joiner()
	expectOK(t, p.Run(t.Context(), []fleet.Effect{joins(1, "eu"), joins(1, "us")}))
	undo := func() {
		for id, b := range z.balancers {
			b.Pools = slices.DeleteFunc(slices.Clone(b.Pools), func(id string) bool { return strings.HasSuffix(z.pools[id].Name, "ap") })
			z.balancers[id] = b
		}
	}
	p.API = &after{rude: z, put: undo}
	answers := p.Run(t.Context(), []fleet.Effect{joins(1, "ap")})
	expect(t, answers[0], fleet.ClassTransient, fleet.ReasonPoolMissing, "is not in it as read back")
	p.API = z
	expectOK(t, p.Run(t.Context(), []fleet.Effect{joins(1, "ap")}))
}

// after is a zone in which another writes just after a balancer was written.
type after struct {
	*rude
	put func()
}

func (a *after) PutBalancer(ctx context.Context, b Balancer) (Balancer, error) {
	defer a.put()
	return a.rude.PutBalancer(ctx, b)
}

// Another makes, changes or deletes balancer and pools between the read and a write.
func TestD1_whatAnotherChangesInBetweenIsLookedAtAgain(t *testing.T) {
	for name, c := range map[string]struct {
		writes  func(z *rude)
		foreign bool
	}{
		"the balancer is deleted": {func(z *rude) { clear(z.balancers) }, false},
		"all is deleted":          {func(z *rude) { clear(z.balancers); clear(z.pools) }, false},
		"the balancer is made again by another": {func(z *rude) {
			clear(z.balancers)
			id := z.id()
			z.balancers[id], z.others[id] = Balancer{ID: id, Name: globalHost(1), Description: "mine"}, true
		}, true},
	} {
		for at := 1; at <= 2; at++ {
			t.Run(fmt.Sprint(name, " before write ", at), func(t *testing.T) {
				z := newRude(t)
				expectOK(t, z.joiner().Run(t.Context(), []fleet.Effect{joins(1, "eu")}))
				begin := z.writes
				z.between = func(write int) {
					if write == begin+at {
						c.writes(z)
					}
				}
				answers := z.joiner().Run(t.Context(), []fleet.Effect{joins(1, "us")})
				if c.foreign {
					expect(t, answers[0], fleet.ClassRefused, fleet.ReasonForeignBalancer, "not ours")
					return
				}
				expectOK(t, answers)
				if got := z.balancer(1); got != "us" && got != "eu us" {
					t.Errorf("the balancer has %q", got)
				}
			})
		}
	}
}

// A kurad that is killed after any of its calls, with or without its effect, comes to the same.
func TestS5_aKilledJoinOrLeaveConverges(t *testing.T) {
	for _, lands := range []bool{true, false} {
		for stop := 1; ; stop++ {
			z := newRude(t)
			z.seed("A", globalHost(7), "192.0.2.9")
			z.seedTXT("a-"+globalHost(7), "prod")
			other := z.table()
			p := z.joiner()
			rounds := []struct {
				tasks []fleet.Effect
				want  string
			}{
				{[]fleet.Effect{joins(1, "eu"), joins(1, "us"), joins(2, "eu"), joins(7, "eu")}, "eu us"},
				{[]fleet.Effect{joins(1, "ap"), leaves(1, "us"), leaves(2, "eu")}, "ap eu"},
				{[]fleet.Effect{leaves(1, "ap"), leaves(1, "eu"), leaves(7, "eu")}, "none"},
			}
			killed := false
			z.fail = func(write int) (error, bool) {
				if write == stop {
					killed = true
					z.down = errLost
					return errLost, lands
				}
				return nil, false
			}
			for _, r := range rounds {
				answers := p.Run(t.Context(), r.tasks)
				if z.down != nil {
					z.down, p = nil, z.joiner()
					answers = p.Run(t.Context(), r.tasks)
				}
				for i, o := range answers {
					if r.tasks[i].Name != globalHost(7) && o.Class != fleet.ClassOK {
						t.Errorf("killed after %d (%v): %s answered %+v", stop, lands, r.tasks[i].Describe(), o)
					}
				}
				if z.balancer(1) != r.want {
					t.Errorf("killed after %d (%v): the balancer has %q, want %q", stop, lands, z.balancer(1), r.want)
				}
			}
			if z.table() != other {
				t.Errorf("killed after %d (%v): there is\n%s\nwant\n%s", stop, lands, z.table(), other)
			}
			if !killed {
				break
			}
		}
	}
}

// A call that cannot do all does some to their end, and says so of the others.
func TestD1_aCallEndsInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newRude(t)
		z.between = func(int) { <-time.After(300 * time.Millisecond) } // the bubble's
		p := z.joiner()
		var tasks []fleet.Effect
		for i := range 200 {
			tasks = append(tasks, joins(i, "eu"))
		}
		done, calls := 0, 0
		for ; done < len(tasks); calls++ {
			done = 0
			within, cancel := context.WithTimeout(t.Context(), time.Minute)
			for _, o := range p.Run(within, tasks) {
				if o.Class == fleet.ClassOK {
					done++
				} else {
					expect(t, o, fleet.ClassTransient, fleet.ReasonRateLimited, "not begun: the time of one call was enough for ")
				}
			}
			if within.Err() != nil {
				t.Fatal("a call was late")
			}
			cancel()
		}
		if calls != 3 || z.writes != 400 {
			t.Errorf("%d calls, %d writes", calls, z.writes)
		}
	})
}
