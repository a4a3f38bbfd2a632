package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// Observer keeps what was last seen of one part of servers: their instances, their
// endpoints. A turn asks all of them, and waits for none: where there is news, they make the
// server's turn due. What did not answer is no news but a failure, which they count.
type Observer interface {
	// Observe adds what is known of the server to what was seen of it.
	Observe(in *projection.Input)
	// Follow arranges what a turn waits for: what is looked at from now on, how often, and
	// whether the next look is to begin at once. Of a server that is gone, in names it and
	// out is nothing.
	Follow(in projection.Input, out projection.Output)
	// Fresh waits for a look at the server that begins from now on; one that fails is an
	// answer, too.
	Fresh(ctx context.Context, g fleet.Gathered) error
	// Memory returns when the last look began that answered, and how many have failed since.
	Memory(key fleet.ServerKey) (lastObserved time.Time, failed int)
}

// observers are all that see something of a server which is at the site, if there is one.
func (r *Reconciler) observers(at site) []Observer {
	if at == nil {
		return r.others
	}
	return append([]Observer{at}, r.others...)
}

// lookNow reports whether a look at the instance is needed, and would say something: one
// before the last effect may have landed would not.
func lookNow(in projection.Input, out projection.Output) bool {
	until := out.Status.Runtime.EffectsUntil
	return out.NeedFreshRead.Has(fleet.TrackRuntime) && (until == nil || !until.After(in.Now))
}

// ObserveNow waits for one turn of the server that began after the call, with a fresh
// look at everything (?observe=now).
func (r *Reconciler) ObserveNow(ctx context.Context, key fleet.ServerKey) error {
	g, err := r.cfg.Store.Gather(ctx, key)
	if err != nil {
		return fmt.Errorf("observe %s: %w", key, err)
	}
	var at site
	if g.Region != nil {
		at = r.site(*g.Region)
	}
	for _, o := range r.observers(at) {
		if err := o.Fresh(ctx, g); err != nil {
			return err
		}
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
	return at.site.Memory(key)
}

// Waits says what the next tries of the server's tracks wait for, where that is in nobody's
// record: others get the same answer, and a few are tried for all (G12).
func (r *Reconciler) Waits(key fleet.ServerKey) string {
	var said []string
	r.mu.Lock()
	at, rooms := r.known[key].site, maps.Clone(r.rooms)
	r.mu.Unlock()
	for _, track := range r.tracks {
		n, subject, where := 0, "its next try", fmt.Sprint(at)
		for room, s := range rooms {
			if k := s.pace.waiting(work{key, track}); k > n {
				if n = k; track != fleet.TrackRuntime {
					subject, where = fmt.Sprintf("the next try of its %s", track), room.name
				}
			}
		}
		if n > 0 {
			said = append(said, fmt.Sprintf("%s waits: %d servers get the same answer from %s, and a few are tried for all", subject, n, where))
		}
	}
	return strings.Join(said, "; ")
}

// Beyond returns a server's status with what came since it was stored and is not worth a
// write: a try of what failed before, and its answer (G12).
func (r *Reconciler) Beyond(g fleet.Gathered) *fleet.Status {
	s, _ := r.prev(g.Intent.Key(), g)
	return s
}
