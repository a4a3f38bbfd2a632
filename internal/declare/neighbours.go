package declare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// proposal is a change of an account, a host template or a region, and with it of the
// servers that are rendered from it.
type proposal struct {
	pointer string // of what makes servers collide
	advice  string
	keep    func(fleet.ServerKey) bool // servers that may be affected; nil: all
	apply   func(*fleet.Gathered) bool // puts the change into a server; false: it is not affected
	ports   bool                       // the change may need more ports
	check   func(fleet.Gathered) error // what else must hold of an affected server
}

// affected is a server before and after a proposal.
type affected struct {
	before, after fleet.Gathered
	from, to      fleet.Desired
	claims        []store.Reservation // those it does not need yet
	given         []store.Reservation // hosts that it does not need any more (H10)
}

const (
	// claimBudget is how much of a transaction the reservations of one step may take.
	claimBudget = 100
	// maxNamed is how many servers a warning names one by one.
	maxNamed = 10
)

func (a affected) key() fleet.ServerKey { return a.after.Intent.Key() }

// affect adds what a proposal means for the servers that exist to a plan.
func (d *Declarer) affect(ctx context.Context, req Request, p *plan, change proposal) (err error) {
	p.at = func(k fleet.ServerKey) place { return place{k, change.pointer, change.advice, req.By.Sees} }
	p.servers, err = d.affectedBy(ctx, change)
	return err
}

// affectedBy validates a proposal against every server that it affects, at one revision, and
// says what they will need.
func (d *Declarer) affectedBy(ctx context.Context, p proposal) ([]affected, error) {
	if err := d.catchUp(ctx); err != nil {
		return nil, err
	}
	var list []affected
	var used map[int]bool // ports of the one region that p is of
	all, _ := d.view.Servers(p.keep)
	for _, g := range all {
		// One that is being destroyed keeps what it holds and gets nothing new; one whose
		// account or region is gone does not render either way.
		if g.Intent.Deleting != nil || g.Account == nil || g.Region == nil {
			continue
		}
		a := affected{before: g, after: g}
		a.after.Templates = maps.Clone(g.Templates)
		if !p.apply(&a.after) {
			continue
		}
		a.from = d.Desired(g)
		if p.check != nil {
			if err := p.check(a.after); err != nil {
				return nil, err
			}
		}
		if p.ports && used == nil {
			var err error
			if used, err = d.portsInUse(ctx, *a.after.Region); err != nil {
				return nil, err
			}
		}
		if err := d.renderAfter(ctx, p, &a, used); err != nil {
			return nil, err
		}
		held := needs(*g.Region, a.from, g.Intent, g.Status)
		needed := needs(*a.after.Region, a.to, a.after.Intent, g.Status)
		for _, res := range needed {
			if a.from.Instance == "" || !slices.Contains(held, res) {
				a.claims = append(a.claims, res)
			}
		}
		for _, res := range held {
			if _, host := res.Host(); host && a.from.Instance != "" && !slices.Contains(needed, res) {
				a.given = append(a.given, res)
			}
		}
		list = append(list, a)
	}
	return list, nil
}

func (d *Declarer) renderAfter(ctx context.Context, p proposal, a *affected, used map[int]bool) (err error) {
	g := &a.after
	if p.ports {
		if g.Intent.Ports, err = d.assignPorts(ctx, g.Intent.Key(), *g.Region, g.Intent.Ports, used); err != nil {
			return err
		}
	}
	if a.to, err = d.render(d.env, *g); err != nil {
		return &fleet.Error{Code: fleet.CodeInvalid, Message: "the change does not fit a server that exists",
			Fields: []fleet.FieldError{{Pointer: p.pointer, Detail: fmt.Sprintf("%v; %s", err, p.advice)}}}
	}
	return nil
}

// disjoint checks that no two affected servers come to need the same thing, unless their
// account is to have it.
func disjoint(list []affected, at func(fleet.ServerKey) place) error {
	type taker struct{ key, holder fleet.ServerKey }
	takers := map[string]taker{}
	for _, a := range list {
		for _, res := range a.claims {
			this := taker{a.key(), res.HolderFor(a.key())}
			if other, taken := takers[res.Key()]; taken && other.holder != this.holder {
				return at(this.key).collision(res.String(), other.key)
			}
			takers[res.Key()] = this
		}
	}
	return nil
}

// cost is how much of a transaction the server takes, at most.
func (a affected) cost() int { return 3 + len(a.claims) + len(a.given) }

