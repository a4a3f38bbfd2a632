package projection

import (
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// phasePending is the controller's phase while the workload is not as its spec says. That it
// is not over is the controller's to say, that the server answers is not (R3).
const phasePending = "Pending"

// silentAfter is how long a controller that works takes at most to write something: it
// does so every 30 s, and may be restarted.
const silentAfter = 90 * time.Second

// rollsOut begins to wait for the roll-out of what the plan applies, before anything of it
// can have happened. What was under way and unproven stays so.
func rollsOut(in Input, prev *fleet.KubeRollOut, p fleet.Plan, r *fleet.KubeInstance) *fleet.KubeRollOut {
	switch {
	case !slices.ContainsFunc(p.Tasks, func(t fleet.Task) bool { return t.Kind == fleet.TaskApply }):
		return prev
	case r == nil:
		return &fleet.KubeRollOut{Latches: true}
	case prev == nil:
		return &fleet.KubeRollOut{Before: r.State(), Latches: r.SpecImage != in.imageOf(*r)}
	case prev.Applied == nil:
		return prev
	default:
		return &fleet.KubeRollOut{Before: prev.Before}
	}
}

// appliedAs notes what an apply was answered with: what the controller writes from there on
// counts.
func (t *turn) appliedAs(is fleet.KubeState, at time.Time) {
	o := fleet.KubeRollOut{}
	if t.s.RollOut != nil {
		o = *t.s.RollOut
	}
	once := (o.Before.UID == "" || o.Before.UID == is.UID) && o.Before.Generation+1 == is.Generation
	o.Latches = o.Latches && once && (is.ObservedImage == "" || !sameImage(is.ObservedImage, t.in.imageWanted()))
	o.Applied, o.At, o.Writes, o.Written = &is, at, 0, ""
	t.s.RollOut = &o
}

// rolledOut takes what a good read says of the roll-out that goes on, and forgets it when
// the controller has shown that it is complete (K8): the latch has moved to the image; or it
// has written twice, for then its last pass began after the one before had ended, which was
// after the apply, and says that the workload is as that pass has read the spec.
// A write that was missed makes this wait for the next one, and no time does it instead.
func (t *turn) rolledOut() {
	v, r := t.seen, t.seen.resource
	if t.s.RollOut == nil || r == nil || t.s.Runtime.Plan != nil {
		return
	}
	again := t.s.Runtime.LastFailed != nil && t.seen.drifted() // stored before the next try, too
	if is := r.State(); t.s.RollOut.Applied == nil && !again && is.UID == t.s.RollOut.Before.UID && is.Generation == t.s.RollOut.Before.Generation {
		t.s.RollOut = nil // it never happened
		return
	} else if t.s.RollOut.Applied == nil || t.s.RollOut.Applied.UID != is.UID {
		t.appliedAs(is, t.in.Now) // and the answer was lost, or somebody made another one
	}
	o := *t.s.RollOut
	if r.Generation < o.Applied.Generation {
		return // the read is older than the apply
	}
	last := o.Applied.Written
	if o.Writes > 0 {
		last = o.Written
	}
	if o.Writes < 2 && r.Written != last {
		o.Writes, o.Written = o.Writes+1, r.Written
	}
	t.s.RollOut = &o
	metadataOnly := o.Applied.UID == o.Before.UID && o.Applied.Generation == o.Before.Generation
	latched := o.Latches && v.image == imageEqual
	written := o.Writes == 2 || o.Writes == 1 && !t.in.rule(RuleK8Twice)
	if metadataOnly || latched || written && r.Phase != phasePending || !t.in.rule(RuleK8Evidence) {
		t.s.RollOut = nil
	}
}

// silentFrom is when the controller will have been silent for too long since the apply; nil:
// it has written, or nothing is being rolled out.
func silentFrom(s fleet.Status) *time.Time {
	if s.RollOut == nil || s.RollOut.Applied == nil || s.RollOut.Writes > 0 {
		return nil
	}
	at := s.RollOut.At.Add(silentAfter)
	return &at
}

// controllerSilent reports whether the controller has not looked at what was applied for long.
func (t *turn) controllerSilent() bool {
	at := silentFrom(t.s)
	return at != nil && !at.After(t.in.Now) && t.seen.document && t.seen.running
}

// unproven says what is not known of the roll-out.
func (t *turn) unproven() string {
	if t.controllerSilent() {
		return "the controller has written nothing since the apply, for " + silentAfter.String() + " and more: is it running, and does it watch the namespace?"
	}
	return "its roll-out is not complete" + t.controllerSays()
}
