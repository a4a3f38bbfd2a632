package reconcile_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// crashes ends what is started after a time; false: it stays up.
func (w *world) crashes(lives func(service string) (time.Duration, bool)) func(fleet.ServerKey, fleet.Task, func() fleet.Outcome) fleet.Outcome {
	return func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
		o := execute()
		life, ends := lives(task.Service)
		if task.Kind != fleet.TaskStart || o.Class != fleet.ClassOK || !ends {
			return o
		}
		started := time.Now()
		w.ended.Go(func() {
			<-time.After(life)
			w.engine().with(func() {
				if b := w.engine().boxes[o.ContainerID]; b != nil && b.State == fleet.ContainerRunning {
					w.engine().exit(b, 1)
					b.Started = &started
				}
			})
		})
		return o
	}
}

// What is started and does not stay up is started again for ever: only the claim of each start
// is written (G12), the status says CrashLoop throughout, and what stays up is seen as ever.
func TestG12_C11_aCrashLoopOfAnHourWritesTheClaimsOfItsStartsOnly(t *testing.T) {
	for _, c := range []struct {
		name      string
		life      time.Duration
		successor bool // one is declared, and cannot be had
		two       bool // services
	}{
		{name: "it ends at once"},
		{name: "it answers for five seconds", life: 5 * time.Second},
		{name: "its successor cannot be had", life: 9 * time.Second, successor: true},
		{name: "two services end", life: 2 * time.Second, two: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(w *world) {
				if c.two {
					w.region("eu", func(r *fleet.Region) {
						r.Containers.Services["proxy"] = fleet.Service{Image: "localhost/proxy:1"}
					})
				}
				var ends atomic.Bool
				o := options{onTask: w.crashes(func(service string) (time.Duration, bool) {
					if service == "proxy" {
						return 3 * c.life, ends.Load()
					}
					return c.life, ends.Load()
				})}
				var told atomic.Int64
				o.onCommit = func(write fleet.TurnWrite, commit func() error) error {
					told.Add(int64(len(write.Events)))
					return commit()
				}
				k := w.start(o)
				w.declare("acme", "v1")
				w.until("it runs", time.Minute, func() bool { return w.converged("acme", "v1") })
				ends.Store(true)
				d := &down{registry: "localhost"}
				if c.successor {
					w.refuseBy(d)
					w.declare("acme", "v2")
					w.pass(time.Minute)
				}
				w.engine().reboot()
				w.pass(5 * time.Minute)
				loops := func() {
					t.Helper()
					reason := fleet.ReasonCrashLoop
					if c.successor {
						reason = fleet.ReasonImagePullFailed
					}
					for _, s := range []fleet.Status{w.status("acme"), *k.loop.Beyond(w.server("acme"))} {
						ready := slices.ContainsFunc(s.Conditions, func(c fleet.Condition) bool {
							return c.Type == fleet.ConditionEndpointReady && c.Status != fleet.False
						})
						if s.Status != fleet.StatusFailed || s.Reason != reason || s.Crashes["cache"].Quick < fleet.CrashLoopFrom || ready {
							t.Fatalf("it is %s/%s: %+v %+v", s.Status, s.Reason, s.Crashes, s.Conditions)
						}
					}
				}
				tries := func() int64 { return int64(w.engine().count("start") + d.tries("acme")) }
				before, commits, claims, bytes, events := tries(), k.commits.Load(), k.tries.Load(), w.below.bytes.Load(), told.Load()
				for range 200 {
					w.pass(3 * time.Second)
					loops()
				}
				w.pass(50 * time.Minute)
				loops()
				n, whole, small := tries()-before, k.commits.Load()-commits, k.tries.Load()-claims
				bytes, events = w.below.bytes.Load()-bytes, told.Load()-events
				t.Logf("%d tries in an hour: %d whole writes, %d claims, %d bytes, %d events", n, whole, small, bytes, events)
				most := int64(1) // that it has stalled
				if c.successor {
					most = 20 // the steps of its swap are others while what serves is up
				}
				if whole > most || events > most {
					t.Errorf("%d whole writes, %d events", whole, events)
				}
				courses := int64(1)
				if c.successor || c.two {
					courses = 2
				}
				if n < 50*courses || n > 66*courses || small > n+1 || bytes > 600*n+8000*most {
					t.Errorf("%d tries, %d claims, %d bytes", n, small, bytes)
				}

				k.kill()
				k, before = w.start(o), tries()
				w.pass(5 * time.Second)
				loops()
				w.pass(5 * time.Minute)
				loops()
				if c := k.commits.Load(); c > most-1 {
					t.Errorf("%d whole writes after a restart", c)
				}
				if n := tries() - before; n > 7*courses {
					t.Errorf("%d tries in the five minutes after a restart", n)
				}
				ends.Store(false)
				d.set("")
				image, within := "v1", 80*time.Second
				if c.successor {
					image, within = "v2", 11*time.Minute // P9, after an hour
				}
				w.until("it stays up", within, func() bool { return w.converged("acme", image) })
				if s := w.status("acme"); s.Crashes != nil || s.Status != fleet.StatusActive {
					t.Errorf("it is %s, %+v", s.Status, s.Crashes)
				}
				k.stop()
			})
		})
	}
}
