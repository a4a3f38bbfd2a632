package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// report derives everything that is shown from the status: conditions and the verdict. It
// decides nothing, and may run again after a plan was added.
func (t *turn) report() {
	t.gate = t.readGate()
	t.s.Conditions = nil
	for _, rule := range fleet.ConditionRules() {
		c := fleet.Condition{Type: rule.Type}
		if t.in.Prev != nil {
			c = cmp.Or(condition(*t.in.Prev, rule.Type), c)
		}
		t.s.Conditions = append(t.s.Conditions, c)
	}
	t.conditions()
	t.verdict()
	t.summary()
}

// set puts a condition; its time moves only with its status.
func (t *turn) set(ct fleet.ConditionType, status fleet.ConditionStatus, reason fleet.Reason, message string) {
	c := fleet.Condition{
		Type: ct, Status: status, Reason: reason, Message: cut(message),
		ObservedGeneration: t.s.Generation, LastTransitionTime: t.in.Now,
	}
	i := slices.IndexFunc(t.s.Conditions, func(old fleet.Condition) bool { return old.Type == ct })
	if old := t.s.Conditions[i]; old.Status == status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	t.s.Conditions[i] = c
}

// setOnce sets a condition only where there is none yet: no news leave it alone.
func (t *turn) setOnce(ct fleet.ConditionType, reason fleet.Reason) {
	if condition(t.s, ct).Status == "" {
		t.set(ct, fleet.Unknown, reason, "")
	}
}

func condition(s fleet.Status, ct fleet.ConditionType) fleet.Condition {
	for _, c := range s.Conditions {
		if c.Type == ct {
			return c
		}
	}
	return fleet.Condition{}
}

func (t *turn) conditions() {
	t.instanceObserved()
	switch {
	case t.in.Intent.Deleting != nil:
		for _, ct := range []fleet.ConditionType{
			fleet.ConditionImageConverged, fleet.ConditionManifestConverged,
			fleet.ConditionEndpointReady, fleet.ConditionGlobalEndpointReady, fleet.ConditionURLConverged,
		} {
			t.set(ct, fleet.False, fleet.ReasonDeleting, "")
		}
	case t.seen.fresh:
		t.converged()
		t.endpoints()
	default:
		t.setOnce(fleet.ConditionImageConverged, fleet.ReasonNotObservedYet)
		t.setOnce(fleet.ConditionManifestConverged, fleet.ReasonNotObservedYet)
		t.endpoints()
	}
	t.progressing()
	t.owned()
	for _, track := range t.tracks() {
		track.report()
	}
	if !t.says(fleet.ConditionSidecarReady) {
		t.set(fleet.ConditionSidecarReady, fleet.False, fleet.ReasonNotApplicable, "the region declares no sidecar")
	}
}

func (t *turn) instanceObserved() {
	switch u := t.in.Seen.Instance.Unreadable; {
	case t.in.NotRenderable != nil:
		t.set(fleet.ConditionInstanceObserved, fleet.Unknown, t.in.NotRenderable.Reason, t.in.NotRenderable.Message)
	case u != nil:
		t.set(fleet.ConditionInstanceObserved, fleet.Unknown, u.Reason, u.Message)
	case t.seen.readable:
		t.set(fleet.ConditionInstanceObserved, fleet.True, fleet.ReasonObserved, "")
	default:
		t.setOnce(fleet.ConditionInstanceObserved, fleet.ReasonNotObservedYet)
	}
}

// converged says how the image and the document of what is there are.
func (t *turn) converged() {
	v := t.seen
	image := func(reason fleet.Reason, message string) {
		t.set(fleet.ConditionImageConverged, fleet.False, reason, message)
	}
	switch {
	case v.presence == foreign:
		image(fleet.ReasonForeignInstance, v.owner)
	case v.unborn():
		image(fleet.ReasonRollingOut, "no roll-out is complete yet, wants "+t.in.Desired.ImageTag+t.controllerSays())
	case v.presence == absent, v.image == imageNone:
		image(fleet.ReasonAbsent, "")
	case v.illegible != "":
		image(fleet.ReasonUnparsableImage, t.imageDiffers())
	case v.image == imageOther && t.latest.Status.Open():
		image(fleet.ReasonRollingOut, t.imageDiffers())
	case v.image == imageOther:
		image(fleet.ReasonDrifted, t.imageDiffers())
	default:
		t.set(fleet.ConditionImageConverged, fleet.True, fleet.ReasonConverged, "")
	}
	switch v.presence {
	case foreign:
		t.set(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonForeignInstance, v.owner)
	case absent:
		t.set(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonAbsent, "")
	case present:
		status, reason, message := t.in.runtime().document(t)
		t.set(fleet.ConditionManifestConverged, status, reason, message)
	}
}

// imageDiffers says which image runs and which is wanted: in full where the tags are one,
// or where there is none to be read.
func (t *turn) imageDiffers() string {
	is, want := t.seen.tag, t.in.Desired.ImageTag
	switch {
	case t.seen.illegible != "":
		is = t.seen.illegible + ", whose tag cannot be read"
	case is == want:
		is, want = t.seen.resource.ObservedImage, t.in.imageWanted()
	}
	return fmt.Sprintf("runs %s, wants %s%s", is, want, t.controllerSays())
}

