package projection

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Cases of docs/design/lessons.md about custom resources that are pure. L36 over all states is
// TestExploration_everyStateHeals/a_KuraInstance; L3 and L4 are fleet's.

func TestL1_aVanishedObjectIsAppliedOnceWhateverTheDeployment(t *testing.T) {
	for _, d := range []fleet.DeploymentStatus{fleet.DeploymentFailed, fleet.DeploymentCancelled, fleet.DeploymentSuperseded} {
		t.Run(string(d), func(t *testing.T) {
			p := play(t, settledOn(kube))
			p.declare("v2", "") // the latest image, which was never rolled out
			st := p.status.Clone()
			if d == fleet.DeploymentFailed {
				st.Status, st.Reason = fleet.StatusFailed, fleet.ReasonForbidden
			}
			p.status, p.latest.Status, p.obj = &st, d, nil
			if plans := p.plans(); !slices.Equal(plans, []string{"apply new"}) {
				t.Errorf("planned %q, want one apply", plans)
			}
			p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(d)
			if p.obj.observed != imageOf("v2/") || p.status.ServingImageTag != "v2" {
				t.Errorf("%s runs, %s is served", p.obj.observed, p.status.ServingImageTag)
			}
		})
	}
}

func TestL2_aClusterThatDoesNotAnswerFailsNothing(t *testing.T) {
	p := play(t, settledOn(kube))
	p.declare("v2", "")
	p.stuck = true
	p.rest().is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonRollingOut).deployment(fleet.DeploymentRunning)
	before := p.status.Clone()
	p.look()
	for _, reason := range []fleet.Reason{fleet.ReasonRuntimeRefused, fleet.ReasonRuntimeError, fleet.ReasonEndpointUnreachable, fleet.ReasonTypeNotServed} {
		for count := 1; count <= 20; count++ {
			in := p.input()
			in.Seen.Instance.Resource = nil // whatever it shows, it says nothing
			in.Seen.Instance.Unreadable = &fleet.ReadFailure{Reason: reason, Message: fmt.Sprintf("%d times", count), Count: count}
			out := Decide(in)
			if out.Latest != nil || out.Status.Status != before.Status || out.Status.Runtime.Plan != nil || out.MayAct.Has(fleet.TrackRuntime) || out.Status.ObservedImageTag != "v1" || out.Status.Resource == nil {
				t.Fatalf("%s: %s", reason, diffText(before, out.Status))
			}
			if c := condition(out.Status, fleet.ConditionInstanceObserved); c.Status != fleet.Unknown || c.Reason != reason || out.Status.Verdict != fleet.VerdictUnobserved || out.Status.VerdictReason != reason {
				t.Fatalf("%s shows as %+v, verdict %s/%s", reason, c, out.Status.Verdict, out.Status.VerdictReason)
			}
			p.store(out)
		}
	}
	p.stuck = false // it answers again
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)

	p = play(t, newSim(kube)) // a 422
	p.tasks = fleet.ClassRefused
	p.turn()
	p.step()
	p.turn()
	p.deployment(fleet.DeploymentFailed)
}

func TestL2_aTransientAnswerLeavesTheDeploymentOpen(t *testing.T) {
	p := play(t, newSim(kube))
	p.tasks = fleet.ClassTransient
	p.pass(10*time.Minute).is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonAbsent).deployment(fleet.DeploymentRunning)
	p.tasks = ""
	p.pass(10*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestL5_aRenamedHostKeepsTheOldURLUntilTheNewOneAnswers(t *testing.T) {
	p := play(t, settledOn(kube))
	old := p.status.PublishedURL
	p.doc, p.endpoint = 2, fleet.ReasonNotResolvable
	for range 3 {
		p.pass(10*time.Second).is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonURLMove)
		if p.status.PublishedURL != old {
			t.Fatalf("published %s before it answers", p.status.PublishedURL)
		}
	}
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.status.PublishedURL != p.desired().URL || p.told("URLSwitched") != 1 {
		t.Errorf("published %s, told %d times", p.status.PublishedURL, p.told("URLSwitched"))
	}
}

func TestL8_aNewerImageIsAppliedAtOnceWhileOneIsStuck(t *testing.T) {
	p := play(t, newSim(kube))
	p.stuck = true
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonRollingOut)
	p.declare("v2", "")
	p.turn()
	if plan := p.status.Runtime.Plan; plan == nil || plan.Tasks[0].Digest != p.desired().Revision {
		t.Errorf("v2 is not applied in the same turn: %s", brief(plan))
	}
}

