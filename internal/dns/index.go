package dns

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Form says in which form an ownership record is written, and so how much it counts.
type Form string

// Forms, the newest first.
const (
	FormTyped Form = "typed" // of one type (external-dns 0.12 and later)
	FormOld   Form = "old"   // of all types but AAAA (before 0.18)
	// FormBelow is one below the host's name, in a form that the zone was not told of. It counts, but for what
	// changes the host.
	FormBelow Form = "below"
	// FormBeside is one whose name only reads as if it were the host's with a prefix or suffix
	// that the zone was not told of. It says whose the host may be, and never that it is ours.
	FormBeside Form = "beside"
)

// Claim is what one TXT record says of the ownership of a host.
type Claim struct {
	Record  fleet.DNSRecord // the TXT record
	Form    Form
	Type    string // of the record that it is for; "": see Form
	Reading Reading
	TXT     TXT
}

// told reports whether the claim is in a form that the zone was told of. Nothing is changed by any other: it may be a host's
// of its own whose record is gone.
func (c Claim) told() bool { return c.Form == FormTyped || c.Form == FormOld }

// covers reports whether the claim is about records of that type.
func (c Claim) covers(ofType string) bool {
	switch c.Form {
	case FormOld:
		return ofType != TypeAAAA
	case FormTyped, FormBelow:
		return c.Type == ofType || c.Type == ""
	case FormBeside:
	}
	return false
}

// Index finds all that a listing has of a host at once. Names are as canonical makes them.
type Index struct {
	zone        Zone
	environment fleet.Environment
	begun       time.Time
	records     map[string][]fleet.DNSRecord // A, AAAA and CNAME
	claims      map[string][]Claim           // by the host's key (Naming)
	delegations map[string][]fleet.DNSRecord // NS below the zone's own name
	balancers   map[string][]Balancer
	resources   map[string][]string
	owners      map[string]map[string]bool // other environments by owner id; true: by a resource
	pools       map[string]Pool            // by id
	poolUsers   map[string][]Balancer      // by the pool's id
	poolNames   map[string]string          // id by name
}

// NewIndex takes a listing of the zone, or what was answered to queries for the Names of hosts, as
// the environment sees it.
func NewIndex(l Listing, z Zone, e fleet.Environment) *Index {
	x := &Index{
		zone: z, environment: e, begun: l.Begun,
		records: map[string][]fleet.DNSRecord{}, claims: map[string][]Claim{}, delegations: map[string][]fleet.DNSRecord{},
		balancers: map[string][]Balancer{}, resources: map[string][]string{}, owners: map[string]map[string]bool{}, pools: map[string]Pool{}, poolUsers: map[string][]Balancer{}, poolNames: map[string]string{},
	}
	for _, r := range l.Records {
		r.Name = canonical(r.Name)
		switch r.Type = strings.ToUpper(r.Type); r.Type {
		case TypeA, TypeAAAA, TypeCNAME:
			x.records[r.Name] = append(x.records[r.Name], r)
		case "NS":
			if r.Name != z.Domain {
				x.delegations[r.Name] = append(x.delegations[r.Name], r)
			}
		}
	}
	for _, b := range l.Balancers {
		b.Name = canonical(b.Name)
		x.balancers[b.Name] = append(x.balancers[b.Name], b)
		for _, id := range b.Pools {
			x.poolUsers[id] = append(x.poolUsers[id], b)
		}
	}
	for _, p := range l.Pools {
		x.pools[p.ID] = p
		if id, taken := x.poolNames[p.Name]; !taken || p.ID < id {
			x.poolNames[p.Name] = p.ID
		}
	}
	x.claim(l.Records)
	x.order()
	return x
}

// claim reads the ownership records. Which are in no form that the zone was told of can be said
// only when the others have been read.
func (x *Index) claim(records []fleet.DNSRecord) {
	var strays []Claim
	for _, r := range records {
		if !strings.EqualFold(r.Type, "TXT") {
			continue
		}
		r.Name, r.Type = canonical(r.Name), "TXT"
		c := Claim{Record: r, Form: FormTyped}
		if c.TXT, c.Reading = ParseTXT(r.Content); c.Reading == ReadingOther {
			continue
		}
		host, ofType := x.zone.TXT.Host(r.Name)
		switch c.Type = ofType; ofType {
		case TypeA, TypeAAAA, TypeCNAME:
			x.add(host, c)
		case "":
			if c.Form = FormOld; c.Reading == ReadingSealed {
				continue // encrypted ones are written in the new form only
			}
			x.add(host, c)
		}
		if c.Reading != ReadingSealed && !slices.ContainsFunc(x.records[host], func(r fleet.DNSRecord) bool { return c.covers(r.Type) }) {
			strays = append(strays, c)
		}
	}
	for _, c := range strays {
		if c.Form == FormOld || c.Type == TypeA || c.Type == TypeAAAA || c.Type == TypeCNAME {
			x.below(c)
		}
	}
	unclaimed := func(host string) bool {
		return len(x.records[host]) > 0 && len(x.claims[x.zone.TXT.key(host)]) == 0
	}
	var beside []func()
	for _, c := range strays {
		if host := x.affixed(c.Record.Name, unclaimed); host != "" {
			c.Form, c.Type = FormBeside, ""
			beside = append(beside, func() { x.add(host, c) })
		}
	}
	for _, add := range beside {
		add()
	}
}

