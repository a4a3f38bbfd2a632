package projection

import (
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Rule names a rule of docs/design/rules.md, so that a test can drop it and see
// that it is missed.
type Rule string

// Rules.
const (
	RuleP18Destroy     Rule = "P18 destroy is intent"
	RuleP2Unreadable   Rule = "P2 unreadable changes nothing"
	RuleNewKey         Rule = "P1 a new generation starts anew"
	RulePlanAnswers    Rule = "S5 answers are input of the next projection"
	RuleS6Supersede    Rule = "S6 a new generation supersedes a plan"
	RuleS11DropHeld    Rule = "S11 a stored plan is dropped when a pause is first seen"
	RuleS11Holds       Rule = "S11 nothing starts while held"
	RuleSee            Rule = "P4 observed values follow the read"
	RuleC11Crashes     Rule = "C11 quick exits are counted"
	RuleP5Active       Rule = "P5 active"
	RuleP5FreshProbe   Rule = "R1 only a probe begun after convergence counts"
	RuleP8Endpoint     Rule = "P8 active only through ready endpoints"
	RuleD3Ownership    Rule = "D3 active only through owned endpoints"
	RuleRefused        Rule = "P1 a refused task fails"
	RuleP10Stall       Rule = "P10 stall"
	RuleP4Absent       Rule = "P4 absent is provisioning"
	RuleC7Foreign      Rule = "C7 a foreign container is left alone"
	RuleP7Image        Rule = "P7 image differs"
	RuleDeployment     Rule = "deployments run at the first effect or at adoption"
	RuleP9Retry        Rule = "P9 attempted again with backoff"
	RuleP9Prompt       Rule = "P9 at once when what is there has changed"
	RuleG4Admission    Rule = "G4 admission"
	RuleWakeUp         Rule = "no lost wake-up"
	RuleP14Document    Rule = "P14 a document that differs is applied again"
	RuleC2Restart      Rule = "C2 an exited container is started again"
	RuleC4Leftovers    Rule = "C4 leftovers are removed"
	RuleEffectsGuard   Rule = "L44 a read begun before an effect ended says nothing"
	RuleP18Absence     Rule = "P18 destroyed only when absence was observed after the last effect"
	RuleClockHeld      Rule = "P10 the clock stops under a hold"
	RuleS10Observe     Rule = "S10 an observing region starts nothing"
	RuleURLOnce        Rule = "P15 the published url switches when the new one answers"
	RuleSilence        Rule = "G1 a restart rewrites nothing"
	RuleC14Alive       Rule = "C14 what served last is started again, whatever its successor waits for"
	RuleC14Yield       Rule = "C14 a plan that prepares gives way to what served last"
	RuleC14Interrupted Rule = "C14 what a plan stopped is put back, whatever holds"
	RuleC15Names       Rule = "C15 what is ours gets its name back"
	RuleC15GiveWay     Rule = "C15 what holds a port that another step needs gives way"
	RuleP12Mark        Rule = "P12 the mark of a redeploy outlives its record"
	RuleSettledRefusal Rule = "P5 clears a refusal"

	RuleP18Tracks Rule = "P18 what leads to a server goes before it"
	RuleD0Order   Rule = "D0 a pool is added when its endpoint answers"
	RuleD1Foreign Rule = "D1 a load balancer of somebody else is left alone"
	RuleD4Claimed Rule = "D4 a host of somebody else is left alone"
	RuleD4OwnOnly Rule = "D4 only what is the server's own is withdrawn"
	RuleR2Pool    Rule = "R2 active only with our pool in the load balancer"

	RuleK4Foreign     Rule = "K4 a foreign object is left alone"
	RuleK4Terminating Rule = "P4 nothing is planned for an object that is being deleted"
	RuleK6Adoption    Rule = "K6 what was taken over is changed when it is applied"
	RuleK6Direct      Rule = "K6 only the cluster itself says that what was taken over is gone"
	RuleK6Record      Rule = "K6 the record of what was taken over ends with it"
	RuleK7Withdrawn   Rule = "K7 a host is given back when nothing routes it any more"
	RuleK7Rerender    Rule = "K7 what a turn changes of the document is rendered at once"
	RuleP4NoImage     Rule = "P4 provisioning until the instance reports an image"
	RuleP5Image       Rule = "P5 another image of the same tag is another image"
	RuleP5SameObject  Rule = "P5 another object converges anew"
	RuleP18Direct     Rule = "P18 only the cluster itself says that an object is gone"
	RuleK3Once        Rule = "K3 what the schema lacks is told once"
	RuleK8Evidence    Rule = "K8 what was applied settles when its controller has shown it to be rolled out"
	RuleK8Twice       Rule = "K8 one write of a controller may be of a pass that began before the apply"
	RuleS6Object      Rule = "S6 a plan for what is no longer there is dropped"
)

// step takes something into account, and decides nothing.
type step struct {
	id   Rule
	take func(*turn)
}

// bookkeeping is what comes before the rules, whatever they decide: what was wanted, answered
// and seen since the last turn. Nothing is made of a world that cannot be read (P2), but for a
// server that goes (P18).
var bookkeeping = []step{
	{RuleNewKey, (*turn).newKey},
	{RulePlanAnswers, (*turn).answers},
	{RuleS6Supersede, func(t *turn) { t.books().supersede() }},
	{RuleS11DropHeld, func(t *turn) { t.books().dropHeld() }},
	{RuleSee, (*turn).see},
	{RuleC11Crashes, (*turn).crashes},
	{RuleC14Yield, (*turn).yield},
	{RuleDeployment, (*turn).deployment},
	{RuleP12Mark, (*turn).mark},
}

// precedence is that of P1: the first rule that holds says what the server is. P6 is that none
// of them changes the status.
var precedence = []struct {
	id    Rule
	holds func(*turn) bool
}{
	{RuleP18Destroy, (*turn).destroy},
	{RuleP2Unreadable, (*turn).unreadable},
	{RuleP5Active, (*turn).active},
	{RuleRefused, (*turn).refused},
	{RuleP10Stall, (*turn).stall},
	{RuleP4Absent, (*turn).absent},
	{RuleP7Image, (*turn).image},
}

// decide is the whole projection of a status.
func (t *turn) decide() {
	t.look()
	if t.seen.readable || t.destroying() {
		for _, s := range bookkeeping {
			t.follow(s.id, func() bool { s.take(t); return false })
		}
	}
	for _, r := range precedence {
		if t.follow(r.id, func() bool { return r.holds(t) }) {
			return
		}
	}
}

// look reads the observation as far as effects of ours are over.
func (t *turn) look() { t.seen = look(t.in, t.effectsOver()) }

// destroying reports whether the server is to go (P18).
func (t *turn) destroying() bool { return t.in.Intent.Deleting != nil && t.in.rule(RuleP18Destroy) }

// unreadable is P2: nothing changes, and nothing is decided.
func (t *turn) unreadable() bool {
	if t.seen.readable {
		return false
	}
	if t.in.Prev == nil {
		t.s.Generation, t.s.Revision = t.in.Intent.Generation, t.in.Desired.Revision
	}
	if t.in.Seen.Instance.Unreadable != nil || t.in.NotRenderable != nil {
		stopClock(&t.s.Clock, t.in.Now)
	}
	return true
}

// effectsOver reports whether the newest good read began after every effect of ours.
func (t *turn) effectsOver() bool {
	if !t.in.rule(RuleEffectsGuard) || t.destroying() && !t.in.rule(RuleP18Absence) {
		return true
	}
	return t.books().effectsOver(t.in.Seen.Instance.Begun)
}

// newKey starts anew where the generation or the document changed, or the server is to go:
// what counted attempts, refusals and time for the old one is forgotten.
func (t *turn) newKey() {
	was := fleet.Settled{Generation: t.s.Generation, Revision: t.s.Revision}
	t.s.Generation, t.s.Revision = t.in.Intent.Generation, t.in.Desired.Revision
	switch {
	case t.destroying() && t.s.Status == fleet.StatusDestroying, !t.destroying() && (was == t.key() || t.in.Prev == nil):
		return
	case t.destroying():
		t.s.PublishedURL, t.s.Aliases, t.s.Admitted, t.s.RollOut, t.s.Outage = "", nil, false, nil, fleet.Outage{}
	case t.s.Status == fleet.StatusFailed || t.s.Clock.Expired:
		t.s.Admitted = false // it gave its place back; the new cause asks again (G4)
	}
	if was.Generation != t.in.Intent.Generation && t.s.Status == fleet.StatusFailed {
		t.become(fleet.StatusProvisioning, "", "")
	}
	t.s.Runtime.Refusal, t.s.Runtime.Course, t.s.Outage.Course = nil, fleet.Course{}, fleet.Course{}
	t.s.Crashes, t.s.ConvergedAt, t.s.Clock = nil, nil, fleet.StallClock{}
}

// see takes over what a good read saw.
func (t *turn) see() {
	t.look()
	if !t.seen.fresh {
		return
	}
	t.outage()
	if t.s.Runtime.Plan == nil && t.seen.converged && t.in.Intent.Deleting == nil {
		t.s.Runtime.Failing, t.s.Runtime.LastFailed = nil, nil // whoever did it: nothing is tried any more (P21)
	}
	if t.s.Runtime.NextAttempt != nil && t.in.rule(RuleP9Prompt) && t.in.runtime().prompted(t) {
		t.s.Runtime.NextAttempt = nil
		if t.s.Status == fleet.StatusFailed {
			t.s.Admitted = false // it gave its place back; the new cause asks again (G4)
		}
	}
	same := t.in.runtime().see(t)
	t.s.ObservedImageTag = t.seen.tag
	switch {
	case !t.seen.image.equal() || !t.seen.document || !t.seen.running, t.s.RollOut != nil, t.destroying():
		t.s.ConvergedAt = nil
	case t.s.ConvergedAt == nil || !same:
		now := t.in.Now
		t.s.ConvergedAt = &now
	}
}

// refused is P1's rule of a refused task: the runtime refused one of this key, or the server's
// containers do not stay up, and no open deployment replaces all of those.
func (t *turn) refused() bool {
	if r := t.s.Runtime.Refusal; r != nil {
		t.become(fleet.StatusFailed, r.Reason, r.Message)
		t.fail(r.Reason, r.Message)
		return true
	}
	if t.seen.fresh && t.crashing() && !t.succeeded() {
		t.become(fleet.StatusFailed, fleet.ReasonCrashLoop, t.crashLoop())
		t.fail(fleet.ReasonCrashLoop, t.crashLoop())
		return true
	}
	return false
}

// stall is P10.
func (t *turn) stall() bool {
	c := &t.s.Clock
	adopted := t.seen.fresh && t.seen.presence == present && t.seen.document && t.seen.running
	if p := t.s.Runtime.Plan; c.Cause != "" || p != nil && (needsPlace(*p) || p.Cause == fleet.CauseOutage && t.outlasts()) || adopted {
		startClock(c, t.cause(), t.in.Now)
	}
	if at := expiry(*c, t.in.Region.StallAfter.Std()); at != nil && !at.After(t.in.Now) {
		c.Expired = true
	}
	if !c.Expired || t.s.ServingImageTag == t.in.Desired.ImageTag {
		return false
	}
	t.become(fleet.StatusFailed, fleet.ReasonStalled,
		t.stalled())
	return true
}

// outlasts reports whether what served last and is started again is what is desired: it was
// settled, and its clock counts as for one that is made anew (P10).
func (t *turn) outlasts() bool { return t.seen.fresh && t.seen.document }

// stalled says what a stalled server waits for, with the last answer to what is tried (P21).
func (t *turn) stalled() string {
	text := fmt.Sprintf("not settled after %s: %s", t.in.Region.StallAfter, t.waitsFor())
	if _, trouble := t.trouble(); trouble != "" {
		text += "; " + trouble
	}
	return text
}

// waitsFor says what a stalled server lacks.
func (t *turn) waitsFor() string {
	if t.seen.presence == foreign {
		return t.seen.owner
	}
	if t.seen.presence == absent {
		return "there is no instance"
	}
	switch missing := t.in.runtime().missing(t); {
	case missing != "":
		return missing
	case t.gate.reason == fleet.ReasonEndpointNotReady && t.in.Seen.Endpoint.Reason != "":
		return fmt.Sprintf("%s is not ready (%s)", t.gate.url, t.in.Seen.Endpoint.Reason)
	case t.gate.claim.reason != "":
		return t.gate.claim.String()
	case t.gate.reason != "":
		return fmt.Sprintf("%s: %s", t.gate.url, t.gate.reason)
	default:
		return "the roll-out has not ended"
	}
}

// absent is P4.
func (t *turn) absent() bool {
	if !t.seen.fresh {
		return false
	}
	switch t.seen.presence {
	case foreign:
		message := t.seen.owner + "; it is left alone: " + t.makeRoom()
		t.become(fleet.StatusFailed, fleet.ReasonForeignInstance, message)
		t.fail(fleet.ReasonForeignInstance, message)
		return true
	case absent:
		if t.s.Status != fleet.StatusFailed {
			t.become(fleet.StatusProvisioning, "", "")
		}
		return true
	case present:
	}
	if t.seen.unborn() && t.in.rule(RuleP4NoImage) {
		if t.s.Status != fleet.StatusFailed {
			t.become(fleet.StatusProvisioning, "", "")
		}
		return true
	}
	return false
}

// image is P7. What it leaves alone is P6.
func (t *turn) image() bool {
	if !t.seen.fresh || t.seen.image != imageOther {
		return false
	}
	d := t.latest
	switch {
	case d.Status.Open():
		if t.s.ServingImageTag == "" {
			t.become(fleet.StatusProvisioning, "", "")
		}
	case d.Status == fleet.DeploymentFailed && t.s.ServingImageTag != t.in.Desired.ImageTag && d.Generation == t.in.Intent.Generation:
		reason := d.Reason
		if reason == "" {
			reason = fleet.ReasonRollingOut
		}
		t.become(fleet.StatusFailed, reason, d.Message)
	}
	return true
}

// become sets the status with its reason; a failed server keeps saying why.
func (t *turn) become(s fleet.ServerStatus, reason fleet.Reason, message string) {
	t.s.Status, t.s.Reason, t.s.Message = s, reason, cut(message)
}

// destroy is P18: unpublished, deleted, and gone only when absence was seen.
func (t *turn) destroy() bool {
	if !t.destroying() {
		return false
	}
	if t.s.Status != fleet.StatusDestroying {
		t.become(fleet.StatusDestroying, fleet.ReasonDeleting, "")
	}
	t.awaitTracks()
	if gone, _ := t.in.runtime().gone(t); gone && t.seen.fresh && t.s.Runtime.Plan == nil && t.tracksGone() {
		t.become(fleet.StatusDestroyed, fleet.ReasonGone, "")
		t.remove = true
	}
	return true
}
