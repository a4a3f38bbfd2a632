package reconcile_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestL1_aVanishedInstanceIsRecreatedWhateverTheDeploymentSays(t *testing.T) {
	for _, verdict := range []fleet.DeploymentStatus{fleet.DeploymentFailed, fleet.DeploymentCancelled, fleet.DeploymentSuperseded} {
		t.Run(string(verdict), func(t *testing.T) {
			virtual(t, func(w *world) {
				k := created(w, options{})
				defer k.stop()
				latest, err := w.records.Deployment(w.t.Context(), key("acme"), 1)
				w.must(err)
				tx := w.records.Begin()
				history := latest.Value
				history.Status = verdict
				tx.PutDeployment(latest, history)
				w.commit(tx)
				w.pass(time.Minute)

				before := w.engine().count("create")
				w.engine().removeAll("acme")
				w.until("the server is provisioning", 2*time.Second, func() bool {
					s := w.status("acme")
					return s.Status == fleet.StatusProvisioning && s.ObservedImageTag == ""
				})
				w.until("acme runs v1 again", time.Minute, func() bool { return w.converged("acme", "v1") })
				w.one("acme")
				if n := w.engine().count("create") - before; n != 1 {
					t.Errorf("%d containers were created, want 1", n)
				}
				if got := w.server("acme").Latest.Status; got != verdict {
					t.Errorf("the deployment became %s, want history to stay %s", got, verdict)
				}
			})
		})
	}
}

func TestL2_readErrorsAreCountedAndFailNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.engine().with(func() { w.engine().down = true })
		w.pass(15 * time.Second) // seen
		w.declare("acme", "v2")
		commits := k.commits.Load()
		w.until("20 reads failed", 210*time.Second, func() bool { _, n := k.loop.Memory(key("acme")); return n == 20 })
		if got := w.server("acme").Latest.Status; got != fleet.DeploymentPending {
			t.Errorf("deployment is %s, want it to stay pending", got)
		}
		s := w.status("acme")
		if c := w.condition("acme", fleet.ConditionInstanceObserved); c.Status != fleet.Unknown || c.Reason != fleet.ReasonEndpointUnreachable {
			t.Errorf("InstanceObserved is %+v, want Unknown", c)
		}
		if s.Status != fleet.StatusActive || s.ObservedImageTag != "v1" || s.Verdict != fleet.VerdictUnobserved {
			t.Errorf("status %s %s observed %q, want active, unobserved and v1 as last seen", s.Status, s.Verdict, s.ObservedImageTag)
		}
		if n := k.commits.Load() - commits; n > 1 {
			t.Errorf("%d writes during 20 failed reads, want 1 at most", n)
		}
		w.engine().with(func() { w.engine().down = false })
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if _, n := k.loop.Memory(key("acme")); n != 0 {
			t.Errorf("%d failed reads are remembered after a good one, want 0", n)
		}
	})
}

func TestP2_aShortReadErrorIsNotNoticedByTheDeployment(t *testing.T) {
	virtual(t, func(w *world) {
		var fail atomic.Bool
		fail.Store(true)
		k := w.start(options{onList: func(list func() ([]fleet.Container, error)) ([]fleet.Container, error) {
			if fail.Swap(false) {
				return nil, errors.New("401 unauthorized")
			}
			return list()
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if n := w.events("acme", "DeploymentFailed"); n != 0 {
			t.Errorf("the deployment failed %d times", n)
		}
	})
}

func TestL8_aNewerImageSupersedesOneThatIsStuck(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
			if task.Kind == fleet.TaskCreate && strings.HasSuffix(doc.Image, ":v1") {
				return &fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonRuntimeError, Answered: true, Message: "busy"}
			}
			return nil
		}
		k := w.start(options{})
		defer k.stop()
		w.declare("acme", "v1")
		w.pass(time.Minute)
		stuck := w.status("acme").Runtime.Plan
		if stuck == nil || w.server("acme").Latest.Status != fleet.DeploymentRunning {
			t.Fatalf("v1 is not stuck: plan %+v", stuck)
		}
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		first, err := w.records.Deployment(w.t.Context(), key("acme"), 1)
		w.must(err)
		if first.Value.Status != fleet.DeploymentSuperseded {
			t.Errorf("the first deployment is %s, want superseded", first.Value.Status)
		}
	})
}

