package reconcile_test

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// applied starts a kurad in a world whose region eu is on Kubernetes, and one converged
// server, acme on v1.
func applied(w *world, o options) *kurad {
	w.t.Helper()
	w.onKubernetes(nil)
	return created(w, o)
}

// running fails the test unless the server's instance runs the image.
func (w *world) runs(account, image string) object {
	w.t.Helper()
	o, there := w.cluster().of(account)
	if !there || o.observed != "localhost/kura:"+image || o.phase != phaseReady {
		w.t.Fatalf("%s has %+v, want it on %s", account, o, image)
	}
	return o
}

func TestK2_aServerIsAppliedOnceAndAChangeIsSeenWithinASecond(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		before := w.runs("acme", "v1")
		if n := w.cluster().count("apply"); n != 1 {
			t.Errorf("%d applies, want 1", n)
		}
		w.pass(time.Minute)
		drifted := before
		drifted.spec = map[string]any{"image": before.spec["image"]}
		w.cluster().put(drifted) // a hand edit
		w.until("it is applied again", time.Second, func() bool { return w.cluster().count("apply") == 2 })
		w.until("its controller has rolled it out", time.Minute, func() bool { o, _ := w.cluster().of("acme"); return o.phase == phaseReady })
		if after := w.runs("acme", "v1"); after.uid != before.uid {
			t.Errorf("the instance %s became %s", before.uid, after.uid)
		}
		w.declare("acme", "v2")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if n := w.cluster().count("apply"); n != 3 {
			t.Errorf("%d applies in all, want 3", n)
		}
	})
}

func TestP16_200QuietTicksOfAClusterCostNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.pass(20 * time.Minute) // what the creation left due is over
		commits, tasks, turns := k.commits.Load(), k.tasks.Load(), k.gathers.Load()
		lists, gets := w.cluster().asks("list"), w.cluster().asks("get")
		w.pass(200 * 10 * time.Second)
		if c, n := k.commits.Load()-commits, k.tasks.Load()-tasks; c != 0 || n != 0 {
			t.Errorf("%d writes and %d tasks in 200 ticks, want none", c, n)
		}
		if l, g := w.cluster().asks("list")-lists, w.cluster().asks("get")-gets; l != 0 || g != 0 {
			t.Errorf("%d lists and %d reads in 200 ticks, want none: there is a watch", l, g)
		}
		if n := k.gathers.Load() - turns; n > 4 {
			t.Errorf("%d turns in 200 ticks, want those of the slow resync", n)
		}
	})
}

func TestL1_aVanishedKuraInstanceIsAppliedAgainWhateverTheDeploymentSays(t *testing.T) {
	for _, verdict := range []fleet.DeploymentStatus{fleet.DeploymentFailed, fleet.DeploymentCancelled, fleet.DeploymentSuperseded} {
		t.Run(string(verdict), func(t *testing.T) {
			virtual(t, func(w *world) {
				k := applied(w, options{})
				defer k.stop()
				latest, err := w.records.Deployment(w.t.Context(), key("acme"), 1)
				w.must(err)
				tx := w.records.Begin()
				history := latest.Value
				history.Status = verdict
				tx.PutDeployment(latest, history)
				w.commit(tx)
				w.pass(time.Minute)

				before := w.cluster().count("apply")
				w.cluster().remove("kura", "kura-acme-eu")
				w.until("the server is provisioning", time.Second, func() bool {
					s := w.status("acme")
					return s.Status == fleet.StatusProvisioning && s.ObservedImageTag == ""
				})
				w.until("acme runs v1 again", time.Minute, func() bool { return w.converged("acme", "v1") })
				w.runs("acme", "v1")
				if n := w.cluster().count("apply") - before; n != 1 {
					t.Errorf("%d applies, want 1", n)
				}
				if got := w.server("acme").Latest.Status; got != verdict {
					t.Errorf("the deployment became %s, want history to stay %s", got, verdict)
				}
			})
		})
	}
}