// reserve takes what the affected servers will need, a bounded number at a time.
func (d *Declarer) reserve(ctx context.Context, lock *store.Lock, list []affected, at func(fleet.ServerKey) place) error {
	for len(list) > 0 {
		step, cost := 0, 0
		for step < len(list) && (step == 0 || cost+list[step].cost() <= claimBudget) {
			cost += list[step].cost()
			step++
		}
		if err := d.reserveStep(ctx, lock, list[:step], at); err != nil {
			return err
		}
		list = list[step:]
	}
	return nil
}

func (d *Declarer) reserveStep(ctx context.Context, lock *store.Lock, list []affected, at func(fleet.ServerKey) place) error {
	tx, something := d.records.BeginAt(d.now()), false
	tx.Under(lock)
	for _, a := range list {
		if len(a.claims)+len(a.given) == 0 && !a.before.Offers {
			continue
		}
		key := a.key()
		prev := intentOf(a.before)
		if !a.before.Offers && maps.Equal(a.before.Intent.Ports, a.after.Intent.Ports) {
			tx.RequireIntent(prev)
		} else {
			tx.PutIntent(prev, offered(a.before.Intent, a.after.Intent.Ports))
		}
		tx.Claim(key, a.claims...)
		// Only kept, not released: should the change not be made, the server needs them still.
		tx.GiveUp(key, d.now().UTC().Add(d.aliases), a.given...)
		something = true
	}
	if !something {
		return nil
	}
	_, err := tx.Commit(ctx)
	return d.taken(ctx, lock, at, list, err)
}

// offered is the intent with the ports that it lacks as an offer: they are its own once the
// change is made, which may yet be broken off (C12).
func offered(in fleet.Intent, ports map[string]int) fleet.Intent {
	in.Offered = maps.Clone(ports)
	maps.DeleteFunc(in.Offered, func(need string, _ int) bool { return in.Ports[need] != 0 })
	return in
}

// impact says what a proposal means for the servers that exist.
func impact(list []affected) []fleet.Warning {
	var moves, replaced, applied, ended []string
	routed := true
	for _, a := range list {
		key, kubernetes := a.after.Intent.Key(), a.after.Region.Runtime() == fleet.RuntimeKubernetes
		for _, h := range []struct{ kind, from, to string }{
			{"", a.from.Hosts.Public, a.to.Hosts.Public}, {"gRPC", a.from.Hosts.GRPC, a.to.Hosts.GRPC}, {"global", a.from.Hosts.Global, a.to.Hosts.Global},
		} {
			if h.from == h.to || h.from == "" {
				continue
			}
			moves = append(moves, fmt.Sprintf("server %s moves from %s to %s", key, h.from, orNone(h.to)))
			routed = routed && kubernetes
			if kubernetes && h.kind != "" { // an instance has aliases of its public host only (K7)
				ended = append(ended, fmt.Sprintf("%s host %s of server %s", h.kind, h.from, key))
			}
		}
		switch {
		case a.from.Revision == a.to.Revision || a.from.Revision == "":
		case a.to.Kubernetes != nil:
			applied = append(applied, key.String())
		default:
			replaced = append(replaced, key.String())
		}
	}
	var warnings []fleet.Warning
	if len(moves) > 0 {
		warnings = append(warnings, fleet.Warning{Code: fleet.WarnHostsMove, Detail: count(len(moves), "host moves", "hosts move") + ": " + some(moves, "; ")})
	}
	if len(moves) > 0 && !routed {
		warnings = append(warnings, fleet.Warning{Code: fleet.WarnNoAlias, Detail: "containers route no old hosts: keep the DNS records of the old hosts until their clients have the new ones"})
	}
	if len(ended) > 0 {
		warnings = append(warnings, fleet.Warning{Code: fleet.WarnNoAlias, Detail: "KuraInstances route old public hosts only, so " + count(len(ended), "host ends", "hosts end") +
			" as soon as kurad applies the change: " + some(ended, ", ") + "; give their clients the new ones"})
	}
	for _, c := range []struct {
		becomes string
		keys    []string
	}{{"replaced", replaced}, {"applied anew", applied}} {
		if len(c.keys) > 0 {
			warnings = append(warnings, fleet.Warning{Code: fleet.WarnReplace, Detail: count(len(c.keys), "server is ", "servers are ") + c.becomes +
				", at most max_unsettled of a region at a time: " + some(c.keys, ", ")})
		}
	}
	return warnings
}

func orNone(host string) string {
	if host == "" {
		return "no host"
	}
	return host
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// some lists the first few and says how many more there are.
func some(list []string, separator string) string {
	if len(list) <= maxNamed {
		return strings.Join(list, separator)
	}
	return strings.Join(list[:maxNamed], separator) + fmt.Sprintf("%sand %d more", separator, len(list)-maxNamed)
}
