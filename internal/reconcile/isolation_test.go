package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(b))
	return len(b), nil
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

func (w *world) erase(path string) {
	w.t.Helper()
	_, err := w.memory.Txn(w.t.Context(), kv.Txn{Then: []kv.Op{kv.Delete("/kura/v1/staging/" + path)}})
	w.must(err)
	synctest.Wait()
}

func TestP19_aPanickingServerStopsNobody(t *testing.T) {
	virtual(t, func(w *world) {
		w.engines["other"] = newEngine()
		w.region("us", func(r *fleet.Region) { r.Name, r.Containers.Endpoint = "us", "other" })
		w.engines["other"].listing = func() { panic("a listing that cannot be understood") }
		var log lines
		k := w.start(options{
			log: hclog.New(&hclog.LoggerOptions{Output: &log}),
			onGather: func(k fleet.ServerKey) error {
				if k.Account == "turn" {
					panic("a turn that cannot be taken")
				}
				return nil
			},
			onTask: func(k fleet.ServerKey, _ fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
				if k.Account == "task" {
					panic("a task that cannot be run")
				}
				return execute()
			},
		})
		defer k.stop()
		for _, account := range []string{"turn", "task", "acme", "beta"} {
			w.declare(account, "v1")
		}
		w.declareIn(fleet.ServerKey{Account: "acme", Region: "us"}, "v1", false)
		w.until("the others run", time.Minute, func() bool { return w.converged("acme", "v1") && w.converged("beta", "v1") })
		for _, part := range []string{"a turn that cannot be taken", "a task that cannot be run"} {
			if log.count(part) == 0 {
				t.Errorf("%q is not in the log", part)
			}
		}
		if s := w.status("task"); s.Runtime.Plan == nil || s.Runtime.Plan.Tasks[0].Outcome == nil || s.Runtime.Plan.Tasks[0].Outcome.Class != fleet.ClassTransient {
			t.Errorf("the task that panicked: plan %+v, want it tried again", s.Runtime.Plan)
		}
		us, err := w.records.Gather(w.t.Context(), fleet.ServerKey{Account: "acme", Region: "us"})
		w.must(err)
		if us.Status.Verdict != fleet.VerdictUnobserved {
			t.Errorf("the server whose endpoint cannot be listed is %s, want unobserved", us.Status.Verdict)
		}
	})
}

func TestL11_aServerOfAnUnknownRegionStopsNobody(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.region("us", func(r *fleet.Region) { r.Name = "us" })
		us := fleet.ServerKey{Account: "acme", Region: "us"}
		w.declareIn(us, "v1", false)
		w.pass(time.Minute)
		w.erase("regions/us")
		w.engine().removeAll("acme")
		w.destroy("acme")
		w.until("the other is destroyed", time.Minute, func() bool { return w.gone("acme") })
		g, err := w.records.Gather(w.t.Context(), us)
		w.must(err)
		if g.Status.Verdict != fleet.VerdictUnobserved || g.Status.VerdictReason != fleet.ReasonUnknownRegion {
			t.Errorf("the stranded server is %s/%s, want unobserved/UnknownRegion", g.Status.Verdict, g.Status.VerdictReason)
		}
		commits := k.commits.Load()
		w.pass(time.Hour)
		if n := k.commits.Load() - commits; n != 0 {
			t.Errorf("it was written %d times in an hour, want once and for all", n)
		}
	})
}

// L20: who never changes does not keep a newcomer waiting.
func TestP19_everyServerGetsItsTurn(t *testing.T) {
	virtual(t, func(w *world) {
		const n = 450
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 100 })
		k := w.start(options{})
		defer k.stop()
		for i := range n {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		w.until("all run", 10*time.Minute, func() bool { return w.count("v1") == n })
		w.engine().with(func() { w.engine().refuse = failsToCreate("newest", "v1") })
		w.declare("newest", "v1")
		w.until("the newest failed", time.Minute, func() bool { return w.status("newest").Status == fleet.StatusFailed })
		w.engine().with(func() { w.engine().refuse = nil })
		w.until("the newest runs", 11*time.Minute, func() bool {
			k.loop.KickAll() // and the others are looked at all the time
			return w.converged("newest", "v1")
		})
	})
}

func TestP19_anEndpointThatHangsHoldsUpNobodyElse(t *testing.T) {
	for _, what := range []string{"listings", "tasks"} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(w *world) {
				stuck := newEngine()
				w.engines["stuck"] = stuck
				if what == "listings" {
					stuck.lag = time.Hour
				} else {
					stuck.took = time.Hour
				}
				w.region("us", func(r *fleet.Region) {
					r.Name, r.Containers.Endpoint, r.MaxUnsettled = "us", "stuck", 100
				})
				k := w.start(options{})
				defer k.kill()
				for i := range 60 {
					w.declareIn(fleet.ServerKey{Account: fmt.Sprintf("u%04d", i), Region: "us"}, "v1", false)
				}
				w.pass(30 * time.Second)
				w.declare("acme", "v1")
				w.until("the other endpoint's server runs", 5*time.Second, func() bool { return w.converged("acme", "v1") })
				tasks, turns := k.tasks.Load(), k.gathers.Load()
				w.pass(time.Minute)
				if n := k.tasks.Load(); what == "tasks" && n != 16+2 || n != tasks {
					t.Errorf("%d tasks were begun, want the 16 that may run at once and acme's 2", n)
				}
				if n := k.gathers.Load() - turns; n > 60*7 {
					t.Errorf("%d turns in a minute of servers that wait", n)
				}
			})
		})
	}
}

func TestP19_whoWaitsForASlotGetsIt(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().took = 5 * time.Second
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1000 })
		k := w.start(options{})
		defer k.stop()
		for i := range 256 {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		// Two tasks each of 5 s, 16 at a time, take 160 s; the last one may begin with the
		// other's end.
		w.until("all were started", 166*time.Second, func() bool { return w.engine().count("start") == 256 })
		w.until("all run", time.Minute, func() bool { return w.count("v1") == 256 })
	})
}

func TestP19_aStoreThatDoesNotAnswerDelaysTheStart(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		w.declare("acme", "v2")
		start := time.Now()
		k := w.start(options{onGather: func(fleet.ServerKey) error {
			if time.Since(start) < time.Minute {
				return errDead
			}
			return nil
		}})
		defer k.stop()
		w.until("acme runs v2", 2*time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestP19_aRecordThatCannotBeReadDoesNotStopTheStart(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		w.declare("broken", "v1")
		w.pass(time.Minute)
		k.stop()
		k = w.start(options{onGather: func(k fleet.ServerKey) error {
			if k.Account == "broken" {
				return errors.New("malformed")
			}
			return nil
		}})
		defer k.stop()
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestC1_aStreamOfEventsThatEndsCostsLatencyOnly(t *testing.T) {
	virtual(t, func(w *world) {
		w.engine().deaf = true
		k := created(w, options{})
		defer k.stop()
		w.pass(time.Minute)
		w.engine().removeAll("acme")
		w.until("it is seen at the tick", 11*time.Second, func() bool { return w.engine().count("create") == 2 })
		w.engine().with(func() { w.engine().deaf = false })
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.pass(time.Minute)
		w.engine().removeAll("acme")
		w.until("the stream is back", time.Second, func() bool { return w.engine().count("create") == 3 })
	})
}
