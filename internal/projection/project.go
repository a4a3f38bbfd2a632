package projection

import (
	"cmp"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// turn is the state of one projection: the status as it is built, and what was seen.
type turn struct {
	in     Input
	s      fleet.Status
	latest fleet.Deployment
	seen   reading
	gate   gate
	notes  []fleet.Event
	remove bool
	port   *fleet.PortMove
	tried  bool // an effect of the latest deployment's has begun, or its plan has ended by now
	trace  []Finding
	views  []View // of the tracks
}

// resume is the turn that an output goes on from: all there is to know of it shows there.
func resume(in Input, out Output) *turn {
	in.Now = in.Now.UTC().Round(0)
	t := &turn{in: in, s: out.Status, latest: in.Latest, trace: out.Trace}
	if out.Latest != nil {
		t.latest = *out.Latest
	}
	t.look()
	return t
}

// Project computes the status of a server, the transition of its latest deployment
// and the events of the difference. It is total and deterministic, and its own output
// fed back with the same world changes nothing.
func Project(in Input) Output {
	in.Now = in.Now.UTC().Round(0)
	t := &turn{in: in, latest: in.Latest, s: fleet.Status{Status: fleet.StatusProvisioning}}
	if in.Prev != nil {
		t.s = in.Prev.Clone()
	}
	stored := in.Prev
	if in.Answered {
		stored = nil
	}
	if in.silent() {
		return Output{Status: t.s, Unsettled: Unsettled(t.s), Pending: t.pending(), stored: stored}
	}
	t.s.Holds, t.s.Runtime.Intended = nil, nil
	if in.Opened.Has(fleet.TrackRuntime) {
		t.s.Outage.NextAttempt = nil
		t.books().open()
	}
	t.decide()
	t.endAliases()
	t.lookAgain()
	for _, track := range t.tracks() {
		track.project()
	}
	if len(in.Tracks) > 0 && t.destroying() {
		t.follow(RuleP18Destroy, t.destroy) // by now the last of them may have come to its end
	}
	if in.Prev != nil && !Unsettled(*in.Prev) && Unsettled(t.s) {
		t.s.Admitted = false // the place was given back; only admission gives one (G4)
	}
	t.withhold()
	t.s.Holds = t.holds()
	t.keepShown()
	if in.clockStands(t.s.Holds) {
		stopClock(&t.s.Clock, in.Now)
	}
	out := Output{Status: t.s, Remove: t.remove, WantsPort: t.port, Notes: t.notes, Trace: t.trace, stored: stored}
	if t.latest != in.Latest {
		latest := t.latest
		out.Latest = &latest
	}
	_, ask := in.runtime().gone(t)
	if t.seen.readable && t.s.Runtime.Plan == nil && (!t.seen.fresh || ask && t.s.Status == fleet.StatusDestroying) {
		out.NeedFreshRead = out.NeedFreshRead.with(fleet.TrackRuntime)
	}
	if t.seen.readable && !t.halts(t.s.Runtime.Plan) {
		out.MayAct = out.MayAct.with(fleet.TrackRuntime)
	}
	for _, track := range t.tracks() {
		track.needs(&out)
	}
	out.Unsettled = Unsettled(t.s)
	out.Pending = t.pending()
	return out.shown(in)
}

// silent reports whether nothing was heard of the world yet: kurad has just started.
// Then nothing is rewritten, and what is shown stays shown; only a destroy is taken up.
func (in Input) silent() bool {
	o := in.Seen.Instance
	return in.Prev != nil && in.NotRenderable == nil && o.Unreadable == nil && o.Begun.IsZero() &&
		(in.Intent.Deleting == nil || in.Prev.Status == fleet.StatusDestroying) && in.rule(RuleSilence)
}

// keepShown keeps the holds and the intended plan that follow from what was seen, while
// there is no read to renew them from (P2).
func (t *turn) keepShown() {
	prev := t.in.Prev
	if prev == nil || t.seen.fresh || t.in.Intent.Deleting != nil || prev.Generation != t.s.Generation || prev.Revision != t.s.Revision {
		return
	}
	for _, h := range prev.Holds {
		adoption := h.Kind == fleet.HoldAdoption && t.s.AdoptedResource != nil && !t.seen.readable
		if h.Kind == fleet.HoldObserve && t.held() || h.Kind == fleet.HoldAdmission || adoption {
			t.s.Holds = append(t.s.Holds, h)
		}
	}
	if blocked(t.s.Holds) && t.s.Runtime.Plan == nil {
		t.s.Runtime.Intended = prev.Runtime.Intended
	}
}

// pending reports whether something waits for an endpoint.
func (t *turn) pending() bool { return t.in.Intent.Deleting == nil && !t.settled() }

// Doubtful reports whether an endpoint's newest answer is from before a service was seen down
// which nothing starts now: it is asked at once (P8). A swap of ours is too short for that.
func (o Output) Doubtful(in Input) bool {
	v := resume(in, o).seen
	down := slices.ContainsFunc(v.services, func(s serviceView) bool { return !s.runs() })
	if p := o.Status.Runtime.Plan; !v.fresh || !down || p != nil && !preparing(p) {
		return false
	}
	return slices.ContainsFunc([]fleet.ProbeObservation{in.Seen.Endpoint, in.Seen.Published, in.Seen.Global}, func(p fleet.ProbeObservation) bool {
		return p.Ready && p.Begun.Before(in.Seen.Instance.Begun)
	})
}

// key is what attempts, refusals and the stall clock are counted for.
func (t *turn) key() fleet.Settled {
	return fleet.Settled{Generation: t.in.Intent.Generation, Revision: t.in.Desired.Revision}
}

// settled reports whether P5 held for the present key and still does, but for a probe. What
// is applied to put a KuraInstance right has to settle, too (G4).
func (t *turn) settled() bool {
	return t.s.Status == fleet.StatusActive && t.s.Settled == t.key() && !t.latest.Status.Open() &&
		t.s.ServingImageTag == t.in.Desired.ImageTag && t.s.PublishedURL == t.in.Desired.URL &&
		t.s.Runtime.Refusal == nil && !t.s.Clock.Expired && t.s.RollOut == nil
}

// holds lists why no effect may start now.
func (t *turn) holds() []fleet.Hold {
	var hs []fleet.Hold
	switch {
	case t.in.Region.Paused:
		hs = append(hs, fleet.Hold{Kind: fleet.HoldPaused, Message: "region " + t.in.Region.Name + " is paused"})
	case t.in.Intent.Paused:
		hs = append(hs, fleet.Hold{Kind: fleet.HoldPaused, Message: "the server is paused"})
	}
	hs = append(hs, t.in.Holds...)
	if t.gate.moveHeld {
		hs = append(hs, fleet.Hold{Kind: fleet.HoldOwnership, Message: "the declared host " + t.gate.claim.String()})
	}
	if t.unconfirmed() {
		hs = append(hs, fleet.Hold{Kind: fleet.HoldAdoption, Message: "it was taken over and differs from what is declared; apply once more to change it: " + list(differing(*t.seen.resource))})
	}
	if t.held() && t.seen.fresh && t.seen.drifted() {
		hs = append(hs, fleet.Hold{Kind: fleet.HoldObserve, Message: "remediation is \"observe\": drift is shown, not corrected"})
	}
	for i := range hs {
		hs[i].Message = cut(hs[i].Message)
	}
	return hs
}

// paused reports whether somebody paused the server, its region or kurad.
func (t *turn) paused() bool {
	return t.in.Region.Paused || t.in.Intent.Paused || blocked(t.in.Holds)
}

// held reports whether the region only observes what differs now (S10).
func (t *turn) held() bool {
	return t.in.Intent.Deleting == nil && t.observing() && !t.declared() && t.in.rule(RuleS10Observe)
}

// blocked reports whether a hold stops effects; one on the url move does not (D3).
func blocked(hs []fleet.Hold) bool {
	return slices.ContainsFunc(hs, func(h fleet.Hold) bool { return h.Kind != fleet.HoldOwnership })
}

// halts reports whether the holds stop the plan. What was stopped by us is put back whatever
// holds (C14); so is a stop brought to its end that was begun by a process that is no more.
func (t *turn) halts(p *fleet.Plan) bool {
	putsBack := mends(p, t.s) || p != nil && len(stoppedBy(*p)) > 0 && len(t.seen.down()) > 0
	return !putsBack && blocked(t.s.Holds)
}

// observing reports whether the daemon may start nothing by itself (S10).
func (t *turn) observing() bool {
	return cmp.Or(t.in.Intent.Remediation, t.in.Region.Remediation, fleet.RemediationHeal) == fleet.RemediationObserve
}

// declared reports whether what the user declared has not settled yet: it runs even
// where the region only observes (S10).
func (t *turn) declared() bool {
	return t.s.Settled != t.key() || t.latest.Status.Open()
}

// note records an event of the bookkeeping.
func (t *turn) note(kind fleet.EventType, reason, message string) {
	t.notes = append(t.notes, event(t.in, kind, reason, message))
}

// event is one of the server's; like everything that is stored, it is bounded.
func event(in Input, kind fleet.EventType, reason, message string) fleet.Event {
	return fleet.Event{
		Account: in.Intent.Account, Region: in.Intent.Region,
		At: in.Now, Type: kind, Reason: reason, Message: cut(message),
	}
}

// nextDue returns the earliest time at which time alone may change the outcome.
func (t *turn) nextDue() time.Time {
	in, s := t.in, t.s
	if t.rendersAnew() {
		return in.Now
	}
	var due []time.Time
	add := func(at *time.Time) {
		if at != nil && at.After(in.Now) {
			due = append(due, *at)
		}
	}
	add(s.Outage.NextAttempt)
	t.books().due(add)
	for _, track := range t.tracks() {
		track.due(add)
	}
	add(silentFrom(s))
	add(expiry(s.Clock, in.Region.StallAfter.Std()))
	for service, c := range s.Crashes {
		if c.RunningSince != nil {
			at := c.RunningSince.Add(stableRun)
			add(&at)
		} else if t.seen.stopped(service) {
			at := c.SeenAt.Add(crashDelay(c.Quick))
			add(&at)
		}
	}
	for _, a := range s.Aliases {
		add(a.Until)
	}
	if len(due) == 0 || !in.rule(RuleWakeUp) {
		return time.Time{}
	}
	return slices.MinFunc(due, time.Time.Compare)
}
