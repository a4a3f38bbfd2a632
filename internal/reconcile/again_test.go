package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// down is an answer to every pull from a registry, as long as it is down; or to every start.
type down struct {
	mu       sync.Mutex
	registry string // "": it is up
	starts   bool
	pulls    map[string]int // tries by account
	varies   bool
	late     time.Duration // that an answer takes
}

func (d *down) refuse(k fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
	kind, reason := fleet.TaskPull, fleet.ReasonImagePullFailed
	if d.starts {
		kind, reason = fleet.TaskStart, fleet.ReasonStartFailed
	}
	if task.Kind != kind {
		return nil
	}
	if d.late > 0 {
		<-time.After(d.late)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pulls == nil {
		d.pulls = map[string]int{}
	}
	d.pulls[k.Account]++
	if d.registry == "" || !d.starts && !strings.HasPrefix(task.Image, d.registry+"/") {
		return nil
	}
	message := "503 Service Unavailable"
	if d.varies {
		message += fmt.Sprintf(", request %d", d.pulls[k.Account])
	}
	return &fleet.Outcome{Class: fleet.ClassRefused, Reason: reason, Message: message, Answered: true}
}

func (d *down) set(registry string) { d.mu.Lock(); defer d.mu.Unlock(); d.registry = registry }

func (d *down) all() int { d.mu.Lock(); defer d.mu.Unlock(); return len(d.pulls) }

func (d *down) tries(account string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pulls[account]
}

func (w *world) refuseBy(d *down) { e := w.engine(); e.with(func() { e.refuse = d.refuse }) }

// Of a try that learns nothing new only its claim is written, small, and before the effect; the
// answer is shown with how often it came all the same.
func TestG12_aTryThatLearnsNothingNewWritesItsClaimOnly(t *testing.T) {
	for _, varies := range []bool{false, true} {
		t.Run(fmt.Sprintf("the message varies: %v", varies), func(t *testing.T) {
			virtual(t, func(w *world) {
				d := &down{registry: "localhost", varies: varies}
				w.refuseBy(d)
				k := w.start(options{})
				w.declare("acme", "v1")
				w.pass(3 * time.Minute)
				commits, claims, pulls, events := k.commits.Load(), k.tries.Load(), d.tries("acme"), w.told("acme")
				w.pass(50 * time.Minute)
				n := int64(d.tries("acme") - pulls)
				if n < 45 || n > 65 {
					t.Errorf("%d pulls in 50 minutes", n)
				}
				if c := k.commits.Load() - commits; c > 1 { // that it has stalled
					t.Errorf("%d whole writes for %d pulls", c, n)
				}
				if c := k.tries.Load() - claims; c != n {
					t.Errorf("%d claims for %d pulls", c, n)
				}
				if now := w.told("acme"); now > events+1 {
					t.Errorf("%d events, %d before", now, events)
				}
				g := w.server("acme")
				if g.Try == nil || g.Try.Failed != d.tries("acme")-1 {
					t.Fatalf("after %d pulls the claim is %+v", d.tries("acme"), g.Try)
				}
				if now := k.loop.Beyond(g); now.Runtime.NextAttempt == nil || now.Runtime.Plan != nil || now.Runtime.Failing.Count != d.tries("acme") {
					t.Errorf("what is shown is not the newest: %+v, next %v", now.Runtime.Failing, now.Runtime.NextAttempt)
				}
				status := g.Status.Counting(*g.Try)
				view := fleet.NewServerView(g.Intent, fleet.Desired{}, &status, g.Latest)
				if !strings.Contains(view.Message, fmt.Sprintf("(%d times since ", g.Try.Failed)) || varies && !strings.Contains(view.Message, fmt.Sprintf("request %d", g.Try.Failed)) {
					t.Errorf("it says: %s", view.Message)
				}
				d.set("")
				w.until("it heals", 2*time.Minute, func() bool { return w.converged("acme", "v1") })
				k.stop()
			})
		})
	}
}

// The same holds for starting what served last (C14), whether or not its successor fails as well:
// each of the two goes its own way, and a restart knows of both.
func TestG12_C14_ofAStartOfWhatServedThatIsRefusedTheClaimIsWrittenOnly(t *testing.T) {
	for _, successor := range []bool{false, true} {
		t.Run(fmt.Sprintf("its successor cannot be had: %v", successor), func(t *testing.T) {
			virtual(t, func(w *world) {
				starts, pulls := &down{registry: "localhost", starts: true, varies: true}, &down{registry: "localhost", varies: true}
				k := w.start(options{})
				w.declare("acme", "v1")
				w.until("it runs", time.Minute, func() bool { return w.converged("acme", "v1") })
				w.engine().with(func() {
					w.engine().refuse = func(k fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
						if o := starts.refuse(k, task, doc); o != nil || !successor {
							return o
						}
						return pulls.refuse(k, task, doc)
					}
				})
				if successor {
					w.declare("acme", "v2")
					w.pass(time.Minute)
				}
				w.engine().reboot()
				w.pass(20 * time.Minute)
				before, commits, claims, events := starts.tries("acme")+pulls.tries("acme"), k.commits.Load(), k.tries.Load(), w.told("acme")
				w.pass(30 * time.Minute)
				n := int64(starts.tries("acme") + pulls.tries("acme") - before)
				if most := int64(38); n < 30 || n > most && !successor || n > 2*most {
					t.Errorf("%d tries in 30 minutes", n)
				}
				if c := k.commits.Load() - commits; c != 0 {
					t.Errorf("%d whole writes for %d tries", c, n)
				}
				if c := k.tries.Load() - claims; c != n {
					t.Errorf("%d claims for %d tries", c, n)
				}
				if now := w.told("acme"); now != events {
					t.Errorf("%d events, %d before", now, events)
				}
				counted := func() {
					t.Helper()
					s := k.loop.Beyond(w.server("acme"))
					if f := s.Outage.Failing; f == nil || f.Count < starts.tries("acme")-1 || !strings.Contains(w.shown(k, "acme"), fmt.Sprintf("start cache container id1: 503 Service Unavailable, request %d", starts.tries("acme"))) {
						t.Errorf("%d starts, and it says %+v: %s", starts.tries("acme"), f, w.shown(k, "acme"))
					}
					if f := s.Runtime.Failing; successor && (f == nil || f.Count < pulls.tries("acme")-1 || !strings.Contains(w.shown(k, "acme"), fmt.Sprintf("pull image localhost/kura:v2: 503 Service Unavailable, request %d", pulls.tries("acme")))) {
						t.Errorf("%d pulls, and it says %+v: %s", pulls.tries("acme"), f, w.shown(k, "acme"))
					}
				}
				counted()
				k.kill()
				k = w.start(options{})
				w.pass(5 * time.Second)
				if c := k.commits.Load(); c != 0 {
					t.Errorf("%d whole writes after a restart", c)
				}
				counted()
				starts.set("")
				pulls.set("")
				image := "v1"
				if successor {
					image = "v2"
				}
				w.until("it heals", 2*time.Minute, func() bool { return w.converged("acme", image) })
				k.stop()
			})
		})
	}
}

// shown is what Progressing says of a server.
func (w *world) shown(k *kurad, account string) string {
	w.t.Helper()
	g := w.server(account)
	for _, c := range fleet.NewServerView(g.Intent, fleet.Desired{}, k.loop.Beyond(g), g.Latest).Conditions {
		if c.Type == fleet.ConditionProgressing {
			return c.Message
		}
	}
	return ""
}

// What an answer says and the claim of the next step are one write. (What is seen meanwhile is
// another.)
func TestG12_S4_anAnswerAndTheNextClaimAreOneWrite(t *testing.T) {
	virtual(t, func(w *world) {
		var claimed []string
		k := w.start(options{onCommit: func(write fleet.TurnWrite, commit func() error) error {
			is := "-"
			if i := write.Status.Runtime.Plan.Current(); i >= 0 {
				is = fmt.Sprintf("%s %s", write.Status.Runtime.Plan.Tasks[i].Kind, write.Status.Runtime.Plan.Tasks[i].State)
			}
			claimed = append(claimed, is)
			return commit()
		}})
		w.declare("acme", "v1")
		w.until("it runs", time.Minute, func() bool { return w.converged("acme", "v1") })
		k.stop()
		want := []string{"pull pending", "pull running", "create running", "start running", "-"}
		if diff := cmp.Diff(want, slices.Compact(claimed)); diff != "" {
			t.Errorf("the writes of a roll-out (-want +got):\n%s", diff)
		}
	})
}

// First tries of what fails for others follow each other, so that their failures are not
// written all at once; one success, and nobody waits. A site on which some fail is not slower
// for the others.
func TestG12_firstTriesArePacedWhereAllFailAndNowhereElse(t *testing.T) {
	const n, bad = 100, 10
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 2 * n })
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		k := w.start(options{})
		for i := range bad {
			w.declare(fmt.Sprintf("bad%d", i), "v1")
		}
		w.pass(10 * time.Second)
		began := time.Now()
		for i := range n {
			w.declare(fmt.Sprintf("s%02d", i), "v1")
		}
		w.until("half of them were tried", 10*time.Second, func() bool { return d.all() >= n/2 })
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("%d first tries in %s", d.all()-bad, took)
		}
		waits := false
		for i := range n {
			waits = waits || strings.Contains(k.loop.Waits(key(fmt.Sprintf("s%02d", i))), "servers get the same answer from endpoint local")
		}
		if !waits {
			t.Error("nobody says what it waits for")
		}
		d.set("")
		w.until("all run", 2*time.Minute, func() bool { return w.count("v1") == n+bad })
		d.set("localhost")
		for i := range bad {
			w.declare(fmt.Sprintf("bad%d", i), "v2")
		}
		w.pass(10 * time.Second)
		w.engine().with(func() {
			w.engine().refuse = func(k fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) *fleet.Outcome {
				if strings.HasPrefix(k.Account, "bad") {
					return d.refuse(k, task, doc)
				}
				return nil
			}
		})
		began = time.Now()
		for i := range n {
			w.declare(fmt.Sprintf("s%02d", i), "v3")
		}
		w.until("all others run", time.Minute, func() bool { return w.count("v3") == n })
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s", took)
		}
		k.stop()
	})
}

