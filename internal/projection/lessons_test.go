package projection

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Cases of docs/design/lessons.md that are pure. Others are held by tests named after the rule:
// L3, L4 TestP14_aChangedDocumentIsAppliedOnce; L5 TestP15_theURLSwitchesInOneWriteWhenItAnswers;
// L6 TestP16_aConvergedServerCostsNothing; L38 TestS11_aPauseDropsThePlanAndShowsTheIntendedOne;
// L43 TestS4_theTurnThatMakesAPlanDoesNothingElse; L62 TestC6_aForcedKillIsAnEvent.

func TestL1_absentIsMadeAgainWhateverTheDeployment(t *testing.T) {
	for _, d := range []fleet.DeploymentStatus{fleet.DeploymentFailed, fleet.DeploymentCancelled, fleet.DeploymentSuperseded} {
		t.Run(string(d), func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			st := p.status.Clone()
			if d == fleet.DeploymentFailed {
				st.Status, st.Reason = fleet.StatusFailed, fleet.ReasonCreateFailed
			}
			p.status, p.latest.Status = &st, d
			p.remove()
			if plans := p.plans(); !slices.Equal(plans, []string{"create cache as itself; start cache"}) {
				t.Errorf("got %q, want one plan", plans)
			}
			p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(d)
		})
	}
}

func TestL2_failedReadsNeverFailADeploymentAndARefusalDoesAtOnce(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.turn()
	p.unreadable = true
	for range 20 {
		p.turn()
	}
	p.is(fleet.StatusProvisioning, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable).deployment(fleet.DeploymentPending)
	p.unreadable = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)

	p = play(t, newSim(variant{}))
	p.tasks = fleet.ClassRefused
	p.turn()
	p.step()
	p.turn()
	p.deployment(fleet.DeploymentFailed)
}

func TestL8_aNewerImageIsNotBlockedByOneThatIsStuck(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.endpoint = fleet.ReasonTimeout
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonEndpointNotReady)
	p.declare("v2", "") // supersedes the open deployment
	p.turn()
	if p.status.Runtime.Plan == nil || p.status.Runtime.Plan.Tasks[0].Digest != "c/v2//0" {
		t.Errorf("v2 is not applied in the same turn: %s", brief(p.status.Runtime.Plan))
	}
}

func TestL10_aFailedServerTakesPartInVersionChanges(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.crash = true
	p.pass(time.Minute).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCrashLoop)
	p.declare("v2", "")
	p.crash = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)

	p = play(t, settledOn(variant{}))
	p.intent.Deleting = &p.now
	p.declare("v2", "")
	p.turn()
	if got, want := brief(p.status.Runtime.Plan), "stop cache; remove cache; remove-volumes"; got != want {
		t.Errorf("a server that is destroyed plans %s", got)
	}
}

func TestL13_aStallIsToldOnceAndHeals(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.endpoint = fleet.ReasonTLSNotReady
	p.pass(10*time.Minute).is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonEndpointNotReady)     // (a)
	p.pass(10*time.Minute).is(fleet.StatusFailed, fleet.VerdictStalled, fleet.ReasonEndpointNotReady).quiet(3)      // (b), (c)
	p.deployment(fleet.DeploymentRunning).shows(fleet.ConditionEndpointReady, fleet.False, fleet.ReasonTLSNotReady) // L14
	if p.told("Stalled") != 1 {
		t.Errorf("told %d times", p.told("Stalled"))
	}
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded) // (d)
}

func TestL15_anAdvisoryGlobalEndpointIsAConditionOnly(t *testing.T) {
	s := settledOn(variant{global: true})
	s.globalDown = true
	s.look()
	out := Decide(s.input())
	if out.Status.Status != fleet.StatusActive || condition(out.Status, fleet.ConditionGlobalEndpointReady).Reason != fleet.ReasonTimeout {
		t.Errorf("got %s, %+v", out.Status.Status, condition(out.Status, fleet.ConditionGlobalEndpointReady))
	}
}