// L2: 20 reads in a row that get 503.
func TestL2_aClusterThatAnswers503IsCountedAndFailsNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.cluster().fallSilent(fleet.ReasonRuntimeError)
		w.pass(time.Second)
		w.declare("acme", "v2")
		w.pass(time.Second)
		commits := k.commits.Load()
		w.until("20 reads failed", 5*time.Minute, func() bool { _, n := k.loop.Memory(key("acme")); return n == 20 })
		if got := w.server("acme").Latest.Status; got != fleet.DeploymentPending {
			t.Errorf("deployment is %s, want it to stay pending", got)
		}
		s := w.status("acme")
		if c := w.condition("acme", fleet.ConditionInstanceObserved); c.Status != fleet.Unknown || c.Reason != fleet.ReasonRuntimeError {
			t.Errorf("InstanceObserved is %+v, want Unknown/RuntimeError", c)
		}
		if s.Status != fleet.StatusActive || s.ObservedImageTag != "v1" || s.Verdict != fleet.VerdictUnobserved {
			t.Errorf("status %s %s observed %q, want active, unobserved and v1 as last seen", s.Status, s.Verdict, s.ObservedImageTag)
		}
		if n := k.commits.Load() - commits; n != 0 {
			t.Errorf("%d writes during 20 failed reads, want none", n)
		}
		w.cluster().fallSilent("")
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if _, n := k.loop.Memory(key("acme")); n != 0 {
			t.Errorf("%d failed reads are remembered after a good one, want 0", n)
		}
	})
}

// L2: an expired token, for ten minutes, in the middle of a roll-out.
func TestL2_tenMinutesOf401FailNothing(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.region("eu", func(r *fleet.Region) { r.StallAfter = fleet.Duration(2 * time.Minute) })
		w.pass(time.Second)
		w.cluster().with(func() { w.cluster().rollOut = 30 * time.Second })
		w.declare("acme", "v2")
		w.until("v2 is applied", time.Minute, func() bool { return w.cluster().count("apply") == 2 })
		w.cluster().fallSilent(fleet.ReasonRuntimeRefused)
		w.declare("beta", "v1") // a new one, too
		last, n := time.Time{}, 0
		for range 10 {
			w.pass(time.Minute)
			at, failed := k.loop.Memory(key("acme"))
			if failed <= n || !last.IsZero() && !at.Equal(last) {
				t.Errorf("%d failed reads since %s after %d since %s, want them counted from one good read on", failed, at, n, last)
			}
			last, n = at, failed
			for _, account := range []string{"acme", "beta"} {
				if g := w.server(account); g.Latest.Status == fleet.DeploymentFailed || g.Status.Status == fleet.StatusFailed || g.Status.Verdict != fleet.VerdictUnobserved {
					t.Errorf("%s is %s/%s, deployment %s; want unobserved and nothing failed", account, g.Status.Status, g.Status.Verdict, g.Latest.Status)
				}
			}
		}
		w.cluster().fallSilent("")
		w.until("both run", 2*time.Minute, func() bool { return w.converged("acme", "v2") && w.converged("beta", "v1") })
		if n := w.cluster().count("apply"); n != 3 {
			t.Errorf("%d applies in all, want 3", n)
		}
	})
}

func TestP2_aClusterThatThisDaemonWasNotGivenIsUnobservedAndTheFlagIsNamed(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{}) // on its engine
		defer k.stop()
		w.region("us", func(r *fleet.Region) {
			r.Name, r.Containers, r.Readiness = "us", nil, fleet.Readiness{}
			r.Kubernetes = &fleet.Kubernetes{Cluster: "other", Image: "localhost/kura:{image_tag}"}
		})
		us := fleet.ServerKey{Account: "acme", Region: "us"}
		w.declareIn(us, "v1", false)
		w.pass(time.Minute)
		g, err := w.records.Gather(w.t.Context(), us)
		w.must(err)
		var said string
		for _, c := range g.Status.Conditions {
			if c.Type == fleet.ConditionInstanceObserved {
				said = c.Message
			}
		}
		if g.Status.Verdict != fleet.VerdictUnobserved || !strings.Contains(said, "--cluster other=") {
			t.Errorf("%s: %q, want it to name the flag", g.Status.Verdict, said)
		}
		if at, n := k.loop.Memory(us); !at.IsZero() || n != 0 {
			t.Errorf("%d failed reads since %s are remembered of no cluster", n, at)
		}
		w.must(k.loop.ObserveNow(w.t.Context(), us))
		if l := k.loop.KubeListings(); len(l) != 0 {
			t.Errorf("listings %+v", l)
		}
	})
}

