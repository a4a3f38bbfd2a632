package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

type putServerInput struct {
	KeyPath
	Condition
	Body body[fleet.Server]
}

type putOutput[T any] struct {
	Status int
	Body   api.Written[T]
}

func written[T any](w api.Written[T], dry bool) *putOutput[T] {
	out := &putOutput[T]{Status: http.StatusOK, Body: w}
	if w.Created && !dry {
		out.Status = http.StatusCreated
	}
	return out
}

func (s *Server) putServer(ctx context.Context, in *putServerInput) (*putOutput[fleet.ServerView], error) {
	declared, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	what := "server " + in.key().String()
	var v fleet.Invalid
	sameName(&v, "/account", in.Account, declared.Account)
	sameName(&v, "/region", in.Region, declared.Region)
	if err := v.Err(what); err != nil {
		return nil, err
	}
	if err := declared.Validate(); err != nil {
		return nil, err
	}
	var w api.Written[fleet.ServerView]
	err = s.beside(ctx, in.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.declareServer(ctx, lock, declared, in.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, in.DryRun), nil
}

// neighbourhood is what a server's declaration is read against.
type neighbourhood struct {
	account   store.Versioned[fleet.Account]
	region    store.Versioned[fleet.Region]
	templates []store.Versioned[fleet.HostTemplate]
	missing   []api.Warning // what is not declared yet
}

func (n neighbourhood) byName() map[string]fleet.HostTemplate {
	m := map[string]fleet.HostTemplate{}
	for _, t := range n.templates {
		m[t.Value.Name] = t.Value
	}
	return m
}

// require makes a transaction fail if any neighbour changes or goes.
func (n neighbourhood) require(tx *store.Tx) {
	tx.RequireAccount(n.account)
	tx.RequireRegion(n.region)
	for _, t := range n.templates {
		tx.RequireTemplate(t)
	}
}

func (s *Server) neighbourhood(ctx context.Context, key fleet.ServerKey) (n neighbourhood, err error) {
	lacks := func(pointer, format string, args ...any) {
		n.missing = append(n.missing, api.Warning{Code: api.WarnNeighbourUnknown, Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
	}
	if n.account, err = present(s.records.Account(ctx, key.Account)); err != nil {
		return n, err
	}
	if n.region, err = present(s.records.Region(ctx, key.Region)); err != nil {
		return n, err
	}
	if !n.account.Exists() {
		lacks("/account", "account %q does not exist; declare it first (kura_account), or correct the id", key.Account)
	}
	if !n.region.Exists() {
		lacks("/region", "region %q does not exist; declare it first (kura_region), or correct the name", key.Region)
	}
	h := n.region.Value.Hosts
	for _, name := range slices.Compact(slices.Sorted(slices.Values([]string{h.Public, h.GRPC, h.Global}))) {
		if name == "" {
			continue
		}
		t, err := present(s.records.Template(ctx, name))
		if err != nil {
			return n, err
		}
		if t.Exists() { // Render says what is missing
			n.templates = append(n.templates, t)
		}
	}
	return n, nil
}

// faults turns what is missing into the error of a write that is no dry run.
func (n neighbourhood) faults(what string) error {
	var v fleet.Invalid
	for _, m := range n.missing {
		v.Add(m.Pointer, "%s", m.Detail)
	}
	return v.Err(what)
}

// declareServer is one try to store a server's declaration, or to say what that would
// mean.
func (s *Server) declareServer(ctx context.Context, lock *store.Lock, declared fleet.Server, c Condition) (w api.Written[fleet.ServerView], err error) {
	key := declared.Key()
	what := "server " + key.String()
	n, err := s.neighbourhood(ctx, key)
	if err != nil {
		return w, err
	}
	prev, err := present(s.records.Intent(ctx, key))
	if err != nil {
		return w, err
	}
	if prev.Value.Deleting != nil {
		return w, fleet.Errorf(fleet.CodeConflict, "%s is being destroyed since %s; wait until it is gone, then declare it again", what, prev.Value.Deleting.Format("2006-01-02 15:04:05 MST"))
	}
	if err := c.check(what, prev.Value.Generation); err != nil {
		return w, err
	}
	if len(n.missing) > 0 {
		if !c.DryRun {
			return w, n.faults(what)
		}
		if n.region.Exists() {
			n.missing = append(n.missing, s.unreadable(n.region.Value, "/region", s.look(ctx, n.region.Value))...)
		}
		in := fleet.Intent{Server: declared, Generation: prev.Value.Generation + 1}
		return api.Written[fleet.ServerView]{Object: fleet.NewServerView(in, fleet.Desired{}, nil, nil), Created: !prev.Exists(), Changed: true, Warnings: n.missing}, nil
	}
	if err := declared.ValidateIn(n.region.Value); err != nil {
		return w, err
	}
	if prev.Exists() && equal(prev.Value.Server, declared) {
		g, err := s.records.Gather(ctx, key)
		if fleet.CodeOf(err) == fleet.CodeNotFound || err == nil && g.IntentRevision != prev.Revision {
			return w, &kv.ConflictError{What: what} // by now another declaration holds, or none
		}
		if err != nil {
			return w, err
		}
		if !awaitsApply(g) && !drifted(g) {
			w.Object = s.show(g)
			if c.DryRun {
				w.Warnings = s.unreadable(n.region.Value, "/region", s.look(ctx, n.region.Value))
			}
			return w, nil
		}
	}
	if !prev.Exists() && n.region.Value.Cordoned {
		var v fleet.Invalid
		v.Add("/region", "region %q is cordoned and takes no new servers; uncordon it or choose another", key.Region)
		return w, v.Err(what)
	}
	var f found
	switch {
	case !prev.Exists():
		f, err = s.running(ctx, key, n.region.Value)
	case c.DryRun:
		f.unread = s.look(ctx, n.region.Value)
	}
	if err != nil {
		return w, err
	}
	w, err = s.storeServer(ctx, lock, declared, n, prev, f, c.DryRun)
	if err == nil && c.DryRun {
		w.Warnings = append(w.Warnings, s.unreadable(n.region.Value, "/region", f.unread)...)
	}
	return w, err
}

// storeServer writes a changed declaration with all that goes with it: its deployment,
// its ports and its reservations (P11, C12, H4).
func (s *Server) storeServer(ctx context.Context, lock *store.Lock, declared fleet.Server, n neighbourhood, prev store.Versioned[fleet.Intent], f found, dry bool) (w api.Written[fleet.ServerView], err error) {
	key, now := declared.Key(), s.now().UTC()
	prev.Value = prev.Value.Accepted(n.region.Value)
	next := prev.Value
	next.Server, next.Generation = declared, prev.Value.Generation+1
	if !prev.Exists() {
		next.CreatedAt = now
	}
	latest, status, err := s.history(ctx, prev)
	if err != nil {
		return w, err
	}
	instance, err := fleet.InstanceName(key.Account, n.region.Value.Cluster())
	if err != nil {
		return w, unrenderable(key, err)
	}
	used, err := s.portsInUse(ctx, n.region.Value)
	if err != nil {
		return w, err
	}
	if next.Ports, err = s.assignPorts(ctx, key, n.region.Value, instance, f.keptPorts(prev.Value.Ports, used), used); err != nil {
		return w, err
	}
	tx := s.records.BeginAt(s.now())
	deployment := latest.Value
	if !prev.Exists() || latest.Value.ImageTag != declared.ImageTag {
		cause := fleet.DeploymentCauseImage
		if !prev.Exists() {
			cause = fleet.DeploymentCauseCreate
		}
		mark, err := s.markOf(ctx, declared, latest.Value, status)
		if err != nil {
			return w, err
		}
		deployment = fleet.Deployment{Cause: cause, RestartMark: cmp.Or(mark, f.restartMark)}
	}
	fresh := deployment.Seq == 0
	if fresh {
		next.Deployment++
		deployment.Account, deployment.Region, deployment.Seq = key.Account, key.Region, next.Deployment
		deployment.ImageTag, deployment.Generation, deployment.CreatedAt, deployment.Status = declared.ImageTag, next.Generation, now, fleet.DeploymentPending
	}
	old, err := s.routed(ctx, key, f.aliases)
	if err != nil {
		return w, err
	}
	if len(old) > 0 && status == nil {
		status = &fleet.Status{Aliases: old}
	}
	desired, err := s.render(s.env, n.account.Value, n.region.Value, n.byName(), next, deployment, status)
	if err != nil {
		return w, unrenderable(key, err)
	}
	if fresh {
		deployment.ManifestRevision = desired.Revision
		closeDeployment(tx, latest, fleet.DeploymentSuperseded, fmt.Sprintf("deployment %d of image %s took its place", deployment.Seq, deployment.ImageTag), now)
		tx.PutDeployment(store.Versioned[fleet.Deployment]{}, deployment)
	}
	switch {
	case f.instance != nil:
		if status, err = s.adoptInstance(ctx, tx, key, desired, next, f, old); err != nil {
			return w, err
		}
	case len(old) > 0:
		lost := withAliases(newStatus(desired, next), old, desired.Hosts)
		tx.PutStatus(f.status, key, lost)
		status = &lost
	case f.adopting():
		if err := f.images(key, desired); err != nil {
			return w, err
		}
		status = f.adopt(tx, key, desired, next, now)
		tx.Release(key, lostPorts(n.region.Value, prev.Value, next)...)
	}
	claims := needs(n.region.Value, desired, next, status)
	if err := disjoint([]affected{{after: fleet.Gathered{Intent: next}, claims: claims}}, func(k fleet.ServerKey) place { return ofServer(ctx, k) }); err != nil {
		return w, err
	}
	if dry {
		err = s.claimable(ctx, lock, key, claims, dry)
	} else {
		tx.Under(lock)
		n.require(tx)
		tx.PutIntent(prev, next)
		tx.Claim(key, claims...)
		_, err = tx.Commit(ctx)
	}
	if err != nil {
		return w, s.taken(ctx, lock, ofServer(ctx, key), n.region.Value, next, dry, err)
	}
	view := s.show(fleet.Gathered{Intent: next, Status: status, Latest: &deployment, Account: &n.account.Value, Region: &n.region.Value, Templates: n.byName()})
	return api.Written[fleet.ServerView]{Object: view, Created: !prev.Exists(), Changed: true}, nil
}

// markOf is the restart mark of a deployment of another image. One that goes back to what
// serves takes the mark that this was made with: whoever gave up a version that he had tried
// again does not have the good one restarted for that.
func (s *Server) markOf(ctx context.Context, declared fleet.Server, latest fleet.Deployment, status *fleet.Status) (string, error) {
	if status == nil || status.ServingImageTag != declared.ImageTag {
		return latest.RestartMark, nil
	}
	past, err := s.records.Deployments(ctx, declared.Key(), store.PageOptions{})
	if err != nil {
		return "", err
	}
	for _, d := range slices.Backward(past.Items) {
		if d.Value.ImageTag == declared.ImageTag {
			return d.Value.RestartMark, nil
		}
	}
	return latest.RestartMark, nil
}

// unrenderable puts the reason why a server does not render where its author can see it.
func unrenderable(key fleet.ServerKey, err error) error {
	if fault, ok := errors.AsType[*fleet.Error](err); ok && fault.Err != nil {
		err = fault.Err
	}
	var v fleet.Invalid
	v.Add("/account", "%v", err)
	return v.Err("server " + key.String())
}

// history returns the latest deployment and the status of a server, zero where it is new.
func (s *Server) history(ctx context.Context, prev store.Versioned[fleet.Intent]) (latest store.Versioned[fleet.Deployment], status *fleet.Status, err error) {
	if !prev.Exists() {
		return latest, nil, nil
	}
	if latest, err = present(s.records.Deployment(ctx, prev.Value.Key(), prev.Value.Deployment)); err != nil {
		return latest, nil, err
	}
	stored, err := present(s.records.Status(ctx, prev.Value.Key()))
	if stored.Exists() {
		status = &stored.Value
	}
	return latest, status, err
}

type deleteServerInput struct {
	KeyPath
	Match
}

type serverOutput struct{ Body fleet.ServerView }

func (s *Server) deleteServer(ctx context.Context, in *deleteServerInput) (*serverOutput, error) {
	if _, err := s.gather(ctx, in.key()); err != nil {
		return nil, err
	}
	var view fleet.ServerView
	err := s.beside(ctx, false, func(ctx context.Context, lock *store.Lock) error {
		g, err := s.records.Gather(ctx, in.key())
		if err != nil {
			return err
		}
		if g.Intent.Deleting == nil {
			if err := in.check("server "+in.key().String(), g.Intent.Generation); err != nil {
				return err
			}
			if err := s.destroy(ctx, lock, &g); err != nil {
				return err
			}
		}
		view = s.show(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &serverOutput{view}, nil
}

// destroy stores the wish that the server goes (P18).
func (s *Server) destroy(ctx context.Context, lock *store.Lock, g *fleet.Gathered) error {
	key, now := g.Intent.Key(), s.now().UTC()
	if g.Intent.DeletionProtection && g.Status != nil && g.Status.ServingImageTag != "" {
		return fleet.Errorf(fleet.CodeConflict, "server %s is protected from deletion; set deletion_protection = false and apply that first", key)
	}
	next := g.Intent
	next.Deleting, next.Generation = &now, next.Generation+1
	tx := s.records.Begin()
	tx.Under(lock)
	tx.PutIntent(store.Versioned[fleet.Intent]{Value: g.Intent, Revision: g.IntentRevision, CreatedAt: g.Intent.CreatedAt}, next)
	if g.Latest != nil {
		latest := closeDeployment(tx, store.Versioned[fleet.Deployment]{Value: *g.Latest, Revision: g.LatestRevision, CreatedAt: g.Latest.CreatedAt},
			fleet.DeploymentCancelled, "the server is being destroyed", now)
		g.Latest = &latest
	}
	if _, err := tx.Commit(ctx); err != nil {
		return err
	}
	g.Intent = next
	return nil
}
