package projection

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestP10_stallOfAServerThatNeverServedIsFailedOnceAndHeals(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.endpoint = fleet.ReasonTLSNotReady
	p.pass(14*time.Minute).is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonEndpointNotReady)
	p.pass(2*time.Minute).is(fleet.StatusFailed, fleet.VerdictStalled, fleet.ReasonEndpointNotReady).deployment(fleet.DeploymentRunning)
	p.shows(fleet.ConditionProgressing, fleet.False, fleet.ReasonStalled)
	if n := p.told("Stalled") + p.told("Failed"); n != 1 || p.status.Reason != fleet.ReasonStalled {
		t.Errorf("told %d times, want once; reason %s", n, p.status.Reason)
	}
	p.quiet(5)
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestP10_stallOfAServerThatServedTheImageLeavesTheStatus(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.doc, p.endpoint = 2, fleet.ReasonConnectFailed // its host moves and does not answer
	p.pass(16*time.Minute).is(fleet.StatusActive, fleet.VerdictStalled, fleet.ReasonURLMove)
	p.declare(p.intent.ImageTag, "")
	p.turn()
	p.is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonURLMove)
	if p.told("Stalled") != 1 {
		t.Errorf("told %d times", p.told("Stalled"))
	}
}

func TestP10_theClockStandsWhileNothingCanBeDone(t *testing.T) {
	for name, stop := range map[string]func(*faults){
		"paused":            func(f *faults) { f.paused = true },
		"kurad is paused":   func(f *faults) { f.allPaused = true },
		"unreadable":        func(f *faults) { f.unreadable = true },
		"ownership unknown": func(f *faults) { f.ownership = fleet.OwnershipUnknown },
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, newSim(variant{}))
			p.endpoint = fleet.ReasonTimeout
			p.pass(10 * time.Minute)
			stop(&p.faults)
			p.pass(3 * time.Hour)
			if p.status.Clock.Expired || p.status.Clock.Since != nil {
				t.Fatalf("the clock went on: %+v", p.status.Clock)
			}
			p.faults = faults{endpoint: fleet.ReasonTimeout}
			p.pass(4 * time.Minute)
			if p.status.Clock.Expired {
				t.Fatalf("what was counted is too much: %+v", p.status.Clock)
			}
			p.pass(2*time.Minute).is(fleet.StatusFailed, fleet.VerdictStalled, fleet.ReasonEndpointNotReady)
		})
	}
}

func TestP10_whatAStalledServerLacksIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(*script)
		want  string
	}{
		{"instance", func(p *script) { p.tasks = fleet.ClassTransient }, "not settled after 15m0s: there is no instance; pull image localhost/kura:v1: not today"},
		{"endpoint", func(p *script) { p.endpoint = fleet.ReasonTLSNotReady }, "not settled after 15m0s: https://acme-eu.kura.test:1 is not ready (TLSNotReady)"},
		{"global endpoint", func(p *script) { p.globalDown = true }, "not settled after 15m0s: https://acme-eu.kura.test:1: GlobalNotReady"},
		{"service", func(p *script) { p.rest(); p.kill(); p.tasks = fleet.ClassTransient }, "not settled after 15m0s: a service does not run; start cache container id1: not today"},
		{"document", func(p *script) { p.rest(); p.doc, p.tasks = 1, fleet.ClassTransient }, "not settled after 15m0s: the instance does not run the desired document; pull image localhost/kura:v1: not today"},
		{"name", func(p *script) {
			p.rest()
			p.remove()
			p.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
		}, "not settled after 15m0s: container kura-acme-eu-cache is held by server other/eu of environment staging"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, newSim(variant{global: true}))
			if c.name != "instance" && c.name != "endpoint" {
				p.globalDown = true // so that it never serves
			}
			c.given(p)
			p.pass(20 * time.Minute)
			if p.status.Message != c.want {
				t.Errorf("got  %s\nwant %s", p.status.Message, c.want)
			}
		})
	}
}

