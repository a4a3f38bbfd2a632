package dns

import (
	"cmp"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Deletions are what a prune deletes, in this order but for the records, which nothing waits for.
type Deletions struct {
	Records   []fleet.DNSRecord // with their ids
	Changed   []Balancer        // load balancers that lose pools
	Balancers []Balancer
	Pools     []Pool
}

// Prune is what the findings that may be pruned delete.
func Prune(findings []Finding) (d Deletions) {
	gone, pools := map[string]Balancer{}, map[string]Pool{}
	for _, f := range findings {
		if !f.Prunable {
			continue
		}
		for _, r := range f.Records {
			if r.ID != "" && !slices.ContainsFunc(d.Records, func(o fleet.DNSRecord) bool { return o.ID == r.ID }) {
				d.Records = append(d.Records, r)
			}
		}
		if f.Balancer.ID != "" {
			gone[f.Balancer.ID] = f.Balancer
		}
		if f.Pool.ID != "" {
			pools[f.Pool.ID] = f.Pool
		}
	}
	for _, f := range findings {
		for _, b := range f.Users {
			if _, pruned := pools[f.Pool.ID]; pruned {
				d.without(b, pools, gone)
			}
		}
	}
	for _, b := range gone {
		d.Balancers = append(d.Balancers, b)
	}
	for _, p := range pools {
		d.Pools = append(d.Pools, p)
	}
	slices.SortFunc(d.Balancers, func(a, b Balancer) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(d.Pools, func(a, b Pool) int { return cmp.Compare(a.ID, b.ID) })
	return d
}

// without takes pools out of a load balancer, which goes with its last one (D1).
func (d *Deletions) without(b Balancer, pools map[string]Pool, gone map[string]Balancer) {
	known := slices.ContainsFunc(d.Changed, func(o Balancer) bool { return o.ID == b.ID })
	if _, deleted := gone[b.ID]; deleted || known {
		return
	}
	b.Pools = slices.DeleteFunc(slices.Clone(b.Pools), func(id string) bool { _, goes := pools[id]; return goes })
	if len(b.Pools) == 0 {
		gone[b.ID] = b
		return
	}
	if !slices.Contains(b.Pools, b.Fallback) {
		b.Fallback = b.Pools[0]
	}
	d.Changed = append(d.Changed, b)
}

// Taking is a host that is moved from one owner to another: the records of the host with their
// ownership records, and what makes the one the other.
type Taking struct {
	Before, After []fleet.DNSRecord
	Batch         Batch // empty: it is the new owner's already
}

// Take moves a host from the owner to another one, for the server that to.Resource names; "":
// for what it was, unless that is a server of another environment. It is refused where anything
// but from, and what is moved there, is named.
func (x *Index) Take(host, from string, to TXT) (Taking, error) {
	host = canonical(host)
	v := x.evidence(host, to.Owner)
	refused := func(format string, args ...any) (Taking, error) {
		return Taking{}, fleet.Errorf(fleet.CodeConflict, "host %s is not taken from owner %s: it "+format, append([]any{shown(host), quoted(from)}, args...)...)
	}
	switch others := v.others(to.Owner); {
	case v.outranked != "":
		return refused("%s", v.outranked)
	case len(v.unreadable) > 0:
		return refused("%s", v.unreadableText())
	case len(others) == 0 && v.owners[to.Owner] == nil:
		return refused("%s", cmp.Or(x.Host(host, to.Owner).Detail, "has no ownership record"))
	case len(others) == 1 && shown(others[0]) == shown(from):
		from = others[0]
	case len(others) > 0:
		return refused("%s; name the one owner that it has", v.belongs(host, to.Owner))
	}
	if len(v.bare) > 0 {
		return refused("has %s that no ownership record claims; delete it, or have its owner write one", recordText(v.bare[0]))
	}
	t := Taking{Before: x.Records(host)}
	t.After = slices.Clone(t.Before)
	for _, c := range x.Claims(host) {
		if c.Form == FormBeside {
			continue
		}
		t.Before = append(t.Before, c.Record)
		if c.Reading != ReadingOwner || c.TXT.Owner != from || from == to.Owner {
			t.After = append(t.After, c.Record)
			continue
		}
		if c.Record.ID == "" {
			return refused("was read by DNS queries; give kurad a token for its zone (--zone …,cloudflare=FILE)")
		}
		moved := c.Record
		moved.Content = x.moved(c.TXT, to).String()
		// Two equal records are refused, so one that says the same already takes its place.
		same := func(r fleet.DNSRecord) bool { return r.Name == moved.Name }
		if slices.ContainsFunc(t.Batch.Puts, same) || slices.ContainsFunc(v.owners[to.Owner], func(o Claim) bool { return same(o.Record) }) {
			t.Batch.Deletes = append(t.Batch.Deletes, c.Record)
			continue
		}
		t.After, t.Batch.Puts = append(t.After, moved), append(t.Batch.Puts, moved)
	}
	return t, nil
}

// moved is an ownership record under another owner.
func (x *Index) moved(was, to TXT) TXT {
	to.More = was.More
	if to.Resource == "" {
		if environment, _, ok := ParseResource(was.Resource); !ok || environment == x.environment.Name {
			to.Resource = was.Resource
		}
	}
	return to
}
