package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// hung is an engine whose pulls of v2 never end; one that is deaf goes on with them for a
// while after nobody wants them any more.
func (w *world) hung(deaf time.Duration) options {
	w.engine().with(func() { w.engine().pulling = map[string]time.Duration{"localhost/kura:v2": 24 * time.Hour} })
	return options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
		if task.Kind != fleet.TaskPull || !strings.HasSuffix(task.Image, ":v2") {
			return execute()
		}
		<-time.After(deaf)
		return execute()
	}}
}

// pulls reports whether a pull for the server's plan runs.
func (w *world) pulls(account string) bool {
	p := w.status(account).Runtime.Plan
	i := p.Current()
	return i >= 0 && p.Tasks[i].Kind == fleet.TaskPull && p.Tasks[i].State == fleet.TaskRunning
}

func TestS6_aPullThatHangsHoldsUpNeitherTheFixNorTheDestroy(t *testing.T) {
	for name, deaf := range map[string]time.Duration{"an engine that hears": 0, "an engine that is deaf": 5 * time.Minute} {
		for _, serves := range []bool{true, false} {
			for what, change := range map[string]func(*world){
				"another image": func(w *world) { w.declare("acme", "v3") },
				"going back":    func(w *world) { w.declare("acme", "v1") },
				"destroy":       func(w *world) { w.destroy("acme") },
			} {
				t.Run(strings.Join([]string{name, map[bool]string{true: "serves", false: "new"}[serves], what}, ", "), func(t *testing.T) {
					virtual(t, func(w *world) {
						if serves {
							created(w, options{}).stop()
						}
						k := w.start(w.hung(deaf))
						defer k.stop()
						w.declare("acme", "v2")
						w.until("the pull hangs", time.Minute, func() bool { return w.pulls("acme") })
						w.pass(time.Minute)
						if c := w.condition("acme", fleet.ConditionProgressing); c.Message != "pull image localhost/kura:v2" {
							t.Errorf("Progressing says %q", c.Message)
						}
						was := w.server("acme").Latest.Seq
						change(w)
						w.until("it is as it is wanted now", 2*time.Second, func() bool {
							return what == "destroy" && w.gone("acme") || w.converged("acme", "v3") || w.converged("acme", "v1")
						})
						if what == "destroy" {
							if bs := w.engine().of("acme"); len(bs) != 0 {
								t.Errorf("%+v is left", bs)
							}
							w.pass(10 * time.Minute) // the pull may end by now
							return
						}
						w.one("acme")
						if d := w.server("acme").Latest; d.Seq != was+1 || d.Status != fleet.DeploymentSucceeded {
							t.Errorf("deployment %+v", d)
						}
						w.pass(10 * time.Minute) // the pull may end by now
						w.one("acme")
						if n := w.events("acme", "TaskRetried") + w.events("acme", "ImagePullFailed") + w.events("acme", "Replanned"); n != 0 {
							t.Errorf("%d events tell of what was given up", n)
						}
					})
				})
			}
		}
	}
}

// The claim of a pull outlives the kurad that ran it, but not the wish for it.
func TestS6_aPullOfAKuradThatDiedHoldsUpNothing(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		k := w.start(w.hung(0))
		w.declare("acme", "v2")
		w.until("the pull hangs", time.Minute, func() bool { return w.pulls("acme") })
		k.kill()
		w.declare("acme", "v3")
		k = w.start(w.hung(0))
		defer k.stop()
		w.until("acme runs v3", 2*time.Second, func() bool { return w.converged("acme", "v3") })
	})
}

// What can be given up is not what was begun and cannot be: that is awaited, and said.
func TestS6_whatCannotBeGivenUpIsAwaitedAndSaid(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		w.engine().with(func() { w.engine().took = 20 * time.Second })
		w.declare("acme", "v2")
		w.until("the old one is stopped", time.Minute, func() bool {
			p := w.status("acme").Runtime.Plan
			i := p.Current()
			return i >= 0 && p.Tasks[i].Kind == fleet.TaskStop && p.Tasks[i].State == fleet.TaskRunning
		})
		w.destroy("acme")
		w.pass(time.Second)
		if c := w.condition("acme", fleet.ConditionProgressing); !strings.HasPrefix(c.Message, "waits for what was begun before the change: stop cache container id1 (by 2") {
			t.Errorf("Progressing says %q", c.Message)
		}
		w.until("it is destroyed", 2*time.Minute, func() bool { return w.gone("acme") })
		if bs := w.engine().of("acme"); len(bs) != 0 {
			t.Errorf("%+v is left", bs)
		}
	})
}

// A pause ends nothing that runs (S11); nor does a kurad whose leadership is another's.
func TestS11_aPauseLetsAPullEnd(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		ended := false
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			if task.Kind == fleet.TaskPull {
				o := execute()
				ended = o.Class == fleet.ClassOK
				return o
			}
			return execute()
		}})
		defer k.stop()
		w.engine().with(func() { w.engine().pulling = map[string]time.Duration{"localhost/kura:v2": time.Minute} })
		w.declare("acme", "v2")
		w.until("the pull runs", time.Minute, func() bool { return w.pulls("acme") })
		w.change("acme", func(in *fleet.Intent) { in.Remediation = fleet.RemediationHeal }) // no deployment: another generation
		w.pass(time.Second)
		if !w.pulls("acme") {
			t.Fatal("what is wanted still is not pulled")
		}
		w.region("eu", func(r *fleet.Region) { r.Paused = true })
		w.pass(2 * time.Minute)
		if !ended || w.status("acme").Runtime.Plan != nil {
			t.Errorf("the pull ended well %v, plan %+v", ended, w.status("acme").Runtime.Plan)
		}
	})
}
