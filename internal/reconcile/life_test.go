package reconcile_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestP2_anEndpointThatIsAwayForTenMinutesIsAsItWas(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		before := w.one("acme")
		w.engine().with(func() { w.engine().down = true })
		w.pass(10 * time.Minute)
		if s := w.status("acme"); s.Verdict != fleet.VerdictUnobserved || s.Status != fleet.StatusActive {
			t.Errorf("%s and %s meanwhile, want active and unobserved", s.Status, s.Verdict)
		}
		if at, n := k.loop.Memory(key("acme")); n < 59 || time.Since(at) < 9*time.Minute {
			t.Errorf("%d failed reads since %s are remembered", n, at)
		}
		w.engine().with(func() { w.engine().down = false })
		w.until("it is seen again", 11*time.Second, func() bool { return w.converged("acme", "v1") })
		if after := w.one("acme"); after.ID != before.ID || after.starts != 1 {
			t.Errorf("container %+v, want %s started once", after, before.ID)
		}
		if n := len(w.engine().history()); n != 2 {
			t.Errorf("effects %v, want the two of the creation", w.engine().history())
		}
	})
}

func TestG1_aRestartRestartsNoContainer(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		before, revision := w.one("acme"), w.server("acme").StatusRevision
		for _, o := range []options{{}, {deaf: true}, {}} {
			k := w.start(o)
			w.pass(time.Minute)
			k.stop()
		}
		if after := w.one("acme"); after.ID != before.ID || after.starts != 1 || len(w.engine().history()) != 2 {
			t.Errorf("container %+v, effects %v, want %s started once", after, w.engine().history(), before.ID)
		}
		if after := w.server("acme").StatusRevision; after != revision {
			t.Errorf("the restarts wrote the status: revision %d became %d", revision, after)
		}
	})
}

// The store is lost, and the engine is silent when the servers are declared anew: nobody knows
// then that one of them was redeployed.
func TestG7_P12_aRedeployWhoseRecordIsLostRestartsNothing(t *testing.T) {
	virtual(t, func(lost *world) {
		k := lost.start(options{})
		lost.declare("acme", "v1")
		lost.until("v1 runs", time.Minute, func() bool { return lost.converged("acme", "v1") })
		lost.redeploy("acme")
		lost.until("it is redeployed", time.Minute, func() bool { return lost.converged("acme", "v1") && lost.server("acme").Latest.Seq == 2 })
		k.stop()
		was := lost.engine().of("acme")

		w := newWorld(lost.t)
		defer w.close()
		w.engines = lost.engines
		w.engine().with(func() { w.engine().down = true })
		k = w.start(options{})
		defer k.stop()
		w.declare("acme", "v1")
		w.pass(time.Minute)
		w.engine().with(func() { w.engine().down = false })
		w.until("v1 runs as before", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.pass(time.Minute)
		if is := w.engine().of("acme"); !reflect.DeepEqual(is, was) {
			t.Fatalf("it was\n%+v\nand is\n%+v", was, is)
		}
		w.redeploy("acme")
		w.until("it is redeployed", time.Minute, func() bool { return w.converged("acme", "v1") && w.server("acme").Latest.Seq == 2 })
		w.pass(time.Minute)
		if is := w.engine().of("acme"); len(is) != 1 || is[0].created != was[0].created+1 || is[0].starts != 1 {
			t.Errorf("redeployed, it was\n%+v\nand is\n%+v", was, is)
		}
	})
}

func TestP2_aServerOfAnEndpointThatThisDaemonWasNotGivenIsUnobserved(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		local := w.engine()
		delete(w.engines, "local")
		k := w.start(options{})
		w.until("acme is unobserved", time.Minute, func() bool { return w.status("acme").Verdict == fleet.VerdictUnobserved })
		if at, n := k.loop.Memory(key("acme")); !at.IsZero() || n != 0 {
			t.Errorf("%d failed reads since %s are remembered of no endpoint", n, at)
		}
		if err := k.loop.ObserveNow(w.t.Context(), key("acme")); err != nil {
			t.Errorf("observe now: %v", err)
		}
		k.stop()
		w.engines["local"] = local
		k = w.start(options{})
		defer k.stop()
		w.until("acme is converged", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.one("acme")
	})
}

func TestS11_aPausedDaemonStartsNothing(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		k := w.start(options{paused: true})
		w.declare("acme", "v2")
		w.pass(time.Minute)
		if s := w.status("acme"); s.Verdict != fleet.VerdictHeld || s.VerdictReason != fleet.ReasonPaused || s.Runtime.Intended == nil || k.tasks.Load() != 0 {
			t.Errorf("%s/%s, intended %+v, %d tasks", s.Verdict, s.VerdictReason, s.Runtime.Intended, k.tasks.Load())
		}
		k.stop()
		k = w.start(options{})
		defer k.stop()
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestP18_aServerThatIsRemovedAndDeclaredAgainAtOnceIsMadeAnew(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		first := w.one("acme")
		w.destroy("acme")
		for !w.gone("acme") {
			<-time.After(time.Millisecond)
		}
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if again := w.one("acme"); again.ID == first.ID {
			t.Errorf("the container is still %s", again.ID)
		}
	})
}

