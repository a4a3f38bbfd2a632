package projection

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// The precedence of P1 said as pairs: where two rules claim the status, the first wins.
func TestP1_precedence(t *testing.T) {
	refusal := func(s *sim) {
		s.status.Runtime.Refusal = &fleet.Refusal{Reason: fleet.ReasonCreateFailed, Message: "no", Generation: s.intent.Generation, Revision: s.desired().Revision}
	}
	expired := func(s *sim) { s.status.Clock = fleet.StallClock{Cause: fleet.CauseRollOut, Expired: true} }
	unserved := func(s *sim) {
		s.status.Status, s.status.ServingImageTag, s.status.PublishedURL, s.status.Settled = fleet.StatusProvisioning, "", "", fleet.Settled{}
		s.latest.Status = fleet.DeploymentRunning
	}
	for _, c := range []struct {
		name   string
		given  func(*sim)
		status fleet.ServerStatus
		reason fleet.Reason
	}{
		{"P18 before P2", func(s *sim) { s.intent.Deleting, s.unreadable = &s.now, true }, fleet.StatusDestroying, fleet.ReasonDeleting},
		{"P18 before P5", func(s *sim) { s.intent.Deleting = &s.now }, fleet.StatusDestroying, fleet.ReasonDeleting},
		{"P2 before P5", func(s *sim) { unserved(s); s.unreadable = true }, fleet.StatusProvisioning, ""},
		{"P2 before P4", func(s *sim) { delete(s.boxes, carrierName); s.unreadable = true }, fleet.StatusActive, ""},
		{"P2 before a refused task", func(s *sim) { refusal(s); s.unreadable = true }, fleet.StatusActive, ""},
		{"P5 before a refused task", refusal, fleet.StatusActive, ""},
		{"P5 before P10", func(s *sim) { unserved(s); expired(s) }, fleet.StatusActive, ""},
		{"a refused task before P10", func(s *sim) { unserved(s); refusal(s); expired(s); s.endpoint = fleet.ReasonTimeout }, fleet.StatusFailed, fleet.ReasonCreateFailed},
		{"a refused task before P4", func(s *sim) { refusal(s); delete(s.boxes, carrierName) }, fleet.StatusFailed, fleet.ReasonCreateFailed},
		{"P10 before P4", func(s *sim) { unserved(s); expired(s); delete(s.boxes, carrierName) }, fleet.StatusFailed, fleet.ReasonStalled},
		{"P4 before P7", func(s *sim) {
			s.declare("v2", "")
			s.latest.Status = fleet.DeploymentFailed
			delete(s.boxes, carrierName)
		}, fleet.StatusProvisioning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settledOn(variant{})
			st := s.status.Clone()
			s.status = &st
			c.given(s)
			s.look()
			// Twice: the first turn after a change may still wait for a fresh probe.
			s.store(Decide(s.input()))
			s.look()
			out := Decide(s.input())
			if out.Status.Status != c.status || out.Status.Reason != c.reason {
				t.Errorf("got %s %q, want %s %q", out.Status.Status, out.Status.Reason, c.status, c.reason)
			}
		})
	}
}

func TestP1_newGenerationTurnsFailedIntoProvisioningAtTheFirstRead(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassRefused
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed)
	p.declare(p.intent.ImageTag, "") // labels
	p.unreadable = true
	p.turn()
	p.is(fleet.StatusFailed, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable)
	p.unreadable = false
	p.turn()
	p.is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonAbsent)
	if p.status.Runtime.Refusal != nil || p.status.Runtime.NextAttempt != nil {
		t.Errorf("the refusal of the last generation still counts: %+v, next attempt %v", p.status.Runtime.Refusal, p.status.Runtime.NextAttempt)
	}
}

func TestP1_resultOfAnOldGenerationDoesNotCount(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.turn()
	st := p.status.Clone()
	st.Runtime.Plan.Claim(0, p.now.Add(time.Minute))
	p.status = &st
	p.declare("v2", "")
	st.Runtime.Plan.Record(0, fleet.Outcome{Class: fleet.ClassRefused, Answered: true, Reason: fleet.ReasonImagePullFailed, At: p.now})
	p.turn()
	p.deployment(fleet.DeploymentPending)
	if p.status.Status == fleet.StatusFailed {
		t.Errorf("v1's image could not be pulled, and v2 is failed: %s", p.status.Message)
	}
}

