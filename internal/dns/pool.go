package dns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Steering is that of a load balancer of ours (D1).
const Steering = "proximity"

// DeclaredBalancer is the load balancer of an account's global host as D1 has it, with those
// pools, which are one at least.
func DeclaredBalancer(environment, account, host string, pools []Pool) Balancer {
	b := Balancer{Name: canonical(host), Description: BalancerOf(environment, account), TTL: fleet.BalancerTTL, Steering: Steering, Enabled: true}
	for _, p := range slices.SortedFunc(slices.Values(pools), func(a, b Pool) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) }) {
		b.Pools = append(b.Pools, p.ID)
	}
	if len(b.Pools) > 0 {
		b.Fallback = b.Pools[0]
	}
	return b
}

// DeclaredPool is the pool of a server as D1 has it: one origin, the regional host.
func DeclaredPool(environment string, key fleet.ServerKey, c fleet.DNSChange) Pool {
	return Pool{
		Name: fleet.PoolName(environment, key), Description: PoolOf(environment, key), Enabled: true, Latitude: c.Latitude, Longitude: c.Longitude,
		Origins: []Origin{{Address: c.Origin, Host: c.Origin, Enabled: true}},
	}
}

// Pool says what of a server's pool there is in the load balancer of its global host, "" where it has
// none, and in others; seen by owner.
func (x *Index) Pool(host, owner string, key fleet.ServerKey) fleet.PoolRead {
	host = canonical(host)
	r := fleet.PoolRead{Host: host, Begun: x.begun, Foreign: x.foreign(host, owner, key.Account)}
	p, found := x.pools[x.poolNames[fleet.PoolName(x.environment.Name, key)]]
	switch {
	case !found:
	case p.Description != PoolOf(x.environment.Name, key):
		r.Foreign = cmp.Or(r.Foreign, fmt.Sprintf("the pool %s is not ours (%s)", shown(p.Name), quoted(cmp.Or(p.Description, "without a description"))))
	default:
		r.Is = &fleet.DNSChange{Pool: p.Name, Resource: p.Description, Latitude: p.Latitude, Longitude: p.Longitude}
		if len(p.Origins) == 1 && p.Origins[0].Enabled && p.Origins[0].Host == p.Origins[0].Address && p.Enabled {
			r.Is.Origin = p.Origins[0].Address
		} else {
			r.Drift = fmt.Sprintf("the pool %s has not exactly one origin with its own Host header, or is disabled", shown(p.Name))
		}
	}
	if r.Is != nil {
		for _, b := range x.poolUsers[p.ID] {
			if b.Name != host && b.Description == BalancerOf(x.environment.Name, key.Account) {
				r.Elsewhere = append(r.Elsewhere, b.Name)
			}
		}
		slices.Sort(r.Elsewhere)
		r.Elsewhere = slices.Compact(r.Elsewhere)
	}
	for _, b := range x.balancers[host] {
		if r.Foreign == "" {
			r.Joined = r.Is != nil && slices.Contains(b.Pools, p.ID)
			r.Drift = strings.Join(slices.DeleteFunc([]string{r.Drift, x.drift(b, key.Account)}, func(s string) bool { return s == "" }), "; ")
		}
	}
	return r
}

// foreign says whose a global host is, where that is not the account's alone.
func (x *Index) foreign(host, owner, account string) string {
	for _, b := range x.balancers[host] {
		if b.Description != BalancerOf(x.environment.Name, account) {
			return fmt.Sprintf("the load balancer is not ours (%s)", quoted(cmp.Or(b.Description, "without a description")))
		}
	}
	switch len(x.balancers[host]) {
	case 0:
	case 1:
		return "" // it answers before any record: what stands beneath keeps no pool in it
	default:
		return "there are several load balancers of that name"
	}
	switch read := x.Host(host, owner); read.Ownership {
	case fleet.OwnershipForeign, fleet.OwnershipUnreadable:
		return "the host " + read.Detail
	case fleet.OwnershipOurs, fleet.OwnershipAbsent, fleet.OwnershipUnknown, fleet.OwnershipNotChecked:
	}
	return ""
}

// OurPools are the pools of a load balancer that are the account's.
func (x *Index) OurPools(b Balancer, account string) (ours []Pool) {
	for _, id := range b.Pools {
		p, found := x.pools[id]
		if environment, key, ok := ParseResource(p.Description); found && ok && environment == x.environment.Name && key.Account == account {
			ours = append(ours, p)
		}
	}
	return ours
}

// drift says what of a load balancer of the account is not as declared, its set of pools
// aside: that is known by who joined.
func (x *Index) drift(b Balancer, account string) string {
	ours := x.OurPools(b, account)
	want := DeclaredBalancer(x.environment.Name, account, b.Name, ours)
	var differs []string
	say := func(name string, is, want any) {
		if is != want {
			differs = append(differs, fmt.Sprintf("%s is %v, not %v", name, is, want))
		}
	}
	say("proxied", b.Proxied, want.Proxied)
	say("enabled", b.Enabled, want.Enabled)
	say("ttl", b.TTL, want.TTL)
	say("steering", shown(b.Steering), want.Steering)
	switch {
	case len(ours) != len(b.Pools):
		differs = append(differs, "it has pools that are not the account's")
	case !slices.Equal(b.Pools, want.Pools):
		differs = append(differs, "its pools are not sorted by name")
	}
	if b.Fallback != want.Fallback {
		differs = append(differs, "its fallback is not the first pool")
	}
	return strings.Join(differs, ", ")
}
