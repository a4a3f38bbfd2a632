package reconcile_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// crash is the point at which a kurad dies: at its nth write or effect, before or after
// it happened.
type crash struct {
	at    int64
	after bool
	steps atomic.Int64
	k     *kurad
	died  chan struct{}
}

// step runs a write or an effect; it reports false where kurad died before its answer.
func (c *crash) step(do func()) bool {
	if c.k.dead.Load() {
		return false
	}
	if c.steps.Add(1) != c.at {
		do()
		return true
	}
	if c.after {
		do()
	}
	c.k.dead.Store(true)
	close(c.died)
	return false
}

// mortal starts a kurad that dies at the given step.
func (w *world) mortal(at int64, after bool) *crash {
	c := &crash{at: at, after: after, died: make(chan struct{})}
	c.k = &kurad{}
	ready := make(chan struct{})
	k := w.start(options{
		onCommit: func(_ fleet.TurnWrite, commit func() error) (err error) {
			<-ready
			if !c.step(func() { err = commit() }) {
				return errDead
			}
			return err
		},
		onTask: func(_ fleet.ServerKey, _ fleet.Task, execute func() fleet.Outcome) (o fleet.Outcome) {
			if !c.step(func() { o = execute() }) {
				return unanswered(errDead)
			}
			return o
		},
	})
	c.k = k
	close(ready)
	return c
}

// story is what happens to a server, and what must be the case when all is over.
type story struct {
	begin func(*world) // with a converged server acme on v1 and no kurad
	over  func(*world) bool
	check func(*testing.T, *world)
}

// everywhere runs a story once for each write and effect in it, and lets kurad die there.
func everywhere(t *testing.T, s story) {
	for at := int64(1); ; at++ {
		reached := false
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d, after=%v", at, after), func(t *testing.T) {
				virtual(t, func(w *world) {
					w.region("eu", func(r *fleet.Region) {
						r.Containers.Services["helper"] = fleet.Service{Image: "localhost/helper:{image_tag}", GracePeriod: fleet.Duration(time.Second)}
					})
					created(w, options{}).stop()
					s.begin(w)
					c := w.mortal(at, after)
					w.until("the story is over, or kurad has died", 10*time.Minute, func() bool {
						select {
						case <-c.died:
							reached = true
							return true
						default:
							return s.over(w)
						}
					})
					c.k.kill()
					k := w.start(options{})
					defer k.stop()
					w.until("the story is over", 15*time.Minute, func() bool { return s.over(w) })
					w.pass(time.Minute)
					if !s.over(w) {
						t.Errorf("a minute later it is no longer over:\n%s", w.describe())
					}
					s.check(t, w)
				})
			})
		}
		if !reached {
			if at < 4 {
				t.Fatalf("the story has but %d steps", at-1)
			}
			return
		}
	}
}

// both checks that each service has one container, made from the image and never
// started twice.
func both(t *testing.T, w *world, image string) {
	t.Helper()
	bs := w.engine().of("acme")
	if len(bs) != 2 {
		t.Fatalf("containers %+v, want two", bs)
	}
	for i, want := range []string{"cache", "helper"} {
		b := bs[i]
		tag, _ := fleet.TagOf(b.Image)
		if b.Name != "kura-acme-eu-"+want+"-staging" || b.State != fleet.ContainerRunning || tag != image || b.starts != 1 {
			t.Errorf("container %+v, want %s on %s running and started once", b, want, image)
		}
	}
}

func TestCrash_atEveryWriteOfAReplace(t *testing.T) {
	everywhere(t, story{
		begin: func(w *world) { w.declare("acme", "v2") },
		over:  func(w *world) bool { return w.converged("acme", "v2") },
		check: func(t *testing.T, w *world) {
			both(t, w, "v2")
			if n := w.engine().count("create"); n != 4 {
				t.Errorf("%d containers were created in all, want 4", n)
			}
			if got := w.server("acme").Latest.Status; got != fleet.DeploymentSucceeded {
				t.Errorf("the deployment is %s, want succeeded", got)
			}
		},
	})
}

// L49: what was to be done is known from what is there, not from a mark of what was begun.
func TestL49_aCrashBetweenSeeingAndCorrectingForgetsNothing(t *testing.T) {
	everywhere(t, story{
		begin: func(w *world) { w.engine().removeAll("acme") },
		over: func(w *world) bool {
			return len(w.engine().of("acme")) == 2 && w.converged("acme", "v1")
		},
		check: func(t *testing.T, w *world) { both(t, w, "v1") },
	})
}

func TestCrash_atEveryWriteOfADestroy(t *testing.T) {
	everywhere(t, story{
		begin: func(w *world) { w.destroy("acme") },
		over:  func(w *world) bool { return w.gone("acme") },
		check: func(t *testing.T, w *world) {
			if bs := w.engine().of("acme"); len(bs) != 0 {
				t.Errorf("containers are left: %+v", bs)
			}
		},
	})
}
