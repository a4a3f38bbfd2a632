package cloudflare

import (
	"math"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// Place is where somebody is, in degrees.
type Place struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Places are where clients are: those who send an EDNS client subnet by the longest prefix that holds it, everybody
// else at Here.
type Places struct {
	Here     Place                  `json:"here"`
	Networks map[netip.Prefix]Place `json:"networks,omitempty"`
}

// SetPlaces says where clients are.
func (e *Emulator) SetPlaces(places Places) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.places = places
}

func (p Places) of(client netip.Addr) Place {
	at, bits := p.Here, -1
	for network, place := range p.Networks {
		if client.IsValid() && network.Contains(client) && network.Bits() > bits {
			at, bits = place, network.Bits()
		}
	}
	return at
}

// balanced is what DNS knows of a load balancer: as it was when it was written, its pools too.
type balanced struct {
	ttl      uint32
	proxied  bool
	policy   string
	pools    []*Pool
	fallback *Pool
}

// node takes down what there is of a name.
func (e *Emulator) node(z *zone, name string) node {
	n := node{records: z.byName[name]}
	for _, b := range z.balancers {
		if b.Name != name || !b.Enabled {
			continue
		}
		pools := e.poolsOf(z.Account)
		n.balancer = &balanced{ttl: uint32(b.TTL), proxied: b.Proxied, policy: b.SteeringPolicy, fallback: pools[b.FallbackPool]}
		for _, id := range b.DefaultPools {
			if p := pools[id]; p != nil { // of one that was seeded it may be anything
				n.balancer.pools = append(n.balancer.pools, p)
			}
		}
	}
	return n
}

// republish sends what a pool's load balancers answer on its way.
func (e *Emulator) republish(account, pool string) {
	for _, z := range e.zones {
		for _, b := range z.balancers {
			if z.Account == account && b.uses(pool) {
				e.publish(z, b.Name)
			}
		}
		e.settle(z)
	}
}

// balance answers for a load balancer. Steering by proximity takes the pool nearest to the client, who is where his
// subnet is (location_strategy: prefer_ecs is "proximity" by default); the other policies take the first pool. A pool
// without a monitor counts as healthy, so only pools that are disabled, or whose origins all are, are passed over; if
// none is left it is the fallback (API documentation of steering_policy and fallback_pool).
func (e *Emulator) balance(b *balanced, q dns.Question, client netip.Addr) []dns.RR {
	if b.proxied {
		return world.Addresses(q, automaticTTL, proxies)
	}
	chosen, nearest := b.fallback, math.Inf(1)
	for i, p := range b.pools {
		distance := float64(i)
		if b.policy == "proximity" {
			distance = p.distance(e.places.of(client))
		}
		if p.up() && distance < nearest {
			chosen, nearest = p, distance
		}
	}
	if chosen == nil {
		return nil
	}
	var addrs []netip.Addr
	for _, o := range chosen.Origins {
		if o.enabled() {
			addrs = append(addrs, e.locate(o.Address)...)
		}
	}
	return world.Addresses(q, b.ttl, addrs)
}

func (p *Pool) up() bool {
	for _, o := range p.Origins {
		if p.Enabled && o.enabled() {
			return true
		}
	}
	return false
}

// distance is that on the globe, in its radii. A pool without coordinates is farther than any with them.
func (p *Pool) distance(from Place) float64 {
	if p.Latitude == nil || p.Longitude == nil {
		return math.MaxFloat64
	}
	radians := func(degrees float64) float64 { return degrees * math.Pi / 180 }
	north, east := radians(*p.Latitude-from.Latitude), radians(*p.Longitude-from.Longitude)
	h := math.Pow(math.Sin(north/2), 2) + math.Cos(radians(from.Latitude))*math.Cos(radians(*p.Latitude))*math.Pow(math.Sin(east/2), 2)
	return 2 * math.Asin(math.Sqrt(min(1, h)))
}

// locate finds the addresses of an origin. One that is named is looked up among the records here.
func (e *Emulator) locate(origin string) []netip.Addr {
	if addr, err := netip.ParseAddr(origin); err == nil {
		return []netip.Addr{addr}
	}
	var addrs []netip.Addr
	name := strings.ToLower(strings.TrimSuffix(origin, "."))
	for range 8 {
		z := e.zoneOf(name)
		if z == nil {
			return nil
		}
		n, _ := z.view.lookup(name)
		alias := ""
		for _, r := range n.records {
			switch r.Type {
			case "A", "AAAA":
				addrs = append(addrs, netip.MustParseAddr(r.Content))
			case "CNAME":
				alias = r.Content
			}
		}
		if name = alias; name == "" {
			break
		}
	}
	return addrs
}