// The answer to a task of a server that is no more must not be taken for that of the
// task which bears its id now.
func TestS5_anAnswerOfAnotherLifeIsNotRecorded(t *testing.T) {
	virtual(t, func(w *world) {
		var asked []string
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			if task.Kind == fleet.TaskPull {
				return execute()
			}
			asked = append(asked, task.ID)
			if len(asked) > 1 {
				return execute()
			}
			<-time.After(time.Second)
			g := w.server("acme") // :abandon, and a new declaration
			w.must(w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: key("acme"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}))
			w.declare("acme", "v1")
			<-time.After(5 * time.Second)
			return done("an id of another life")
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if w.one("acme"); len(asked) < 3 || asked[0] != asked[1] {
			t.Errorf("tasks %v, want the first id twice", asked)
		}
	})
}

func TestRun_aTaskThatEndsInTimeIsRecordedAtTheEnd(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().took = 3 * time.Second
		k := w.start(options{})
		w.declare("acme", "v1")
		w.until("a task runs", time.Minute, func() bool { return k.tasks.Load() == 1 })
		k.stop()
		if task := w.status("acme").Runtime.Plan.Tasks[1]; task.State != fleet.TaskDone || task.Outcome == nil {
			t.Errorf("task %+v, want it done", task)
		}
	})
}

func TestRun_aTaskThatTakesTooLongIsRunAgainByTheNextStart(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().took = time.Minute
		k := w.start(options{})
		w.declare("acme", "v1")
		w.until("a task runs", time.Minute, func() bool { return k.tasks.Load() == 1 })
		start := time.Now()
		k.stop()
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("the end took %s, want the 5 s of grace", d)
		}
		if task := w.status("acme").Runtime.Plan.Tasks[1]; task.State != fleet.TaskRunning || task.Tries != 1 {
			t.Errorf("task %+v, want its claim to stay", task)
		}
		w.engine().took = time.Second
		k = w.start(options{})
		defer k.stop()
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.one("acme")
	})
}

// Whoever ends kurad in the middle of a roll-out and starts it paused, wants nothing changed.
func TestS11_aTaskThatTheEndCutShortIsNotRunAgainByAPausedDaemon(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		w.engine().took = time.Minute
		k := w.start(options{})
		w.declare("acme", "v2")
		w.until("a task runs", time.Minute, func() bool { return k.tasks.Load() == 1 })
		k.stop()
		w.engine().took = time.Second
		k = w.start(options{paused: true})
		w.pass(15 * time.Minute)
		if s := w.status("acme"); k.tasks.Load() != 0 || s.Verdict != fleet.VerdictHeld || s.Runtime.Plan != nil || s.Runtime.Intended == nil {
			t.Errorf("%d tasks ran; %s, plan %+v, intended %+v", k.tasks.Load(), s.Verdict, s.Runtime.Plan, s.Runtime.Intended)
		}
		k.stop()
		k = w.start(options{})
		defer k.stop()
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestRun_aListingThatTheEndCutsShortIsNoFailure(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		w.engine().lag = time.Minute
		var log lines
		k := w.start(options{log: hclog.New(&hclog.LoggerOptions{Output: &log})})
		w.pass(time.Second)
		k.stop()
		if len(log.text) > 0 {
			t.Errorf("an end in order is logged as %q", log.text)
		}
	})
}

func TestObserveNow_takesATurnWithAFreshReadAndAFreshProbe(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.pass(time.Minute)
		w.engine().with(func() {
			clear(w.engine().hints)
			for _, b := range w.engine().boxes {
				b.Digest = "changed by somebody"
			}
		})
		w.setSick("acme", fleet.ReasonHTTPNotReady)
		start := time.Now()
		w.must(k.loop.ObserveNow(w.t.Context(), key("acme")))
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %s", d)
		}
		if c := w.condition("acme", fleet.ConditionManifestConverged); c.Status != fleet.False {
			t.Errorf("ManifestConverged is %+v, want what is there now", c)
		}
		if c := w.condition("acme", fleet.ConditionEndpointReady); c.Status != fleet.False {
			t.Errorf("EndpointReady is %+v, want what is there now", c)
		}
	})
}

