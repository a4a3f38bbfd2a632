package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// memo is what a turn made of a server's records where that is not worth a write: what had
// failed is tried again, or failed once more (G12). With another revision of either record
// it is over.
type memo struct {
	status, try int64
	is          fleet.Status
}

// answer is one that was had before. It is not stored: the claim of the next try counts it.
// Where kurad ends before, the claim stays, and the task is run again (S5).
type answer struct {
	task    fleet.Task
	outcome fleet.Outcome
}

// prev is the status that a turn goes on from: the stored one, with what came since.
func (r *Reconciler) prev(key fleet.ServerKey, g fleet.Gathered) *fleet.Status {
	if g.Status == nil {
		return nil
	}
	r.mu.Lock()
	m, remembered := r.memos[key]
	a, answered := r.answers[key]
	r.mu.Unlock()
	s := g.Status.Clone()
	switch {
	case remembered && m.status == g.StatusRevision && m.try == g.TryRevision:
		s = m.is.Clone()
	case g.Try != nil:
		s = s.Tried(*g.Try)
	}
	if answered && claims(s.Runtime.Plan, a.task) {
		s.Runtime.Plan.Record(s.Runtime.Plan.Current(), a.outcome)
	}
	return &s
}

// answered reports whether an answer that is not stored waits to be taken into account.
func (r *Reconciler) answered(key fleet.ServerKey, s fleet.Status) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[key]
	return ok && claims(s.Runtime.Plan, a.task)
}

func (r *Reconciler) remember(key fleet.ServerKey, m memo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memos[key] = m
}

// commitClaim stores a claim: as a small record where what failed before is tried as it was,
// else with the whole status.
func (r *Reconciler) commitClaim(ctx context.Context, key fleet.ServerKey, g fleet.Gathered, s fleet.Status) error {
	if !s.Repeats(*g.Status) {
		return r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
			Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: s,
		})
	}
	revision, err := r.cfg.Store.CommitTry(ctx, fleet.TryWrite{
		Key: key, IntentRevision: g.IntentRevision, TryRevision: g.TryRevision, Try: s.Try(*g.Status, g.StatusRevision),
	})
	if err == nil {
		r.remember(key, memo{g.StatusRevision, revision, s})
	}
	return err
}

// open makes the next tries of servers due, after one of the server's key.
func (r *Reconciler) open(key fleet.ServerKey, due map[fleet.ServerKey]time.Time) {
	r.mu.Lock()
	delete(r.opened, key)
	maps.Copy(r.opened, due)
	r.mu.Unlock()
	r.kick(slices.Collect(maps.Keys(due)))
}