func (w *world) told(account string) int {
	w.t.Helper()
	l, err := w.records.Events(context.Background(), key(account))
	w.must(err)
	return len(l.Items)
}

// The claim of a repeated try is in the store before the effect, and one that was not answered
// is run again (S4, S5).
func TestG12_S4_S5_aRepeatedTryIsClaimedBeforeItsEffectAndRunsAtLeastOnce(t *testing.T) {
	virtual(t, func(w *world) {
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		var k *kurad
		var armed, killed atomic.Bool
		claimed := func(key fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			g, err := w.records.Gather(t.Context(), key)
			if err != nil || g.Status == nil {
				t.Fatalf("%v", err)
			}
			s := *g.Status
			if g.Try != nil {
				s = s.Tried(*g.Try)
			}
			if i := s.Runtime.Plan.Current(); i < 0 || s.Runtime.Plan.Tasks[i].ID != task.ID || s.Runtime.Plan.Tasks[i].State != fleet.TaskRunning || !s.Runtime.Plan.Tasks[i].Deadline.Equal(*task.Deadline) {
				t.Errorf("%s runs, and the store claims %+v", task.ID, s.Runtime.Plan)
			}
			return execute()
		}
		k = w.start(options{onTask: claimed, onTry: func(_ fleet.TryWrite, commit func() error) error {
			if !armed.Load() {
				return commit()
			}
			if killed.Load() {
				return errDead
			}
			err := commit()
			killed.Store(true)
			k.dead.Store(true) // the claim is stored, and its effect never begins
			return err
		}})
		w.declare("acme", "v1")
		w.pass(10 * time.Minute)
		armed.Store(true)
		w.until("it is killed in the middle of a try", 2*time.Minute, killed.Load)
		k.kill()
		before := w.server("acme").Try
		pulls := d.tries("acme")
		k = w.start(options{onTask: claimed})
		w.until("the task is run again", time.Minute, func() bool { return d.tries("acme") > pulls })
		w.pass(time.Second)
		after := w.server("acme").Try
		if before == nil || after == nil || after.Plan != before.Plan || after.Tries != before.Tries+1 {
			t.Errorf("the claim was %+v, and is %+v", before, after)
		}
		d.set("")
		w.until("it heals", 2*time.Minute, func() bool { return w.converged("acme", "v1") })
		k.stop()
	})
}