func TestP2_unreadableChangesNothingButWhatItSaysOfItself(t *testing.T) {
	p := play(t, settledOn(variant{}))
	before := p.status.Clone()
	p.unreadable = true
	for range 3 {
		p.turn()
	}
	p.is(fleet.StatusActive, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable)
	p.shows(fleet.ConditionInstanceObserved, fleet.Unknown, fleet.ReasonEndpointUnreachable)
	p.shows(fleet.ConditionImageConverged, fleet.True, fleet.ReasonConverged)
	after := p.status.Clone()
	after.Conditions, before.Conditions = nil, nil
	after.Verdict, after.VerdictReason = before.Verdict, before.VerdictReason
	if !sameRecord(before, after) {
		t.Error(diffText(before, after))
	}
	if n := p.told("InstanceObservedLost"); n != 1 {
		t.Errorf("%d events, want one", n)
	}
	p.unreadable = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestP2_unreadableKeepsTheHoldAndTheIntendedPlan(t *testing.T) {
	for name, hold := range map[string]func(*faults){
		"observe":   func(f *faults) { f.observe = true },
		"admission": func(f *faults) { f.full = true },
		"paused":    func(f *faults) { f.paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			hold(&p.faults)
			p.remove()
			p.turn()
			before := p.status.Clone()
			p.unreadable = true
			p.turn()
			if !slices.Equal(p.status.Holds, before.Holds) || brief(p.status.Runtime.Intended) != brief(before.Runtime.Intended) || p.status.Runtime.Intended == nil {
				t.Errorf("holds %v, intended %s; before %v, %s", p.status.Holds, brief(p.status.Runtime.Intended), before.Holds, brief(before.Runtime.Intended))
			}
			p.faults = faults{}
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestP2_whatIsNotRenderableChangesNothing(t *testing.T) {
	s := settledOn(variant{})
	in := s.input()
	in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonUnknownRegion, Message: "region eu is gone"}
	out := Decide(in)
	if out.Status.Status != fleet.StatusActive || out.Status.Verdict != fleet.VerdictUnobserved || out.Status.VerdictReason != fleet.ReasonUnknownRegion {
		t.Errorf("got %s %s/%s", out.Status.Status, out.Status.Verdict, out.Status.VerdictReason)
	}
	if out.MayAct.Has(fleet.TrackRuntime) || out.Status.Runtime.Plan != nil {
		t.Error("it is acted upon")
	}
}

func TestP3_theFirstTurnWithoutAReadSaysSo(t *testing.T) {
	s := newSim(variant{})
	s.silent = true
	out := Decide(s.input())
	s.store(out)
	if out.Status.Status != fleet.StatusProvisioning || out.Status.Runtime.Plan != nil || !out.Changed() {
		t.Errorf("got %s with plan %v", out.Status.Status, out.Status.Runtime.Plan)
	}
	play(t, s).shows(fleet.ConditionInstanceObserved, fleet.Unknown, fleet.ReasonNotObservedYet)
}

func TestP4_absentShowsAtOnceAndIsMadeAgain(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.remove()
	p.turn()
	if p.status.ObservedImageTag != "" || p.status.ServingImageTag != "v1" || p.status.PublishedURL == "" {
		t.Errorf("observed %q, serving %q at %q", p.status.ObservedImageTag, p.status.ServingImageTag, p.status.PublishedURL)
	}
	p.is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonAbsent)
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestP4_holdsDelayTheRecreationAndShow(t *testing.T) {
	for _, c := range []struct {
		name   string
		hold   func(*faults)
		kind   fleet.HoldKind
		reason fleet.Reason
	}{
		{"paused", func(f *faults) { f.paused = true }, fleet.HoldPaused, fleet.ReasonPaused},
		{"kurad is paused", func(f *faults) { f.allPaused = true }, fleet.HoldPaused, fleet.ReasonPaused},
		{"admission", func(f *faults) { f.full = true }, fleet.HoldAdmission, fleet.ReasonAdmission},
		{"observe", func(f *faults) { f.observe = true }, fleet.HoldObserve, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			c.hold(&p.faults)
			p.remove()
			p.pass(time.Hour)
			if len(p.status.Holds) != 1 || p.status.Holds[0].Kind != c.kind || p.status.Runtime.Plan != nil || p.status.Runtime.Intended == nil {
				t.Fatalf("holds %v, plan %v, intended %v", p.status.Holds, brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended))
			}
			if c.kind == fleet.HoldObserve {
				p.is(fleet.StatusProvisioning, fleet.VerdictAbsent, fleet.ReasonAbsent)
			} else {
				p.is(fleet.StatusProvisioning, fleet.VerdictHeld, c.reason)
			}
			p.faults = faults{}
			p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestP5_activeSetsTheServedFactsAndClosesTheDeployment(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.endpoint = fleet.ReasonConnectFailed
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonEndpointNotReady).deployment(fleet.DeploymentRunning)
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	st := p.status
	if st.ServingImageTag != "v1" || st.ObservedImageTag != "v1" || st.PublishedURL != p.desired().URL {
		t.Errorf("serving %q, observed %q, published %q", st.ServingImageTag, st.ObservedImageTag, st.PublishedURL)
	}
	if d := p.latest; d.StartedAt == nil || d.FinishedAt == nil || d.ManifestRevision != p.desired().Revision {
		t.Errorf("the deployment's record is incomplete: %+v", d)
	}
}

func TestP5_adoptionOfWhatRunsPassesThroughRunning(t *testing.T) {
	s := newSim(variant{})
	s.put(carrierName, "cache", "v1", "c/v1//0", fleet.ContainerRunning, false)
	p := play(t, s)
	if plans := p.plans(); len(plans) != 0 {
		t.Errorf("what runs as declared is touched: %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.latest.StartedAt == nil {
		t.Error("the deployment was never running")
	}
}

func TestP6_equalImageWithoutTheGateLeavesTheStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		given   func(*script)
		verdict fleet.Verdict
		reason  fleet.Reason
	}{
		{"document", func(p *script) { p.doc, p.full = 1, true }, fleet.VerdictHeld, fleet.ReasonAdmission},
		{"stopped", func(p *script) { p.kill(); p.paused = true }, fleet.VerdictHeld, fleet.ReasonPaused},
		{"url", func(p *script) { p.doc, p.endpoint = 2, fleet.ReasonTLSNotReady }, fleet.VerdictProgressing, fleet.ReasonURLMove},
		{"endpoint", func(p *script) { p.endpoint = fleet.ReasonTLSNotReady }, fleet.VerdictConverged, fleet.ReasonEndpointNotReady},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			c.given(p)
			p.rest().is(fleet.StatusActive, c.verdict, c.reason)
		})
	}
}

func TestP7_imageDiffers(t *testing.T) {
	run := func(s *sim, tag string) { s.put(carrierName, "cache", tag, "c/"+tag, fleet.ContainerRunning, false) }
	for _, c := range []struct {
		name       string
		served     string
		before     fleet.ServerStatus
		deployment fleet.DeploymentStatus
		want       fleet.ServerStatus
		image      fleet.Reason
	}{
		{"(a) open, never served", "", fleet.StatusFailed, fleet.DeploymentRunning, fleet.StatusProvisioning, fleet.ReasonRollingOut},
		{"(a) open, served", "v0", fleet.StatusActive, fleet.DeploymentRunning, fleet.StatusActive, fleet.ReasonRollingOut},
		{"(b) succeeded", "v1", fleet.StatusActive, fleet.DeploymentSucceeded, fleet.StatusActive, fleet.ReasonDrifted},
		{"(b) cancelled", "v0", fleet.StatusActive, fleet.DeploymentCancelled, fleet.StatusActive, fleet.ReasonDrifted},
		{"(c) failed, serves another", "v0", fleet.StatusActive, fleet.DeploymentFailed, fleet.StatusFailed, fleet.ReasonDrifted},
		{"(c) failed, healed late", "v1", fleet.StatusActive, fleet.DeploymentFailed, fleet.StatusActive, fleet.ReasonDrifted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(variant{})
			s.full = true
			run(s, "v0")
			s.status = &fleet.Status{Status: c.before, Reason: fleet.ReasonStalled, ServingImageTag: c.served, Generation: 1, Revision: s.desired().Revision}
			if c.served != "" {
				s.status.PublishedURL = s.desired().URL
			}
			s.latest.Status, s.latest.Reason = c.deployment, fleet.ReasonStartFailed
			s.look()
			s.store(Decide(s.input()))
			play(t, s).shows(fleet.ConditionImageConverged, fleet.False, c.image)
			if s.status.Status != c.want {
				t.Errorf("got %s %q, want %s", s.status.Status, s.status.Reason, c.want)
			}
			if s.status.PublishedURL == "" && c.served != "" {
				t.Error("the old endpoint is published no more")
			}
		})
	}
}

