package dns

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// stands says what is to be said of a host of the listing, wanted or not.
func (a *audit) stands(host string) {
	w, wanted := a.wanted[host]
	v := a.Index.evidence(host, "")
	for _, o := range slices.Sorted(maps.Keys(v.owners)) {
		twin := slices.IndexFunc(v.owners[o], func(c Claim) bool { return a.Index.elsewhere(c) != "" })
		if !a.owners[o] || twin < 0 || wanted && o == w.owner {
			continue // what is wanted has its row
		}
		v.twins = v.owners[o][twin : twin+1]
		a.add(fleet.FindingSharedOwner, host, v.twinsText(o))
		if !wanted {
			return
		}
	}
	switch owner, ours := a.mine(v); {
	case wanted:
		a.leftover(host, v)
	case len(v.owners) > 1:
		a.add(fleet.FindingTwoOwners, host, v.belongs(host, owner))
	case ours:
		a.unwanted(host, owner, v)
	case len(v.owners) == 1 && len(v.bare) > 0:
		a.add(fleet.FindingBareRecord, host, v.belongs(host, ""))
	case len(v.owners) == 1:
		a.leftover(host, v)
	}
}

// mine is the owner id of ours that is named.
func (a *audit) mine(v evidence) (string, bool) {
	for _, o := range slices.Sorted(maps.Keys(v.owners)) {
		if a.owners[o] {
			return o, true
		}
	}
	return "", false
}

// leftover finds ownership records of records that are not there.
func (a *audit) leftover(host string, v evidence) {
	records := a.Index.records[host]
	for _, o := range slices.Sorted(maps.Keys(v.owners)) {
		for _, c := range v.owners[o] {
			if slices.ContainsFunc(records, func(r fleet.DNSRecord) bool { return c.covers(r.Type) }) {
				continue
			}
			if _, wanted := a.wanted[host]; wanted && a.owners[o] && len(records) == 0 {
				continue // the row of the host says so
			}
			what := "record"
			if c.Type != "" {
				what = c.Type + " record"
			}
			f := a.add(fleet.FindingBareTXT, host, fmt.Sprintf("%s names %s as the owner of its %s, and it has none", txtNames([]Claim{c}), quoted(o), what))
			f.Contents = []string{"TXT " + c.Record.Name}
		}
	}
}

// unwanted says why a host of ours is there for nobody, and whether it may be deleted.
func (a *audit) unwanted(host, owner string, v evidence) {
	read := a.Index.Host(host, owner)
	kind, why := fleet.FindingUnwanted, "no server wants it"
	switch {
	case len(read.Records) == 0:
		kind, why = fleet.FindingBareTXT, "an ownership record of ours that no server wants, without a record"
	case a.isStale(host):
		kind, why = fleet.FindingStale, fmt.Sprintf("it is without the suffix %q of environment %q, and no server wants it", a.Environment.Suffix, a.Environment.Name)
	}
	f := a.add(kind, host, why)
	if _, _, ours := ParseResource(f.Resource); !ours && f.Resource != "" {
		f.Why += "; it was published for " + shown(f.Resource)
	}
	if kept := a.kept(host, owner, read, v); kept != "" {
		f.Why += "; it is not deleted: " + kept
		return
	}
	if f.Environment != "" {
		f.Why += fmt.Sprintf("; it carries the suffix of environment %q: see first that nobody there publishes with the owner id %s", f.Environment, quoted(owner))
		both := sharing{owner, f.Environment}
		a.carried[both] = append(a.carried[both], host)
	}
	f.Prunable, f.Records = true, read.Records
	for _, c := range a.Index.Claims(host) {
		if c.Reading == ReadingOwner && c.TXT.Owner == owner && c.Form != FormBeside {
			f.Records = append(f.Records, c.Record)
		}
	}
	if kind == fleet.FindingBareTXT {
		for _, r := range f.Records {
			f.Contents = append(f.Contents, "TXT "+r.Name)
		}
	}
}

// isStale is H9 by the innermost of the zones that hosts of ours lie in: hosts outside them
// never are.
func (a *audit) isStale(host string) bool {
	var zone string
	for _, z := range a.stale {
		if strings.HasSuffix(host, "."+z) && len(z) > len(zone) {
			zone = z
		}
	}
	return fleet.StaleHost(a.Environment, zone, host)
}