func TestL10_aFailedServerTakesPartInRollOuts(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
			if task.Kind == fleet.TaskCreate && strings.HasSuffix(doc.Image, ":v1") {
				return refused(fleet.ReasonImagePullFailed)
			}
			return nil
		}
		k := w.start(options{})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("v1 failed", time.Minute, func() bool { return w.status("acme").Status == fleet.StatusFailed })
		if s := w.status("acme"); s.Reason != fleet.ReasonImagePullFailed || w.server("acme").Latest.Status != fleet.DeploymentFailed {
			t.Errorf("failed with %q, deployment %s", s.Reason, w.server("acme").Latest.Status)
		}
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestL18_aTurnThatOvertakesADestroyIsRefused(t *testing.T) {
	virtual(t, func(w *world) {
		var refusal atomic.Pointer[error]
		var once sync.Once
		k := w.start(options{onCommit: func(write fleet.TurnWrite, commit func() error) error {
			if write.Status.Status == fleet.StatusActive {
				once.Do(func() { w.destroy("acme") })
			}
			err := commit()
			if write.Status.Status == fleet.StatusActive {
				refusal.CompareAndSwap(nil, &err)
			}
			return err
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme is gone", time.Minute, func() bool { return refusal.Load() != nil && w.gone("acme") })
		if err := *refusal.Load(); !kv.IsConflict(err) {
			t.Errorf("the turn was answered %v, want a conflict", err)
		}
		if bs := w.engine().of("acme"); len(bs) != 0 {
			t.Errorf("containers are left: %+v", bs)
		}
	})
}

func TestL44_anOldListingNeitherCompletesAPlanNorMakesOne(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().lag = 3 * time.Second // longer than any plan takes
		k := created(w, options{})
		defer k.stop()
		for _, image := range []string{"v2", "v3"} {
			before, tasks := w.engine().count("create"), k.tasks.Load()
			w.declare("acme", image)
			w.until("acme runs "+image, time.Minute, func() bool { return w.converged("acme", image) })
			w.pass(time.Minute)
			if n := w.engine().count("create") - before; n != 1 {
				t.Errorf("%s: %d containers were created, want 1", image, n)
			}
			if n := k.tasks.Load() - tasks; n != 6 { // create, stop, rename, rename, start, remove
				t.Errorf("%s: %d tasks ran, want 6", image, n)
			}
			w.one("acme")
		}
	})
}

func TestL47_aWriteOfTheStatusCausesNoTurn(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.pass(time.Minute)
		turns := k.gathers.Load()
		for range 10 {
			g := w.server("acme")
			w.must(w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: key("acme"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: *g.Status}))
			w.pass(time.Second)
		}
		if n := k.gathers.Load() - turns; n != 0 {
			t.Errorf("10 writes of the status caused %d turns, want none", n)
		}
	})
}