func TestP12_redeployReplacesAndKeepsTheEndpoint(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v1", "again")
	plans := p.plans()
	want := []string{
		"create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache",
	}
	if !slices.Equal(plans, want) {
		t.Errorf("got  %q\nwant %q", plans, want)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.latest.Seq != 2 || len(p.boxes) != 1 || p.told("Provisioning") != 0 {
		t.Errorf("deployment %d, %d containers, %d times provisioning", p.latest.Seq, len(p.boxes), p.told("Provisioning"))
	}
}

func TestP14_aChangedDocumentIsAppliedOnce(t *testing.T) { // L3, L4
	p := play(t, settledOn(variant{helper: true}))
	id := p.box().id
	p.doc = 1
	if plans := p.plans(); len(plans) != 1 {
		t.Errorf("applied %d times: %q", len(plans), plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(3)
	if p.box().id == id {
		t.Error("the container is the old one")
	}
}

func TestP15_theURLSwitchesInOneWriteWhenItAnswers(t *testing.T) { // L5
	p := play(t, settledOn(variant{}))
	old := p.status.PublishedURL
	p.doc, p.endpoint = 2, fleet.ReasonNotResolvable
	p.pass(5*time.Minute).is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonURLMove)
	p.shows(fleet.ConditionURLConverged, fleet.False, fleet.ReasonURLMove)
	if p.status.PublishedURL != old {
		t.Errorf("published %s before it answers", p.status.PublishedURL)
	}
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionURLConverged, fleet.True, fleet.ReasonConverged)
	if p.status.PublishedURL != p.desired().URL || p.told("URLSwitched") != 1 {
		t.Errorf("published %s, told %d times", p.status.PublishedURL, p.told("URLSwitched"))
	}
	// H8: the old host stays routed for 7 days.
	if a := p.status.Aliases; len(a) != 1 || a[0].Host != "acme-eu.kura.test" || a[0].Until.Sub(p.now) > aliasPeriod || a[0].Until.Sub(p.now) < aliasPeriod-time.Minute {
		t.Errorf("aliases %+v", a)
	}
	p.pass(aliasPeriod + time.Minute)
	if len(p.status.Aliases) != 0 || p.told("HostFreed") != 1 {
		t.Errorf("the alias is never given up: %+v; told %d times", p.status.Aliases, p.told("HostFreed"))
	}
}

func TestH8_anAliasThatEndsFreesItsHost(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.doc = 2
	for p.status.PublishedURL != p.desired().URL {
		if out := p.turn(); len(out.Freed) > 0 {
			t.Errorf("%q is given back at the move", out.Freed)
		}
		p.rest()
	}
	p.wait(p.now.Add(aliasPeriod))
	if out := p.turn(); !slices.Equal(out.Freed, []string{"acme-eu.kura.test"}) {
		t.Errorf("given back: %q", out.Freed)
	}
	if out := p.turn(); len(out.Freed) > 0 {
		t.Errorf("given back again: %q", out.Freed)
	}
}

func TestH8_aHostThatIsDeclaredAgainStaysItsOwn(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.doc = 2
	p.rest()
	p.doc, p.endpoint = 0, fleet.ReasonNotResolvable // back, and the old host does not answer
	p.wait(p.now.Add(aliasPeriod))
	if out := p.turn(); len(p.status.Aliases) > 0 || len(out.Freed) > 0 {
		t.Errorf("aliases %+v, given back %q: it is declared to have that host", p.status.Aliases, out.Freed)
	}
}

func TestH8_whatDoesNotRenderKeepsItsHosts(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.doc = 2
	p.rest()
	p.wait(p.now.Add(aliasPeriod))
	p.look()
	in := p.input()
	in.Desired, in.NotRenderable = fleet.Desired{}, &fleet.ReadFailure{Reason: fleet.ReasonNotRenderable, Message: "a template is gone"}
	if out := Decide(in); len(out.Status.Aliases) != 1 || len(out.Freed) > 0 {
		t.Errorf("aliases %+v, given back %q", out.Status.Aliases, out.Freed)
	}
}

func TestH8_movingBackLeavesNoAliasOfThePublishedHost(t *testing.T) {
	p := play(t, settledOn(variant{}))
	for _, doc := range []int{2, 0, 2, 0} {
		p.doc = doc
		p.rest()
	}
	if a := p.status.Aliases; len(a) != 1 || a[0].Host != "acme2-eu.kura.test" {
		t.Errorf("published %s with aliases %+v", p.status.PublishedURL, a)
	}
}

func TestP16_aConvergedServerCostsNothing(t *testing.T) { // L6
	p := play(t, settledOn(variant{helper: true, global: true}))
	p.quiet(20)
	if out := Decide(p.input()); !out.Due.IsZero() || out.Pending || out.Unsettled || out.NeedFreshRead.Has(fleet.TrackRuntime) {
		t.Errorf("it wants something: due %v, pending %v, unsettled %v, fresh read %v", out.Due, out.Pending, out.Unsettled, out.NeedFreshRead.Has(fleet.TrackRuntime))
	}
}

func TestP18_destroyUnpublishesFirstAndEndsWhenAbsenceWasSeen(t *testing.T) {
	p := play(t, settledOn(variant{helper: true}))
	p.declare("v2", "")
	at := p.now
	p.intent.Deleting, p.intent.Generation = &at, p.intent.Generation+1
	p.turn()
	if p.status.PublishedURL != "" {
		t.Error("it is published still")
	}
	p.deployment(fleet.DeploymentCancelled).is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting)
	for !p.removed {
		if len(p.boxes) > 0 && p.status.Status == fleet.StatusDestroyed {
			t.Fatal("destroyed while a container is there")
		}
		p.step()
	}
	if p.status.Status != fleet.StatusDestroyed || p.told("Destroyed") != 1 {
		t.Errorf("status %s, told %d times", p.status.Status, p.told("Destroyed"))
	}
}