// endpoints says whether the url that clients have answers right now (P8), and
// whether it is the declared one.
func (t *turn) endpoints() {
	declared, published := t.in.Desired.URL, t.s.PublishedURL
	current := t.in.Seen.Endpoint
	if published != "" && published != declared {
		current = t.in.Seen.Published
	}
	if !t.crashing() || condition(t.s, fleet.ConditionEndpointReady).Status != fleet.False {
		t.probed(fleet.ConditionEndpointReady, current)
	} // else what answers between two exits is not ready until it stays up (G12)
	switch {
	case t.says(fleet.ConditionGlobalEndpointReady):
	case t.in.Desired.GlobalURL == "":
		t.set(fleet.ConditionGlobalEndpointReady, fleet.False, fleet.ReasonNotApplicable, "the region declares no global host")
	default:
		t.probed(fleet.ConditionGlobalEndpointReady, t.in.Seen.Global)
	}
	switch {
	case published == "":
		t.set(fleet.ConditionURLConverged, fleet.False, fleet.ReasonNotPublished, "")
	case published == declared:
		t.set(fleet.ConditionURLConverged, fleet.True, fleet.ReasonConverged, "")
	case t.gate.moveHeld:
		t.set(fleet.ConditionURLConverged, fleet.False, t.gate.claim.reason, fmt.Sprintf("%s waits: %s", declared, t.gate.claim))
	default:
		message := fmt.Sprintf("%s is published until %s answers", published, declared)
		switch p := t.in.Seen.Endpoint; {
		case p.Begun.IsZero() && strings.HasPrefix(condition(t.s, fleet.ConditionURLConverged).Message, message):
			return // not probed again yet: what was said stays
		case !p.Ready && p.Reason != "":
			message += fmt.Sprintf(" (%s)", p.Reason)
		}
		t.set(fleet.ConditionURLConverged, fleet.False, fleet.ReasonURLMove, message)
	}
}

func (t *turn) probed(ct fleet.ConditionType, p fleet.ProbeObservation) {
	switch {
	case p.Begun.IsZero():
		t.setOnce(ct, fleet.ReasonNotChecked)
	case p.Reason == fleet.ReasonNotChecked: // the url cannot be probed: unknown, not down (L58)
		t.set(ct, fleet.Unknown, fleet.ReasonNotChecked, p.Message)
	case p.Ready:
		t.set(ct, fleet.True, fleet.ReasonReady, "")
	default:
		t.set(ct, fleet.False, p.Reason, p.Message)
	}
}

func (t *turn) progressing() {
	s := t.s
	set := func(status fleet.ConditionStatus, reason fleet.Reason, message string) {
		t.set(fleet.ConditionProgressing, status, reason, message)
	}
	_, trouble := t.trouble()
	switch {
	case t.in.Intent.Deleting != nil:
		set(fleet.True, fleet.ReasonDeleting, cmp.Or(trouble, t.leaving(), t.unwithdrawn()))
	case s.Clock.Expired:
		set(fleet.False, fleet.ReasonStalled, t.stalled()+"; work goes on")
	case s.Runtime.Plan == nil && t.seen.fresh && t.controllerSilent() && !blocked(s.Holds):
		text := t.unproven()
		if trouble != "" {
			text += "; " + trouble
		}
		set(fleet.False, fleet.ReasonSilent, text)
	case trouble != "" && (s.Runtime.Plan != nil || t.seen.readable && !blocked(s.Holds)):
		set(fleet.True, fleet.ReasonRetrying, trouble)
	case s.Runtime.Plan != nil && s.Runtime.Plan.Kind == fleet.PlanReplace:
		set(fleet.True, fleet.ReasonReplacing, t.doing())
	case s.Runtime.Plan != nil:
		set(fleet.True, fleet.ReasonApplying, t.doing())
	case t.settled() && (!t.seen.fresh || t.seen.converged):
		set(fleet.False, fleet.ReasonSettled, "")
	case blocked(s.Holds):
		set(fleet.False, fleet.ReasonHeld, s.Holds[0].Message)
	case !t.seen.readable:
		t.setOnce(fleet.ConditionProgressing, fleet.ReasonNotObservedYet)
	case t.seen.fresh && t.seen.drifted(): // the next attempt is not due yet
		set(fleet.True, fleet.ReasonRetrying, "")
	case t.seen.fresh && s.RollOut != nil:
		set(fleet.True, fleet.ReasonWaiting, t.unproven())
	default:
		set(fleet.True, fleet.ReasonWaiting, "")
	}
}

// doing says where the stored plan stands; and of one that was made for something else, what
// has to end before that begins (S6).
func (t *turn) doing() string {
	i := t.s.Runtime.Plan.Current()
	if i < 0 {
		return ""
	}
	task := t.s.Runtime.Plan.Tasks[i]
	if b := t.books(); b.awaited() && !b.is.current(b.work.Plan) {
		return fmt.Sprintf("waits for what was begun before the change: %s (by %s at the latest)", task.Describe(), task.Deadline.UTC().Format(time.RFC3339))
	}
	return task.Describe()
}
