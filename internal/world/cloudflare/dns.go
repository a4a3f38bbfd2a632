package cloudflare

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// Propagation is how DNS comes after what the API says. Each name takes its own time, half of Delay to all of it:
// "the propagation of changes is not atomic" (API documentation of batches).
type Propagation struct {
	Delay time.Duration `json:"-"`
	Held  bool          `json:"held"` // nothing new is seen until this is taken back
}

// SetPropagation changes it, also for what is on its way.
func (e *Emulator) SetPropagation(p Propagation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spread = p
	for _, z := range e.zones {
		e.settle(z)
	}
}

// view is what DNS knows of a zone.
type view struct {
	names   map[string]node
	below   map[string]int // how many names are at or below each
	zone    string
	pending []pending
}

// node is what DNS knows of a name.
type node struct {
	records  []*Record
	balancer *balanced
}

// pending is a change on its way.
type pending struct {
	name  string
	node  node
	since time.Time
}

func newView(zone string) view {
	return view{names: map[string]node{}, below: map[string]int{}, zone: zone}
}

// publish sends what there is of a name on its way.
func (e *Emulator) publish(z *zone, name string) {
	z.view.pending = append(z.view.pending, pending{name: name, node: e.node(z, name), since: e.now()})
}

// settle shows what has arrived.
func (e *Emulator) settle(z *zone) {
	if e.spread.Held || len(z.view.pending) == 0 {
		return
	}
	now := e.now()
	z.view.pending = slices.DeleteFunc(z.view.pending, func(p pending) bool {
		if now.Before(p.since.Add(share(e.spread.Delay, p.name))) {
			return false
		}
		z.view.show(p.name, p.node)
		return true
	})
}

// share is how long a name takes: always the same part, so that its changes arrive in their order.
func share(delay time.Duration, name string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return delay/2 + delay/2*time.Duration(hash.Sum32()%1000)/1000
}

func (v *view) show(name string, n node) {
	_, was := v.names[name]
	is := len(n.records) > 0 || n.balancer != nil
	if is {
		v.names[name] = n
	} else {
		delete(v.names, name)
	}
	if was == is {
		return
	}
	for at := name; ; at = at[strings.IndexByte(at, '.')+1:] {
		if is {
			v.below[at]++
		} else if v.below[at]--; v.below[at] == 0 {
			delete(v.below, at)
		}
		if at == v.zone {
			return
		}
	}
}

// lookup returns what answers for name, and whether the name exists: a name with others below it does, without
// records of its own; a wildcard answers for names that do not exist below the closest one that does (RFC 4592).
func (v *view) lookup(name string) (node, bool) {
	if n, ok := v.names[name]; ok {
		return n, true
	}
	if name == v.zone || name == "ns."+v.zone || v.below[name] > 0 {
		return node{}, true
	}
	for at := name; at != v.zone; {
		at = at[strings.IndexByte(at, '.')+1:]
		if n, ok := v.names["*."+at]; ok {
			return n, true
		}
		if v.below[at] > 0 {
			break
		}
	}
	return node{}, false
}

// Addresses of Cloudflare's own, which are answered for whatever is proxied, and how long those and records of
// automatic TTL may be kept (documentation of proxied records and of TTL).
var proxies = []netip.Addr{netip.MustParseAddr("104.16.132.229"), netip.MustParseAddr("2606:4700::6810:84e5")}

const automaticTTL = 300

// resolve answers one question of the DNS server. An alias is followed as far as the zones here go.
func (e *Emulator) resolve(q dns.Question, client netip.Addr) ([]dns.RR, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var records []dns.RR
	for range 8 {
		name := strings.TrimSuffix(q.Name, ".")
		z := e.zoneOf(name)
		if z == nil {
			return records, true
		}
		e.settle(z)
		n, exists := z.view.lookup(name)
		found, alias := e.answers(z, n, q, client)
		if records = append(records, found...); alias == "" {
			return records, exists
		}
		q.Name = dns.CanonicalName(alias)
	}
	return records, true
}

// answers returns the records of one name, and the name that it is an alias of. A load balancer takes precedence
// over the records of its name (documentation of load balancers, name).
func (e *Emulator) answers(z *zone, n node, q dns.Question, client netip.Addr) (records []dns.RR, alias string) {
	switch name := strings.TrimSuffix(q.Name, "."); {
	case name == z.Name && q.Qtype == dns.TypeNS:
		return []dns.RR{&dns.NS{Hdr: header(q.Name, dns.TypeNS, automaticTTL), Ns: "ns." + q.Name}}, ""
	case name == "ns."+z.Name && len(n.records) == 0:
		return world.Addresses(q, automaticTTL, []netip.Addr{netip.MustParseAddr("127.0.0.1")}), ""
	}
	if n.balancer != nil && (q.Qtype == dns.TypeA || q.Qtype == dns.TypeAAAA) {
		return e.balance(n.balancer, q, client), ""
	}
	for _, r := range n.records {
		if n.balancer != nil && r.Proxiable {
			continue
		}
		ttl := uint32(r.TTL)
		if r.TTL == 1 {
			ttl = automaticTTL
		}
		switch {
		case r.Proxied:
			return world.Addresses(q, automaticTTL, proxies), ""
		case r.Type == "CNAME":
			target := dns.CanonicalName(r.Content)
			records = append(records, &dns.CNAME{Hdr: header(q.Name, dns.TypeCNAME, ttl), Target: target})
			if q.Qtype == dns.TypeCNAME {
				return records, ""
			}
			return records, target
		case dns.TypeToString[q.Qtype] != r.Type:
		case r.Type == "A", r.Type == "AAAA":
			records = append(records, world.Addresses(q, ttl, []netip.Addr{netip.MustParseAddr(r.Content)})...)
		case r.Type == "TXT":
			records = append(records, &dns.TXT{Hdr: header(q.Name, dns.TypeTXT, ttl), Txt: characterStrings(r.Content)})
		case r.Type == "NS":
			records = append(records, &dns.NS{Hdr: header(q.Name, dns.TypeNS, ttl), Ns: dns.CanonicalName(r.Content)})
		}
	}
	return records, ""
}

func header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// characterStrings cuts the content of a TXT into strings of at most 255 bytes (RFC 1035, 3.3.14). Content in quotes
// is a row of such strings already ("a" "b"), with \ before a quote within; quotes are no part of it.
func characterStrings(content string) []string {
	whole := content
	if strings.HasPrefix(content, `"`) {
		var said strings.Builder
		within, escaped := false, false
		for i := range len(content) {
			switch b := content[i]; {
			case escaped:
				said.WriteByte(b)
				escaped = false
			case b == '\\':
				escaped = true
			case b == '"':
				within = !within
			case within:
				said.WriteByte(b)
			}
		}
		whole = said.String()
	}
	cut := []string{}
	for len(whole) > 255 {
		cut, whole = append(cut, whole[:255]), whole[255:]
	}
	return append(cut, whole)
}
