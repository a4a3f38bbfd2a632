package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// ByHand does in zones what somebody asks for: a prune (D6), and the take of a host (D4). Both
// read the zone immediately before they change it, with nothing else of this process in between, and
// repeated they change nothing more.
type ByHand struct {
	Environment fleet.Environment
	Zones       Zones
	Writers     map[string]*Writer // by domain: of every zone with a token
	// Wanted returns what servers want now, all writes that were acknowledged before included,
	// and the owner ids of all regions.
	Wanted func(ctx context.Context) ([]Wanted, []string, error)
	// Kept says why a host is not deleted though nobody seems to want it; "": it may be.
	Kept func(ctx context.Context, f fleet.Finding) (why string, err error)
	Now  func() time.Time
}

// Prune deletes the hosts that are ours and that nobody wants. What is deleted before an error
// is in the answer.
func (b ByHand) Prune(ctx context.Context, r fleet.PruneRequest, dry bool) (out fleet.Pruned, err error) {
	asked := map[string]bool{}
	for _, host := range r.Hosts {
		asked[canonical(host)] = true
	}
	zones, err := b.written(r.Zone)
	if err != nil {
		return out, err
	}
	for _, z := range zones {
		unread, err := b.prune(ctx, z, asked, dry, &out)
		if unread {
			out.Unreadable = append(out.Unreadable, unlisted(z, err, b.Now()))
		}
		if err != nil && (!unread || r.Zone != "") {
			return out, err
		}
	}
	done := func(host string) bool {
		return slices.ContainsFunc(out.Items, func(f fleet.Finding) bool { return canonical(f.Host) == canonical(host) }) ||
			slices.ContainsFunc(out.Kept, func(k fleet.KeptHost) bool { return canonical(k.Host) == canonical(host) })
	}
	for _, host := range r.Hosts {
		if !done(host) && len(out.Unreadable) == 0 {
			out.Kept = append(out.Kept, fleet.KeptHost{Host: host, Why: "it is not there any more, or it is wanted now"})
		}
	}
	return out, nil
}

// prune deletes in one zone. Unread: it could not be read in time.
func (b ByHand) prune(ctx context.Context, z Zone, asked map[string]bool, dry bool, out *fleet.Pruned) (unread bool, err error) {
	if !dry {
		end, err := b.Writers[z.Domain].alone(ctx)
		if err != nil {
			return true, err
		}
		defer end()
	}
	x, err := b.list(ctx, z)
	if err != nil {
		return true, err
	}
	chosen, err := b.choose(ctx, x, asked, out)
	if err != nil {
		return false, err
	}
	if !dry {
		return false, b.remove(ctx, x.zone, chosen, out)
	}
	for _, f := range chosen {
		out.Items = append(out.Items, f.Finding)
	}
	return false, nil
}

// written are the zones that can be changed: the one of that domain, or all.
func (b ByHand) written(domain string) (zones []Zone, err error) {
	for _, z := range b.Zones {
		switch w := b.Writers[z.Domain]; {
		case domain != "" && z.Domain != canonical(domain):
		case w == nil && domain != "":
			return nil, fleet.Errorf(fleet.CodeConflict, "zone %s was given without a token, so it can be neither listed nor changed; start kurad with --zone %s,cloudflare=<file with the token>", z.Domain, z.Domain)
		case w != nil:
			zones = append(zones, z)
		}
	}
	if len(zones) > 0 {
		return zones, nil
	}
	if domain != "" {
		return nil, fleet.Errorf(fleet.CodeNotFound, "this kurad was given no DNS zone %q (it has: %s); start it with --zone, or correct the name", domain, orNone(b.Zones.Domains()))
	}
	return nil, fleet.Errorf(fleet.CodeConflict, "this kurad was given no DNS zone with a token, without which none can be changed; start it with --zone <domain>,cloudflare=<file with the token>")
}

func unlisted(z Zone, err error, now time.Time) fleet.AuditedZone {
	return fleet.AuditedZone{Zone: z.Domain, Reason: failure(err).Reason, Message: fleet.Printable(err.Error()), Since: &now}
}