func TestP18_aLateEffectLeavesNoOrphan(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.turn()
	p.step() // the pull
	p.turn()
	p.tasks = unanswered // the create lands when nobody expects it
	p.step()
	at, lands := p.now, *p.late.Deadline
	p.intent.Deleting, p.intent.Generation, p.tasks = &at, p.intent.Generation+1, ""
	for range 60 {
		if p.removed {
			break
		}
		p.step()
	}
	if !p.removed || len(p.boxes) != 0 || p.late != nil {
		t.Errorf("removed %v with containers %v, late %v", p.removed, p.boxes, p.late)
	}
	if p.now.Before(lands) {
		t.Errorf("destroyed after %s, before the create's deadline", p.now.Sub(at))
	}
}

func TestP18_aForeignContainerOfTheNameCountsAsAbsence(t *testing.T) {
	s := newSim(variant{})
	s.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
	s.intent.Deleting = &s.now
	p := play(t, s)
	for range 20 {
		p.step()
	}
	if !p.removed || len(p.boxes) != 1 {
		t.Errorf("removed %v, containers %v", p.removed, p.boxes)
	}
}

func TestP18_aPausedDestroyWaitsAndSaysSo(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.paused = true
	p.intent.Deleting = &p.now
	p.rest().is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonPaused)
	if len(p.boxes) != 1 || p.status.Runtime.Intended == nil {
		t.Errorf("containers %v, intended %v", p.boxes, p.status.Runtime.Intended)
	}
}

func TestD3_ownershipGatesTheEntryAndNeverDemotes(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.ownership = fleet.OwnershipUnknown
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonZoneUnreachable)
	p.ownership = fleet.OwnershipForeign
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonForeignOwner)
	p.shows(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonForeignOwner)
	p.ownership = fleet.OwnershipOurs
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	for _, o := range []fleet.Ownership{fleet.OwnershipUnknown, fleet.OwnershipForeign} {
		p.ownership = o
		p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	}
	if p.told("DNSOwnedLost") != 1 || p.told("EndpointWithheld") != 1 {
		t.Errorf("told %d and %d times", p.told("DNSOwnedLost"), p.told("EndpointWithheld"))
	}
}

func TestD3_aForeignNewHostHoldsTheMoveOnly(t *testing.T) {
	p := play(t, settledOn(variant{}))
	old := p.status.PublishedURL
	p.doc, p.ownership = 2, fleet.OwnershipForeign
	p.declare("v2", "")
	p.rest().is(fleet.StatusActive, fleet.VerdictHeld, fleet.ReasonForeignOwner).deployment(fleet.DeploymentSucceeded)
	p.shows(fleet.ConditionURLConverged, fleet.False, fleet.ReasonForeignOwner)
	if p.status.PublishedURL != old || p.status.ServingImageTag != "v2" {
		t.Errorf("published %s, serving %s", p.status.PublishedURL, p.status.ServingImageTag)
	}
	p.ownership = fleet.OwnershipOurs
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestR2_theGlobalEndpointGatesUnlessItIsAdvisory(t *testing.T) {
	p := play(t, newSim(variant{global: true}))
	p.globalDown = true
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonGlobalNotReady)
	in := p.input()
	in.Region.Readiness.Global = fleet.GlobalAdvisory
	out := Decide(in)
	if out.Status.Status != fleet.StatusActive || condition(out.Status, fleet.ConditionGlobalEndpointReady).Status != fleet.False {
		t.Errorf("advisory: got %s", out.Status.Status)
	}
}
