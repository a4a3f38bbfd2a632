package cloudflare

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Balancer is a load balancer of a zone; pools are named by their identifiers.
type Balancer struct {
	Object
	Enabled         bool                `json:"enabled"`
	TTL             int                 `json:"ttl,omitempty"` // seconds; nothing where it is proxied
	Proxied         bool                `json:"proxied"`
	FallbackPool    string              `json:"fallback_pool"`
	DefaultPools    []string            `json:"default_pools"`
	SteeringPolicy  string              `json:"steering_policy"`
	SessionAffinity string              `json:"session_affinity"`
	RegionPools     map[string][]string `json:"region_pools"`
	ZoneName        string              `json:"zone_name"`
}

func (b *Balancer) uses(pool string) bool {
	return b.FallbackPool == pool || slices.Contains(b.DefaultPools, pool)
}

func (e *Emulator) listBalancers(c *call) (reply, *failure) {
	all := []*Balancer{}
	for _, id := range slices.Sorted(maps.Keys(c.zone.balancers)) {
		all = append(all, c.zone.balancers[id])
	}
	return whole(c, all), nil
}

func (e *Emulator) getBalancer(c *call) (reply, *failure) {
	if b := c.zone.balancers[c.PathValue("id")]; b != nil {
		return reply{result: b}, nil
	}
	return reply{}, notFound("load balancer")
}

// createBalancer: a zone without the subscription refuses the first one already (ingress-controller 18).
func (e *Emulator) createBalancer(c *call) (reply, *failure) {
	switch most := c.zone.Quota.Balancers; {
	case c.zone.Unsubscribed || c.has(NotSubscribed):
		return reply{}, rejected(http.StatusForbidden, "load balancing not enabled for zone")
	case c.has(QuotaExceeded) || most > 0 && len(c.zone.balancers) >= most:
		return reply{}, rejected(http.StatusForbidden, "the load balancer quota of the zone is exceeded")
	}
	return e.writeBalancer(c, nil)
}

func (e *Emulator) changeBalancer(c *call) (reply, *failure) {
	before := c.zone.balancers[c.PathValue("id")]
	if before == nil {
		return reply{}, notFound("load balancer")
	}
	return e.writeBalancer(c, before)
}

func (e *Emulator) writeBalancer(c *call, before *Balancer) (reply, *failure) {
	after := &Balancer{Enabled: true, SessionAffinity: "none", RegionPools: map[string][]string{}}
	if fail := c.read(before, after); fail != nil {
		return reply{}, fail
	}
	var old *Object
	if before != nil {
		old = &before.Object
	}
	after.begin(e, "balancer", old)
	after.Name, after.ZoneName = strings.ToLower(strings.TrimSuffix(after.Name, ".")), c.zone.Name
	if after.TTL == 0 && !after.Proxied {
		after.TTL = 30
	}
	if after.Proxied {
		after.TTL = 0
	}
	if fail := e.checkBalancer(c.zone, after); fail != nil {
		return reply{}, fail
	}
	e.setBalancer(c.zone, c.token.Name, after)
	return reply{result: after}, nil
}

func (e *Emulator) setBalancer(z *zone, by string, after *Balancer) {
	before := z.balancers[after.ID]
	z.balancers[after.ID] = after
	e.counters.Writes[after.Name]++
	e.note(Change{By: by, Zone: z.Name, Kind: "balancer", ID: after.ID, Name: after.Name, Before: e.tell(z, before), After: e.tell(z, after)})
	e.publish(z, after.Name)
	if before != nil && before.Name != after.Name {
		e.publish(z, before.Name)
	}
	e.settle(z)
}

// deleteBalancer leaves its pools where they are (API behaviour).
func (e *Emulator) deleteBalancer(c *call) (reply, *failure) {
	id := c.PathValue("id")
	gone := c.zone.balancers[id]
	if gone == nil {
		return reply{}, notFound("load balancer")
	}
	e.dropBalancer(c.zone, c.token.Name, gone)
	return reply{result: map[string]string{"id": id}}, nil
}

func (e *Emulator) dropBalancer(z *zone, by string, gone *Balancer) {
	delete(z.balancers, gone.ID)
	e.counters.Writes[gone.Name]++
	e.note(Change{By: by, Zone: z.Name, Kind: "balancer", ID: gone.ID, Name: gone.Name, Before: e.tell(z, gone)})
	e.publish(z, gone.Name)
	e.settle(z)
}

var steeringPolicies = []string{"", "off", "geo", "random", "dynamic_latency", "proximity", "least_outstanding_requests", "least_connections"}

// checkBalancer refuses what no load balancer may be (API documentation of load balancers). Its name may be that of
// records: it takes precedence over them.
func (e *Emulator) checkBalancer(z *zone, b *Balancer) *failure {
	mistake := func(text string, args ...any) *failure {
		return rejected(http.StatusBadRequest, fmt.Sprintf(text, args...))
	}
	for _, other := range z.balancers {
		if other.ID != b.ID && other.Name == b.Name {
			return taken()
		}
	}
	switch {
	case !hostname(b.Name) || !z.holds(b.Name):
		return mistake("name %q is not a host name of the zone", b.Name)
	case b.FallbackPool == "":
		return mistake("fallback_pool is required")
	case len(b.DefaultPools) == 0:
		return mistake("default_pools is required")
	case !slices.Contains(steeringPolicies, b.SteeringPolicy):
		return mistake("steering_policy %q is unknown", b.SteeringPolicy)
	}
	for _, id := range append([]string{b.FallbackPool}, b.DefaultPools...) {
		if e.poolsOf(z.Account)[id] == nil {
			return mistake("pool %q does not exist in the account", id)
		}
	}
	return nil
}

// tell tells what a load balancer says, without its name, with the names of its pools in their order.
func (e *Emulator) tell(z *zone, b *Balancer) string {
	if b == nil {
		return ""
	}
	name := func(id string) string {
		if p := e.poolsOf(z.Account)[id]; p != nil {
			return p.Name
		}
		return "?" + id
	}
	var pools []string
	for _, id := range b.DefaultPools {
		pools = append(pools, name(id))
	}
	said := fmt.Sprintf("LB %s pools=%s fallback=%s ttl=%d", b.SteeringPolicy, strings.Join(pools, ","), name(b.FallbackPool), b.TTL)
	if b.Proxied {
		said += " proxied"
	}
	if !b.Enabled {
		said += " disabled"
	}
	if b.Description != "" {
		said += fmt.Sprintf(" %q", b.Description)
	}
	return said
}