func TestObserveNow_isNotAnsweredByATurnThatFailed(t *testing.T) {
	virtual(t, func(w *world) {
		var observing atomic.Bool
		var failures atomic.Int64
		k := created(w, options{onCommit: func(_ fleet.TurnWrite, commit func() error) error {
			if observing.Load() && failures.Add(1) <= 3 {
				return errors.New("no answer")
			}
			return commit()
		}})
		defer k.stop()
		w.pass(time.Minute)
		observing.Store(true)
		w.setSick("acme", fleet.ReasonHTTPNotReady)
		w.must(k.loop.ObserveNow(w.t.Context(), key("acme")))
		if c := w.condition("acme", fleet.ConditionEndpointReady); c.Status != fleet.False || failures.Load() < 4 {
			t.Errorf("EndpointReady is %+v after %d failed turns", c, failures.Load())
		}
	})
}

func TestObserveNow_endsWithItsContext(t *testing.T) {
	virtual(t, func(w *world) {
		var hang atomic.Bool
		k := created(w, options{onGather: func(fleet.ServerKey) error {
			if hang.Load() {
				return errors.New("no answer")
			}
			return nil
		}})
		defer k.stop()
		within := func() error {
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			defer cancel()
			return k.loop.ObserveNow(ctx, key("acme"))
		}
		w.engine().with(func() { w.engine().lag = time.Hour })
		if err := within(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with an endpoint that hangs: %v", err)
		}
		w.engine().with(func() { w.engine().lag = 0 })
		if err := k.loop.ObserveNow(w.t.Context(), key("nobody")); fleet.CodeOf(err) != fleet.CodeNotFound {
			t.Errorf("of a server that does not exist: %v", err)
		}
		w.pass(time.Minute)
		w.must(within())
		hang.Store(true)
		if err := within(); err == nil {
			t.Error("with a store that does not answer it succeeded")
		}
	})
}

// What is declared by now may not render for a server that is destroyed: it is given no
// ports any more, and its account may be gone from the store.
func TestP18_aContainerServerThatCannotBeRenderedAnyMoreIsDestroyed(t *testing.T) {
	gainsAPort := func(w *world) {
		w.region("eu", func(r *fleet.Region) {
			s := r.Containers.Services["cache"]
			s.GracePeriod, s.Volumes = fleet.Duration(7*time.Second), []fleet.Volume{{Name: "data", Path: "/data", Retain: true}}
			r.Containers.Services["cache"] = s
			r.Containers.Services["metrics"] = fleet.Service{Image: "localhost/metrics:1", Ports: map[string]fleet.Port{"http": {Container: 9090}}}
		})
	}
	for name, change := range map[string]func(*world){
		"its region gained an assigned port": gainsAPort,
		"it has another service instead": func(w *world) {
			gainsAPort(w)
			w.region("eu", func(r *fleet.Region) { delete(r.Containers.Services, "cache") })
		},
		"a host template is gone": func(w *world) {
			w.region("eu", func(r *fleet.Region) { r.Hosts.Public = "gone" })
		},
		"its account is gone": func(w *world) {
			prev, err := w.records.Account(w.t.Context(), "acme")
			w.must(err)
			_, err = w.memory.Txn(w.t.Context(), kv.Txn{Then: []kv.Op{kv.Delete("/kura/v1/staging/accounts/" + prev.Value.ID)}})
			w.must(err)
		},
	} {
		for _, when := range []string{"before", "while its container is stopped"} {
			t.Run(name+" "+when, func(t *testing.T) {
				virtual(t, func(w *world) {
					var tasks []fleet.Task
					var volumes []fleet.VolumeDocument
					k := created(w, options{})
					defer k.stop()
					w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
						tasks = append(tasks, task)
						if task.Kind == fleet.TaskRemoveVolumes && doc != nil {
							volumes = doc.Volumes
						}
						return nil
					}
					if when == "before" {
						change(w)
						w.destroy("acme")
					} else {
						w.engine().with(func() { w.engine().took = time.Second })
						w.destroy("acme")
						w.until("it is being stopped", time.Minute, func() bool { return len(tasks) == 1 })
						change(w)
					}
					w.until("acme is gone", time.Minute, func() bool { return w.gone("acme") })
					if left := w.engine().of("acme"); len(left) > 0 {
						t.Errorf("it left %+v", left)
					}
					if when == "before" && name == "its region gained an assigned port" && tasks[0].Grace != fleet.Duration(7*time.Second) {
						t.Errorf("its container was given %s to end, want the 7 s that are declared now", tasks[0].Grace)
					}
					if name == "its region gained an assigned port" && !slices.ContainsFunc(volumes, func(v fleet.VolumeDocument) bool { return v.Source == "kura-acme-eu-data-staging" && v.Retain }) {
						t.Errorf("volumes %+v, want the one kept that is declared to be", volumes)
					}
				})
			})
		}
	}
}