func (x *Index) add(host string, c Claim) {
	x.claims[host] = append(x.claims[host], c)
	if c.TXT.Resource != "" && c.told() {
		x.resources[c.TXT.Resource] = append(x.resources[c.TXT.Resource], host)
	}
	environment, _, named := ParseResource(c.TXT.Resource)
	if !named {
		first, _, _ := strings.Cut(host, ".")
		environment, _, _ = x.environment.Collision(first)
	}
	if environment != "" && environment != x.environment.Name && c.Reading == ReadingOwner {
		if x.owners[c.TXT.Owner] == nil {
			x.owners[c.TXT.Owner] = map[string]bool{}
		}
		x.owners[c.TXT.Owner][environment] = x.owners[c.TXT.Owner][environment] || named
	}
}

// below adds a claim of which no record is to every host above it in the zone.
func (x *Index) below(c Claim) {
	c.Form = FormBelow
	for name := c.Record.Name; ; {
		_, rest, dotted := strings.Cut(name, ".")
		if !dotted || !x.Has(rest) {
			return
		}
		name = rest
		var host string
		host, c.Type = Naming{}.Host(name)
		x.add(host, c)
	}
}

// affixed finds the host whose name, with a prefix, suffix or wildcard replacement that the zone
// was not told of, the name of a TXT record may be: the longest of those that are one; "": none is.
func (x *Index) affixed(name string, is func(host string) bool) string {
	for i := range name {
		if i > 0 && x.Has(name[i:]) && is(name[i:]) {
			return name[i:]
		}
	}
	host, _ := Naming{}.Host(name)
	first, rest, _ := strings.Cut(host, ".")
	for i := len(first) - 1; i > 0; i-- {
		if candidate := first[:i] + "." + rest; is(candidate) {
			return candidate
		}
	}
	if wild := "*." + rest; is(wild) { // what stands for the * was not told
		return wild
	}
	return ""
}

// order makes every answer independent of the order of the listing.
func (x *Index) order() {
	for _, list := range x.records {
		sortRecords(list)
	}
	for _, list := range x.delegations {
		sortRecords(list)
	}
	for _, list := range x.claims {
		slices.SortFunc(list, func(a, b Claim) int {
			return cmp.Or(compareRecords(a.Record, b.Record), cmp.Compare(a.Form, b.Form), cmp.Compare(a.Type, b.Type))
		})
	}
	for _, list := range x.balancers {
		slices.SortFunc(list, func(a, b Balancer) int {
			return cmp.Or(cmp.Compare(a.Description, b.Description), cmp.Compare(a.ID, b.ID))
		})
	}
	for resource, hosts := range x.resources {
		slices.Sort(hosts)
		x.resources[resource] = slices.Compact(hosts)
	}
}

func sortRecords(list []fleet.DNSRecord) { slices.SortFunc(list, compareRecords) }

func compareRecords(a, b fleet.DNSRecord) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Content, b.Content), cmp.Compare(a.ID, b.ID))
}

// Has reports whether a host lies in the zone.
func (x *Index) Has(host string) bool { return strings.HasSuffix(host, "."+x.zone.Domain) }

// Records are those of a host that lead clients somewhere, sorted.
func (x *Index) Records(host string) []fleet.DNSRecord {
	return slices.Clone(x.records[canonical(host)])
}

// Claims are the ownership records of a host, sorted.
func (x *Index) Claims(host string) []Claim {
	return slices.Clone(x.claims[x.zone.TXT.key(canonical(host))])
}

// Balancers are the load balancers of a host: there is one at most, but for what the provider
// thinks of.
func (x *Index) Balancers(host string) []Balancer { return slices.Clone(x.balancers[canonical(host)]) }

// Of are the hosts whose ownership record names that resource (fleet.ResourceOf), sorted.
func (x *Index) Of(resource string) []string { return slices.Clone(x.resources[resource]) }

// Hosts are all that have a record or an ownership record, sorted.
func (x *Index) Hosts() []string {
	hosts := slices.Collect(maps.Keys(x.records))
	for key := range x.claims {
		if _, has := x.records[key]; !has && !x.wildcard(key) {
			hosts = append(hosts, key)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// wildcard reports whether ownership records of a host with that key are those of a wildcard.
func (x *Index) wildcard(key string) bool {
	_, rest, _ := strings.Cut(key, ".")
	return x.zone.TXT.Wildcard != "" && x.zone.TXT.key("*."+rest) == key && len(x.records["*."+rest]) > 0
}

// Balanced are the hosts that have a load balancer, sorted.
func (x *Index) Balanced() []string { return slices.Sorted(maps.Keys(x.balancers)) }

// Pools are all of the provider's account, sorted by name.
func (x *Index) Pools() []Pool {
	return slices.SortedFunc(maps.Values(x.pools), func(a, b Pool) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// Environments are the others that the owner id is of, too, by the resource of an ownership
// record or by the suffix of a host that no server of ours was named for, sorted: each takes the
// records of all for its own.
func (x *Index) Environments(owner string) []string {
	return slices.Sorted(maps.Keys(x.owners[owner]))
}

// proven are those of which a resource says so.
func (x *Index) proven(owner string) []string {
	return slices.DeleteFunc(x.Environments(owner), func(environment string) bool { return !x.owners[owner][environment] })
}
