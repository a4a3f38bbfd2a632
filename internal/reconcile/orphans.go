package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// How orphans of a region that wants it so are deleted (K5): KuraInstances with our labels
// that belong to no declared server.
const (
	// sweepEvery is the time between two looks at a namespace, from memory.
	sweepEvery = 10 * time.Second
	// orphansAtOnce bounds how many are deleted in one look (G4).
	orphansAtOnce = 10
)

// survey begins to observe the namespaces of regions that have no servers: they may hold
// orphans.
func (r *Reconciler) survey(ctx context.Context) {
	for ctx.Err() == nil {
		for _, region := range r.cfg.Store.Regions() {
			r.site(region)
		}
		wait(ctx, sweepEvery)
	}
}

// sweep deletes orphans, where their region wants it so, until ctx ends.
func (n *namespace) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := safely(func() error { return n.sweepOnce(ctx) }); err != nil && ctx.Err() == nil {
			n.cluster.r.log.Error("orphans could not be deleted", "cluster", n.cluster.name, "namespace", n.name, "error", err)
		}
		wait(ctx, sweepEvery)
	}
}

func (n *namespace) sweepOnce(ctx context.Context) error {
	now := n.cluster.r.now()
	deleted := 0
	for _, orphan := range n.lost(now) {
		if ctx.Err() != nil || deleted == orphansAtOnce {
			break
		}
		n.mu.Lock()
		due := now.Sub(n.orphans[orphan.UID]) >= n.cluster.r.cfg.OrphanPeriod
		n.mu.Unlock()
		if !due || orphan.Deleting {
			continue
		}
		begun, err := n.remove(ctx, orphan)
		if err != nil {
			return err
		}
		if begun {
			deleted++
		}
	}
	return nil
}

// lost returns the orphans that the newest read shows, and keeps since when they are.
func (n *namespace) lost(now time.Time) []fleet.KubeInstance {
	l := n.listing()
	var found []fleet.KubeInstance
	orphans := map[string]time.Time{}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.Begun.IsZero() || l.Unreadable != nil || n.cluster.runtime.Unidentified(n.name) != "" {
		n.orphans = orphans // what is there now is not known: their time begins anew
		return nil
	}
	for _, i := range l.Instances {
		if i.Foreign != "" || n.declared(i) {
			continue
		}
		found = append(found, i)
		orphans[i.UID] = now
		if at, ok := n.orphans[i.UID]; ok {
			orphans[i.UID] = at
		}
	}
	n.orphans = orphans
	maps.DeleteFunc(n.told, func(uid string, _ bool) bool { return orphans[uid].IsZero() })
	return found
}

// declared reports whether memory knows the server whose labels the instance carries, or
// one whose instance has the name: labels may have been edited, and what serves is no
// orphan. The store has the last word before anything is deleted.
func (n *namespace) declared(i fleet.KubeInstance) bool {
	store := n.cluster.r.cfg.Store
	if _, ok := n.cluster.r.serverAt(spot{n.target(), i.Name}); ok {
		return true
	}
	if _, ok := store.Stored(fleet.ServerKey{Account: i.Account, Region: i.Region}); ok {
		return true
	}
	return slices.ContainsFunc(store.ServerKeys(), func(key fleet.ServerKey) bool {
		g, ok := store.Stored(key)
		if !ok || g.Region == nil || g.Region.Target() != n.target() {
			return false
		}
		name, err := g.Region.Instance(key.Account)
		return err == nil && name == i.Name
	})
}

// remove deletes an orphan, if its region, as it is stored now, wants that and nothing holds
// it, and if the store says that its server is not declared. Until the end no task of a
// server of that name begins: who declares it now finds the instance there or gone.
func (n *namespace) remove(ctx context.Context, i fleet.KubeInstance) (begun bool, err error) {
	r, key := n.cluster.r, fleet.ServerKey{Account: i.Account, Region: i.Region}
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	region, err := r.cfg.Store.Region(within, i.Region)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return false, nil // listed, and nobody said to delete it
	}
	if err != nil {
		return false, err
	}
	e := &effect{}
	if !n.deletesOrphans(region) || !r.leads() || !r.begins(key, e) {
		return false, nil
	}
	defer r.Kick(key)
	defer r.ends(key, e, nil)
	if !n.cluster.slots.begin(key) {
		n.forgo(key) // the next sweep tries again
		return false, nil
	}
	defer n.cluster.slots.end()
	if err := n.announce(within, key, i); err != nil {
		if r.cfg.Store.IsConflict(err) {
			return false, nil // it is declared
		}
		return false, fmt.Errorf("note the end of orphan %s: %w", i.Name, err)
	}
	task := fleet.Task{ID: "orphan/" + i.UID, Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: i.Name, UID: i.UID}, State: fleet.TaskRunning}
	until, end := context.WithTimeout(ctx, task.Timeout())
	defer end()
	o := n.cluster.runtime.Execute(until, key, task, n.bare(i.Name))
	if o.Class == fleet.ClassOK {
		r.log.Info("an orphan was deleted", "cluster", n.cluster.name, "namespace", n.name, "instance", i.Name, "uid", i.UID, "server", key.String())
		return true, nil
	}
	n.mu.Lock()
	n.orphans[i.UID] = r.now()
	n.mu.Unlock()
	r.log.Warn("an orphan could not be deleted", "cluster", n.cluster.name, "namespace", n.name, "instance", i.Name, "uid", i.UID, "reason", o.Reason, "message", o.Message)
	return true, nil
}

// deletesOrphans reports whether the region's orphans are here, and are to be deleted.
func (n *namespace) deletesOrphans(region fleet.Region) bool {
	return region.Kubernetes != nil && region.Kubernetes.DeleteOrphans && region.Target() == n.target() &&
		!region.Paused && region.Remediation != fleet.RemediationObserve && !n.cluster.r.cfg.Paused
}

// announce stores the one event of an orphan's end, before the end; without one it asks the
// store whether the server is still not declared, and whether this kurad still leads.
func (n *namespace) announce(ctx context.Context, key fleet.ServerKey, i fleet.KubeInstance) error {
	n.mu.Lock()
	told := n.told[i.UID]
	n.mu.Unlock()
	var events []fleet.Event
	if !told {
		events = append(events, fleet.Event{
			Account: key.Account, Region: key.Region, At: n.cluster.r.now(), Type: fleet.EventNormal, Reason: "OrphanDeleted",
			Message: fmt.Sprintf("KuraInstance %s (uid %s) in %s is deleted: it belongs to no declared server, and region %s has delete_orphans", i.Name, i.UID, n, key.Region),
		})
	}
	if err := n.cluster.r.cfg.Store.Orphaned(ctx, key, events...); err != nil {
		return err
	}
	n.mu.Lock()
	n.told[i.UID] = true
	n.mu.Unlock()
	return nil
}

// listing returns all that is known of the namespace's instances.
func (n *namespace) listing() fleet.KubeListing {
	l := n.cluster.runtime.Listing(n.name)
	now := n.cluster.r.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	since := make(map[string]time.Time, len(l.Instances))
	for _, i := range l.Instances {
		since[i.UID] = now
		if at, ok := n.since[i.UID]; ok {
			since[i.UID] = at
		}
	}
	n.since, l.Since = since, maps.Clone(since)
	return l
}
