package cloudflare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ByHand is who changed what no token did.
const ByHand = "hand"

// Change is one change of a record, a load balancer or a pool.
type Change struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`             // name of the token, or ByHand or what was seeded
	Zone   string    `json:"zone,omitempty"` // not of pools
	Kind   string    `json:"kind"`           // record, balancer, pool
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Before string    `json:"before,omitempty"` // as Table shows it; "": created
	After  string    `json:"after,omitempty"`  // "": deleted
}

// String tells it in a line.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s %s: %q -> %q", c.By, c.Kind, c.Name, c.Before, c.After)
}

// History returns all changes, oldest first.
func (e *Emulator) History() []Change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Change(nil), e.history...)
}

func (e *Emulator) remember(by string, z *zone, r replaced) {
	change := Change{By: by, Zone: z.Name, Kind: "record"}
	if r.before != nil {
		change.ID, change.Name, change.Before = r.before.ID, r.before.Name, r.before.String()
	}
	if r.after != nil {
		change.ID, change.Name, change.After = r.after.ID, r.after.Name, r.after.String()
	}
	e.note(change)
}

func (e *Emulator) note(change Change) {
	change.At = e.now()
	e.history = append(e.history, change)
}

// String tells what a record says, without its name: A 192.0.2.1 ttl=60.
func (r *Record) String() string {
	said := fmt.Sprintf("%s %s ttl=%d", r.Type, r.Content, r.TTL)
	if r.Proxied {
		said += " proxied"
	}
	if r.Comment != "" {
		said += fmt.Sprintf(" comment=%q", string(r.Comment))
	}
	return said
}

// Table tells all records, load balancers and pools, a line each, in an order that does not depend on who was first.
func (e *Emulator) Table() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, z := range e.zones {
		for _, r := range z.listed() {
			fmt.Fprintf(table, "%s\t%s\n", r.Name, r)
		}
		for _, b := range byName(z.balancers, func(b *Balancer) string { return b.Name }) {
			fmt.Fprintf(table, "%s\t%s\n", b.Name, e.tell(z, b))
		}
	}
	for _, account := range slices.Sorted(maps.Keys(e.pools)) {
		for _, p := range byName(e.pools[account], func(p *Pool) string { return p.Name }) {
			fmt.Fprintf(table, "pool %s\t%s\n", p.Name, p)
		}
	}
	_ = table.Flush() // to a builder
	return out.String()
}

func byName[T any](all map[string]T, name func(T) string) []T {
	return slices.SortedFunc(maps.Values(all), func(a, b T) int { return strings.Compare(name(a), name(b)) })
}
