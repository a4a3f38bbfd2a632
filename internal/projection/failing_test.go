package projection

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What is tried again is named in Progressing, in the verdict's message and by the API, with
// how often and since when; the words that are stored do not change with the count (G12).
func TestP21_whatIsTriedAgainIsNamedWithItsLastAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		v       variant
		given   func(*script)
		verdict fleet.Verdict
		want    string
	}{
		{"a pull that gets no answer", variant{}, func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, "pull image localhost/kura:v2: not today"},
		{"a start", variant{}, func(p *script) { p.kill(); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, "start cache container id1: not today"},
		{"a refused pull", variant{}, func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassRefused }, fleet.VerdictFailed, "refused"},
		{"an apply", kube, func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassTransient }, fleet.VerdictProgressing, "apply KuraInstance kura-acme-eu: not today"},
		{"a delete that is refused", kube, func(p *script) { p.intent.Deleting, p.tasks = &p.now, fleet.ClassRefused }, fleet.VerdictDestroying, "delete KuraInstance kura-acme-eu: refused"},
		{"a destroy", variant{}, func(p *script) { p.intent.Deleting, p.tasks = &p.now, fleet.ClassTransient }, fleet.VerdictDestroying, "stop cache container id1: not today"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(c.v))
			c.given(p)
			began := p.now
			p.pass(2 * time.Minute)
			f := cmp.Or(p.status.Runtime.Failing, p.status.Outage.Failing)
			if f == nil || f.Count < 3 || f.Since.Before(began) || f.Since.Sub(began) > time.Second {
				t.Fatalf("failing since %s: %+v", began, f)
			}
			if got := condition(*p.status, fleet.ConditionProgressing); !strings.Contains(got.Message, f.String()) || got.Status != fleet.True {
				t.Errorf("Progressing is %s/%s: %s", got.Status, got.Reason, got.Message)
			}
			view := fleet.NewServerView(p.intent, p.desired(), p.status, &p.latest)
			if view.Verdict != c.verdict || !strings.HasPrefix(view.Message, c.want+" (") || !strings.Contains(view.Message, "times since 20") {
				t.Errorf("%s: %s", view.Verdict, view.Message)
			}
			p.tasks = ""
			p.pass(time.Hour)
			if f := cmp.Or(p.status.Runtime.Failing, p.status.Outage.Failing); f != nil {
				t.Errorf("it still says %s", f)
			}
		})
	}
}

func TestP21_whatTakesLeftoversAwayIsNamedToo(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.put(carrierName+"-next", "cache", "v0", "c/v0/0/", fleet.ContainerExited, false)
	p.tasks = fleet.ClassRefused
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	if got := condition(*p.status, fleet.ConditionProgressing); got.Reason != fleet.ReasonRetrying || !strings.Contains(got.Message, "remove cache container") {
		t.Errorf("Progressing is %s: %s", got.Reason, got.Message)
	}
	delete(p.boxes, carrierName+"-next") // somebody else did it
	p.pass(time.Minute).shows(fleet.ConditionProgressing, fleet.False, fleet.ReasonSettled)
}

func TestP21_aStallNamesItsCause(t *testing.T) {
	for _, c := range []struct {
		name    string
		v       variant
		given   func(*script)
		verdict fleet.Verdict
		want    fleet.Reason
	}{
		{"refused", variant{}, func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassRefused }, fleet.VerdictFailed, fleet.ReasonCreateFailed},
		{"no answer", kube, func(p *script) { p.declare("v2", ""); p.tasks = fleet.ClassTransient }, fleet.VerdictStalled, fleet.ReasonRuntimeError},
		{"crash loop", variant{}, func(p *script) { p.declare("v2", ""); p.crash = true }, fleet.VerdictFailed, fleet.ReasonCrashLoop},
		{"a controller that does not get on", kube, func(p *script) { p.stuck = true; p.declare("v2", "") }, fleet.VerdictStalled, fleet.ReasonRollingOut},
		{"endpoint", variant{}, func(p *script) { p.declare("v2", ""); p.endpoint = fleet.ReasonTimeout }, fleet.VerdictStalled, fleet.ReasonEndpointNotReady},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(c.v))
			c.given(p)
			p.pass(time.Hour)
			p.is(p.status.Status, c.verdict, c.want)
		})
	}
}

func TestP21_anEventSaysWhatDiffered(t *testing.T) {
	p := play(t, settledOn(kube))
	p.obj.edited = true
	p.rest()
	for _, e := range p.events {
		if e.Reason == "PlanStored" && strings.Contains(e.Message, `spec.storageSize is "1Gi", wanted "2Gi" (set by kubectl-edit)`) {
			return
		}
	}
	t.Errorf("nobody says what differed: %+v", p.events)
}

// What somebody else has done is not tried any more, whatever the server still waits for: its
// old answer is not what that is said to wait for.
func TestP21_whatSomebodyElseHasDoneIsNoLongerSaidToFail(t *testing.T) {
	p := play(t, settledOn(kube))
	p.declare("v2", "")
	p.endpoint = fleet.ReasonTimeout
	p.pass(2*time.Minute).shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged)
	p.obj.edited, p.tasks = true, fleet.ClassTransient
	p.pass(2*time.Minute).shows(fleet.ConditionProgressing, fleet.True, fleet.ReasonRetrying)
	p.obj.edited = false // somebody took his change back
	p.pass(20*time.Minute).is(fleet.StatusFailed, fleet.VerdictStalled, fleet.ReasonEndpointNotReady)
	if f := p.status.Runtime.Failing; f != nil {
		t.Errorf("nothing is applied, and it is said to fail: %s", f)
	}
}