func TestG12_aClaimThatIsRefusedByTheStoreHasNoEffect(t *testing.T) {
	virtual(t, func(w *world) {
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		var full atomic.Bool
		k := w.start(options{onTry: func(_ fleet.TryWrite, commit func() error) error {
			if full.Load() {
				return errors.New("no")
			}
			return commit()
		}})
		w.declare("acme", "v1")
		w.pass(10 * time.Minute)
		full.Store(true)
		pulls := d.tries("acme")
		w.pass(10 * time.Minute)
		if n := d.tries("acme"); n != pulls {
			t.Errorf("%d effects without a claim", n-pulls)
		}
		k.stop()
	})
}

// Backing off holds over the whole site, never for another step or another registry, and for a
// first try by seconds at most; the first success makes all due.
func TestG12_triesOverASiteWhoseAnswersAreTheSameArePacedTogether(t *testing.T) {
	const n = 200
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = n })
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		k := w.start(options{})
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("s%04d", i))
			w.declare(all[i], "v1")
		}
		w.until("all were tried", 10*time.Minute, func() bool {
			return !slices.ContainsFunc(all, func(a string) bool { return d.tries(a) == 0 })
		})
		w.pass(5 * time.Minute)
		claims := k.tries.Load()
		w.pass(30 * time.Minute)
		if c := k.tries.Load() - claims; c < 30*12 || c > 30*20 {
			t.Errorf("%d tries in 30 minutes, want some 16 a minute", c)
		}
		for _, a := range all {
			if d.tries(a) < 2 { // those who waited longest come first
				t.Errorf("%s was tried %d times", a, d.tries(a))
			}
		}

		waits := slices.IndexFunc(all, func(a string) bool {
			return strings.Contains(k.loop.Waits(key(a)), "servers get the same answer from endpoint local")
		})
		if waits < 0 {
			t.Error("nobody says what it waits for")
		}
		was := d.tries(all[7])
		w.declare(all[7], "v2") // somebody mends it
		w.until("what is declared now is tried at once", 2*time.Second, func() bool { return d.tries(all[7]) > was })

		d.set("")
		w.until("one succeeds, and all are tried", 3*time.Minute, func() bool { return w.count("v1") == n-1 && w.count("v2") == 1 })
		k.stop()
	})
}

