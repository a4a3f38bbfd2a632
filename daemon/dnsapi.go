package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// knownWithin bounds how long an audit waits for the listing of a zone that nobody has listed.
const knownWithin = 15 * time.Second

// dnsAPI is what the API and declarations ask of zones.
type dnsAPI struct {
	zones   *zones
	env     fleet.Environment
	records *store.Records
	view    *store.View
	term    *currentTerm
	desired func(fleet.Gathered) fleet.Desired
}

func (d *dnsAPI) byHand() dns.ByHand {
	return dns.ByHand{Environment: d.env, Zones: d.zones.Zones, Writers: d.zones.writers, Wanted: d.wanted, Kept: d.kept, Now: time.Now}
}

// Audit implements server.DNS.
func (d *dnsAPI) Audit(ctx context.Context) ([]fleet.ZoneAudit, error) {
	known := d.known(ctx)
	wanted, owners, err := d.wanted(ctx) // after what was read: a host that is declared meanwhile is wanted
	if err != nil {
		return nil, err
	}
	var out []fleet.ZoneAudit
	for _, z := range dns.Audit(dns.AuditInput{Environment: d.env, Zones: known, Wanted: wanted, Owners: owners}) {
		out = append(out, z.ZoneAudit)
	}
	return out, nil
}

// known is what the leader's watch has read; of a kurad that does not lead, nothing.
func (d *dnsAPI) known(ctx context.Context) (all []dns.ZoneRead) {
	if t := d.term.now(); t != nil {
		ctx, cancel := context.WithTimeout(ctx, knownWithin)
		defer cancel()
		return t.hosts.Known(ctx)
	}
	for _, z := range d.zones.Zones {
		all = append(all, dns.ZoneRead{Zone: z})
	}
	return all
}

// wanted is what servers lead clients to or will, those that are being destroyed left out, and the
// owner ids of all regions.
func (d *dnsAPI) wanted(ctx context.Context) (all []dns.Wanted, owners []string, err error) {
	if err := d.view.CatchUp(ctx); err != nil {
		return nil, nil, err
	}
	for _, r := range store.Values(d.view.Regions()) {
		if r.DNS.OwnerID != "" {
			owners = append(owners, r.DNS.OwnerID)
		}
	}
	servers, _ := d.view.Servers(nil)
	for _, g := range servers {
		if g.Intent.Deleting != nil || g.Region == nil {
			continue
		}
		policy := g.Region.WithDefaults().DNS
		want := dns.Wanted{Server: g.Intent.Key(), Owner: policy.OwnerID, Managed: policy.Mode == fleet.DNSManaged}
		if policy.Mode == fleet.DNSNone {
			want.Owner = ""
		}
		add := func(kind dns.HostKind, host string) {
			if host != "" {
				want.Host, want.Kind = host, kind
				all = append(all, want)
			}
		}
		hosts := d.desired(g).Hosts
		add(dns.HostPublic, hosts.Public)
		add(dns.HostGRPC, hosts.GRPC)
		add(dns.HostGlobal, hosts.Global)
		published := ""
		if g.Status != nil {
			published = fleet.HostOf(g.Status.PublishedURL)
		}
		for _, host := range g.Status.ClientHosts() {
			if kind := dns.HostAlias; !hosts.Has(host) {
				if host == published {
					kind = dns.HostPublished
				}
				add(kind, host)
			}
		}
	}
	return all, owners, nil
}

// kept says why a host is not deleted: a server has it reserved, which may be one that does not
// render or whose record cannot be read, so that nobody seems to want the host.
func (d *dnsAPI) kept(ctx context.Context, f fleet.Finding) (string, error) {
	if f.Kind == fleet.FindingPool { // its host is that of the account's other pools, too
		for _, g := range d.serversOf(f.Account) {
			if g.Intent.Deleting == nil && d.desired(g).Instance == "" {
				return fmt.Sprintf("server %s does not render, so what it wants is not known", g.Intent.Key()), nil
			}
		}
		return "", nil
	}
	holder, held, err := d.records.Holder(ctx, store.ReserveHost(f.Host))
	switch {
	case err != nil || !held || holder.Until != nil:
		return "", err
	case holder.Region == "":
		return fmt.Sprintf("account %q has it reserved", holder.Account), nil
	}
	return fmt.Sprintf("server %s has it reserved", holder.ServerKey), nil
}

func (d *dnsAPI) serversOf(account string) []fleet.Gathered {
	list, _ := d.view.Servers(func(k fleet.ServerKey) bool { return k.Account == account })
	return list
}

// Prune implements server.DNS.
func (d *dnsAPI) Prune(ctx context.Context, r fleet.PruneRequest, dry bool) (fleet.Pruned, error) {
	out, err := d.byHand().Prune(ctx, r, dry)
	if !dry {
		last := ""
		for _, f := range out.Items {
			if f.Zone != last {
				d.again(f.Zone)
			}
			last = f.Zone
		}
	}
	return out, answered(err)
}

// Take implements server.DNS.
func (d *dnsAPI) Take(ctx context.Context, r fleet.TakeRequest, dry bool) (fleet.Taken, error) {
	out, err := d.byHand().Take(ctx, r, dry)
	if !dry && out.Changed {
		d.again(out.Zone)
	}
	return out, answered(err)
}

// again has zones listed soon that were changed.
func (d *dnsAPI) again(zones ...string) {
	if t := d.term.now(); t != nil {
		for _, zone := range zones {
			t.hosts.Again(zone)
		}
	}
}

// answered makes what a zone's provider said an error of the API: one that passes is unavailable,
// and says when to come back; the others are in the way until somebody removes them.
func answered(err error) error {
	said, ok := errors.AsType[*dns.Error](err)
	if !ok {
		return err
	}
	code := fleet.CodeConflict
	if said.Class == fleet.ClassTransient || said.Conflict || said.NotFound {
		code = fleet.CodeUnavailable
	}
	return &server.Later{Err: &fleet.Error{Code: code, Message: err.Error() + " (" + string(said.Reason) + ")"}, After: said.After}
}

// Host implements declare.Hosts: by the newest listing, or by a query of its own, which also tells
// of what has come since to a name that was free.
func (d *dnsAPI) Host(ctx context.Context, host, owner string) (read fleet.HostRead, known bool) {
	if t := d.term.now(); t != nil {
		if read, known = t.hosts.Host(host, owner); known && read.Ownership != fleet.OwnershipAbsent {
			return read, true
		}
	}
	z, ok := d.zones.Of(host)
	if !ok {
		return read, known
	}
	begun := time.Now()
	found, err := d.zones.querier.Read(ctx, z, host)
	if err != nil {
		return read, known
	}
	return dns.Judge(host, owner, dns.Listing{Begun: begun, Records: found}, z, d.env), true
}

// SharedOwner implements declare.Hosts.
func (d *dnsAPI) SharedOwner(owner string) (environment, domain string) {
	if t := d.term.now(); t != nil {
		return t.hosts.SharedOwner(owner)
	}
	return "", ""
}

// Lacks implements declare.Hosts.
func (d *dnsAPI) Lacks(host string) (domain string, missing []string) {
	if t := d.term.now(); t != nil {
		return t.hosts.Lacks(host)
	}
	return "", nil
}
