package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
)

// executor is one of a test's, with a room for each region.
type executor func(context.Context, reconcile.Call) fleet.Outcome

func (executor) Room(region fleet.Region, _ fleet.Task) reconcile.Room {
	return reconcile.Room{Name: region.Name}
}

func (e executor) Execute(ctx context.Context, c reconcile.Call) fleet.Outcome { return e(ctx, c) }

// inUS makes a region of the cluster beside eu.
func (w *world) inUS() {
	w.region("us", func(r *fleet.Region) {
		r.Name, r.Containers, r.Readiness, r.MaxUnsettled = "us", nil, fleet.Readiness{}, 1000
		r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Namespace: "kura", Image: "localhost/kura:{image_tag}"}
	})
}

func us(account string) fleet.ServerKey { return fleet.ServerKey{Account: account, Region: "us"} }

func TestP19_anExecutorThatHangsDelaysNoOther(t *testing.T) {
	virtual(t, func(w *world) {
		w.inUS()
		w.region("ap", func(r *fleet.Region) {
			r.Name, r.Containers, r.Readiness = "ap", nil, fleet.Readiness{}
			r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Namespace: "kura", Image: "localhost/kura:{image_tag}"}
		})
		release := make(chan struct{})
		var hang atomic.Int64
		k := w.start(options{executors: func(k *kurad) map[fleet.Executor]reconcile.Executor {
			return map[fleet.Executor]reconcile.Executor{fleet.ExecutorCluster: executor(func(ctx context.Context, c reconcile.Call) fleet.Outcome {
				if c.Key.Region == "us" {
					hang.Add(1)
					<-release // deaf to ctx
				}
				return k.clients["prod"].Execute(ctx, c.Key, c.Task, *c.Desired.Kubernetes)
			})}
		}})
		defer k.stop()
		defer close(release)
		for i := range 30 {
			w.declareIn(us(fmt.Sprintf("s%02d", i)), "v1", false)
		}
		w.until("all slots of its room hang", time.Minute, func() bool { return hang.Load() == 16 })
		w.declare("acme", "v1") // on the engine
		far := fleet.ServerKey{Account: "acme", Region: "ap"}
		w.declareIn(far, "v1", false) // of the same executor, in another room
		w.until("both others run", time.Minute, func() bool {
			g, err := w.records.Gather(w.t.Context(), far)
			return w.converged("acme", "v1") && err == nil && g.Status != nil && g.Status.Status == fleet.StatusActive
		})
		w.pass(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskApply}}.Timeout() / 2)
		if n := hang.Load(); n != 16 {
			t.Errorf("%d tasks hang before a deadline, want no more than have slots", n)
		}
	})
}

// A call that hears of no deadline has its slot until a moment after that, and its server waits
// for it alone.
func TestG9_aDeafCallGivesItsSlotBack(t *testing.T) {
	virtual(t, func(w *world) {
		w.inUS()
		release := make(chan struct{})
		deaf := map[string]int{}
		var mu sync.Mutex
		var log strings.Builder
		k := w.start(options{log: hclog.New(&hclog.LoggerOptions{Output: &log}), executors: func(k *kurad) map[fleet.Executor]reconcile.Executor {
			return map[fleet.Executor]reconcile.Executor{fleet.ExecutorCluster: executor(func(ctx context.Context, c reconcile.Call) fleet.Outcome {
				if c.Key.Account[0] == 's' {
					mu.Lock()
					deaf[c.Key.Account]++
					mu.Unlock()
					<-release
				}
				return k.clients["prod"].Execute(ctx, c.Key, c.Task, *c.Desired.Kubernetes)
			})}
		}})
		defer k.stop()
		end := sync.OnceFunc(func() { close(release) })
		defer end()
		for i := range 16 {
			w.declareIn(us(fmt.Sprintf("s%02d", i)), "v1", false)
		}
		hang := func() int { mu.Lock(); defer mu.Unlock(); return len(deaf) }
		w.until("all slots are taken", time.Minute, func() bool { return hang() == 16 })
		w.declareIn(us("acme"), "v1", false)
		w.until("another server runs", 3*time.Minute, func() bool { return w.count("v1") == 1 })
		if said := log.String(); strings.Count(said, "hears of no deadline") != 16 || !strings.Contains(said, "deaf=16") {
			t.Errorf("the log says\n%s", said)
		}
		w.pass(10 * time.Minute)
		for account, n := range deaf {
			if n != 1 {
				t.Errorf("the task of %s runs %d times at once", account, n)
			}
		}
		end()
		w.until("all run", time.Minute, func() bool { return w.count("v1") == 17 })
	})
}

