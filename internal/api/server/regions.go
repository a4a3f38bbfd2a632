package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func showRegion(v store.Versioned[fleet.Region]) api.Region {
	return api.Region{Generation: v.Generation, Region: v.Value}
}

func (s *Server) listRegions(ctx context.Context, in *PageInput) (*listOutput[api.Region], error) {
	return listAll(ctx, s, *in, s.records.Regions, showRegion)
}

func (s *Server) region(name string) object[fleet.Region] {
	return object[fleet.Region]{
		what: fmt.Sprintf("region %q", name), name: name, get: s.records.Region,
		protected: func(r fleet.Region) bool { return r.DeletionProtection },
		remove:    (*store.Tx).DeleteRegion,
		next:      "destroy its servers first and wait until they are gone",
	}
}

func (s *Server) getRegion(ctx context.Context, in *struct{ NamePath }) (*objectOutput[api.Region], error) {
	v, err := s.region(in.Name).read(ctx)
	return &objectOutput[api.Region]{showRegion(v)}, err
}

type putRegionInput struct {
	NamePath
	Condition
	Body body[fleet.Region]
}

func (s *Server) putRegion(ctx context.Context, in *putRegionInput) (*putOutput[api.Region], error) {
	declared, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	var v fleet.Invalid
	sameName(&v, "/name", in.Name, declared.Name)
	what := fmt.Sprintf("region %q", in.Name)
	if err := v.Err(what); err != nil {
		return nil, err
	}
	if err := s.checkRegion(what, declared); err != nil {
		return nil, err
	}
	var w api.Written[api.Region]
	err = s.alone(ctx, in.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.declareRegion(ctx, lock, what, declared, in.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, in.DryRun), nil
}

// checkRegion checks a region by itself, and against what this daemon can do and was
// given.
func (s *Server) checkRegion(what string, r fleet.Region) error {
	if err := r.ValidateFor(s.env); err != nil {
		return err
	}
	var v fleet.Invalid
	if r.DNS.Mode != "" && r.DNS.Mode != fleet.DNSNone {
		v.Add("/dns/mode", "this kurad publishes and checks no DNS records yet; set dns.mode = \"none\"")
	}
	if r.Sidecar != nil {
		v.Add("/sidecar", "this kurad probes no sidecars yet; leave sidecar out")
	}
	if err := v.Err(what); err != nil {
		return err
	}
	return s.runtimes.Region(r)
}

func (s *Server) declareRegion(ctx context.Context, lock *store.Lock, what string, declared fleet.Region, c Condition) (w api.Written[api.Region], err error) {
	prev, err := present(s.records.Region(ctx, declared.Name))
	if err != nil {
		return w, err
	}
	if err := c.check(what, prev.Generation); err != nil {
		return w, err
	}
	if prev.Exists() && equal(prev.Value, declared) {
		return api.Written[api.Region]{Object: showRegion(prev)}, nil
	}
	templates, missing, err := s.templatesOf(ctx, declared)
	if err != nil {
		return w, err
	}
	if len(missing) > 0 && !c.DryRun {
		return w, neighbourhood{missing: missing}.faults(what)
	}
	w = api.Written[api.Region]{Object: api.Region{Generation: prev.Generation + 1, Region: declared}, Created: !prev.Exists(), Changed: true, Warnings: missing}
	if err := s.portsFit(declared); err != nil {
		return w, err
	}
	if err := s.mountsApart(ctx, declared); err != nil {
		return w, err
	}
	if prev.Exists() && len(missing) == 0 {
		warnings, err := s.prepareRegion(ctx, lock, what, prev.Value, declared, templates, c.DryRun)
		if err != nil {
			return w, err
		}
		w.Warnings = append(w.Warnings, warnings...)
	}
	if c.DryRun {
		w.Warnings = append(w.Warnings, s.unreadable(declared, targetPointer(declared), s.look(ctx, declared))...)
		return w, nil
	}
	tx := s.records.Begin()
	tx.Under(lock)
	tx.PutRegion(prev, declared)
	for _, t := range templates {
		tx.RequireTemplate(t)
	}
	_, err = tx.Commit(ctx)
	return w, err
}

// mountsApart checks a region's mounts against those of all others (C10).
func (s *Server) mountsApart(ctx context.Context, r fleet.Region) error {
	if r.Containers == nil {
		return nil
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	return r.MountsApart(store.Values(s.view.Regions()))
}

// templatesOf reads the host templates that a region names.
func (s *Server) templatesOf(ctx context.Context, r fleet.Region) (map[string]store.Versioned[fleet.HostTemplate], []api.Warning, error) {
	templates := map[string]store.Versioned[fleet.HostTemplate]{}
	var missing []api.Warning
	for _, h := range [][2]string{{"/hosts/public", r.Hosts.Public}, {"/hosts/grpc", r.Hosts.GRPC}, {"/hosts/global", r.Hosts.Global}} {
		if h[1] == "" {
			continue
		}
		t, err := present(s.records.Template(ctx, h[1]))
		if err != nil {
			return nil, nil, err
		}
		if !t.Exists() {
			missing = append(missing, api.Warning{Code: api.WarnNeighbourUnknown, Pointer: h[0],
				Detail: fmt.Sprintf("host template %q does not exist; declare it first (kura_host_template), or correct the name", h[1])})
			continue
		}
		templates[h[1]] = t
	}
	return templates, missing, nil
}

// portsFit checks that at least one server can have its ports.
func (s *Server) portsFit(r fleet.Region) error {
	assigned := 0
	for _, need := range fleet.PortNeeds(r) {
		if need.Fixed == 0 {
			assigned++
		}
	}
	if assigned == 0 {
		return nil
	}
	first, last, ok := s.runtimes.PortRange(r)
	switch {
	case !ok:
		return noPorts(r)
	case last-first+1 < assigned:
		return regionFault(r, "/containers/services", "a server takes %d assigned ports, and container endpoint %q has only %d (%d-%d); widen its ports=", assigned, r.Containers.Endpoint, last-first+1, first, last)
	}
	return nil
}

// prepareRegion checks what a region's servers make of the change. What names their
// instances cannot change under them: the old ones would be left behind.
func (s *Server) prepareRegion(ctx context.Context, lock *store.Lock, what string, from, to fleet.Region, templates map[string]store.Versioned[fleet.HostTemplate], dry bool) ([]api.Warning, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	if n := len(s.view.ServersOfRegion(to.Name)); n > 0 {
		var v fleet.Invalid
		if from.Cluster() != to.Cluster() {
			v.Add("/cluster_id", "cannot change from %q to %q while the region has servers (%d): it names their instances; destroy them first, or declare another region", from.Cluster(), to.Cluster(), n)
		}
		if from.WithDefaults().Target() != to.WithDefaults().Target() {
			v.Add(targetPointer(to), "cannot change from %s to %s while the region has servers (%d): their instances would be left behind; destroy them first, or declare another region",
				from.WithDefaults().Target(), to.WithDefaults().Target(), n)
		}
		if err := v.Err(what); err != nil {
			return nil, err
		}
	}
	return s.prepare(ctx, lock, proposal{
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
	}, dry)
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
	return regionFault(r, pointer, "server %s does not fit: %v; change its overrides first", g.Intent.Key(), fault)
}

type deleteRegionInput struct {
	NamePath
	Match
}

func (s *Server) deleteRegion(ctx context.Context, in *deleteRegionInput) (*struct{}, error) {
	return nil, s.region(in.Name).delete(ctx, s, in.Match)
}
