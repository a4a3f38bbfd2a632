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

// sweep ends orphans, where their region wants it so, until ctx ends.
func (n *namespace) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := safely(func() error { return n.sweepOnce(ctx) }); err != nil && ctx.Err() == nil {
			n.cluster.r.log.Error("orphans could not be deleted", "cluster", n.cluster.name, "namespace", n.name, "error", err)
		}
		wait(ctx, sweepEvery)
	}
}

// sweepOnce stores plans for the end of orphans whose time has come, and then runs what is
// stored and due.
func (n *namespace) sweepOnce(ctx context.Context) error {
	r := n.cluster.r
	lost, known := n.lost(r.now())
	if !known || !r.acts() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := r.cfg.Store.Orphans(ctx, n.cluster.name, n.name)
	if err != nil {
		return err
	}
	wanted := n.wanted(ctx)
	if stored, err = n.planEnds(ctx, wanted, lost, stored); err != nil {
		return err
	}
	begun := 0
	for _, o := range stored {
		if r.isLive(work{o.Server, fleet.TrackRuntime}) {
			continue
		}
		region, deletes, err := wanted(o.Server.Region)
		if _, is := lost[o.UID]; err == nil && !(is && deletes) {
			o.Plan = nil // it is gone, a server's again, or held
			_, err = r.cfg.Store.CommitOrphan(ctx, o)
		} else if err == nil && begun < orphansAtOnce && due(o.Plan, r.now(), false) {
			begun++
			err = n.end(ctx, o, region)
		}
		if err != nil && !r.cfg.Store.IsConflict(err) {
			return fmt.Errorf("end orphan %s: %w", o.Name, err)
		}
	}
	return nil
}

// planEnds stores a plan, with the one event, for orphans whose time has come, and for no
// more than may be begun at once (G4). Where their server is declared by now there is none.
func (n *namespace) planEnds(ctx context.Context, wanted asRegion, lost map[string]fleet.KubeInstance, stored []fleet.Orphan) ([]fleet.Orphan, error) {
	r, planned := n.cluster.r, 0
	for _, uid := range slices.Sorted(maps.Keys(lost)) {
		i := lost[uid]
		n.mu.Lock()
		ripe := r.now().Sub(n.orphans[uid]) >= r.cfg.OrphanPeriod
		n.mu.Unlock()
		if !ripe || i.Deleting || planned == orphansAtOnce || slices.ContainsFunc(stored, func(o fleet.Orphan) bool { return o.UID == uid }) {
			continue
		}
		_, deletes, err := wanted(i.Region)
		if err == nil && deletes {
			o := fleet.Orphan{Server: fleet.ServerKey{Account: i.Account, Region: i.Region}, Cluster: n.cluster.name, Namespace: n.name, Name: i.Name, UID: uid}.End(r.now())
			o.Revision, err = r.cfg.Store.CommitOrphan(ctx, o, fleet.Event{
				Account: i.Account, Region: i.Region, At: r.now(), Type: fleet.EventNormal, Reason: "OrphanDeleted",
				Message: fmt.Sprintf("KuraInstance %s (uid %s) in %s is deleted: it belongs to no declared server, and region %s has delete_orphans", i.Name, uid, n, i.Region),
			})
			if err == nil {
				planned++
				stored = append(stored, o)
			}
		}
		if err != nil && !r.cfg.Store.IsConflict(err) {
			return nil, fmt.Errorf("plan the end of orphan %s: %w", i.Name, err)
		}
	}
	return stored, nil
}

// end claims the deletion of an orphan and runs it. Until it is over no task of a server of
// that name begins: who declares it now finds the instance there or gone.
func (n *namespace) end(ctx context.Context, o fleet.Orphan, region fleet.Region) (err error) {
	r, i, doc := n.cluster.r, o.Plan.Current(), n.bare(o.Name)
	task := o.Plan.Claim(i, r.now().Add(o.Plan.Tasks[i].Timeout()))
	e := &effect{Call: Call{Key: o.Server, Track: fleet.TrackRuntime, Region: region.WithDefaults(), Desired: fleet.Desired{Kubernetes: &doc}, Task: task}}
	if !r.begins(e) {
		return nil
	}
	defer func() {
		if e.record == nil { // it has not begun: a server of the name may
			r.ends(e, nil)
			r.Kick(o.Server)
		}
	}()
	room := r.room(task, e.Region)
	if room == nil || !room.tryBegin() {
		return nil // the next look tries again
	}
	e.room = room
	if o.Revision, err = r.cfg.Store.CommitOrphan(ctx, o); err != nil {
		room.end()
		return err
	}
	e.record = func(answer fleet.Outcome) { n.ended(o, answer) }
	r.begin(e)
	return nil
}

