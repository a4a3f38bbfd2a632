package cloudflare

import (
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func poolOf(name string) dns.Pool {
	return dns.Pool{
		Name: name, Description: "kura-staging/eu/acme", Latitude: 50.1, Longitude: -8.7, Enabled: true,
		Origins: []dns.Origin{{Address: name + ".kura.test", Host: name + ".kura.test", Enabled: true}},
	}
}

func balancerOf(name string, pools ...string) dns.Balancer {
	return dns.Balancer{
		Name: name, Description: "kura-staging/acme", Pools: pools, Fallback: pools[len(pools)-1],
		TTL: 30, Steering: "proximity", Enabled: true,
	}
}

// put writes a pool.
func putPool(t *testing.T, z *Zone, p dns.Pool) dns.Pool {
	t.Helper()
	is, err := z.PutPool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestD1_poolsAndBalancersAreWrittenReadAndWithdrawn(t *testing.T) {
	z, _ := emulate(t, nil)
	eu, us := putPool(t, z, poolOf("eu")), putPool(t, z, poolOf("us"))
	want := poolOf("eu")
	want.ID = eu.ID
	if diff := gocmp.Diff(want, eu); diff != "" || eu.ID == "" {
		t.Errorf("the pool that was written: %s", diff)
	}
	made, err := z.PutBalancer(t.Context(), balancerOf("acme.kura.test", eu.ID, us.ID))
	if err != nil {
		t.Fatal(err)
	}
	eu.Enabled, eu.Latitude, eu.Origins[0].Enabled = false, 0, false
	eu = putPool(t, z, eu)
	made.Pools, made.Fallback = []string{us.ID}, us.ID
	if made, err = z.PutBalancer(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	l := list1(t, z, dns.Parts{Balancers: true})
	if diff := gocmp.Diff([]dns.Balancer{made}, l.Balancers); diff != "" || made.Proxied {
		t.Errorf("balancers: %s", diff)
	}
	byName := slices.SortedFunc(slices.Values(l.Pools), func(a, b dns.Pool) int { return strings.Compare(a.Name, b.Name) })
	if diff := gocmp.Diff([]dns.Pool{eu, us}, byName); diff != "" || l.Records != nil {
		t.Errorf("pools: %s", diff)
	}

	e := wantError(t, z.DeletePool(t.Context(), us.ID), dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Conflict: true, Answered: true})
	if !strings.Contains(e.Message, "delete pool "+us.ID) || !strings.Contains(e.Message, "referenced by other objects") {
		t.Errorf("message %q", e.Message)
	}
	for _, err := range []error{z.DeleteBalancer(t.Context(), made.ID), z.DeletePool(t.Context(), us.ID), z.DeletePool(t.Context(), eu.ID)} {
		if err != nil {
			t.Error(err)
		}
	}
	absent := dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, NotFound: true, Answered: true}
	wantError(t, z.DeleteBalancer(t.Context(), made.ID), absent)
	wantError(t, z.DeletePool(t.Context(), eu.ID), absent)
	_, err = z.PutPool(t.Context(), eu)
	wantError(t, err, absent)
	if l := list1(t, z, everything); len(l.Balancers)+len(l.Pools) != 0 {
		t.Errorf("left over: %+v", l)
	}
}

func TestD2_whatTheLoadBalancingRefusesIsToldApart(t *testing.T) {
	z, e := emulate(t, nil)
	eu := putPool(t, z, poolOf("eu"))
	quota := dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonQuotaExceeded, Answered: true}
	for _, row := range []struct {
		fault    emulator.FaultKind
		pool, lb dns.Error
	}{
		// A pool is refused in the same words for both (hashicorp/terraform 17948).
		{emulator.QuotaExceeded, quota, quota},
		{emulator.NotSubscribed, quota, dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonNotSubscribed, Answered: true}},
	} {
		e.Break(emulator.Fault{Kind: row.fault})
		_, err := z.PutPool(t.Context(), poolOf("us"))
		wantError(t, err, row.pool)
		_, err = z.PutBalancer(t.Context(), balancerOf("acme.kura.test", eu.ID))
		wantError(t, err, row.lb)
		e.Heal()
	}
	_, err := z.PutPool(t.Context(), poolOf("eu"))
	wantError(t, err, dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Conflict: true, Answered: true})
	_, err = z.PutBalancer(t.Context(), balancerOf("elsewhere.test", eu.ID))
	wantError(t, err, dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true})

	e.SetToken(emulator.Token{Value: "secret", Permissions: []emulator.Permission{emulator.ZoneRead, emulator.DNSEdit, emulator.BalancersRead, emulator.PoolsRead}})
	_, err = z.PutBalancer(t.Context(), balancerOf("acme.kura.test", eu.ID))
	if e := wantError(t, err, mayNot); !strings.HasSuffix(e.Message, "give the token the permission Load Balancers:Edit") {
		t.Errorf("message %q", e.Message)
	}
}

