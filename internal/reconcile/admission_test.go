package reconcile_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func (w *world) mostUnsettled(region string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most[region]
}

func failsToCreate(account, image string) func(fleet.ServerKey, fleet.Task, *fleet.ServiceDocument) *fleet.Outcome {
	return func(k fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
		if k.Account == account && task.Kind == fleet.TaskCreate && doc.Image == "localhost/kura:"+image {
			return refused(fleet.ReasonImagePullFailed)
		}
		return nil
	}
}

// L26: a mistake that asks for everything at once makes ten things at once.
func TestG4_massCreationIsAdmittedInSteps(t *testing.T) {
	virtual(t, func(w *world) {
		const n = 1000
		w.engine().refuse = failsToCreate("urgent", "bad")
		k := w.start(options{})
		defer k.stop()
		w.declare("urgent", "bad")
		w.until("bad failed", time.Minute, func() bool { return w.status("urgent").Status == fleet.StatusFailed })
		for i := range n {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		w.until("some run", 10*time.Minute, func() bool { return w.count("v1") >= 100 })
		if g := w.status("s0999"); g.Verdict != fleet.VerdictHeld || g.VerdictReason != fleet.ReasonAdmission || g.Runtime.Intended == nil {
			t.Errorf("the last one is %s/%s, want it held for admission with the plan that waits", g.Verdict, g.VerdictReason)
		}
		before := w.count("v1")
		w.declare("urgent", "v2")
		w.until("the newer image has overtaken", time.Minute, func() bool { return w.converged("urgent", "v2") })
		if ahead := w.count("v1") - before; ahead > 30 {
			t.Errorf("%d servers were settled before the newer image for a failed one", ahead)
		}
		w.until("all run", 30*time.Minute, func() bool { return w.count("v1") == n })
		if most := w.mostUnsettled("eu"); most != fleet.DefaultMaxUnsettled {
			t.Errorf("%d servers were unsettled at once, want %d", most, fleet.DefaultMaxUnsettled)
		}
		if creates := w.engine().count("create"); creates != n+1 {
			t.Errorf("%d containers were created, want %d", creates, n+1)
		}
	})
}

func TestG4_aRestartKeepsThePlacesThatAreTaken(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 3 })
		k := w.start(options{})
		for i := range 30 {
			account := fmt.Sprintf("s%04d", i)
			w.setSick(account, fleet.ReasonHTTPNotReady) // admitted ones stay unsettled
			w.declare(account, "v1")
		}
		for range 5 {
			w.pass(20 * time.Second)
			k.kill()
			k = w.start(options{})
		}
		w.pass(time.Minute)
		if n := w.engine().count("create"); n != 3 {
			t.Errorf("%d servers were begun, want 3", n)
		}
		for i := range 30 {
			w.setSick(fmt.Sprintf("s%04d", i), "")
		}
		w.until("all run", 30*time.Minute, func() bool { return w.count("v1") == 30 })
		if most := w.mostUnsettled("eu"); most != 3 {
			t.Errorf("%d servers were unsettled at once, want 3", most)
		}
		k.stop()
	})
}

func TestG4_aChangedMaximumCountsAtOnce(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 2 })
		k := w.start(options{})
		defer k.stop()
		for i := range 20 {
			account := fmt.Sprintf("s%04d", i)
			w.setSick(account, fleet.ReasonHTTPNotReady)
			w.declare(account, "v1")
		}
		w.pass(30 * time.Second)
		for _, step := range []struct{ most, want int }{{2, 2}, {6, 6}, {1, 6}, {7, 7}} {
			w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = step.most })
			w.pass(10 * time.Second)
			if n := w.engine().count("create"); n != step.want {
				t.Errorf("with max_unsettled %d there are %d servers begun, want %d", step.most, n, step.want)
			}
		}
	})
}

func TestG4_aPlaceThatIsNotWantedGoesToTheNext(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1 })
		var panics atomic.Bool
		k := w.start(options{onGather: func(k fleet.ServerKey) error {
			if k.Account == "second" && panics.Load() {
				panic("a fault of our own")
			}
			return nil
		}})
		defer k.stop()
		w.setSick("first", fleet.ReasonHTTPNotReady)
		for _, account := range []string{"first", "second", "third", "fourth", "fifth"} {
			w.declare(account, "v1")
			w.pass(5 * time.Second)
		}
		panics.Store(true)                                             // second waits, and will not use its place
		w.change("third", func(in *fleet.Intent) { in.Paused = true }) // no longer wants one
		w.destroy("fourth")                                            // neither
		w.until("fourth is gone", time.Minute, func() bool { return w.gone("fourth") })
		w.setSick("first", "")
		w.until("fifth runs", time.Minute, func() bool { return w.converged("first", "v1") && w.converged("fifth", "v1") })
		panics.Store(false)
		w.until("second runs", time.Minute, func() bool { return w.converged("second", "v1") })
		if most := w.mostUnsettled("eu"); most != 1 {
			t.Errorf("%d servers were unsettled at once, want 1", most)
		}
	})
}