// kept says why what nobody wants may not be deleted; "": it may.
func (a *audit) kept(host, owner string, read fleet.HostRead, v evidence) string {
	if read.Ownership != fleet.OwnershipOurs {
		return "it " + read.Detail
	}
	proven := true // a server of ours made all of it
	for _, c := range v.owners[owner] {
		if !c.told() {
			return txtNames([]Claim{c}) + " is in a form that the zone was not given"
		}
		if environment, _, ok := ParseResource(c.TXT.Resource); ok && environment == a.Environment.Name {
			continue
		}
		proven = false
		if of := a.Index.affixed(c.Record.Name, func(host string) bool { return len(a.Index.records[host]) > 0 }); of != "" && len(read.Records) == 0 {
			return fmt.Sprintf("%s may be that of %s with a prefix or suffix that the zone was not given", txtNames([]Claim{c}), of)
		}
	}
	// Where another environment has the owner id, too, only the resource tells whose it is.
	first, _, _ := strings.Cut(host, ".")
	for _, other := range a.shared[owner] {
		if !proven && strings.HasSuffix(first, a.Environment.Suffixes[other]) {
			return fmt.Sprintf("the owner id %s is that of environment %q, too, and it may be there that it is wanted", quoted(owner), other)
		}
	}
	return ""
}

// balancers finds load balancers that shadow records, and those and the pools of ours that
// nobody wants. A pool is of the provider's account: it is told of in one zone only.
func (a *audit) balancers(told map[string]bool) {
	a.users = map[string][]Balancer{}
	for _, name := range a.Index.Balanced() {
		for _, b := range a.Index.balancers[name] {
			unwanted := a.unwantedBalancer(b)
			for _, id := range b.Pools {
				a.users[id] = append(a.users[id], b)
			}
			if len(a.Index.records[name]) > 0 {
				a.add(fleet.FindingBalancerShadow, name, fmt.Sprintf("the load balancer of that name (%s) answers before its records", quoted(b.Description)))
			}
			if unwanted {
				f := a.add(fleet.FindingBalancer, name, fmt.Sprintf("the load balancer is ours (%s), and no server wants it", quoted(b.Description)))
				_, f.Account, _ = ParseBalancer(b.Description)
				f.Region, f.Prunable, f.Balancer = "", true, b
				f.Contents = nil
			}
		}
	}
	a.pools(told)
}

// unwantedBalancer reports whether the load balancer is ours and no server of its account wants it.
func (a *audit) unwantedBalancer(b Balancer) bool {
	environment, account, ok := ParseBalancer(b.Description)
	if !ok || environment != a.Environment.Name {
		return false
	}
	w := a.wanted[b.Name]
	return !slices.Contains(w.kinds, HostGlobal) || !slices.ContainsFunc(w.servers, func(s fleet.ServerKey) bool { return s.Account == account })
}

func (a *audit) pools(told map[string]bool) {
	for _, p := range a.Index.Pools() {
		environment, key, ok := ParseResource(p.Description)
		if !ok || environment != a.Environment.Name || a.global[key] || told[p.ID] {
			continue
		}
		told[p.ID] = true
		f := Finding{Pool: p, Finding: fleet.Finding{
			Zone: a.ZoneRead.Zone.Domain, Host: p.Name, Kind: fleet.FindingPool, Resource: p.Description, Account: key.Account, Region: key.Region,
			Contents: []string{"pool " + p.Name}, Why: "the pool is ours, and no server wants it", Prunable: true,
		}}
		for _, o := range p.Origins {
			f.Host = o.Address
			f.Contents = append(f.Contents, "origin "+o.Address)
		}
		for _, b := range a.users[p.ID] {
			f.Host = b.Name
			if environment, _, ok := ParseBalancer(b.Description); !ok || environment != a.Environment.Name {
				f.Prunable = false
				f.Why += fmt.Sprintf("; it is not deleted: the load balancer of %s has it, which is not ours", shown(b.Name))
			}
		}
		f.Users = a.users[p.ID]
		a.out = append(a.out, f)
	}
}

// sharing is an owner id of ours that stands on hosts with the suffix of another environment.
type sharing struct{ owner, environment string }

// carriers says of which owner ids it may be that another environment has them, too.
func (a *audit) carriers() {
	for k, hosts := range a.carried {
		f := a.add(fleet.FindingSharedOwner, hosts[0], fmt.Sprintf("the owner id %s is ours, and %d hosts with the suffix of environment %q have it: where somebody publishes with it there, each takes the other's records for its own; give each environment an owner id of its own", quoted(k.owner), len(hosts), k.environment))
		f.Environment = k.environment
	}
}
