package declare

import (
	"context"
	"errors"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Regions declares regions, each by its name.
func (d *Declarer) Regions() Kind[fleet.Region] {
	return Kind[fleet.Region]{
		declarer: d, named: nameRegion, get: byName(d.records.Region), names: func(r fleet.Region) []string { return []string{r.Name} },
		check:     d.checkRegion,
		plan:      d.planRegion,
		protected: func(r fleet.Region) bool { return r.DeletionProtection },
		remove:    (*store.Tx).DeleteRegion,
		next:      "destroy its servers first and wait until they are gone",
	}
}

func nameRegion(r fleet.Region) string { return fmt.Sprintf("region %q", r.Name) }

// checkRegion checks a region by itself, and against what this daemon can do and was
// given.
func (d *Declarer) checkRegion(r fleet.Region) error {
	if err := r.ValidateFor(d.env); err != nil {
		return err
	}
	var v fleet.Invalid
	if r.Sidecar != nil {
		v.Add("/sidecar", "this kurad probes no sidecars yet; leave sidecar out")
	}
	if err := v.Err(nameRegion(r)); err != nil {
		return err
	}
	return d.runtimes.Region(r)
}

func (d *Declarer) planRegion(ctx context.Context, req Request, prev store.Versioned[fleet.Region], next fleet.Region) (p plan, err error) {
	templates, err := d.templatesOf(ctx, next)
	if err != nil {
		return p, err
	}
	for _, h := range [][2]string{{"/hosts/public", next.Hosts.Public}, {"/hosts/grpc", next.Hosts.GRPC}, {"/hosts/global", next.Hosts.Global}} {
		if h[1] != "" && !templates[h[1]].Exists() {
			p.addMissing(h[0], "host template %q does not exist; declare it first (kura_host_template), or correct the name", h[1])
		}
	}
	if err := d.inZones(next, templates); err != nil {
		return p, err
	}
	if len(p.missing) > 0 && !req.DryRun {
		return p, nil
	}
	if err := d.portsFit(next); err != nil {
		return p, err
	}
	if err := d.mountsApart(ctx, next); err != nil {
		return p, err
	}
	p.write = func(tx *store.Tx) {
		tx.PutRegion(prev, next)
		for _, t := range templates {
			tx.RequireTemplate(t)
		}
	}
	if prev.Exists() && len(p.missing) == 0 {
		if err := d.affectRegion(ctx, req, &p, prev.Value, next, templates); err != nil {
			return p, err
		}
	}
	if req.DryRun {
		p.warnings = d.unreadable(next, targetPointer(next), d.readFailure(ctx, next))
		if len(p.servers) == 0 {
			p.warnings = append(p.warnings, d.whoseRegion(next, templates)...)
		}
	}
	return p, nil
}

// mountsApart checks a region's mounts against those of all others (C10).
func (d *Declarer) mountsApart(ctx context.Context, r fleet.Region) error {
	if r.Containers == nil {
		return nil
	}
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	return r.MountsApart(store.Values(d.view.Regions()))
}

// templatesOf reads the host templates that a region names and that there are, by name.
func (d *Declarer) templatesOf(ctx context.Context, r fleet.Region) (map[string]store.Versioned[fleet.HostTemplate], error) {
	templates := map[string]store.Versioned[fleet.HostTemplate]{}
	for _, name := range []string{r.Hosts.Public, r.Hosts.GRPC, r.Hosts.Global} {
		if name == "" {
			continue
		}
		t, err := present(d.records.Template(ctx, name))
		if err != nil {
			return nil, err
		}
		if t.Exists() {
			templates[name] = t
		}
	}
	return templates, nil
}

// portsFit checks that at least one server can have its ports.
func (d *Declarer) portsFit(r fleet.Region) error {
	assigned := 0
	for _, need := range fleet.PortNeeds(r) {
		if need.Fixed == 0 {
			assigned++
		}
	}
	if assigned == 0 {
		return nil
	}
	first, last, ok := d.runtimes.PortRange(r)
	switch {
	case !ok:
		return noPorts(r)
	case last-first+1 < assigned:
		return invalid(nameRegion(r), "/containers/services", "a server takes %d assigned ports, and container endpoint %q has only %d (%d-%d); widen its ports=", assigned, r.Containers.Endpoint, last-first+1, first, last)
	}
	return nil
}

// affectRegion checks what a region's servers make of the change. What names their
// instances cannot change under them: the old ones would be left behind.
func (d *Declarer) affectRegion(ctx context.Context, req Request, p *plan, from, to fleet.Region, templates map[string]store.Versioned[fleet.HostTemplate]) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	if n := len(d.view.ServersOfRegion(to.Name)); n > 0 {
		var v fleet.Invalid
		if from.Cluster() != to.Cluster() {
			v.Add("/cluster_id", "cannot change from %q to %q while the region has servers (%d): it names their instances; destroy them first, or declare another region", from.Cluster(), to.Cluster(), n)
		}
		if from.WithDefaults().Target() != to.WithDefaults().Target() {
			v.Add(targetPointer(to), "cannot change from %s to %s while the region has servers (%d): their instances would be left behind; destroy them first, or declare another region",
				from.WithDefaults().Target(), to.WithDefaults().Target(), n)
		}
		if err := v.Err(nameRegion(to)); err != nil {
			return err
		}
	}
	return d.affect(ctx, req, p, proposal{
		pointer: "/hosts/public",
		advice:  "choose other host templates, cluster_id or declared ports",
		keep:    func(k fleet.ServerKey) bool { return k.Region == to.Name },
		ports:   true,
		apply: func(g *fleet.Gathered) bool {
			g.Region = &to
			for name, t := range templates {
				g.Templates[name] = t.Value
			}
			return true
		},
		check: func(g fleet.Gathered) error { return fits(g, to) },
	})
}

func targetPointer(r fleet.Region) string {
	if r.Kubernetes != nil {
		return "/kubernetes"
	}
	return "/containers/endpoint"
}

// fits checks the overrides of a server against a changed region.
func fits(g fleet.Gathered, r fleet.Region) error {
	err := g.Intent.Server.ValidateIn(r)
	fault, ok := errors.AsType[*fleet.Error](err)
	if !ok {
		return err
	}
	pointer := "/containers/services"
	if r.Kubernetes != nil {
		pointer = "/kubernetes"
	}
	return invalid(nameRegion(r), pointer, "server %s does not fit: %v; change its overrides first", g.Intent.Key(), fault)
}