// list reads a zone; where the token may not read load balancers, the records alone.
func (b ByHand) list(ctx context.Context, z Zone) (*Index, error) {
	begun := b.Now()
	api := b.Writers[z.Domain].Publisher.API
	l, err := api.List(ctx, Parts{Records: true, Balancers: true})
	if e, ok := errors.AsType[*Error](err); ok && (e.Reason == fleet.ReasonZoneForbidden || e.Reason == fleet.ReasonNotSubscribed) {
		l, err = api.List(ctx, Parts{Records: true})
	}
	if err != nil {
		return nil, fmt.Errorf("list zone %s: %w", z.Domain, err)
	}
	l.Begun = begun
	return NewIndex(l, z, b.Environment), nil
}

// choose finds what is to be deleted of a zone: what is wanted is asked after the listing began,
// so that a host that is declared meanwhile stays.
func (b ByHand) choose(ctx context.Context, x *Index, asked map[string]bool, out *fleet.Pruned) (chosen []Finding, err error) {
	wanted, owners, err := b.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	for _, z := range Audit(AuditInput{Environment: b.Environment, Zones: []ZoneRead{{Zone: x.zone, Index: x}}, Wanted: wanted, Owners: owners}) {
		for _, f := range z.Findings {
			if len(asked) > 0 && !asked[canonical(f.Host)] || !f.Prunable {
				continue
			}
			why, err := b.Kept(ctx, f.Finding)
			if err != nil {
				return nil, err
			}
			if why == "" && len(asked) == 0 {
				why = b.unsure(f.Finding)
			}
			if why != "" {
				out.Kept = append(out.Kept, fleet.KeptHost{Host: f.Host, Why: why})
				continue
			}
			chosen = append(chosen, f)
		}
	}
	return chosen, nil
}

// unsure says why a host is deleted only where it is named; "": it is the fleet's. An owner id tells
// whose external-dns published a host, and not for what: it may publish other applications, too, or
// be another environment's as well.
func (b ByHand) unsure(f fleet.Finding) string {
	if environment, _, ok := ParseResource(f.Resource); ok && environment == b.Environment.Name || f.Kind == fleet.FindingBalancer || f.Kind == fleet.FindingPool {
		return ""
	}
	name := f.Resource[strings.LastIndex(f.Resource, "/")+1:]
	switch {
	case !strings.HasPrefix(name, "kura-"): // the names of instances begin so (H6)
		return fmt.Sprintf("it was published for %s, which may be another application's; name it to delete it: --host %s", shown(cmp.Or(f.Resource, "nobody knows what")), f.Host)
	case f.Environment != "" && f.Environment != b.Environment.Name:
		return fmt.Sprintf("it carries the suffix of environment %q; see that nobody there has our owner id, and name it to delete it: --host %s", f.Environment, f.Host)
	default:
		return ""
	}
}

// remove deletes what was chosen: the records of one host together, then load balancers, and then
// the pools that nothing has any more.
func (b ByHand) remove(ctx context.Context, z Zone, chosen []Finding, out *fleet.Pruned) error {
	api, most := b.Writers[z.Domain].Publisher.API, z.BatchLimit
	if most == 0 {
		most = defaultBatch
	}
	var balancing []Finding
	var batch Batch
	var together []Finding
	send := func() error {
		if batch.Len() == 0 {
			return nil
		}
		if err := api.Apply(ctx, batch); err != nil {
			return fmt.Errorf("delete records of zone %s: %w", z.Domain, err)
		}
		for _, f := range together {
			out.Items = append(out.Items, f.Finding)
		}
		batch, together = Batch{}, nil
		return nil
	}
	for _, f := range chosen {
		if f.Kind == fleet.FindingBalancer || f.Kind == fleet.FindingPool {
			balancing = append(balancing, f)
			continue
		}
		records := Prune([]Finding{f}).Records
		if batch.Len()+len(records) > most {
			if err := send(); err != nil {
				return err
			}
		}
		batch.Deletes, together = append(batch.Deletes, records...), append(together, f)
	}
	if err := send(); err != nil {
		return err
	}
	if err := unbalance(ctx, api, Prune(balancing)); err != nil {
		return fmt.Errorf("delete load balancers and pools of zone %s: %w", z.Domain, err)
	}
	for _, f := range balancing {
		out.Items = append(out.Items, f.Finding)
	}
	return nil
}