func TestL11_P19_aClusterThatFailsHoldsUpNobodyElse(t *testing.T) {
	virtual(t, func(w *world) {
		w.clusters["stuck"] = newAPIServer()
		w.clusters["stuck"].fallSilent(fleet.ReasonEndpointUnreachable)
		w.clusters["slow"] = newAPIServer()
		w.clusters["slow"].took = time.Hour
		w.onKubernetes(nil)
		for name, cluster := range map[string]string{"us": "stuck", "ap": "slow"} {
			w.region(name, func(r *fleet.Region) {
				r.Name, r.MaxUnsettled, r.Containers, r.Readiness = name, 100, nil, fleet.Readiness{}
				r.Kubernetes = &fleet.Kubernetes{Cluster: cluster, Image: "localhost/kura:{image_tag}"}
			})
		}
		k := w.start(options{})
		defer k.kill()
		for i := range 60 {
			for _, region := range []string{"us", "ap"} {
				w.declareIn(fleet.ServerKey{Account: fmt.Sprintf("x%04d", i), Region: region}, "v1", false)
			}
		}
		w.pass(10 * time.Second)
		w.declare("acme", "v1")
		w.until("the other cluster's server runs", 5*time.Second, func() bool { return w.converged("acme", "v1") })
		if n := k.tasks.Load(); n != 16+1 {
			t.Errorf("%d tasks were begun, want the 16 that may run at once on the slow cluster and acme's", n)
		}
	})
}

// L26: a mistake that asks for everything at once makes ten things at once.
func TestL26_aThousandNewServersOfAClusterAreAppliedInSteps(t *testing.T) {
	virtual(t, func(w *world) {
		const n = 1000
		w.onKubernetes(nil)
		k := w.start(options{})
		defer k.stop()
		for i := range n {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		w.until("all run", 30*time.Minute, func() bool { return w.count("v1") == n })
		if most := w.mostUnsettled("eu"); most != fleet.DefaultMaxUnsettled {
			t.Errorf("%d servers were unsettled at once, want %d", most, fleet.DefaultMaxUnsettled)
		}
		if applies := w.cluster().count("apply"); applies != n {
			t.Errorf("%d applies, want one for each of %d servers", applies, n)
		}
	})
}

func TestL38_aPausedServerOfAClusterIsNotWrittenTo(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.change("acme", func(in *fleet.Intent) { in.Paused = true })
		w.cluster().remove("kura", "kura-acme-eu")
		w.pass(time.Second)
		w.declare("acme", "v2")
		w.pass(30 * time.Second)
		if n := w.cluster().count("apply"); n != 1 {
			t.Errorf("%d applies while it is paused, want none", n-1)
		}
		if s := w.status("acme"); s.Runtime.Intended == nil || s.Runtime.Plan != nil || len(s.Holds) == 0 {
			t.Errorf("plan %+v, intended %+v, holds %+v; want it shown and held", s.Runtime.Plan, s.Runtime.Intended, s.Holds)
		}
		w.change("acme", func(in *fleet.Intent) { in.Paused = false })
		w.until("acme runs v2", time.Minute, func() bool { return w.converged("acme", "v2") })
	})
}

func TestL43_anApplyIsStoredBeforeItIsSentAndSentOnceForEachClaim(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(nil)
		var refuse atomic.Bool // to be stored
		refuse.Store(true)
		k := w.start(options{
			onCommit: func(write fleet.TurnWrite, commit func() error) error {
				p := write.Status.Runtime.Plan
				if i := p.Current(); i >= 0 && p.Tasks[i].State == fleet.TaskRunning && refuse.Load() {
					return errDead
				}
				return commit()
			},
			onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
				stored := w.status("acme").Runtime.Plan
				if i := stored.Current(); i < 0 || stored.Tasks[i].ID != task.ID || stored.Tasks[i].State != fleet.TaskRunning {
					t.Errorf("%s runs, and the store holds %+v", task.Describe(), stored)
				}
				return execute()
			},
		})
		defer k.stop()
		w.declare("acme", "v1")
		w.pass(10 * time.Second)
		if p := w.status("acme").Runtime.Plan; p == nil || w.cluster().count("apply") != 0 {
			t.Errorf("plan %+v, %d applies; want it stored and nothing sent", p, w.cluster().count("apply"))
		}
		refuse.Store(false)
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })
		if n := w.cluster().count("apply"); n != 1 {
			t.Errorf("%d applies, want 1", n)
		}
	})
}

func TestL44_aWatchThatLagsNeitherCompletesAPlanNorMakesOne(t *testing.T) {
	virtual(t, func(w *world) {
		w.cluster().lag = 5 * time.Second
		k := applied(w, options{})
		defer k.stop()
		for _, image := range []string{"v2", "v3"} {
			applies := w.cluster().count("apply")
			w.declare("acme", image)
			for !w.converged("acme", image) {
				if w.status("acme").ServingImageTag == image {
					w.runs("acme", image)
				}
				w.pass(100 * time.Millisecond)
			}
			w.pass(time.Minute)
			if n := w.cluster().count("apply") - applies; n != 1 {
				t.Errorf("%s: %d applies, want 1", image, n)
			}
			w.runs("acme", image)
		}
	})
}

