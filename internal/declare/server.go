package declare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Server declares a server, with all that goes with it: its deployment, its ports and its
// reservations (P11, C12, H4).
func (d *Declarer) Server(ctx context.Context, req Request, declared fleet.Server) (out Result[fleet.Gathered], err error) {
	if err := declared.Validate(); err != nil {
		return out, err
	}
	err = d.beside(ctx, req.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		out, err = d.declareServer(ctx, lock, req, declared)
		return err
	})
	return out, err
}

// neighbourhood is what a server's declaration is read against.
type neighbourhood struct {
	account   store.Versioned[fleet.Account]
	region    store.Versioned[fleet.Region]
	templates map[string]store.Versioned[fleet.HostTemplate]
	plan      // what is not declared yet
}

func (n neighbourhood) byName() map[string]fleet.HostTemplate {
	m := map[string]fleet.HostTemplate{}
	for name, t := range n.templates {
		m[name] = t.Value
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

func (d *Declarer) neighbours(ctx context.Context, key fleet.ServerKey) (n neighbourhood, err error) {
	if n.account, err = present(d.records.Account(ctx, key.Account)); err != nil {
		return n, err
	}
	if n.region, err = present(d.records.Region(ctx, key.Region)); err != nil {
		return n, err
	}
	if !n.account.Exists() {
		n.addMissing("/account", "account %q does not exist; declare it first (kura_account), or correct the id", key.Account)
	}
	if !n.region.Exists() {
		n.addMissing("/region", "region %q does not exist; declare it first (kura_region), or correct the name", key.Region)
	}
	n.templates, err = d.templatesOf(ctx, n.region.Value) // Render says what is missing
	return n, err
}

// declareServer is one try to store a server's declaration, or to say what that would
// mean.
func (d *Declarer) declareServer(ctx context.Context, lock *store.Lock, req Request, declared fleet.Server) (out Result[fleet.Gathered], err error) {
	key := declared.Key()
	what := "server " + key.String()
	n, err := d.neighbours(ctx, key)
	if err != nil {
		return out, err
	}
	prev, err := d.stored(ctx, key)
	if err != nil {
		return out, err
	}
	exists := prev.IntentRevision != 0
	if prev.Intent.Deleting != nil {
		return out, fleet.Errorf(fleet.CodeConflict, "%s is being destroyed since %s; wait until it is gone, then declare it again", what, instant(*prev.Intent.Deleting))
	}
	if err := req.check(what, prev.Intent.Generation); err != nil {
		return out, err
	}
	if len(n.missing) > 0 {
		p := plan{missing: n.missing}
		if req.DryRun && n.region.Exists() {
			p.warnings = d.unreadable(n.region.Value, "/region", d.readFailure(ctx, n.region.Value))
		}
		out = Result[fleet.Gathered]{Object: fleet.Gathered{Intent: fleet.Intent{Server: declared, Generation: prev.Intent.Generation + 1}}, Created: !exists, Changed: true}
		out.Warnings, err = d.carryOut(ctx, lock, what, p, req.DryRun)
		return out, err
	}
	if err := declared.ValidateIn(n.region.Value); err != nil {
		return out, err
	}
	same, again := exists && equal(prev.Intent.Server, declared), exists && req.Again && !req.DryRun && prev.Intent.ImageTag == declared.ImageTag
	if again {
		if again, err = d.triesAgain(ctx, prev, same); err != nil {
			return out, err
		}
	}
	if same && !again && !awaitsApply(prev) && !drifted(prev) {
		out.Object = prev
		if req.DryRun {
			out.Warnings = d.unreadable(n.region.Value, "/region", d.readFailure(ctx, n.region.Value))
		}
		return out, nil
	}
	if !exists && n.region.Value.Cordoned {
		return out, invalid(what, "/region", "region %q is cordoned and takes no new servers; uncordon it or choose another", key.Region)
	}
	var f found
	switch {
	case !exists:
		f, err = d.running(ctx, key, n.region.Value)
	case req.DryRun:
		f.unread = d.readFailure(ctx, n.region.Value)
	}
	if err != nil {
		return out, err
	}
	return d.storeServer(ctx, lock, req, change{declared: declared, near: n, prev: prev, found: f, again: again})
}

// change is a declaration of a server beside what it is read against.
type change struct {
	declared fleet.Server
	near     neighbourhood
	prev     fleet.Gathered // what is stored of it; zero: it is new
	found    found
	again    bool   // it takes a new deployment, whether the version changes or not
	key      string // of the caller's, for that
}

// storeServer writes a changed declaration.
func (d *Declarer) storeServer(ctx context.Context, lock *store.Lock, req Request, c change) (out Result[fleet.Gathered], err error) {
	p, g, err := d.planServer(ctx, c)
	if err != nil {
		return out, err
	}
	if p.at = ofServer(req.By); c.key == "" { // a redeploy declares nothing
		p.by = req.By
	}
	p.warnings = d.unreadable(c.near.region.Value, "/region", c.found.unread)
	out = Result[fleet.Gathered]{Object: g, Created: c.prev.IntentRevision == 0, Changed: true}
	out.Warnings, err = d.carryOut(ctx, lock, "server "+c.declared.Key().String(), p, req.DryRun)
	return out, err
}

// planServer says what a changed declaration writes, and what is then stored of the server.
func (d *Declarer) planServer(ctx context.Context, c change) (p plan, g fleet.Gathered, err error) {
	key, now, n, f := c.declared.Key(), d.now().UTC(), c.near, c.found
	prev, latest, status := intentOf(c.prev), latestOf(c.prev), c.prev.Status
	prev.Value = prev.Value.Accepted(n.region.Value)
	next := prev.Value
	next.Server, next.Generation = c.declared, prev.Value.Generation+1
	if !prev.Exists() {
		next.CreatedAt = now
	}
	used, err := d.portsInUse(ctx, n.region.Value)
	if err != nil {
		return p, g, err
	}
	if next.Ports, err = d.assignPorts(ctx, key, n.region.Value, f.keptPorts(prev.Value.Ports, used), used); err != nil {
		return p, g, err
	}
	deployment := latest.Value
	switch {
	case !prev.Exists():
		deployment = fleet.Deployment{Cause: fleet.DeploymentCauseCreate, RestartMark: f.restartMark}
	case latest.Value.ImageTag != c.declared.ImageTag:
		mark, err := d.markOf(ctx, c.declared, latest.Value, status)
		if err != nil {
			return p, g, err
		}
		deployment = fleet.Deployment{Cause: fleet.DeploymentCauseImage, RestartMark: cmp.Or(mark, f.restartMark)}
	case c.again:
		deployment = fleet.Deployment{Cause: fleet.DeploymentCauseRedeploy, RestartMark: nextMark(next.Deployment+1, now), IdempotencyKey: c.key}
	}
	fresh := deployment.Seq == 0
	if fresh {
		next.Deployment++
		deployment.Account, deployment.Region, deployment.Seq = key.Account, key.Region, next.Deployment
		deployment.ImageTag, deployment.Generation, deployment.CreatedAt, deployment.Status = c.declared.ImageTag, next.Generation, now, fleet.DeploymentPending
	}
	if f.routed, err = d.routed(ctx, key, f.aliases); err != nil {
		return p, g, err
	}
	if len(f.routed) > 0 && status == nil {
		status = &fleet.Status{Aliases: f.routed}
	}
	g = fleet.Gathered{Intent: next, Status: status, Latest: &deployment, Account: &n.account.Value, Region: &n.region.Value, Templates: n.byName()}
	desired, err := d.render(d.env, g)
	if err != nil {
		return p, g, unrenderable(key, err)
	}
	if fresh {
		deployment.ManifestRevision = desired.Revision
	}
	var events []fleet.Event
	if f.takesOver() {
		if status, events, err = d.takeOver(ctx, f, desired, next); err != nil {
			return p, g, err
		}
	}
	g.Status = status
	p.own = &affected{after: g, to: desired, claims: needs(n.region.Value, desired, next, status)}
	p.write = func(tx *store.Tx) {
		n.require(tx)
		tx.PutIntent(prev, next)
		if fresh {
			closeDeployment(tx, latest, fleet.DeploymentSuperseded, fmt.Sprintf("deployment %d of image %s took its place", deployment.Seq, deployment.ImageTag), now)
			tx.PutDeployment(store.Versioned[fleet.Deployment]{}, deployment)
		}
		if f.takesOver() {
			tx.PutStatus(f.status, key, *status)
			tx.RequireTry(key, f.try)
			tx.AddEvent(events...)
			tx.Release(key, lostPorts(n.region.Value, prev.Value, next)...)
		}
	}
	return p, g, nil
}

// markOf is the restart mark of a deployment of another image. One that goes back to what
// serves takes the mark that this was made with: whoever gave up a version that he had tried
// again does not have the good one restarted for that.
func (d *Declarer) markOf(ctx context.Context, declared fleet.Server, latest fleet.Deployment, status *fleet.Status) (string, error) {
	if status == nil || status.ServingImageTag != declared.ImageTag {
		return latest.RestartMark, nil
	}
	past, err := d.records.Deployments(ctx, declared.Key(), store.PageOptions{})
	if err != nil {
		return "", err
	}
	var newest *fleet.Deployment // of the version; a redeploy of it may have come to nothing
	for _, d := range slices.Backward(past.Items) {
		switch {
		case d.Value.ImageTag != declared.ImageTag:
		case d.Value.Generation <= status.Settled.Generation:
			return d.Value.RestartMark, nil
		case newest == nil:
			newest = &d.Value
		}
	}
	if newest == nil {
		newest = &latest
	}
	return newest.RestartMark, nil
}

// unrenderable puts the reason why a server does not render where its author can see it.
func unrenderable(key fleet.ServerKey, err error) error {
	if fault, ok := errors.AsType[*fleet.Error](err); ok && fault.Err != nil {
		err = fault.Err
	}
	return invalid("server "+key.String(), "/account", "%v", err)
}

// stored is all that is stored of a server, the zero one where there is none.
func (d *Declarer) stored(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, error) {
	g, err := d.records.Gather(ctx, key)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return fleet.Gathered{}, nil
	}
	return g, err
}

// Destroy asks for the destruction of a server.
func (d *Declarer) Destroy(ctx context.Context, req Request, key fleet.ServerKey) (g fleet.Gathered, err error) {
	err = d.beside(ctx, false, func(ctx context.Context, lock *store.Lock) (err error) {
		if g, err = d.records.Gather(ctx, key); err != nil || g.Intent.Deleting != nil {
			return err
		}
		if err := req.check("server "+key.String(), g.Intent.Generation); err != nil {
			return err
		}
		return d.destroy(ctx, lock, &g)
	})
	return g, err
}

// destroy stores the wish that the server goes (P18).
func (d *Declarer) destroy(ctx context.Context, lock *store.Lock, g *fleet.Gathered) error {
	key, now := g.Intent.Key(), d.now().UTC()
	if g.Intent.DeletionProtection && g.Status != nil && g.Status.ServingImageTag != "" {
		return fleet.Errorf(fleet.CodeConflict, "server %s is protected from deletion; set deletion_protection = false and apply that first", key)
	}
	next := g.Intent
	next.Deleting, next.Generation = &now, next.Generation+1
	tx := d.records.Begin()
	tx.Under(lock)
	tx.PutIntent(intentOf(*g), next)
	if g.Latest != nil {
		latest := closeDeployment(tx, latestOf(*g), fleet.DeploymentCancelled, "the server is being destroyed", now)
		g.Latest = &latest
	}
	_, err := tx.Commit(ctx)
	g.Intent = next
	return err
}
