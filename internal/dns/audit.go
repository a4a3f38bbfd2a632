package dns

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// HostKind is what a server leads clients to a host for.
type HostKind string

// Kinds of hosts.
const (
	HostPublic    HostKind = "public"
	HostGRPC      HostKind = "grpc"
	HostGlobal    HostKind = "global"
	HostPublished HostKind = "published" // clients were told so
	HostAlias     HostKind = "alias"     // it stays routed for a while (H8)
)

// Wanted is a host that a server leads clients to, or is declared to.
type Wanted struct {
	Host   string
	Kind   HostKind
	Server fleet.ServerKey
	Owner  string // the owner id of its region; "": dns.mode is "none", whose the host is is not checked
	// Managed: kurad writes its records.
	Managed bool
}

// ZoneRead is what is known of a zone that the daemon was given.
type ZoneRead struct {
	Zone    Zone
	Index   *Index                    // of its last listing; nil: there was none
	Failure *fleet.ReadFailure        // why the newest listing, or that of load balancers, did not answer
	Hosts   map[string]fleet.HostRead // where the zone is read by queries
}

// AuditInput is what an audit compares.
type AuditInput struct {
	Environment fleet.Environment
	Zones       []ZoneRead
	Wanted      []Wanted
	Owners      []string // further owner ids of the environment: of regions without servers
}

// Finding is a finding with what a prune of it deletes.
type Finding struct {
	fleet.Finding
	Records  []fleet.DNSRecord // ownership records among them
	Balancer Balancer          // of FindingBalancer
	Pool     Pool              // of FindingPool
	Users    []Balancer        // that have the pool
}

// ZoneAudit is what an audit found in one zone.
type ZoneAudit struct {
	fleet.ZoneAudit
	Findings []Finding // those of the embedded one, with what a prune deletes
}

// want is what is wanted of one host.
type want struct {
	servers []fleet.ServerKey
	kinds   []HostKind
	owner   string
	checked bool
}

// audit is one audit of one zone.
type audit struct {
	AuditInput
	ZoneRead
	wanted  map[string]want          // of the zone
	global  map[fleet.ServerKey]bool // servers that want a pool, of all zones
	owners  map[string]bool          // owner ids of ours
	shared  map[string][]string      // other environments by the owner id of ours that is theirs, too
	stale   []string                 // zones that hosts of ours lie in (H9)
	carried map[sharing][]string     // hosts of ours with the suffix of another environment
	users   map[string][]Balancer    // load balancers by the id of a pool that they use
	out     []Finding
}

// Audit compares what zones have with what servers want (D6). It changes nothing and has no
// clock; the answer does not depend on any order. A host outside the zones is in none of them.
func Audit(in AuditInput) []ZoneAudit {
	owners, global, wanted := map[string]bool{}, map[fleet.ServerKey]bool{}, map[string]map[string]want{}
	for _, o := range in.Owners {
		owners[o] = true
	}
	var zones Zones
	for _, z := range in.Zones {
		zones = append(zones, z.Zone)
		wanted[z.Zone.Domain] = map[string]want{}
	}
	for _, w := range in.Wanted {
		w.Host = canonical(w.Host)
		if w.Owner != "" {
			owners[w.Owner] = true
		}
		if w.Kind == HostGlobal {
			global[w.Server] = true
		}
		if z, ok := zones.Of(w.Host); ok {
			wanted[z.Domain][w.Host] = wanted[z.Domain][w.Host].and(w)
		}
	}
	var out []ZoneAudit
	pools := map[string]bool{}
	for _, z := range in.Zones {
		a := &audit{AuditInput: in, ZoneRead: z, wanted: wanted[z.Zone.Domain], global: global, owners: owners}
		if a.run(); z.Index != nil {
			a.balancers(pools)
		}
		slices.SortStableFunc(a.out, func(a, b Finding) int { return fleet.CompareFindings(a.Finding, b.Finding) })
		out = append(out, a.answer())
	}
	slices.SortFunc(out, func(a, b ZoneAudit) int { return cmp.Compare(a.Zone, b.Zone) })
	return out
}

func (w want) and(more Wanted) want {
	if !slices.Contains(w.servers, more.Server) {
		w.servers = append(w.servers, more.Server)
		slices.SortFunc(w.servers, func(a, b fleet.ServerKey) int { return cmp.Compare(a.String(), b.String()) })
	}
	w.kinds = append(w.kinds, more.Kind)
	if more.Owner != "" && (!w.checked || more.Owner < w.owner) {
		w.owner, w.checked = more.Owner, true
	}
	return w
}

func (a *audit) answer() ZoneAudit {
	z := ZoneAudit{Findings: a.out}
	z.Zone, z.Failure = a.ZoneRead.Zone.Domain, a.Failure
	if a.Index != nil {
		z.Listed = a.Index.begun
	} else if a.Failure == nil && a.ZoneRead.Zone.Token == "" {
		z.Failure = &fleet.ReadFailure{Reason: fleet.ReasonNotApplicable, Message: "it is read by DNS queries, so only hosts that a server wants are known; give kurad a token for it (--zone …,cloudflare=FILE)"}
	}
	for _, f := range a.out {
		z.ZoneAudit.Findings = append(z.ZoneAudit.Findings, f.Finding)
	}
	return z
}