// Some images of a registry are missing, and others come: each success makes what failed due,
// but no sooner than it would be alone (a minute, and what that varies by).
func TestG12_successesOfOthersDoNotMakeWhatFailsBeTriedAllTheTime(t *testing.T) {
	const n = 20
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = n + 1 })
		var pulls atomic.Int32 // of s07
		e := w.engine()
		e.with(func() {
			e.refuse = func(k fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
				if task.Kind != fleet.TaskPull || k.Account == "busy" {
					return nil
				}
				if k.Account == "s07" {
					pulls.Add(1)
				}
				return &fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed, Message: "manifest unknown", Answered: true}
			}
		})
		k := w.start(options{})
		for i := range n {
			w.declare(fmt.Sprintf("s%02d", i), "v1")
		}
		w.pass(10 * time.Minute)
		was := pulls.Load()
		for i := range 120 {
			w.declare("busy", fmt.Sprintf("v%d", 2+i))
			w.pass(5 * time.Second)
		}
		if got := pulls.Load() - was; got < 5 || got > 14 {
			t.Errorf("%d tries in ten minutes", got)
		}
		k.stop()
	})
}

// After a restart most of those who wait have not failed in this kurad's life: the first
// success makes them due all the same (G12).
func TestG12_theFirstSuccessMakesAllDueAfterARestart(t *testing.T) {
	const n = 500
	virtual(t, func(w *world) {
		w.engine() // local
		w.regionMost(n)
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		k := w.start(options{})
		for i := range n {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		w.until("all were tried", 60*time.Minute, func() bool { return d.all() == n })
		w.pass(5 * time.Minute)
		k.stop()
		k = w.start(options{})
		w.pass(2 * time.Minute)
		d.set("")
		w.until("one succeeds, and all are tried", 3*time.Minute, func() bool { return w.count("v1") == n })
		k.stop()
	})
}

func (w *world) regionMost(n int) {
	r, err := w.records.Region(w.t.Context(), "eu")
	w.must(err)
	next := r.Value
	next.MaxUnsettled = n
	tx := w.records.Begin()
	tx.PutRegion(r, next)
	w.commit(tx)
}

// A registry that answers now so and now otherwise has failed for as long: it is asked ever less
// often all the same, and each answer is told once, not each time.
func TestP9_G12_whatFailsInTurnsIsTriedNoMoreOftenThanWhatFailsAlike(t *testing.T) {
	virtual(t, func(w *world) {
		var pulls atomic.Int64
		w.engine().with(func() {
			w.engine().refuse = func(_ fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
				if task.Kind != fleet.TaskPull {
					return nil
				}
				if pulls.Add(1)%2 == 0 {
					return &fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonCreateFailed, Message: "manifest unknown", Answered: true}
				}
				return &fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed, Message: "503", Answered: true}
			}
		})
		k := w.start(options{})
		defer k.stop()
		w.declare("acme", "v1")
		w.pass(2 * time.Hour)
		p, e, c := pulls.Load(), w.told("acme"), k.commits.Load()
		w.pass(time.Hour)
		t.Logf("in the third hour %d pulls, %d events more, %d whole writes", pulls.Load()-p, w.told("acme")-e, k.commits.Load()-c)
		if n := pulls.Load() - p; n > 12 {
			t.Errorf("%d pulls in the third hour, want some 6 to 10", n)
		}
	})
}