// Every status is visited and has somebody who moves it on. The switch has no default:
// a new status does not pass the linter before it has a row.
func TestL16_everyStatusHasAnOwner(t *testing.T) {
	all := []fleet.ServerStatus{fleet.StatusProvisioning, fleet.StatusActive, fleet.StatusFailed, fleet.StatusDestroying, fleet.StatusDestroyed}
	for _, status := range all {
		s := newSim(variant{})
		s.status = &fleet.Status{Status: status, Reason: fleet.ReasonCreateFailed, Generation: 1, Revision: s.desired().Revision}
		s.latest.Status = fleet.DeploymentCancelled
		want := fleet.PlanKind("")
		switch status {
		case fleet.StatusProvisioning, fleet.StatusFailed:
			want = fleet.PlanApply
		case fleet.StatusActive:
			s.status.ServingImageTag, s.status.PublishedURL = "v1", s.desired().URL
			want = fleet.PlanApply
		case fleet.StatusDestroying:
			s.intent.Deleting = &s.now
			want = fleet.PlanDestroy
		case fleet.StatusDestroyed: // its record goes
			s.intent.Deleting, s.status.VolumesRemoved = &s.now, true
		}
		s.look()
		out := Decide(s.input())
		if (out.Status.Runtime.Plan == nil) != (want == "") || want != "" && out.Status.Runtime.Plan.Kind != want || out.Remove != (want == "") {
			t.Errorf("%s: plan %s, removed %v, want %q", status, brief(out.Status.Runtime.Plan), out.Remove, want)
		}
	}
}

func TestL17_reasonsComeFromEvidence(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassRefused // between two attempts nothing runs: no endpoint is waited for
	p.rest().shows(fleet.ConditionProgressing, fleet.True, fleet.ReasonRetrying)
	p.tasks, p.endpoint = "", fleet.ReasonConnectFailed
	p.pass(time.Minute).shows(fleet.ConditionProgressing, fleet.True, fleet.ReasonWaiting)
}

func TestL18_aDestroyThatComesBetweenWins(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.endpoint = fleet.ReasonTimeout
	p.rest()
	p.endpoint = ""
	p.intent.Deleting = &p.now // committed while the activation was computed: the turn starts anew
	p.turn()
	if p.status.Status != fleet.StatusDestroying || p.status.PublishedURL != "" {
		t.Errorf("%s, published %q", p.status.Status, p.status.PublishedURL)
	}
	p.deployment(fleet.DeploymentCancelled)
}

func TestL21_activeIsProbedForEver(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.endpoint = fleet.ReasonHTTPNotReady
	for range 10 {
		p.pass(30 * time.Second)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, fleet.ReasonEndpointNotReady)
	p.shows(fleet.ConditionEndpointReady, fleet.False, fleet.ReasonHTTPNotReady)
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if lost, back := p.told("EndpointReadyLost"), p.told("EndpointReady"); lost != 1 || back != 1 { // L41
		t.Errorf("lost %d times, back %d times, want once each", lost, back)
	}
}

// L36 over all combinations is TestExploration_everyCombinationHeals; this is the pair
// that gave it its name.
func TestL36_failedAndReadyNeverMeet(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.tasks = fleet.ClassRefused // v1 answers all the time
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed)
	p.shows(fleet.ConditionReady, fleet.False, fleet.ReasonCreateFailed).shows(fleet.ConditionEndpointReady, fleet.True, fleet.ReasonReady)
}

func TestL44_aReadFromBeforeTheEffectCompletesNothing(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v1", "again")
	p.look()
	p.lag = true // the cache shows what was before the redeploy
	for range 30 {
		in := p.input()
		out := Decide(in)
		if out.Status.Settled.Generation == 2 && p.box().dig != "c/v1/again/0" {
			t.Fatal("settled on what was there before")
		}
		if out.NeedFreshRead.Has(fleet.TrackRuntime) {
			p.look()
		}
		p.step()
	}
	p.lag = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestL49_driftIsSeenAgainAfterACrashBeforeItsRepair(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.doc = 1
	p.look()
	_ = Decide(p.input()) // and the process dies before anything is stored
	p.silent = true
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.box().dig != "c/v1//1" {
		t.Errorf("the container runs %s", p.box().dig)
	}
}

func TestL52_aSwappedContainerIsReplacedOnce(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.remove()
	p.put(carrierName, "cache", "v0", "c/v0", fleet.ContainerRunning, false)
	if plans := p.plans(); len(plans) != 1 {
		t.Errorf("got %q", plans)
	}
	p.quiet(5)
}

func TestL58_whatCannotBeProbedIsUnknown(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.endpoint = fleet.ReasonNotChecked
	p.rest().shows(fleet.ConditionEndpointReady, fleet.Unknown, fleet.ReasonNotChecked).shows(fleet.ConditionReady, fleet.Unknown, fleet.ReasonEndpointNotReady)
}

func TestL59_twentyTicksRecreateNothing(t *testing.T) {
	p := play(t, settledOn(variant{helper: true}))
	id := p.box().id
	p.quiet(20)
	if p.box().id != id {
		t.Error("the container was recreated")
	}
}
