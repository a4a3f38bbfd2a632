package dns

import (
	"slices"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestD1_whatThereIsOfAPoolOfOurs(t *testing.T) {
	const global = "acme-staging." + domain
	us := fleet.ServerKey{Account: "acme", Region: "us"}
	change := fleet.DNSChange{Origin: "acme-eu-staging." + domain, Latitude: 50.1, Longitude: 8.7}
	for _, c := range []struct {
		name    string
		edit    func(l *Listing)
		joined  bool
		is      bool
		foreign string
		drift   string
	}{
		{"as declared", func(*Listing) {}, true, true, "", ""},
		{"nothing", func(l *Listing) { *l = Listing{} }, false, false, "", ""},
		{"a pool that no load balancer has", func(l *Listing) { l.Balancers = nil }, false, true, "", ""},
		{"a pool taken out by hand", func(l *Listing) { l.Balancers[0].Pools, l.Balancers[0].Fallback = []string{"2"}, "2" }, false, true, "", ""},
		{"a pool of that name that is not ours", func(l *Listing) { l.Pools[0].Description = "by hand\x1b" }, false, false, `the pool kura_staging_acme_eu is not ours ("by hand\x1b")`, ""},
		{"a load balancer that is not ours", func(l *Listing) { l.Balancers[0].Description = "" }, false, true, `the load balancer is not ours ("without a description")`, ""},
		{"one of another account of ours", func(l *Listing) { l.Balancers[0].Description = BalancerOf("staging", "umbra") }, false, true, "kura-staging/umbra", ""},
		{"two of one name", func(l *Listing) { l.Balancers = append(l.Balancers, l.Balancers[0]) }, false, true, "several load balancers", ""},
		{"a record of another owner under it", func(l *Listing) {
			l.Records = zone("A acme-staging 192.0.2.1", "TXT a-acme-staging "+owned("prod")).Records
		}, true, true, "", ""}, // it answers before any record, and can still be left
		{"a record of ours under it", func(l *Listing) {
			l.Records = zone("A acme-staging 192.0.2.1", "TXT a-acme-staging "+owned("us")).Records
		}, true, true, "", ""},
		{"a record of another, and no load balancer yet", func(l *Listing) {
			l.Balancers, l.Records = nil, zone("A acme-staging 192.0.2.1").Records
		}, false, true, "no ownership record claims", ""},
		{"proxied by hand", func(l *Listing) { l.Balancers[0].Proxied = true }, true, true, "", "proxied is true, not false"},
		{"another ttl, steering, and off", func(l *Listing) {
			b := &l.Balancers[0]
			b.TTL, b.Steering, b.Enabled = 300, "random", false
		}, true, true, "", "enabled is false, not true, ttl is 300, not 30, steering is random, not proximity"},
		{"pools out of order", func(l *Listing) { l.Balancers[0].Pools = []string{"2", "1"} }, true, true, "", "not sorted by name"},
		{"a pool of others in it", func(l *Listing) { l.Balancers[0].Pools = []string{"1", "2", "x"} }, true, true, "", "pools that are not the account's"},
		{"another fallback", func(l *Listing) { l.Balancers[0].Fallback = "2" }, true, true, "", "fallback"},
		{"two origins", func(l *Listing) { l.Pools[0].Origins = append(l.Pools[0].Origins, Origin{}) }, true, true, "", "exactly one origin"},
		{"the pool is off", func(l *Listing) { l.Pools[0].Enabled = false }, true, true, "", "is disabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eu := DeclaredPool("staging", acmeEU, change)
			eu.ID = "1"
			other := DeclaredPool("staging", us, fleet.DNSChange{Origin: "acme-us-staging." + domain})
			other.ID = "2"
			b := DeclaredBalancer("staging", "acme", strings.ToUpper(global), []Pool{other, eu})
			b.ID = "b"
			l := Listing{Begun: read, Pools: []Pool{eu, other}, Balancers: []Balancer{b}}
			c.edit(&l)
			got := NewIndex(l, Zone{Domain: domain}, staging(t)).Pool(global, "us", acmeEU)
			if got.Joined != c.joined || (got.Is != nil) != c.is || (got.Foreign == "") != (c.foreign == "") || !strings.Contains(got.Foreign, c.foreign) || (got.Drift == "") != (c.drift == "") || !strings.Contains(got.Drift, c.drift) {
				t.Errorf("got %+v", got)
			}
			if c.is && c.drift == "" && (got.Is.Origin != change.Origin || got.Is.Latitude != change.Latitude || got.Is.Pool != "kura_staging_acme_eu") {
				t.Errorf("the pool is %+v", got.Is)
			}
		})
	}
}

func TestD1_descriptionsSayWhoseTheyAre(t *testing.T) {
	if environment, account, ok := ParseBalancer(BalancerOf("staging", "acme")); environment != "staging" || account != "acme" || !ok {
		t.Errorf("a load balancer's: %q %q %v", environment, account, ok)
	}
	if environment, key, ok := ParseResource(PoolOf("staging", acmeEU)); environment != "staging" || key != acmeEU || !ok {
		t.Errorf("a pool's: %q %v %v", environment, key, ok)
	}
	for _, s := range []string{"", "kura-", "kura-/", "kura-staging", "kura-staging/", "kura-staging/a.b", "kura-staging/acme ", "Kura-staging/acme", "kura-a.b/acme", "kura-staging/eu/acme", "x kura-staging/acme", "kura-staging/acme\n"} {
		if environment, account, ok := ParseBalancer(s); ok {
			t.Errorf("%q is the load balancer of %q %q", s, environment, account)
		}
	}
	for _, s := range []string{"", "ingress/kura/acme", "kura-staging/acme", "kura-staging/eu/", "kura-staging//acme", "kura-staging/eu/acme/x", "kura-/eu/acme"} {
		if environment, key, ok := ParseResource(s); ok {
			t.Errorf("%q is that of %q %v", s, environment, key)
		}
	}
}

// A pool that the load balancer of another host of the account has is found there, and by no name
// that somebody else gave one.
func TestH8_aPoolIsFoundWhereTheGlobalHostWas(t *testing.T) {
	eu := DeclaredPool("staging", acmeEU, fleet.DNSChange{Origin: "acme-eu-staging." + domain})
	eu.ID = "1"
	var all []Balancer
	for _, name := range []string{"now", "before", "foreign"} {
		b := DeclaredBalancer("staging", "acme", name+"-staging."+domain, []Pool{eu})
		b.ID = name
		all = append(all, b)
	}
	all[2].Description = "by hand"
	x := NewIndex(Listing{Begun: read, Pools: []Pool{eu}, Balancers: all}, Zone{Domain: domain}, staging(t))
	got := x.Pool("now-staging."+domain, "us", acmeEU)
	if want := []string{"before-staging." + domain}; !got.Joined || !slices.Equal(got.Elsewhere, want) {
		t.Errorf("got %+v, want it elsewhere at %v", got, want)
	}
	got = x.Pool("", "us", acmeEU)
	if want := []string{"before-staging." + domain, "now-staging." + domain}; got.Joined || got.Is == nil || got.Foreign != "" || !slices.Equal(got.Elsewhere, want) {
		t.Errorf("without a global host: %+v, want it elsewhere at %v", got, want)
	}
}