// unbalance deletes load balancers and pools. What is gone already is gone.
func unbalance(ctx context.Context, api API, d Deletions) error {
	gone := func(err error) error {
		if e, ok := errors.AsType[*Error](err); ok && e.NotFound {
			return nil
		}
		return err
	}
	for _, balancer := range d.Changed {
		if _, err := api.PutBalancer(ctx, balancer); err != nil {
			return err
		}
	}
	for _, balancer := range d.Balancers {
		if err := gone(api.DeleteBalancer(ctx, balancer.ID)); err != nil {
			return err
		}
	}
	for _, p := range d.Pools {
		if err := gone(api.DeletePool(ctx, p.ID)); err != nil {
			return err
		}
	}
	return nil
}

// Take moves a host from another owner to the one of the server that wants it.
func (b ByHand) Take(ctx context.Context, r fleet.TakeRequest, dry bool) (out fleet.Taken, err error) {
	host := canonical(r.Host)
	z, ok := b.Zones.Of(host)
	if !ok {
		return out, fleet.Errorf(fleet.CodeConflict, "host %s is in no zone that this kurad was given (it has: %s); start it with --zone", host, orNone(b.Zones.Domains()))
	}
	if _, err := b.written(z.Domain); err != nil {
		return out, err
	}
	if turn := &b.Writers[z.Domain].Publisher.turn; !dry {
		if err := turn.take(ctx); err != nil {
			return out, err
		}
		defer turn.end()
	}
	x, err := b.list(ctx, z)
	if err != nil {
		return out, err
	}
	to, err := b.wants(ctx, host)
	if err != nil {
		return out, err
	}
	t, err := x.Take(host, r.From, TXT{Owner: to.Owner, Resource: to.resource(b.Environment)})
	if err != nil {
		return out, err
	}
	out = fleet.Taken{
		Zone: z.Domain, Host: host, From: r.From, To: to.Owner, Account: to.Server.Account, Region: to.Server.Region,
		Before: t.Before, After: t.After, Changed: t.Batch.Len() > 0,
	}
	if dry || !out.Changed {
		return out, nil
	}
	if err := b.Writers[z.Domain].Publisher.API.Apply(ctx, t.Batch); err != nil {
		return out, fmt.Errorf("rewrite the ownership records of host %s: %w", host, err)
	}
	return out, nil
}

// wants is who of ours wants a host.
func (b ByHand) wants(ctx context.Context, host string) (to Wanted, err error) {
	all, _, err := b.Wanted(ctx)
	if err != nil {
		return to, err
	}
	var owners []string
	for _, w := range all {
		if canonical(w.Host) != host {
			continue
		}
		if to.Host == "" {
			to = w
		}
		if !slices.Contains(owners, w.Owner) {
			owners = append(owners, w.Owner)
		}
	}
	switch {
	case to.Host == "":
		return to, fleet.Errorf(fleet.CodeConflict, "host %s is not taken: no server of environment %q wants it; declare that server first", host, b.Environment.Name)
	case len(owners) > 1:
		return to, fleet.Errorf(fleet.CodeConflict, "host %s is not taken: servers of regions with several owner ids want it (%s); give those regions one", host, strings.Join(owners, ", "))
	case to.Owner == "":
		return to, fleet.Errorf(fleet.CodeConflict, "host %s is not taken: region %q does not check whose its hosts are (dns.mode = \"none\"), so it has no owner id", host, to.Server.Region)
	}
	return to, nil
}

// resource is what the ownership record is to name; "": what external-dns wrote.
func (w Wanted) resource(e fleet.Environment) string {
	if !w.Managed {
		return ""
	}
	return fleet.ResourceOf(e.Name, w.Server)
}
