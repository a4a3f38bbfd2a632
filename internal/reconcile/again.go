package reconcile

import (
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

// answer is one that no turn has stored yet, or that was had before: the claim of the next try
// counts that. Where kurad ends before, the claim stays, and the task is run again (S5).
type answer struct {
	task    fleet.Task
	outcome fleet.Outcome
}

// prev is the status that a turn goes on from: the stored one, with what came since; and
// whether that is an answer.
func (r *Reconciler) prev(key fleet.ServerKey, g fleet.Gathered) (_ *fleet.Status, answered bool) {
	if g.Status == nil {
		return nil, false
	}
	r.mu.Lock()
	m, remembered := r.memos[key]
	a, ended := r.answers[key]
	r.mu.Unlock()
	s := g.Status.Clone()
	switch {
	case remembered && m.status == g.StatusRevision && m.try == g.TryRevision:
		s = m.is.Clone()
	case g.Try != nil:
		s = s.Tried(*g.Try)
	}
	if ended && claims(s.Runtime.Plan, a.task) {
		s.Runtime.Plan.Record(s.Runtime.Plan.Current(), a.outcome)
		return &s, true
	}
	return &s, false
}

// answered reports whether an answer waits to be taken into account.
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

// open makes the next tries of servers due, after one of the server's key.
func (r *Reconciler) open(key fleet.ServerKey, due map[fleet.ServerKey]time.Time) {
	r.mu.Lock()
	delete(r.opened, key)
	maps.Copy(r.opened, due)
	r.mu.Unlock()
	r.kick(slices.Collect(maps.Keys(due)))
}