func TestL47_statusesThatChangeNothingCauseNoTurn(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.pass(time.Minute)
		turns := k.gathers.Load()
		for range 10 {
			o, _ := w.cluster().of("acme")
			o.beat++
			w.cluster().put(o)
			w.pass(time.Second)
			g := w.server("acme")
			w.must(w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: key("acme"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: *g.Status}))
			w.pass(time.Second)
		}
		if n := k.gathers.Load() - turns; n != 0 {
			t.Errorf("10 writes of each status caused %d turns, want none", n)
		}
	})
}

// A roll-out of 25 s by a controller that is 10 s late is over after 25 s, a restart or not:
// what the watch shows of its signs of life makes turns due while it lasts, and none after it.
func TestK8_aChangeHasConvergedWhenALateControllerHasRolledItOut(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		virtual(t, func(w *world) {
			k := applied(w, options{})
			w.pass(time.Minute)
			w.cluster().with(func() { w.cluster().notice, w.cluster().rollOut = 10*time.Second, 25*time.Second })
			w.region("eu", func(r *fleet.Region) { r.Kubernetes.Env = map[string]string{"A": "2"} })
			w.until("it is applied", time.Minute, func() bool { return w.cluster().count("apply") == 2 })
			begun := time.Now()
			for at := time.Duration(0); at < 24*time.Second; at += 100 * time.Millisecond {
				w.pass(100 * time.Millisecond)
				if w.converged("acme", "v1") {
					t.Fatalf("converged %s after the apply", time.Since(begun))
				}
				if restarts && at == 5*time.Second {
					k.kill()
					k = w.start(options{})
				}
			}
			defer k.stop()
			w.until("it has converged", 5*time.Second, func() bool { return w.converged("acme", "v1") })
			turns := k.gathers.Load()
			w.pass(2 * time.Minute)
			if n := k.gathers.Load() - turns; n > 1 {
				t.Errorf("%d turns in two minutes after that", n)
			}
		})
	}
}

// Admission that moves images to a mirror is learned once for all processes: what it makes of
// a field costs nothing, and what somebody else makes of it is put right.
func TestK10_whatAdmissionChangesCostsNoApplyAfterARestart(t *testing.T) {
	virtual(t, func(w *world) {
		const altered = string(fleet.ReasonFieldsAltered)
		w.cluster().with(func() {
			w.cluster().admits = func(spec map[string]any) {
				spec["image"] = strings.Replace(spec["image"].(string), "localhost/", "mirror/", 1)
			}
		})
		k := applied(w, options{})
		quiet := func(when, tag string, applies int) {
			t.Helper()
			w.until(when+": converged", 10*time.Minute, func() bool { return w.converged("acme", tag) })
			w.pass(20 * time.Minute)
			s := w.status("acme")
			c := w.condition("acme", fleet.ConditionManifestConverged)
			if n := w.cluster().count("apply"); n != applies || !w.converged("acme", tag) || c.Reason != fleet.ReasonFieldsAltered || c.Status != fleet.True {
				t.Errorf("%s: %d applies, want %d; %s/%s: %s %s", when, n, applies, s.Status, s.Verdict, c.Reason, c.Message)
			}
			if n, held := w.events("acme", altered), w.events("acme", string(fleet.ReasonFieldConflict)); n != 1 || held != 0 {
				t.Errorf("%s: told %d times, and %d times as a conflict; want once", when, n, held)
			}
		}
		quiet("created", "v1", 1)
		restart := func() { k.kill(); k = w.start(options{}) }
		restart()
		quiet("after a restart", "v1", 1)
		o, _ := w.cluster().of("acme")
		o.spec = maps.Clone(o.spec)
		o.spec["image"] = "localhost/kura:v0"
		w.cluster().put(o)
		w.until("an edit is put right", time.Minute, func() bool { return w.cluster().count("apply") == 2 })
		quiet("after an edit", "v1", 2)
		w.declare("acme", "v2")
		w.until("v2 is applied", time.Minute, func() bool { return w.cluster().count("apply") == 3 })
		quiet("after a change", "v2", 3)
		restart()
		defer func() { k.stop() }()
		quiet("after another restart", "v2", 3)
		// Without the policy what it made stays until something is applied.
		w.cluster().with(func() { w.cluster().admits = nil })
		w.declare("acme", "v3")
		w.until("v3 is converged", 10*time.Minute, func() bool { return w.converged("acme", "v3") })
		if c := w.condition("acme", fleet.ConditionManifestConverged); c.Reason != fleet.ReasonConverged {
			t.Errorf("without the policy: %s %s", c.Reason, c.Message)
		}
		w.runs("acme", "v3")
	})
}
