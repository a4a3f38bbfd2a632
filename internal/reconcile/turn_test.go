package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// created starts a kurad in the world and one converged server, acme on v1.
func created(w *world, o options) *kurad {
	w.t.Helper()
	k := w.start(o)
	w.declare("acme", "v1")
	w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
	return k
}

func TestS4_planIsStoredBeforeAnyEffect(t *testing.T) {
	virtual(t, func(w *world) {
		var journal []string
		failures, claims := 3, 3 // to be stored
		plan := ""
		k := w.start(options{
			onCommit: func(write fleet.TurnWrite, commit func() error) error {
				p := write.Status.Runtime.Plan
				fresh := p != nil && p.ID != plan
				if fresh && failures > 0 {
					failures--
					return errDead
				}
				if i := p.Current(); !fresh && i >= 0 && p.Tasks[i].State == fleet.TaskRunning && claims > 0 {
					claims--
					return errDead
				}
				err := commit()
				if err == nil && fresh {
					plan = p.ID
					journal = append(journal, "plan")
				}
				return err
			},
			onTask: func(server fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
				stored := w.status("acme").Runtime.Plan
				i := stored.Current()
				if i < 0 || stored.Tasks[i].ID != task.ID || stored.Tasks[i].State != fleet.TaskRunning {
					t.Errorf("%s runs, and the store holds %+v", task.Describe(), stored)
				}
				if failures > 0 || plan != stored.ID {
					t.Errorf("%s runs before its plan was stored", task.Describe())
				}
				journal = append(journal, string(task.Kind))
				return execute()
			},
		})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if got, want := strings.Join(journal, " "), "plan pull create start"; got != want {
			t.Errorf("journal %q, want %q", got, want)
		}
	})
}

func TestP16_convergedServerCostsNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.pass(20 * time.Minute) // what the creation left due is over
		commits, tasks, gathers, lists, probes := k.commits.Load(), k.tasks.Load(), k.gathers.Load(), w.engine().listed(), w.probed.Load()
		w.pass(time.Hour)
		if n := k.commits.Load() - commits; n != 0 {
			t.Errorf("%d writes in an hour, want none", n)
		}
		if n := k.tasks.Load() - tasks; n != 0 {
			t.Errorf("%d tasks in an hour, want none", n)
		}
		if n := w.engine().listed() - lists; n != 360 {
			t.Errorf("%d listings in an hour, want one for each of the 360 ticks", n)
		}
		if n := k.gathers.Load() - gathers; n != 6 {
			t.Errorf("%d turns in an hour, want the 6 of the slow resync", n)
		}
		if n := w.probed.Load() - probes; n < 100 || n > 150 {
			t.Errorf("%d probes in an hour, want one each 30 s ± a fifth", n)
		}
	})
}

func TestR5_aServerThatIsHeldCostsNoTurns(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.change("acme", func(in *fleet.Intent) { in.Paused = true })
		w.declare("acme", "v2")
		w.pass(20 * time.Minute)
		commits, turns := k.commits.Load(), k.gathers.Load()
		w.pass(time.Hour)
		if c, n := k.commits.Load()-commits, k.gathers.Load()-turns; c != 0 || n != 6 {
			t.Errorf("%d writes and %d turns in an hour of being held, want none and the 6 of the slow resync", c, n)
		}
		w.change("acme", func(in *fleet.Intent) { in.Paused = false })
		w.until("acme runs v2", 5*time.Second, func() bool { return w.converged("acme", "v2") })
	})
}

func TestR5_anEndpointIsAskedAtOnceWhenItsInstanceIsThere(t *testing.T) {
	virtual(t, func(w *world) {
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			if task.Kind == fleet.TaskPull {
				<-time.After(2 * time.Minute) // pulling is slow
			}
			return execute()
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("the container runs", 5*time.Minute, func() bool { return w.engine().count("start") == 1 })
		w.until("acme runs v1", 2*time.Second, func() bool { return w.converged("acme", "v1") })
	})
}

// What nobody starts again is not said to answer: its endpoint is asked as soon as it is seen
// down, and no faster than others' from then on.
func TestP8_R5_anEndpointIsAskedAsSoonAsWhatServesIsSeenDownForGood(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*world)
		down func(*world, *box) // the engine's lock is held
		does fleet.ConditionStatus
	}{
		{"paused", func(w *world) { w.change("acme", func(in *fleet.Intent) { in.Paused = true }) }, func(w *world, b *box) { w.engine().exit(b, 137) }, fleet.False},
		{"paused, and taken away", func(w *world) { w.change("acme", func(in *fleet.Intent) { in.Paused = true }) }, func(w *world, b *box) { w.engine().drop(b) }, fleet.False},
		{"the region observes", func(w *world) { w.region("eu", func(r *fleet.Region) { r.Remediation = fleet.RemediationObserve }) }, func(w *world, b *box) { w.engine().exit(b, 137) }, fleet.False},
		{"every start is refused", func(w *world) {
			w.engine().with(func() {
				w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
					if task.Kind == fleet.TaskStart {
						return refused(fleet.ReasonStartFailed)
					}
					return nil
				}
			})
		}, func(w *world, b *box) { w.engine().exit(b, 137) }, fleet.False},
		{"another answers in its place", func(w *world) {
			w.change("acme", func(in *fleet.Intent) { in.Paused = true })
			w.mu.Lock()
			defer w.mu.Unlock()
			w.answers = true
		}, func(w *world, b *box) { w.engine().exit(b, 137) }, fleet.True},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(w *world) {
				k := created(w, options{})
				defer k.stop()
				c.set(w)
				w.pass(20 * time.Minute)
				w.engine().with(func() { c.down(w, w.engine().named("kura-acme-eu-cache-staging")) })
				w.pass(time.Second)
				if is := w.condition("acme", fleet.ConditionEndpointReady); is.Status != c.does {
					t.Errorf("a second after its end: %+v", is)
				}
				w.pass(10 * time.Minute)
				probes := w.probed.Load()
				w.pass(time.Hour)
				if n := w.probed.Load() - probes; n > 160 {
					t.Errorf("%d probes in an hour", n)
				}
			})
		})
	}
}