func TestD2_aBalancerWhoseAnswerIsLostIsFoundAgain(t *testing.T) {
	z, e := emulate(t, nil)
	e.Break(emulator.Fault{Kind: emulator.LostAnswer, Only: "writes", Times: 1})
	_, err := z.PutPool(t.Context(), poolOf("eu"))
	wantError(t, err, unanswered)
	pools := list1(t, z, everything).Pools
	if len(pools) != 1 {
		t.Fatalf("%d pools, want the one that was written", len(pools))
	}
	e.Break(emulator.Fault{Kind: emulator.LostAnswer, Only: "writes", Times: 1})
	_, err = z.PutBalancer(t.Context(), balancerOf("acme.kura.test", pools[0].ID))
	wantError(t, err, unanswered)
	if n := len(list1(t, z, everything).Balancers); n != 1 {
		t.Errorf("%d balancers, want the one that was written", n)
	}
}

func TestD5_poolsAndBalancersThatAreNotListedAreAskedFor(t *testing.T) {
	z, e := emulate(t, nil)
	eu := putPool(t, z, poolOf("eu"))
	if _, err := z.PutBalancer(t.Context(), balancerOf("acme.kura.test", eu.ID)); err != nil {
		t.Fatal(err)
	}
	list1(t, z, everything)
	for _, what := range []string{"balancers", "pools"} {
		for _, kind := range []emulator.FaultKind{emulator.EmptyListing, emulator.HalfListing, emulator.ShortListing} {
			e.Break(emulator.Fault{Kind: kind, Only: what})
			_, err := z.List(t.Context(), everything)
			wantError(t, err, unreachable)
			e.Heal()
		}
	}
	if l := list1(t, z, everything); len(l.Balancers) != 1 || len(l.Pools) != 1 {
		t.Errorf("after it: %+v", l)
	}
}

func TestD7_whoUsesUpTheBudgetOfTheUserIsSeenBeforeItsEnd(t *testing.T) {
	z, e := emulate(t, func(o *emulator.Options) {
		o.Limit = emulator.Limit{Calls: 100, Window: time.Minute}
		o.Tokens = append(o.Tokens, emulator.Token{Value: "theirs", Name: "another of the same user"})
	})
	other, _ := open(t, e.URL(), "theirs")
	list1(t, z, everything)
	for e.Counters().Statuses[200]+e.Counters().Statuses[404] < 79 { // what another client does, who heeds nothing
		other.client.budget = newBudget()
		if err := other.Apply(t.Context(), dns.Batch{Deletes: []fleet.DNSRecord{{ID: "none"}}}); err == nil {
			t.Fatal("deleted what is not there")
		}
	}
	var err error
	n := 0
	for ; err == nil && n < 30; n++ {
		err = z.Apply(t.Context(), batch(strings.Repeat("x", n+1)+".kura.test"))
	}
	said := wantError(t, err, rateLimited)
	if said.After < 30*time.Second || said.After > time.Minute || e.Counters().Limited != 0 {
		t.Errorf("%+v after %d calls, and %d of all were refused: want it held to the window's end, none refused", said, n, e.Counters().Limited)
	}
}

func TestD7_aRateLimitInEachOfItsFormsIsOne(t *testing.T) {
	for _, form := range []emulator.LimitForm{emulator.FormRetryAfter, emulator.Form10100, emulator.Form10300} {
		z, e := emulate(t, nil)
		e.Break(emulator.Fault{Kind: emulator.RateLimited, Form: form, Only: "records"})
		_, err := z.List(t.Context(), everything)
		if said := wantError(t, err, rateLimited); said.After == 0 {
			t.Errorf("%s: %+v does not say when to come again", form, said)
		}
	}
}
