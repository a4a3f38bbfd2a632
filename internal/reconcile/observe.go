package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// ObserveNow waits for one turn of the server that began after the call, with a fresh
// read and a fresh probe (?observe=now).
func (r *Reconciler) ObserveNow(ctx context.Context, key fleet.ServerKey) error {
	g, err := r.cfg.Store.Gather(ctx, key)
	if err != nil {
		return fmt.Errorf("observe %s: %w", key, err)
	}
	if err := r.look(ctx, g); err != nil {
		return err
	}
	// Without targets there is nothing to probe; that is no fault.
	if err := r.cfg.Probes.Now(ctx, key); err != nil && ctx.Err() != nil {
		return fmt.Errorf("probe %s: %w", key, err)
	}
	done := make(chan struct{})
	r.await(key, done)
	r.Kick(key)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		r.giveUp(key, done)
		return fmt.Errorf("wait for a turn of %s: %w", key, ctx.Err())
	}
}

// look waits for a fresh read of a stored server's instance, where there is somewhere to
// look.
func (r *Reconciler) look(ctx context.Context, g fleet.Gathered) error {
	if g.Region == nil || g.Account == nil {
		return nil
	}
	at := r.site(*g.Region)
	instance, err := fleet.InstanceName(g.Account.ID, g.Region.Cluster())
	if at == nil || err != nil {
		return nil // the turn will say why it sees nothing
	}
	if err := at.fresh(ctx, instance); err != nil {
		return fmt.Errorf("read %s: %w", at, err)
	}
	return nil
}

func (r *Reconciler) await(key fleet.ServerKey, done ...chan struct{}) {
	if len(done) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters[key] = append(r.waiters[key], done...)
}

func (r *Reconciler) takeWaiters(key fleet.ServerKey) []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiters[key]
	delete(r.waiters, key)
	return w
}

func (r *Reconciler) giveUp(key fleet.ServerKey, done chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters[key] = slices.DeleteFunc(r.waiters[key], func(w chan struct{}) bool { return w == done })
	if len(r.waiters[key]) == 0 {
		delete(r.waiters, key)
	}
}

// KubeListings returns what is known of every namespace that a region named, by cluster and
// name.
func (r *Reconciler) KubeListings() []fleet.KubeListing {
	var list []fleet.KubeListing
	for _, name := range slices.Sorted(maps.Keys(r.clusters)) {
		for _, n := range r.clusters[name].known() {
			list = append(list, n.listing())
		}
	}
	return list
}

// Listings returns what is known of every endpoint, by name.
func (r *Reconciler) Listings() []fleet.Listing {
	list := make([]fleet.Listing, 0, len(r.endpoints))
	for _, name := range slices.Sorted(maps.Keys(r.endpoints)) {
		list = append(list, r.endpoints[name].listing())
	}
	return list
}

// Memory returns what is known of the server's reads and is not stored: when the last
// good one began, and how many have failed since.
func (r *Reconciler) Memory(key fleet.ServerKey) (lastObserved time.Time, failedReads int) {
	r.mu.Lock()
	at := r.known[key]
	r.mu.Unlock()
	if at.site == nil {
		return time.Time{}, 0
	}
	return at.site.memory()
}

// Waits says what the server's next try waits for, where that is in nobody's record: others
// get the same answer, and a few are tried for all (G12).
func (r *Reconciler) Waits(key fleet.ServerKey) string {
	r.mu.Lock()
	at := r.known[key]
	r.mu.Unlock()
	if at.site == nil {
		return ""
	}
	n := at.site.waiting(key)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("its next try waits: %d servers get the same answer from %s, and a few are tried for all", n, at.site)
}

// Beyond returns a server's status with what came since it was stored and is not worth a
// write: a try of what failed before, and its answer (G12).
func (r *Reconciler) Beyond(g fleet.Gathered) *fleet.Status {
	s, _ := r.prev(g.Intent.Key(), g)
	return s
}
