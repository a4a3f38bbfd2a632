package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Server returns all that is stored of a server; ok is false where there is none, or
// where a record of it cannot be read (see Problems).
func (v *View) Server(k fleet.ServerKey) (g fleet.Gathered, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state.servers[k]
	if !s.whole() {
		return fleet.Gathered{}, false
	}
	return v.state.gather(s), true
}

// IdleOffers are the ports of a container endpoint that were offered to servers for a change
// of their region that was not made, or not yet: whose each of them is.
func (v *View) IdleOffers(endpoint string) map[int]fleet.ServerKey {
	v.mu.RLock()
	defer v.mu.RUnlock()
	idle := map[int]fleet.ServerKey{}
	for name, keys := range v.state.byRegion {
		region := v.state.regions[name]
		if region == nil || region.Value.Containers == nil || region.Value.Containers.Endpoint != endpoint {
			continue
		}
		needs := map[string]bool{}
		for _, need := range fleet.PortNeeds(region.Value) {
			needs[need.Key()] = need.Fixed == 0
		}
		for key := range keys {
			if s := v.state.servers[key]; s.whole() {
				for need, port := range s.intent.Value.Offered {
					if !needs[need] {
						idle[port] = key
					}
				}
			}
		}
	}
	return idle
}

// Servers returns the servers that keep wants (nil: all), sorted by region and account,
// and the one revision at which they are shown.
func (v *View) Servers(keep func(fleet.ServerKey) bool) (list []fleet.Gathered, revision int64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, k := range v.state.whole(maps.Keys(v.state.servers), keep) {
		list = append(list, v.state.gather(v.state.servers[k]))
	}
	return list, v.revision
}

// ServerKeys returns the keys of all servers, sorted by region and account.
func (v *View) ServerKeys() []fleet.ServerKey {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.whole(maps.Keys(v.state.servers), nil)
}

// ServersOfRegion returns the keys of a region's servers, sorted by account.
func (v *View) ServersOfRegion(region string) []fleet.ServerKey {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.whole(maps.Keys(v.state.byRegion[region]), nil)
}

// ServersOfAccount returns the keys of an account's servers, sorted by region.
func (v *View) ServersOfAccount(id string) []fleet.ServerKey {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.whole(maps.Keys(v.state.byAccount[id]), nil)
}

// RenderedFrom returns the servers that are rendered from what an update changed.
func (v *View) RenderedFrom(u Update) []fleet.ServerKey {
	switch u.Kind {
	case KindIntent:
		return []fleet.ServerKey{u.Key}
	case KindAccount:
		return v.ServersOfAccount(u.Name)
	case KindRegion:
		return v.ServersOfRegion(u.Name)
	case KindTemplate:
		return v.ServerKeys()
	case KindSchema, KindStatus, KindTry, KindClaims, KindDeployment, KindEvent, KindToken, KindReservation, KindReference, KindLock, KindLeader, KindEndpoint, KindAnchor, KindCluster, KindOrphan:
	}
	return nil
}

// Accounts returns all accounts, in no order.
func (v *View) Accounts() []fleet.Account {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]fleet.Account, 0, len(v.state.accounts))
	for _, a := range v.state.accounts {
		out = append(out, a.Value)
	}
	return out
}

// Regions returns all regions, sorted by name.
func (v *View) Regions() []Versioned[fleet.Region] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sorted(v.state.regions)
}

// Templates returns all host templates, sorted by name.
func (v *View) Templates() []Versioned[fleet.HostTemplate] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sorted(v.state.templates)
}

// sorted are the records in the order of their names.
func sorted[T any](records map[string]*Versioned[T]) []Versioned[T] {
	out := make([]Versioned[T], 0, len(records))
	for _, name := range slices.Sorted(maps.Keys(records)) {
		out = append(out, *records[name])
	}
	return out
}

// CacheEndpoints returns the declared endpoints of an account, sorted by technology and
// url.
func (v *View) CacheEndpoints(account string) []fleet.CacheEndpoint {
	v.mu.RLock()
	defer v.mu.RUnlock()
	out := make([]fleet.CacheEndpoint, 0, len(v.state.endpoints[account]))
	for _, e := range v.state.endpoints[account] {
		out = append(out, e.Value)
	}
	slices.SortFunc(out, func(a, b fleet.CacheEndpoint) int {
		return cmp.Or(cmp.Compare(a.Technology, b.Technology), cmp.Compare(a.URL, b.URL))
	})
	return out
}

// AccountsWithEndpoints returns the ids of the accounts that endpoints are declared of,
// sorted.
func (v *View) AccountsWithEndpoints() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.state.endpoints))
}

// gather composes a server from the state.
func (s *state) gather(e *server) fleet.Gathered {
	region := s.regions[e.key.Region]
	templates := map[string]*Versioned[fleet.HostTemplate]{}
	if region != nil {
		for _, name := range templateNames(region.Value) {
			if t, ok := s.templates[name]; ok {
				templates[name] = t
			}
		}
	}
	own := *e
	if own.latest != nil && own.latest.Value.Seq != own.intent.Value.Deployment {
		own.latest = nil // a newer one is named and cannot be read: never act on an older
	}
	return own.gathered(s.accounts[e.key.Account], region, templates)
}

// gathered composes a server from its records, with copies of what turns work on.
func (s server) gathered(account *Versioned[fleet.Account], region *Versioned[fleet.Region], templates map[string]*Versioned[fleet.HostTemplate]) fleet.Gathered {
	g := fleet.Gathered{Intent: s.intent.Value, IntentRevision: s.intent.Revision, Declared: s.intent.Declared, Templates: make(map[string]fleet.HostTemplate, len(templates))}
	g.Intent.Ports = maps.Clone(g.Intent.Ports)
	if s.status != nil {
		clone := s.status.Value.Clone()
		g.Status, g.StatusRevision = &clone, s.status.Revision
	}
	if s.try != nil {
		if g.TryRevision = s.try.Revision; g.StatusRevision == s.try.Value.Status {
			g.Try = &s.try.Value
		}
	}
	if s.latest != nil {
		d := s.latest.Value
		g.Latest, g.LatestRevision = &d, s.latest.Revision
	}
	if account != nil {
		a := account.Value
		g.Account = &a
	}
	if region != nil {
		r := region.Value
		g.Region, g.Intent, g.Offers = &r, g.Intent.Accepted(r), len(g.Intent.Offered) > 0
	}
	for name, t := range templates {
		g.Templates[name] = t.Value
	}
	return g
}

func sortedProblems(m map[string]Problem) []Problem {
	return slices.SortedFunc(maps.Values(m), func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
}

// Identities are which namespaces of clusters were observed, by cluster and namespace.
func (v *View) Identities() []fleet.KubeIdentity {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return Values(sorted(v.state.clusters))
}

// Token returns a token as the view has it: not the last word on whether it is valid.
func (v *View) Token(id string) (fleet.Token, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if t := v.state.tokens[id]; t != nil {
		return t.Value, true
	}
	return fleet.Token{}, false
}
