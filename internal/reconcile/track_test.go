package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
)

// marks are a track, all of it: a mark for each server in a map, which is to be the version
// declared. It is what looks at them, and what sets them.
type marks struct {
	now  func() time.Time
	kick func(fleet.ServerKey)

	mu      sync.Mutex
	is      map[fleet.ServerKey]string
	seen    map[fleet.ServerKey]seenMark
	blind   bool
	refuses string        // with which message
	hangs   chan struct{} // what sets marks waits for it
	broken  bool          // whoever asks where marks are set hears a panic
	tries   int
	looks   sync.WaitGroup
}

type seenMark struct {
	begun  time.Time
	failed bool
	mark   string
}

var (
	_ projection.Track   = (*marks)(nil)
	_ reconcile.Observer = (*marks)(nil)
	_ reconcile.Executor = (*marks)(nil)
)

func (*marks) Name() fleet.Track { return "mark" }

func (*marks) Look(in projection.Input) projection.View {
	seen, _ := in.Seen.Tracks["mark"].(seenMark)
	want := in.Intent.ImageTag
	if in.Intent.Deleting != nil {
		want = ""
	}
	v := projection.View{Revision: want, Begun: seen.begun, Gone: seen.mark == "", Cause: fleet.CauseManifest}
	v.Condition = fleet.Condition{Type: fleet.ConditionSidecarReady, Status: fleet.True, Reason: fleet.ReasonReady}
	if seen.failed {
		v.Failure = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "no mark can be read"}
	}
	if seen.mark != want {
		v.Steps = []fleet.Effect{{Kind: "mark", Name: want}}
		v.Condition.Status, v.Condition.Reason, v.Condition.Message = fleet.False, fleet.ReasonDrifted, "the mark is "+seen.mark
	}
	return v
}

func (m *marks) Observe(in *projection.Input) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.seen[in.Intent.Key()]
	seen.failed = m.blind
	in.Seen.Tracks = map[fleet.Track]any{"mark": seen}
}

func (m *marks) Follow(in projection.Input, out projection.Output) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := in.Intent.Key()
	if _, ok := m.seen[key]; !ok || out.NeedFreshRead.Has("mark") {
		m.looks.Add(1)
		go m.look(key)
	}
}

// look takes a moment, and says something only of what was there when it began.
func (m *marks) look(key fleet.ServerKey) {
	defer m.looks.Done()
	m.mu.Lock()
	seen := seenMark{begun: m.now(), mark: m.is[key]}
	m.mu.Unlock()
	<-time.After(300 * time.Millisecond) // the bubble's
	m.mu.Lock()
	if !m.blind {
		m.seen[key] = seen
	}
	m.mu.Unlock()
	m.kick(key)
}

func (m *marks) Fresh(context.Context, fleet.Gathered) error { return nil }

func (m *marks) Memory(fleet.ServerKey) (time.Time, int) { return time.Time{}, 0 }

func (m *marks) Room(fleet.Region, fleet.Task) reconcile.Room {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		panic("no room")
	}
	return reconcile.Room{Name: "marks"}
}

func (m *marks) Execute(ctx context.Context, c reconcile.Call) fleet.Outcome {
	m.mu.Lock()
	m.tries++
	refuses, hangs := m.refuses, m.hangs
	m.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonTimeout}
		}
	}
	if refuses != "" {
		return fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonCreateFailed, Message: refuses, Answered: true}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.is[c.Key] = c.Task.Name
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true}
}

func (m *marks) with(change func()) { m.mu.Lock(); defer m.mu.Unlock(); change() }

func (m *marks) of(account string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.is[key(account)]
}

func (m *marks) tried() int { m.mu.Lock(); defer m.mu.Unlock(); return m.tries }