func TestL48_aConcurrentWriterIsAConflictAndConverges(t *testing.T) {
	virtual(t, func(w *world) {
		var conflicts, gathers, commits atomic.Int64
		k := w.start(options{onGather: func(fleet.ServerKey) error {
			gathers.Add(1)
			return nil
		}, onCommit: func(write fleet.TurnWrite, commit func() error) error {
			if c, g := commits.Add(1), gathers.Load(); c > g {
				t.Errorf("%d writes in %d turns, want one at most in each", c, g)
			}
			if write.StatusRevision > 0 && conflicts.Load() < 20 {
				conflicts.Add(1)
				g := w.server("acme")
				status := *g.Status
				status.Containers = slices.Clone(status.Containers)
				w.must(w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: key("acme"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status}))
				err := commit()
				if !kv.IsConflict(err) {
					t.Errorf("the write was answered %v, want a conflict", err)
				}
				return err
			}
			return commit()
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if w.one("acme"); conflicts.Load() < 20 {
			t.Errorf("%d conflicts, want 20", conflicts.Load())
		}
	})
}

func TestL52_aSwappedObjectIsReplacedOnce(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		e := w.engine()
		mine := w.one("acme")
		e.with(func() {
			e.drop(e.boxes[mine.ID])
			other := mine.Container
			other.Digest = "of another document"
			e.put(other)
		})
		creates, removes := e.count("create"), e.count("remove")
		w.pass(2 * time.Second)
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		after := w.one("acme").ID
		w.pass(50 * time.Second) // five ticks
		if c, r := e.count("create")-creates, e.count("remove")-removes; c != 1 || r != 1 {
			t.Errorf("%d created and %d removed, want one each", c, r)
		}
		if now := w.one("acme").ID; now != after {
			t.Errorf("the container changed from %s to %s during five ticks", after, now)
		}
	})
}

func TestL57_whatWasSeenIsStoredEvenWhenTheWorkIsRefused(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.engine().with(func() {
			w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
				if task.Kind == fleet.TaskCreate {
					return refused(fleet.ReasonInvalid)
				}
				return nil
			}
		})
		w.setSick("acme", fleet.ReasonHTTPNotReady)
		w.declare("acme", "v2")
		w.until("both are told", time.Minute, func() bool {
			s, c := w.status("acme"), w.condition("acme", fleet.ConditionEndpointReady)
			return s.Status == fleet.StatusFailed && s.Reason == fleet.ReasonInvalid && c.Status == fleet.False && c.Reason == fleet.ReasonHTTPNotReady
		})
	})
}

func TestL58_aProbeThatCannotRunIsUnknown(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.setSick("acme", fleet.ReasonNotChecked) // no probe can be made of this url
		w.until("the endpoint's state is unknown", time.Minute, func() bool {
			return w.condition("acme", fleet.ConditionEndpointReady).Status == fleet.Unknown
		})
		if s := w.status("acme"); s.Status != fleet.StatusActive {
			t.Errorf("status %s, want it to stay active", s.Status)
		}
	})
}

func TestL59_ticksChangeNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		before, effects := w.one("acme"), len(w.engine().history())
		w.pass(200 * time.Second) // 20 ticks
		if after := w.one("acme"); after.ID != before.ID || after.starts != 1 || len(w.engine().history()) != effects {
			t.Errorf("after 20 ticks container %s started %d times, effects %v; want %s, once, none new", after.ID, after.starts, w.engine().history(), before.ID)
		}
	})
}

func TestC4_aReplaceTakesNoLongerThanItsTasks(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().deaf = true // no hint makes up for a read that is not asked for
		k := created(w, options{})
		defer k.stop()
		w.declare("acme", "v2")
		w.until("acme runs v2", 2*time.Second, func() bool { return w.converged("acme", "v2") })
		if n := w.events("acme", "LeftoversRemoved"); n != 0 {
			t.Errorf("%d events say that leftovers were removed, want none", n)
		}
	})
}

func TestC6_aForcedKillIsAnEvent(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		id := w.one("acme").ID
		w.engine().with(func() { w.engine().boxes[id].stubborn = true })
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if n := w.events("acme", "GraceExceeded"); n != 1 {
			t.Errorf("%d events say that the grace period was exceeded, want 1", n)
		}
		w.one("acme")
	})
}

func TestC1_aDeathIsSeenWithinASecond(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		e, before := w.engine(), w.one("acme")
		w.pass(time.Minute)
		e.with(func() { e.exit(e.boxes[before.ID], 137) })
		w.until("it is started again", time.Second, func() bool { bs := e.of("acme"); return bs[0].starts == 2 })
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if after := w.one("acme"); after.ID != before.ID {
			t.Errorf("container %s became %s, want it started again", before.ID, after.ID)
		}
	})
}