func TestL36_aFailedInstanceIsNeverReady(t *testing.T) {
	p := play(t, settledOn(kube))
	p.declare("v2", "")
	p.tasks = fleet.ClassRefused // v1 answers all the time, and its controller says so
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed)
	p.shows(fleet.ConditionReady, fleet.False, fleet.ReasonCreateFailed).shows(fleet.ConditionEndpointReady, fleet.True, fleet.ReasonReady)
	in := p.input()
	r := *in.Seen.Instance.Resource
	r.Phase, r.ReadyReplicas = "Ready", 3 // R3: no readiness authority
	in.Seen.Instance.Resource = &r
	if out := Decide(in); out.Status.Status != fleet.StatusFailed || condition(out.Status, fleet.ConditionReady).Status != fleet.False {
		t.Errorf("%s, Ready %+v", out.Status.Status, condition(out.Status, fleet.ConditionReady))
	}
}

func TestL38_nothingPassesOverAPause(t *testing.T) {
	for name, drift := range map[string]func(*script){
		"deleted":    func(p *script) { p.obj = nil },
		"edited":     func(p *script) { p.change(func(o *object) { o.edited = true }) },
		"relabelled": func(p *script) { p.change(func(o *object) { o.labels = true }) },
		"renamed":    func(p *script) { p.doc = 2 },
		"taken over": func(p *script) { *p.sim = *adoptedOn(kube, false) },
		"destroyed":  func(p *script) { p.intent.Deleting = &p.now },
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(kube))
			drift(p)
			p.paused = true
			was := p.obj
			p.pass(time.Hour)
			if p.status.Runtime.Plan != nil || p.status.Runtime.Intended == nil || (p.obj == nil) != (was == nil) || was != nil && (p.obj.spec != was.spec || p.obj.owner != was.owner) {
				t.Fatalf("plan %s, intended %s, object %+v", brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended), p.obj)
			}
			p.paused = false
			for range 20 {
				if !p.removed {
					p.step()
				}
			}
			if !p.removed && p.status.Verdict != fleet.VerdictConverged {
				t.Errorf("after the pause: %s", p.status.Verdict)
			}
		})
	}
}

func TestL44_aWatchThatLagsCompletesNothingAndPlansNothing(t *testing.T) {
	p := play(t, settledOn(kube))
	p.declare("v1", "again")
	p.look()
	p.lag = true // the watch shows what was before the apply
	p.turn()
	p.step()
	for range 5 {
		in := p.input()
		out := Decide(in)
		if p.status.Settled.Generation == 2 || out.Status.Settled.Generation == 2 || out.Status.Runtime.Plans != 1+1 || !out.NeedFreshRead.Has(fleet.TrackRuntime) && out.Status.Runtime.Plan == nil {
			t.Fatalf("settled %+v, %d plans, asks %v, plan %s", out.Status.Settled, out.Status.Runtime.Plans, out.NeedFreshRead.Has(fleet.TrackRuntime), brief(out.Status.Runtime.Plan))
		}
		p.store(out)
	}
	p.lag = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.status.Runtime.Plans != 2 {
		t.Errorf("%d plans", p.status.Runtime.Plans)
	}
}

func TestL49_driftOfAnObjectIsSeenAgainAfterACrash(t *testing.T) {
	p := play(t, settledOn(kube))
	p.change(func(o *object) { o.edited = true })
	p.look()
	_ = Decide(p.input()) // and the process dies before anything is stored
	p.silent = true
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.obj.edited {
		t.Error("the drift is forgotten")
	}
}

func TestL52_aSwappedObjectIsAppliedOnce(t *testing.T) {
	p := play(t, settledOn(kube))
	p.create(object{spec: "v0//0/", image: imageOf("v0/"), observed: imageOf("v0/")})
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid2"}) {
		t.Errorf("planned %q", plans)
	}
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(5)
}

// The end of a plan that deletes a KuraInstance says so of itself: it has removed no volumes,
// although nothing tells any more what kind of server it was.
func TestP18_aKuraInstanceWhoseRegionIsGoneIsNotDestroyedUnseen(t *testing.T) {
	p := play(t, newSim(variant{kube: true})).rest()
	p.finalizer = true
	at := p.now
	p.intent.Deleting, p.intent.Generation = &at, p.intent.Generation+1
	for p.status.Runtime.Plan == nil || p.status.Runtime.Plan.Tasks[0].Outcome == nil {
		p.step()
	}
	in := p.input()
	in.Desired, in.NotRenderable = fleet.Desired{}, &fleet.ReadFailure{Reason: fleet.ReasonUnknownRegion, Message: "the region is gone"}
	if out := Decide(in); out.Remove || out.Status.VolumesRemoved || out.Status.Status != fleet.StatusDestroying {
		t.Errorf("got %s, removed %t, volumes removed %t, want it to be destroyed later", out.Status.Status, out.Remove, out.Status.VolumesRemoved)
	}
}