func (w *world) marks() (*marks, options) {
	m := &marks{now: time.Now, is: map[fleet.ServerKey]string{}, seen: map[fleet.ServerKey]seenMark{}}
	return m, options{
		tracks: []projection.Track{m}, observers: []reconcile.Observer{m},
		executors: func(*kurad) map[fleet.Executor]reconcile.Executor {
			return map[fleet.Executor]reconcile.Executor{"mark": m}
		},
	}
}

// run starts a kurad that pursues marks, too.
func (m *marks) run(w *world, o options) *kurad {
	k := w.start(o)
	m.with(func() { m.kick, m.seen = k.loop.Kick, map[fleet.ServerKey]seenMark{} })
	return k
}

// Toward S1: a mark that hangs, is refused or cannot be read holds up no image, fails no
// deployment, and makes no read of the runtime stale; and the other way round.
func TestP19_aTrackMakesNoDifferenceToTheRuntimeNorTheRuntimeToIt(t *testing.T) {
	virtual(t, func(w *world) {
		m, o := w.marks()
		k := m.run(w, o)
		defer m.looks.Wait()
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme is as declared", time.Minute, func() bool { return w.converged("acme", "v1") })
		if m.of("acme") != "v1" {
			t.Fatal("it is said to be, and bears no mark")
		}
		release := make(chan struct{})
		m.with(func() { m.hangs = release })
		w.declare("acme", "v2")
		runs := func(tag string) bool {
			s := w.status("acme")
			return s.Status == fleet.StatusActive && s.ServingImageTag == tag && s.Settled.Generation == w.server("acme").Intent.Generation
		}
		w.until("v2 runs while its mark hangs", time.Minute, func() bool { return runs("v2") })
		if s := w.status("acme"); s.Verdict != fleet.VerdictProgressing || s.VerdictReason != fleet.ReasonDrifted || w.server("acme").Latest.Status != fleet.DeploymentSucceeded {
			t.Errorf("verdict %s/%s, deployment %s", s.Verdict, s.VerdictReason, w.server("acme").Latest.Status)
		}
		close(release)
		m.with(func() { m.hangs, m.refuses = nil, "no" })
		w.declare("acme", "v3")
		w.until("v3 runs though its mark is refused", time.Minute, func() bool { return runs("v3") })
		w.pass(2 * time.Minute)
		if s := w.status("acme"); s.Runtime.Refusal != nil || s.Tracks["mark"].Refusal == nil || !strings.Contains(w.condition("acme", fleet.ConditionSidecarReady).Message, ": no") {
			t.Errorf("refusals %+v and %+v, it says %q", s.Runtime.Refusal, s.Tracks["mark"].Refusal, w.condition("acme", fleet.ConditionSidecarReady).Message)
		}
		d := &down{registry: "localhost"}
		w.refuseBy(d)
		w.declare("acme", "v4")
		m.with(func() { m.refuses = "" })
		w.until("the mark of v4 is set though v4 cannot be had", 2*time.Minute, func() bool { return m.of("acme") == "v4" })
		if runs("v4") {
			t.Error("v4 runs")
		}
		d.set("")
		w.until("v4 runs", 3*time.Minute, func() bool { return w.converged("acme", "v4") })
		m.with(func() { m.blind = true })
		w.declare("acme", "v5")
		w.until("v5 runs though no mark can be read", time.Minute, func() bool { return runs("v5") })
		if c := w.condition("acme", fleet.ConditionInstanceObserved); c.Status != fleet.True {
			t.Errorf("InstanceObserved is %+v", c)
		}
	})
}

