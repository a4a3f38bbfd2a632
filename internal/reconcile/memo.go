package reconcile

import (
	"maps"
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
	r.mu.Unlock()
	s := g.Status.Clone()
	switch {
	case remembered && m.status == g.StatusRevision && m.try == g.TryRevision:
		s = m.is.Clone()
	case g.Try != nil:
		s = s.Tried(*g.Try)
	}
	for _, track := range r.tracks {
		r.mu.Lock()
		a, ended := r.answers[work{key, track}]
		r.mu.Unlock()
		if p := s.PlanOf(track); ended && claims(p, a.task) {
			p.Record(p.Current(), a.outcome)
			answered = true
		}
	}
	return &s, answered
}

// answered reports whether an answer waits to be taken into account.
func (r *Reconciler) answered(w work, p *fleet.Plan) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.answers[w]
	return ok && claims(p, a.task)
}

func (r *Reconciler) remember(key fleet.ServerKey, m memo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memos[key] = m
}

// open makes the next tries of tracks due, after one of another's.
func (r *Reconciler) open(w work, due map[work]time.Time) {
	r.mu.Lock()
	delete(r.opened, w)
	maps.Copy(r.opened, due)
	r.mu.Unlock()
	for w := range due {
		r.Kick(w.ServerKey)
	}
}
