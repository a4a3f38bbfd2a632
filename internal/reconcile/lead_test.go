package reconcile_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// lead is a leadership that a test takes away: at once, or as a process finds it that was
// stopped and has not noticed yet.
type lead struct {
	expired atomic.Bool
	lost    chan struct{}
}

func newLead() *lead { return &lead{lost: make(chan struct{})} }

func (l *lead) Valid() bool           { return !l.expired.Load() }
func (l *lead) Lost() <-chan struct{} { return l.lost }

func TestG2_aLostLeadershipEndsARunningTaskAtOnce(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().with(func() { w.engine().took = time.Minute })
		l := newLead()
		k := w.start(options{lead: l})
		w.declare("acme", "v1")
		w.until("a task runs", time.Minute, func() bool { return k.tasks.Load() > 0 })
		start := time.Now()
		close(l.lost)
		k.stop()
		if took := time.Since(start); took > time.Second {
			t.Errorf("its turns ended %s after the leadership, want at once", took)
		}
		w.pass(2 * time.Minute)
		if n := w.engine().count("create"); n != 0 {
			t.Errorf("%d containers were created by one who leads no more", n)
		}
		w.engine().with(func() { w.engine().took = 0 })
		next := w.start(options{lead: newLead()})
		defer next.stop()
		w.until("the next leader has made it", time.Minute, func() bool { return w.converged("acme", "v1") })
		if n := w.engine().count("create"); n != 1 {
			t.Errorf("%d containers were created, want 1", n)
		}
	})
}

func TestG2_aTaskClaimedBeforeAStopIsLeftToTheNextLeader(t *testing.T) {
	virtual(t, func(w *world) {
		l := newLead()
		k := w.start(options{lead: l, onCommit: func(write fleet.TurnWrite, commit func() error) error {
			err := commit()
			if p := write.Status.Runtime.Plan; p != nil && p.Tasks[0].State == fleet.TaskRunning {
				l.expired.Store(true) // the process was stopped right after its claim
			}
			return err
		}})
		w.declare("acme", "v1")
		w.until("a task is claimed", time.Minute, l.expired.Load)
		w.pass(time.Minute)
		if n := k.tasks.Load(); n != 0 {
			t.Errorf("%d tasks ran, want none", n)
		}
		close(l.lost)
		k.stop()
		next := w.start(options{lead: newLead()})
		defer next.stop()
		w.until("the next leader has made it", time.Minute, func() bool { return w.converged("acme", "v1") })
	})
}

// The store may lose its own leader for a moment just when a task has ended: the answer
// is stored when it is back, and nothing runs twice.
func TestS5_anAnswerOutlastsAStoreThatIsSilentForAMoment(t *testing.T) {
	virtual(t, func(w *world) {
		var silent time.Time
		k := w.start(options{onCommit: func(write fleet.TurnWrite, commit func() error) error {
			p := write.Status.Runtime.Plan
			if p != nil && p.Tasks[0].Outcome != nil && silent.IsZero() {
				silent = time.Now().Add(3 * time.Second)
			}
			if time.Now().Before(silent) {
				return errDead
			}
			return commit()
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if n := k.tasks.Load(); n != 2 {
			t.Errorf("%d tasks ran, want one create and one start", n)
		}
	})
}