// The ends of tracks come before that of what runs (P18), a mark whose end hangs holds it up,
// and so does a kurad that ends in the middle; then all goes.
func TestP18_whatRunsGoesAfterItsTracks(t *testing.T) {
	virtual(t, func(w *world) {
		m, o := w.marks()
		k := m.run(w, o)
		w.declare("acme", "v1")
		w.until("acme is as declared", time.Minute, func() bool { return w.converged("acme", "v1") })
		release := make(chan struct{})
		m.with(func() { m.hangs = release })
		w.destroy("acme")
		w.pass(30 * time.Second)
		if m.of("acme") != "v1" || w.one("acme").State != fleet.ContainerRunning || w.gone("acme") {
			t.Errorf("mark %q, container %s: what runs goes after its mark", m.of("acme"), w.one("acme").State)
		}
		k.kill()
		m.with(func() { m.hangs = nil })
		k = m.run(w, o)
		defer m.looks.Wait()
		defer k.stop()
		w.until("it is gone, with its mark", 3*time.Minute, func() bool { return w.gone("acme") && m.of("acme") == "" })
	})
}

// What a track tries again, and learns nothing new, costs small writes, beside a runtime that
// does the same; and a restart forgets of neither how often.
func TestG12_aTrackThatFailsBesideTheRuntimeWritesItsClaimsOnly(t *testing.T) {
	virtual(t, func(w *world) {
		m, o := w.marks()
		m.refuses = "no"
		w.refuseBy(&down{registry: "localhost"})
		k := m.run(w, o)
		w.declare("acme", "v1")
		w.pass(20 * time.Minute)
		commits, tries := k.commits.Load(), m.tried()
		w.pass(30 * time.Minute)
		tries = m.tried() - tries
		if c := k.commits.Load() - commits; c > 1 || tries < 20 { // that it has stalled
			t.Errorf("%d whole writes for %d tries of the mark", c, tries)
		}
		was := k.loop.Beyond(w.server("acme"))
		k.kill()
		k = m.run(w, o)
		defer m.looks.Wait()
		defer k.stop()
		is := k.loop.Beyond(w.server("acme"))
		if a, b := was.Tracks["mark"].Failing.Count, is.Tracks["mark"].Failing.Count; b < a-1 || was.Runtime.Failing.Count-1 > is.Runtime.Failing.Count {
			t.Errorf("the mark failed %d times, %d after a restart; the runtime %d, %d", a, b, was.Runtime.Failing.Count, is.Runtime.Failing.Count)
		}
		m.with(func() { m.refuses = "" })
		w.until("the mark is set", 3*time.Minute, func() bool { return m.of("acme") == "v1" })
	})
}

// A track that breaks a turn in the middle of its claims takes nothing from anybody for good:
// neither the slots of a room, nor what else the turn was about to begin.
func TestP19_aTrackThatBreaksATurnLeavesNothingTaken(t *testing.T) {
	virtual(t, func(w *world) {
		m, o := w.marks()
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 100 })
		k := m.run(w, o)
		defer m.looks.Wait()
		defer k.stop()
		all := func(tag string) {
			for i := range 20 { // more than a room has slots
				w.declare(fmt.Sprintf("s%d", i), tag)
			}
		}
		are := func(tag string) func() bool {
			return func() bool {
				for i := range 20 {
					if !w.converged(fmt.Sprintf("s%d", i), tag) {
						return false
					}
				}
				return true
			}
		}
		all("v1")
		w.until("all are as declared", 5*time.Minute, are("v1"))
		m.with(func() { m.broken = true })
		all("v2")
		w.pass(time.Minute)
		m.with(func() { m.broken = false })
		w.until("all are as declared once nothing is broken", 5*time.Minute, are("v2"))
	})
}

func TestG12_whatATracksNextTryWaitsForIsSaidToo(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1000 })
		m, o := w.marks()
		m.refuses = "not today"
		k := m.run(w, o)
		defer m.looks.Wait()
		defer k.stop()
		const n = 60
		for i := range n {
			w.declare(fmt.Sprintf("s%02d", i), "v1")
		}
		w.until("one waits for the tries of others", 10*time.Minute, func() bool {
			for i := range n {
				if text := k.loop.Waits(key(fmt.Sprintf("s%02d", i))); strings.Contains(text, "mark waits") && strings.Contains(text, "servers get the same answer from marks") {
					return true
				}
			}
			return false
		})
	})
}