func TestP8_aFailedProbeDoesNotEndActive(t *testing.T) {
	for _, r := range probeReasons {
		t.Run(string(r), func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			p.endpoint = r
			p.pass(2*time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, map[bool]fleet.Reason{
				true: fleet.ReasonNotChecked, false: fleet.ReasonEndpointNotReady,
			}[r == fleet.ReasonNotChecked])
			p.quiet(3)
			p.endpoint = ""
			p.rest().shows(fleet.ConditionEndpointReady, fleet.True, fleet.ReasonReady)
		})
	}
}

func TestP9_failedServerHealsWithoutRetry(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassRefused
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed).deployment(fleet.DeploymentFailed)
	p.tasks = ""
	p.pass(10*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	if p.latest.Seq != 1 {
		t.Errorf("a deployment was made: %d", p.latest.Seq)
	}
}

func TestP9_attemptsBackOffUpToAMinuteInTheFirstHourAndThenUpToTen(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassRefused
	p.rest()
	var waits []time.Duration
	began, inAnHour := p.now, 0
	for range 80 {
		if p.now.Sub(began) < time.Hour {
			inAnHour = len(waits)
		}
		waits = append(waits, p.status.Runtime.NextAttempt.Sub(p.now))
		p.wait(*p.status.Runtime.NextAttempt)
		p.rest()
	}
	for i, d := range waits {
		if d > maxRetry || i <= inAnHour && d > time.Minute || i > 0 && d < min(waits[i-1], 8*time.Minute) {
			t.Fatalf("waits are %v, %d of them in the first hour", waits, inAnHour)
		}
	}
	if waits[0] > time.Second || inAnHour < 60 || waits[79] < 8*time.Minute {
		t.Errorf("waits are %v", waits)
	}
	p.declare(p.intent.ImageTag, "")
	p.turn()
	if p.status.Runtime.Plan == nil {
		t.Error("an input changed, and it is not attempted at once")
	}
}
