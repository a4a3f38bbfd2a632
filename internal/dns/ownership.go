package dns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Judge says whose a host is by what was read of it, seen by owner, an owner id of the
// environment. Of many hosts an Index says it faster.
func Judge(host, owner string, read Listing, z Zone, e fleet.Environment) fleet.HostRead {
	return NewIndex(read, z, e).Host(host, owner)
}

// Host says whose a host is (D3, D4), seen by owner. Detail follows the host's name in a sentence.
func (x *Index) Host(host, owner string) fleet.HostRead {
	host = canonical(host)
	v := x.evidence(host, owner)
	r := fleet.HostRead{Host: host, Records: x.Records(host), Begun: x.begun}
	switch {
	case v.outranked != "":
		r.Ownership, r.Detail = fleet.OwnershipForeign, v.outranked
		r.Owners = v.others(owner)
	case len(v.others(owner)) > 0:
		r.Ownership, r.Detail = fleet.OwnershipForeign, v.belongs(host, owner)
		if r.Owners = v.others(owner); v.owners[owner] != nil {
			r.Owners = append(r.Owners, owner)
		}
	case len(v.twins) > 0:
		r.Ownership, r.Owners, r.Detail = fleet.OwnershipForeign, []string{owner}, v.twinsText(owner)
	case len(v.unreadable) > 0:
		r.Ownership, r.Detail = fleet.OwnershipUnreadable, v.unreadableText()
	case len(v.bare) > 0:
		r.Ownership, r.Detail = fleet.OwnershipForeign, v.bareText()
		r.Owners = v.hinted(owner)
	case v.owners[owner] != nil:
		r.Ownership, r.Detail = fleet.OwnershipOurs, v.notes()
		for _, c := range v.owners[owner] {
			r.Resource = cmp.Or(r.Resource, c.TXT.Resource)
		}
	case v.balanced:
		r.Ownership = fleet.OwnershipOurs
	default:
		r.Ownership, r.Detail = fleet.OwnershipAbsent, "has no record"
	}
	r.Detail = fleet.Shorten(r.Detail, mostDetail)
	slices.Sort(r.Owners)
	for i, o := range r.Owners {
		r.Owners[i] = shown(o)
	}
	return r
}

// evidence is what stands at a host, weighed.
type evidence struct {
	environment fleet.Environment
	owners      map[string][]Claim // who is named by the claims that count
	twins       []Claim            // of our owner id, and of a server of another environment
	unreadable  []Claim
	overruled   []Claim           // of the old form, where a newer one is about the same records
	hints       []Claim           // beside the host
	bare        []fleet.DNSRecord // that no claim is about
	balanced    bool              // a load balancer of ours answers
	outranked   string            // what answers before any record, and is not ours
}

// evidence weighs what there is of a host, seen by owner; "": by nobody. The newest form decides of the same records: of external-dns
// 0.12 and later the old one is a leftover (its registry/txt documentation).
func (x *Index) evidence(host, owner string) evidence {
	v := evidence{environment: x.environment, owners: map[string][]Claim{}}
	claims, records := x.Claims(host), x.records[host]
	typed := func(ofType string) bool {
		return slices.ContainsFunc(claims, func(c Claim) bool { return c.Form == FormTyped && c.Type == ofType })
	}
	// An old claim is overruled where a typed one is about each record that it is about.
	old := !typed(TypeA) && !typed(TypeCNAME)
	for _, r := range records {
		old = old || r.Type != TypeAAAA && !typed(r.Type)
	}
	for _, c := range claims {
		switch {
		case c.Form == FormBeside:
			v.hints = append(v.hints, c)
		case c.Form == FormOld && !old:
			v.overruled = append(v.overruled, c)
		case c.Reading == ReadingOwner && c.TXT.Owner == owner && x.elsewhere(c) != "":
			v.twins = append(v.twins, c)
		case c.Reading == ReadingOwner:
			v.owners[c.TXT.Owner] = append(v.owners[c.TXT.Owner], c)
		default:
			v.unreadable = append(v.unreadable, c)
		}
	}
	for _, r := range records {
		if !slices.ContainsFunc(claims, func(c Claim) bool { return c.covers(r.Type) }) {
			v.bare = append(v.bare, r)
		}
	}
	v.outranked = x.delegated(host)
	for _, b := range x.balancers[host] {
		switch environment, _, ok := ParseBalancer(b.Description); {
		case ok && environment == x.environment.Name:
			v.balanced = true
		case ok:
			v.outranked = cmp.Or(v.outranked, fmt.Sprintf("has a load balancer of environment %q, which answers before any record", environment))
		default:
			v.outranked = cmp.Or(v.outranked, fmt.Sprintf("has a load balancer that is not ours (%s), which answers before any record", quoted(cmp.Or(b.Description, "without a description"))))
		}
	}
	return v
}

// elsewhere is the other environment whose server the claim names; "": none.
func (x *Index) elsewhere(c Claim) string {
	if environment, _, ok := ParseResource(c.TXT.Resource); ok && environment != x.environment.Name {
		return environment
	}
	return ""
}