// ended stores the answer to the deletion of an orphan: one that failed is tried again after
// as long as it took to become due. What cannot be stored is run again.
func (n *namespace) ended(o fleet.Orphan, answer fleet.Outcome) {
	r := n.cluster.r
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.taskStart), storeTimeout)
	defer cancel()
	about := []any{"cluster", n.cluster.name, "namespace", n.name, "instance", o.Name, "uid", o.UID, "server", o.Server.String()}
	if answer.Class == fleet.ClassOK {
		r.log.Info("an orphan was deleted", about...)
		o.Plan = nil
		n.mu.Lock()
		n.gone[o.UID] = true // though the watch may show it for a while
		n.mu.Unlock()
	} else {
		r.log.Warn("an orphan could not be deleted", append(about, "reason", answer.Reason, "message", answer.Message)...)
		i, again := o.Plan.Current(), r.now().Add(r.cfg.OrphanPeriod)
		o.Plan.Record(i, answer)
		o.Plan.Tasks[i].Noted, o.Plan.Tasks[i].NotBefore = true, &again
	}
	if _, err := r.cfg.Store.CommitOrphan(ctx, o); err != nil && !r.cfg.Store.IsConflict(err) {
		r.log.Error("the answer to a task could not be stored", append(about, "error", err)...)
	}
}

// lost returns the orphans that the newest read shows, by uid, and keeps since when they are;
// known is false where what is there now is not known: their time begins anew.
func (n *namespace) lost(now time.Time) (lost map[string]fleet.KubeInstance, known bool) {
	l := n.listing()
	lost, orphans, gone := map[string]fleet.KubeInstance{}, map[string]time.Time{}, map[string]bool{}
	n.mu.Lock()
	defer n.mu.Unlock()
	known = !l.Begun.IsZero() && l.Unreadable == nil && n.cluster.runtime.Unidentified(n.name) == ""
	for _, i := range l.Instances {
		if n.gone[i.UID] {
			gone[i.UID] = true
			continue
		}
		if !known || i.Foreign != "" || n.declared(i) {
			continue
		}
		lost[i.UID], orphans[i.UID] = i, now
		if at, ok := n.orphans[i.UID]; ok {
			orphans[i.UID] = at
		}
	}
	n.orphans = orphans
	if known {
		n.gone = gone
	}
	return lost, known
}

// declared reports whether memory knows the server whose labels the instance carries, or
// one whose instance has the name: labels may have been edited, and what serves is no
// orphan. The store has the last word before anything is deleted.
func (n *namespace) declared(i fleet.KubeInstance) bool {
	store := n.cluster.r.cfg.Store
	if _, ok := n.cluster.r.serverAt(targetName{n.target(), i.Name}); ok {
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

// asRegion returns what deletes does.
type asRegion func(name string) (region fleet.Region, wanted bool, err error)

// wanted is deletes for one look, which reads each region once.
func (n *namespace) wanted(ctx context.Context) asRegion {
	type answer struct {
		region fleet.Region
		wanted bool
	}
	read := map[string]answer{}
	return func(name string) (fleet.Region, bool, error) {
		if a, ok := read[name]; ok {
			return a.region, a.wanted, nil
		}
		region, wanted, err := n.deletes(ctx, name)
		if err == nil {
			read[name] = answer{region, wanted}
		}
		return region, wanted, err
	}
}

// deletes returns a region as it is stored now, and whether its orphans are here and are to
// be deleted: nothing holds that.
func (n *namespace) deletes(ctx context.Context, name string) (region fleet.Region, wanted bool, err error) {
	region, err = n.cluster.r.cfg.Store.Region(ctx, name)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return region, false, nil // listed, and nobody said to delete it
	}
	return region, err == nil && region.Kubernetes != nil && region.Kubernetes.DeleteOrphans && region.Target() == n.target() &&
		!region.Paused && region.Remediation != fleet.RemediationObserve && !n.cluster.r.cfg.Paused, err
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