// run finds what is to be said of hosts: of those that are wanted, then of the others.
func (a *audit) run() {
	for _, host := range slices.Sorted(maps.Keys(a.wanted)) {
		if w := a.wanted[host]; w.checked {
			a.wants(host, w)
		}
		if _, zone, _ := strings.Cut(host, "."); !slices.Contains(a.stale, zone) {
			a.stale = append(a.stale, zone)
		}
	}
	if a.Index == nil {
		return
	}
	if len(a.stale) == 0 {
		a.stale = []string{a.ZoneRead.Zone.Domain}
	}
	a.shared, a.carried = map[string][]string{}, map[sharing][]string{}
	for owner := range a.owners {
		a.shared[owner] = a.Index.proven(owner)
	}
	for _, host := range a.Index.Hosts() {
		if w, wanted := a.wanted[host]; wanted && !w.checked {
			continue
		}
		a.stands(host)
	}
	a.carriers()
}

// finding is one of a host, with all that is known of it.
func (a *audit) finding(kind fleet.FindingKind, host, why string) Finding {
	f := Finding{Finding: fleet.Finding{Zone: a.ZoneRead.Zone.Domain, Host: host, Kind: kind, Why: fleet.Shorten(why, mostDetail)}}
	if a.Index != nil {
		v := a.Index.evidence(host, "")
		for _, r := range a.Index.records[host] {
			f.Contents = append(f.Contents, r.Type+" "+r.Content)
		}
		for owner, claims := range v.owners {
			f.Owners = append(f.Owners, owner)
			for _, c := range claims {
				if f.Resource == "" || c.TXT.Resource != "" && c.TXT.Resource < f.Resource {
					f.Resource = c.TXT.Resource
				}
			}
		}
	} else {
		r := a.Hosts[host]
		f.Owners, f.Resource = r.Owners, r.Resource
		for _, r := range r.Records {
			f.Contents = append(f.Contents, r.Type+" "+r.Content)
		}
	}
	slices.Sort(f.Owners)
	if f.Environment = a.environmentOf(host, f.Resource); f.Environment == "" {
		if environment, key, ok := ParseResource(f.Resource); ok && environment == a.Environment.Name {
			f.Account, f.Region = key.Account, key.Region
		}
	}
	if w := a.wanted[host]; len(w.servers) > 0 {
		f.Account, f.Region = w.servers[0].Account, w.servers[0].Region
		if len(w.servers) > 1 {
			f.Region = "" // a global host is of an account
		}
	}
	return f
}

func (a *audit) add(kind fleet.FindingKind, host, why string) *Finding {
	a.out = append(a.out, a.finding(kind, host, why))
	return &a.out[len(a.out)-1]
}

// environmentOf is the other environment that a host is of, by its resource or its suffix; "":
// none is known.
func (a *audit) environmentOf(host, resource string) string {
	environment, _, ok := ParseResource(resource)
	if !ok {
		first, _, _ := strings.Cut(host, ".")
		environment, _, _ = a.Environment.Collision(first)
	}
	if environment == a.Environment.Name {
		return ""
	}
	return environment
}

// wants says how it is with a host that a server leads clients to.
func (a *audit) wants(host string, w want) {
	read := a.Hosts[host]
	if a.Index != nil {
		read = a.Index.Host(host, w.owner)
	}
	kind, why := fleet.FindingUnread, "has not been read yet"
	switch read.Ownership {
	case fleet.OwnershipOurs:
		kind, why = fleet.FindingOurs, cmp.Or(read.Detail, "is ours")
		if len(read.Records) == 0 && !a.balanced(host) {
			kind, why = fleet.FindingBareTXT, "has an ownership record of ours, and no record: it leads nowhere"
		}
	case fleet.OwnershipAbsent:
		kind, why = fleet.FindingAbsent, read.Detail
	case fleet.OwnershipUnreadable:
		kind, why = fleet.FindingUnreadable, read.Detail
	case fleet.OwnershipForeign:
		kind, why = a.foreign(host, w.owner, read), read.Detail
	case fleet.OwnershipUnknown, fleet.OwnershipNotChecked:
		if read.Failure != nil {
			why = "cannot be read: " + read.Failure.Message
		}
	}
	if slices.Contains(w.kinds, HostGlobal) && a.Index != nil && (kind == fleet.FindingOurs || kind == fleet.FindingAbsent) {
		if text := a.Index.foreign(host, w.owner, w.servers[0].Account); text != "" {
			kind, why = fleet.FindingForeign, text
		}
	}
	a.add(kind, host, why)
}

func (a *audit) balanced(host string) bool {
	return a.Index != nil && len(a.Index.balancers[host]) > 0
}

// foreign tells how a wanted host is not ours.
func (a *audit) foreign(host, owner string, read fleet.HostRead) fleet.FindingKind {
	if a.Index != nil {
		v := a.Index.evidence(host, owner)
		switch {
		case v.outranked != "":
			return fleet.FindingForeign
		case len(v.owners) == 0 && len(v.twins) > 0:
			return fleet.FindingSharedOwner
		case len(v.owners) == 1 && len(v.others(owner)) == 1 && len(v.bare) > 0:
			return fleet.FindingBareRecord
		}
	}
	if len(read.Owners) > 1 {
		return fleet.FindingTwoOwners
	}
	return fleet.FindingForeign
}