// delegated says that other servers answer for the host than the zone's.
func (x *Index) delegated(host string) string {
	for name := host; x.Has(name); _, name, _ = strings.Cut(name, ".") {
		if ns := x.delegations[name]; len(ns) > 0 {
			return fmt.Sprintf("is not answered for by this zone: an NS record of %s leads to %s; give kurad that zone instead", shown(name), shown(ns[0].Content))
		}
	}
	return ""
}

// others are the owners but ours, sorted.
func (v evidence) others(owner string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.owners)), func(o string) bool { return o == owner })
}

// belongs says whose a host is of which another owner is named.
func (v evidence) belongs(host, owner string) string {
	var named []string
	for _, o := range slices.Sorted(maps.Keys(v.owners)) {
		who := quoted(o)
		if o == owner {
			who += ", which is ours,"
		} else if e := v.environmentOf(host, v.owners[o]); e != "" {
			who += " of environment " + quoted(e)
		}
		named = append(named, who+" ("+txtNames(v.owners[o])+")")
	}
	text := "belongs to " + named[0]
	if len(named) > 1 {
		text = "is claimed by " + strings.Join(named, " and by ") + ", and which one wins can change from read to read; delete the TXT records of all but one"
	}
	if len(v.bare) > 0 {
		text += fmt.Sprintf("; of %s no ownership record tells", recordText(v.bare[0]))
	}
	return text + v.more()
}

// twinsText says whose a host is that has our owner id: whoever goes by the id alone would lead
// clients to another environment's server.
func (v evidence) twinsText(owner string) string {
	environment, _, _ := ParseResource(v.twins[0].TXT.Resource)
	return fmt.Sprintf("belongs to environment %s, which has the same owner id %s (%s); give each environment an owner id of its own", quoted(environment), quoted(owner), txtNames(v.twins))
}

func (v evidence) unreadableText() string {
	if c := v.unreadable[0]; c.Reading == ReadingSealed {
		return fmt.Sprintf("has an ownership record that cannot be read: %s is encrypted; external-dns writes it in the clear without --txt-encrypt-enabled", txtNames(v.unreadable))
	}
	return fmt.Sprintf("has an ownership record that names no owner, or several: %s; correct or delete it", txtNames(v.unreadable))
}

func (v evidence) bareText() string {
	text := fmt.Sprintf("has %s that no ownership record claims", recordText(v.bare[0]))
	if len(v.hints) == 0 {
		return text + "; whoever made it can delete it"
	}
	var hints []string
	for _, c := range v.hints {
		hints = append(hints, fmt.Sprintf("%s names %s", txtNames([]Claim{c}), quoted(c.TXT.Owner)))
	}
	return text + ", unless one in a form that the zone was not given: " + strings.Join(hints, ", ") + "; then give kurad the same txt-prefix or txt-suffix"
}

// hinted are the others that are named beside the host.
func (v evidence) hinted(owner string) []string {
	var names []string
	for _, c := range v.hints {
		if c.TXT.Owner != owner && c.TXT.Owner != "" {
			names = append(names, c.TXT.Owner)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// notes says what is odd about a host that is ours.
func (v evidence) notes() string { return strings.TrimPrefix(v.more(), "; ") }

// more says what does not decide.
func (v evidence) more() (text string) {
	for _, c := range v.overruled {
		if v.owners[c.TXT.Owner] == nil {
			text += fmt.Sprintf("; %s, of the form of old versions of external-dns, names %s and does not count", txtNames([]Claim{c}), quoted(cmp.Or(c.TXT.Owner, "nobody")))
		}
	}
	for _, o := range slices.Sorted(maps.Keys(v.owners)) {
		for _, c := range v.owners[o] {
			if c.Form == FormBelow {
				text += fmt.Sprintf("; %s has a prefix that the zone was not given: give kurad it as txt-prefix", txtNames([]Claim{c}))
			}
		}
	}
	return text
}

// environmentOf is the other environment that the claims, or else the host, are of; "": it
// cannot be told.
func (v evidence) environmentOf(host string, claims []Claim) string {
	for _, c := range claims {
		if environment, _, ok := ParseResource(c.TXT.Resource); ok {
			return environment
		}
	}
	first, _, _ := strings.Cut(host, ".")
	if environment, _, found := v.environment.Collision(first); found && environment != v.environment.Name {
		return environment
	}
	return ""
}

// txtNames are the names of the TXT records of claims.
func txtNames(claims []Claim) string {
	var names []string
	for _, c := range claims {
		names = append(names, shown(c.Record.Name))
	}
	slices.Sort(names)
	return "TXT " + strings.Join(slices.Compact(names), ", ")
}

func recordText(r fleet.DNSRecord) string {
	article := "an"
	if r.Type == TypeCNAME {
		article = "a"
	}
	return fmt.Sprintf("%s %s record (%s)", article, r.Type, shown(r.Content))
}

// mostShown is how much of what others wrote stands in a text, in bytes.
const mostShown = 300

// mostDetail is how much is said of one host, in characters: others may claim it as often as its zone has place for, and
// what is said of it is stored with a server.
const mostDetail = 1500

// shown is text from outside as people may read it (G11): in one line, without what does not show.
func shown(s string) string { return strings.TrimSuffix(strings.TrimPrefix(quoted(s), `"`), `"`) }

func quoted(s string) string {
	if len(s) > mostShown {
		s = s[:mostShown] + "…"
	}
	return strconv.Quote(s)
}
