package declare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Hosts is what a dry run asks of what is known of hosts now.
type Hosts interface {
	// Host says whose a host is to owner, from the newest listing of its zone or by a query of
	// its own; false: nothing is known.
	Host(ctx context.Context, host, owner string) (fleet.HostRead, bool)
	// SharedOwner names another environment that the owner id is in use by, and a zone where;
	// "": none is known.
	SharedOwner(owner string) (environment, domain string)
	// Lacks names what the token of the zone with the host may not of what kurad needs there.
	Lacks(host string) (domain string, missing []string)
}

// nothingKnown is what is known without zones.
type nothingKnown struct{}

func (nothingKnown) Host(context.Context, string, string) (r fleet.HostRead, known bool) {
	return r, false
}
func (nothingKnown) SharedOwner(string) (environment, domain string) { return "", "" }
func (nothingKnown) Lacks(string) (domain string, missing []string)  { return "", nil }

const (
	// whoseWithin bounds how long a dry run asks whose hosts are, for as many servers as there are.
	whoseWithin = 5 * time.Second
	// mostAsked is of how many servers a dry run asks it.
	mostAsked = 1000
)

// whose is what is to be said of the hosts that servers come to lead clients to, where whose they
// are is checked (D3): one warning for each cause.
func (d *Declarer) whose(ctx context.Context, list []affected) []fleet.Warning {
	ctx, cancel := context.WithTimeout(ctx, whoseWithin)
	defer cancel()
	w := said{}
	for i, a := range list {
		dns := a.after.Region.WithDefaults().DNS
		if dns.Mode == fleet.DNSNone || i >= mostAsked || a.after.Intent.Deleting != nil {
			continue
		}
		was := fleet.Hosts{}
		if a.before.Region != nil && a.before.Region.WithDefaults().DNS == dns {
			was = a.from.Hosts
		}
		for _, host := range slices.Compact([]string{a.to.Hosts.Public, a.to.Hosts.GRPC, a.to.Hosts.Global}) {
			if host == "" || was.Has(host) {
				continue
			}
			w.host(d.hosts.Host(ctx, host, dns.OwnerID))
			w.token(d.hosts.Lacks(host))
		}
		w.owner(d.hosts, dns.OwnerID)
	}
	return w.warnings()
}

// whoseRegion is the same of a region without servers: of its owner id and its zones.
func (d *Declarer) whoseRegion(r fleet.Region, templates map[string]store.Versioned[fleet.HostTemplate]) []fleet.Warning {
	w, dns := said{}, r.WithDefaults().DNS
	if dns.Mode == fleet.DNSNone {
		return nil
	}
	w.owner(d.hosts, dns.OwnerID)
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		w.token(d.hosts.Lacks("any." + fleet.Zone(templates[name].Value.Pattern)))
	}
	return w.warnings()
}

// said collects what is to be said, once for each cause.
type said struct {
	foreign []held
	owners  []string // owner ids that were looked at
	shared  []fleet.Warning
	tokens  []fleet.Warning
	zones   []string // of them
}

// held are hosts that one other has.
type held struct {
	by     string // owners
	reason fleet.Reason
	hosts  []string // with what stands there
}

func (s *said) host(r fleet.HostRead, known bool) {
	if !known || r.Ownership != fleet.OwnershipForeign && r.Ownership != fleet.OwnershipUnreadable {
		return
	}
	by, reason := strings.Join(r.Owners, ", "), fleet.ReasonForeignOwner
	switch {
	case r.Ownership == fleet.OwnershipUnreadable:
		reason = fleet.ReasonUnreadableOwner
	case len(r.Owners) > 1:
		reason = fleet.ReasonAmbiguousOwner
	}
	i := slices.IndexFunc(s.foreign, func(h held) bool { return h.by == by && h.reason == reason })
	if i < 0 {
		i, s.foreign = len(s.foreign), append(s.foreign, held{by: by, reason: reason})
	}
	s.foreign[i].hosts = append(s.foreign[i].hosts, r.Host+" "+cmp.Or(r.Detail, "is not ours"))
}

func (s *said) token(domain string, missing []string) {
	if len(missing) == 0 || slices.Contains(s.zones, domain) {
		return
	}
	s.zones = append(s.zones, domain)
	s.tokens = append(s.tokens, fleet.Warning{
		Code: fleet.WarnZoneToken, Reason: fleet.ReasonZoneForbidden, Cause: domain,
		Detail: fmt.Sprintf("kurad's token of zone %s lacks %s; whose hosts are there, or what leads clients there, cannot be checked or changed until it has: give the token that permission, or kurad another token", domain, strings.Join(missing, ", ")),
	})
}

func (s *said) owner(hosts Hosts, owner string) {
	if slices.Contains(s.owners, owner) {
		return
	}
	s.owners = append(s.owners, owner)
	if environment, domain := hosts.SharedOwner(owner); environment != "" {
		s.shared = append(s.shared, fleet.Warning{
			Code: fleet.WarnSharedOwner, Cause: owner,
			Detail: fmt.Sprintf("owner id %q is in use by environment %q, too (in zone %s): each takes the other's records for its own and may delete them; give each environment an owner id of its own", owner, environment, domain),
		})
	}
}

func (s *said) warnings() (list []fleet.Warning) {
	for _, h := range s.foreign {
		list = append(list, fleet.Warning{
			Code: fleet.WarnForeignHost, Reason: h.reason, Cause: h.by,
			Detail: count(len(h.hosts), "host is not this environment's", "hosts are not this environment's") + ": " + some(h.hosts, "; ") +
				". A server serves and is published by a host only once it is: change the host template or the handle, have its owner give it up, or move it on purpose (kurad dns take). kurad dns audit shows all such hosts",
		})
	}
	return slices.Concat(list, s.shared, s.tokens)
}