// Toward D7: a provider that is asked for many servers is asked once for all that came while
// it answered.
func TestP19_tasksOfManyServersAreOneCall(t *testing.T) {
	virtual(t, func(w *world) {
		w.inUS()
		var calls, under, most atomic.Int64
		k := w.start(options{executors: func(k *kurad) map[fleet.Executor]reconcile.Executor {
			return map[fleet.Executor]reconcile.Executor{fleet.ExecutorCluster: executor(reconcile.Coalesce(100, func(ctx context.Context, batch []reconcile.Call) []fleet.Outcome {
				calls.Add(1)
				if under.Add(1) != 1 {
					t.Error("a call began before the one before it had ended")
				}
				defer under.Add(-1)
				most.Store(max(most.Load(), int64(len(batch))))
				<-time.After(time.Second) // the bubble's
				var answers []fleet.Outcome
				for _, c := range batch {
					answers = append(answers, k.clients["prod"].Execute(ctx, c.Key, c.Task, *c.Desired.Kubernetes))
				}
				return answers
			}))}
		}})
		defer k.stop()
		const servers = 40
		for i := range servers {
			w.declareIn(us(fmt.Sprintf("s%02d", i)), "v1", false)
		}
		w.until("all run", 2*time.Minute, func() bool { return w.count("v1") == servers })
		if n := calls.Load(); n > 8 || most.Load() < 10 {
			t.Errorf("%d calls, of %d tasks at most; want few, of about as many as a room has slots", n, most.Load())
		}
	})
}

func TestP19_aCallThatHangsIsEndedAndWhatWasNotSentWasNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nth atomic.Int64
		release := make(chan struct{})
		execute := reconcile.Coalesce(2, func(_ context.Context, batch []reconcile.Call) []fleet.Outcome {
			switch nth.Add(1) {
			case 1:
				<-release
			case 2:
				panic("broken")
			}
			return make([]fleet.Outcome, len(batch))
		})
		answers := make([]fleet.Outcome, 4)
		begin := func(i int) {
			go func() {
				within, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				answers[i] = execute(within, reconcile.Call{})
			}()
			<-time.After(time.Second) // the bubble's: it is sent, or queued
			synctest.Wait()
		}
		begin(0)
		begin(1)
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if answers[0].Answered || !answers[1].Answered || answers[0].Class != fleet.ClassTransient || answers[1].Class != fleet.ClassTransient {
			t.Errorf("answers %+v, want both transient, and only the one that was sent possibly on its way", answers[:2])
		}
		close(release)
		synctest.Wait()
		begin(2)
		if answers[2].Reason != fleet.ReasonRuntimeError {
			t.Errorf("a call that broke answers %+v", answers[2])
		}
		answers[3].Class = "none yet"
		begin(3)
		if answers[3].Class != "" || nth.Load() != 3 {
			t.Errorf("the next call answers %+v", answers[3])
		}
	})
}

// Toward D7: of 500 changes that come within a moment the first call carries none alone.
func TestP19_tasksThatComeTogetherAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		execute := reconcile.Coalesce(1000, func(_ context.Context, batch []reconcile.Call) []fleet.Outcome {
			calls = append(calls, len(batch))
			return make([]fleet.Outcome, len(batch))
		})
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var tasks sync.WaitGroup
		for range 500 {
			tasks.Go(func() { execute(within, reconcile.Call{}) })
			<-time.After(time.Millisecond) // the bubble's
		}
		tasks.Wait()
		if len(calls) != 1 {
			t.Errorf("calls of %v tasks, want one of all", calls)
		}
		for range 50 { // and where they never cease to come nobody waits for the last
			tasks.Go(func() { execute(within, reconcile.Call{}) })
			<-time.After(90 * time.Millisecond) // the bubble's
		}
		tasks.Wait()
		if n := len(calls); n < 3 || n > 5 {
			t.Errorf("calls of %v tasks, want one every two seconds", calls)
		}
	})
}

// wide is an executor with a room for each kind of a region's tasks, of 40 slots.
type wide struct{ executor }

func (wide) Room(region fleet.Region, task fleet.Task) reconcile.Room {
	return reconcile.Room{Name: region.Name + string(task.Kind), Slots: 40}
}

func TestP19_aRoomHasAsManySlotsAsItsExecutorSays(t *testing.T) {
	virtual(t, func(w *world) {
		w.inUS()
		release := make(chan struct{})
		var hang atomic.Int64
		k := w.start(options{executors: func(k *kurad) map[fleet.Executor]reconcile.Executor {
			return map[fleet.Executor]reconcile.Executor{fleet.ExecutorCluster: wide{func(ctx context.Context, c reconcile.Call) fleet.Outcome {
				if c.Task.Kind == fleet.TaskApply && hang.Add(1) <= 40 {
					<-release
				}
				return k.clients["prod"].Execute(ctx, c.Key, c.Task, *c.Desired.Kubernetes)
			}}}
		}})
		defer k.stop()
		for i := range 50 {
			w.declareIn(us(fmt.Sprintf("s%02d", i)), "v1", false)
		}
		w.until("all slots of its room hang", time.Minute, func() bool { return hang.Load() == 40 })
		w.pass(20 * time.Second)
		if n := hang.Load(); n != 40 {
			t.Errorf("%d tasks hang, want as many as have slots", n)
		}
		close(release)
		w.until("all run", time.Minute, func() bool { return w.count("v1") == 50 })
	})
}
