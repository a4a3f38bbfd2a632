package projection

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// The verdict is the first row that holds: each row is seen over all rows after it.
func TestVerdict_rowByRow(t *testing.T) {
	fails := func(p *script) { p.tasks = fleet.ClassRefused; p.declare("v2", ""); p.rest() }
	stalls := func(p *script) { p.doc, p.endpoint = 2, fleet.ReasonTimeout; p.pass(20 * time.Minute) }
	for _, c := range []struct {
		name    string
		given   func(*script)
		verdict fleet.Verdict
		reason  fleet.Reason
		ready   fleet.ConditionStatus
	}{
		{"destroying over unobserved, stalled and held", func(p *script) { stalls(p); p.unreadable, p.paused, p.intent.Deleting = true, true, &p.now }, fleet.VerdictDestroying, fleet.ReasonPaused, fleet.False},
		{"destroying", func(p *script) { p.intent.Deleting, p.tasks = &p.now, fleet.ClassTransient }, fleet.VerdictDestroying, fleet.ReasonDeleting, fleet.False},
		{"unobserved over stalled", func(p *script) { stalls(p); p.unreadable = true }, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, fleet.Unknown},
		{"unobserved over failed and held", func(p *script) { fails(p); p.unreadable, p.paused = true, true }, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, fleet.Unknown},
		{"unobserved over converged", func(p *script) { p.unreadable = true }, fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, fleet.Unknown},
		{"stalled over held", func(p *script) { stalls(p); p.paused = true }, fleet.VerdictStalled, fleet.ReasonURLMove, fleet.False},
		{"failed over held", func(p *script) { fails(p); p.paused = true }, fleet.VerdictFailed, fleet.ReasonCreateFailed, fleet.False},
		{"failed over drifted", func(p *script) { fails(p); p.observe = true }, fleet.VerdictFailed, fleet.ReasonCreateFailed, fleet.False},
		{"converged", func(*script) {}, fleet.VerdictConverged, "", fleet.True},
		{"converged over held", func(p *script) { p.paused = true }, fleet.VerdictConverged, "", fleet.True},
		{"converged, a failed probe is its reason", func(p *script) { p.endpoint = fleet.ReasonHTTPNotReady }, fleet.VerdictConverged, fleet.ReasonEndpointNotReady, fleet.False},
		{"converged, not probed is its reason", func(p *script) { p.endpoint = fleet.ReasonNotChecked }, fleet.VerdictConverged, fleet.ReasonNotChecked, fleet.Unknown},
		{"absent over held, where the region observes", func(p *script) { p.observe, p.paused = true, true; p.remove() }, fleet.VerdictAbsent, fleet.ReasonAbsent, fleet.False},
		{"drifted over held, where the region observes", func(p *script) { p.observe, p.paused = true, true; p.kill() }, fleet.VerdictDrifted, fleet.ReasonDrifted, fleet.False},
		{"held by a pause", func(p *script) { p.paused = true; p.declare("v2", "") }, fleet.VerdictHeld, fleet.ReasonPaused, fleet.False},
		{"held by admission", func(p *script) { p.full = true; p.declare("v2", "") }, fleet.VerdictHeld, fleet.ReasonAdmission, fleet.False},
		{"held by the owner of the new host", func(p *script) { p.doc, p.ownership = 2, fleet.OwnershipForeign }, fleet.VerdictHeld, fleet.ReasonForeignOwner, fleet.False},
		{"progressing: absent", func(p *script) { p.remove(); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, fleet.ReasonAbsent, fleet.False},
		{"progressing: rolling out", func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, fleet.ReasonRollingOut, fleet.False},
		{"progressing: drifted", func(p *script) { p.kill(); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, fleet.ReasonDrifted, fleet.False},
		{"progressing: an image without a tag", func(p *script) {
			b := p.box()
			b.tag, b.dig = "", "c/none"
			p.boxes[carrierName], p.tasks = b, fleet.ClassTransient
		}, fleet.VerdictProgressing, fleet.ReasonUnparsableImage, fleet.False},
		{"progressing: url move", func(p *script) { p.doc, p.endpoint = 2, fleet.ReasonTimeout }, fleet.VerdictProgressing, fleet.ReasonURLMove, fleet.False},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			c.given(p)
			p.rest().is(p.status.Status, c.verdict, c.reason)
			if got := condition(*p.status, fleet.ConditionReady).Status; got != c.ready {
				t.Errorf("Ready is %s, want %s", got, c.ready)
			}
		})
	}
}

func TestVerdict_everyHoldHasAReason(t *testing.T) {
	seen := map[fleet.Reason]bool{}
	for _, k := range []fleet.HoldKind{fleet.HoldPaused, fleet.HoldObserve, fleet.HoldAdmission, fleet.HoldOwnership, fleet.HoldAdoption} {
		r := holdReason(k)
		if seen[r] || r == fleet.ReasonHeld {
			t.Errorf("%s shows as %s, as another does", k, r)
		}
		seen[r] = true
	}
}

func TestConditions_standInTheTablesOrderAndStayPresent(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.silent = true
	for _, then := range []func(){
		func() {}, func() { p.silent = false }, func() { p.rest() }, func() { p.unreadable = true },
		func() { p.unreadable, p.intent.Deleting = false, &p.now },
	} {
		then()
		p.turn()
		var got []fleet.ConditionType
		for _, c := range p.status.Conditions {
			got = append(got, c.Type)
			if c.Status == "" || c.Reason == "" {
				t.Errorf("%s is %q/%q", c.Type, c.Status, c.Reason)
			}
		}
		if !slices.Equal(got, conditionOrder) {
			t.Errorf("got %v, want %v", got, conditionOrder)
		}
	}
}

func TestConditions_timeMovesOnlyWithTheStatus(t *testing.T) {
	p := play(t, settledOn(variant{}))
	at := func() time.Time { return condition(*p.status, fleet.ConditionEndpointReady).LastTransitionTime }
	p.pass(time.Minute)
	was := at()
	p.endpoint = fleet.ReasonTimeout
	p.rest()
	lost := at()
	p.pass(time.Minute)
	p.endpoint = fleet.ReasonConnectFailed
	p.rest()
	if !lost.After(was) || !at().Equal(lost) {
		t.Errorf("ready since %s, lost at %s, another reason at %s", was, lost, at())
	}
}

func TestH7_unparsableImageIsNoTag(t *testing.T) {
	p := play(t, settledOn(variant{}))
	b := p.box()
	b.tag = ""
	p.boxes[carrierName] = b
	p.paused = true
	p.turn()
	p.shows(fleet.ConditionImageConverged, fleet.False, fleet.ReasonUnparsableImage)
	if p.status.ObservedImageTag != "" {
		t.Errorf("observed %q", p.status.ObservedImageTag)
	}
}

func TestConditions_aLongMessageIsCut(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.silent = true
	in := p.input()
	in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonNotRenderable, Message: string(make([]byte, 5000))}
	if n := len(condition(Decide(in).Status, fleet.ConditionInstanceObserved).Message); n > 1024 {
		t.Errorf("%d bytes", n)
	}
}
