package projection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Track is one of the things that a server pursues beside what runs. Each has a plan, attempts
// and a refusal of its own (fleet.Work), and books that are kept as the runtime's are
// (books.go). Tracks meet in the gate of P5, in the order of P18 and in the verdict. One that
// kurad is given no more is left as it is: a track that has nothing to do says so in its View.
type Track interface {
	Name() fleet.Track
	// Look reads what was observed of it against what is desired. Prev is the status as the
	// turn has made it so far.
	Look(in Input) View
}

// View is what a track has to say of a server.
type View struct {
	// None says that the server has nothing of it: all is as if there were no such track.
	None bool
	// Revision names what is desired: attempts and a refusal are counted for one.
	Revision string
	// Begun is when the newest read that answered began; zero: none has. Failure is set while
	// the newest one did not answer (P2).
	Begun   time.Time
	Failure *fleet.ReadFailure
	// Steps bring it nearer to what is desired, and Cause says why it is not; of a server that
	// goes they bring it to its end. None: nothing differs. CauseOutage and CauseCleanup are
	// causes of what runs.
	Steps []fleet.Effect
	Cause fleet.Cause
	// Differs says what the steps are to mend.
	Differs []string
	// Waits says that something differs which no step can mend yet.
	Waits bool
	// Gate says why the server cannot become active yet; "": it may (P5).
	Gate fleet.Reason
	// Advisory says that no verdict waits for it (D2).
	Advisory bool
	// Gone says that nothing of it is left that has to end before what runs does (P18).
	Gone bool
	// Condition says how it is; what keeps it from getting on is added. One without a type is
	// not shown.
	Condition fleet.Condition
}

// Tracks are some of a server's.
type Tracks []fleet.Track

// Has reports whether the track is one of them.
func (ts Tracks) Has(track fleet.Track) bool { return slices.Contains(ts, track) }

func (ts Tracks) with(track fleet.Track) Tracks {
	if ts.Has(track) {
		return ts
	}
	return append(slices.Clone(ts), track)
}

// beside is a track in one turn.
type beside struct {
	books
	View
}

// tracks are those beside the runtime, in this turn.
func (t *turn) tracks() []beside {
	if len(t.in.Tracks) > 0 && t.views == nil {
		in := t.in
		in.Prev = &t.s
		for _, track := range t.in.Tracks {
			v := View{Failure: in.NotRenderable}
			if v.Failure == nil {
				v = track.Look(in)
			}
			if t.destroying() {
				v.Revision = "" // nothing is desired
			}
			t.views = append(t.views, v)
		}
	}
	var all []beside
	for i, v := range t.views {
		if v.None {
			continue
		}
		name := t.in.Tracks[i].Name()
		work := t.s.Tracks[name]
		if work == nil {
			work = &fleet.Work{} // kept when there is something to keep
		}
		all = append(all, beside{books{turn: t, track: name, work: work, is: aside{t, work, v.Revision}}, v})
	}
	return all
}

// keepWork keeps what the track pursues by now.
func (b beside) keepWork() {
	if *b.work != (fleet.Work{}) {
		*b.s.On(b.track) = *b.work
	}
}

// aside is the pursuit of a track.
type aside struct {
	*turn
	work     *fleet.Work
	revision string
}

func (a aside) current(p *fleet.Plan) bool {
	return p.Revision == a.revision && (p.Kind == fleet.PlanDestroy) == a.destroying()
}

func (aside) fits(*fleet.Plan) bool { return true }

func (a aside) halted(*fleet.Plan) bool {
	return a.paused() || a.turn.held() && a.work.Reached == a.revision
}

func (aside) pause() time.Duration { return maxRestart }

// readable reports whether the newest read answered.
func (b beside) readable() bool { return b.Failure == nil && !b.Begun.IsZero() }

// fresh reports whether it did, and began after every effect of the track's.
func (b beside) fresh() bool { return b.readable() && b.effectsOver(b.Begun) }

// project keeps the books of the track, unless nothing is known of it (P2).
func (b beside) project() {
	defer b.keepWork()
	if b.in.Opened.Has(b.track) {
		b.open()
	}
	if !b.readable() && !b.destroying() {
		return
	}
	b.work.Intended = nil
	if b.work.Revision != b.Revision {
		b.work.Revision, b.work.Refusal, b.work.Course = b.Revision, nil, fleet.Course{}
	}
	b.follow(RulePlanAnswers, func() bool { b.answers(); return false })
	b.follow(RuleS6Supersede, func() bool { b.supersede(); return false })
	b.follow(RuleS11DropHeld, func() bool { b.dropHeld(); return false })
	if b.fresh() && b.work.Plan == nil && len(b.Steps) == 0 {
		b.work.Refusal, b.work.Course = nil, fleet.Course{} // whoever did it: nothing is tried any more (P21)
		if !b.Waits {
			b.work.Reached = b.Revision
		}
	}
}

// needs adds what the track needs next.
func (b beside) needs(out *Output) {
	if b.readable() && !b.is.halted(b.work.Plan) {
		out.MayAct = out.MayAct.with(b.track)
	}
	if b.readable() && b.work.Plan == nil && !b.fresh() {
		out.NeedFreshRead = out.NeedFreshRead.with(b.track)
	}
}

// plan stores the track's next plan, or shows it as intended.
func (b beside) plan(out *Output) bool {
	if b.work.Plan != nil || out.Remove || !b.fresh() || b.waits() || len(b.Steps) == 0 {
		return false
	}
	defer b.keepWork()
	p := &fleet.Plan{Kind: fleet.PlanApply, Cause: b.Cause, Revision: b.Revision, Attempt: b.work.Attempts + 1}
	if b.destroying() {
		p.Kind, p.Cause = fleet.PlanDestroy, fleet.CauseDestroy
	}
	for _, step := range b.Steps {
		p.Tasks = append(p.Tasks, fleet.Task{Effect: step})
	}
	b.draft(p, fmt.Sprintf("%s-%s", b.track, p.Cause))
	if b.is.halted(p) {
		return b.intend(p)
	}
	b.store(p)
	out.MayAct = out.MayAct.with(b.track)
	return true
}

// report shows how the track is, with the last answer to what is tried (P21).
func (b beside) report() {
	c := b.Condition
	switch {
	case c.Type == "":
	case b.Failure != nil:
		reason := b.Failure.Reason
		if !reason.Of(c.Type) {
			reason = fleet.ReasonZoneUnreachable
		}
		b.set(c.Type, fleet.Unknown, reason, b.Failure.Message)
	case b.Begun.IsZero():
		b.setOnce(c.Type, fleet.ReasonNotObservedYet)
	case b.work.Failing != nil:
		b.set(c.Type, c.Status, c.Reason, cmp.Or(c.Message+"; ", "")+b.work.Failing.String())
	default:
		b.set(c.Type, c.Status, c.Reason, c.Message)
	}
}

// lookAgain reads the tracks against what the turn has decided by now. What a server has no
// more of is pursued no more, once none of its tasks runs.
func (t *turn) lookAgain() {
	t.views = nil
	t.tracks()
	for i, v := range t.views {
		name := t.in.Tracks[i].Name()
		work := t.s.Tracks[name]
		if b := (books{turn: t, work: work}); v.None && work != nil && (!b.busy() || b.lapsed()) {
			t.s.Tracks = maps.Clone(t.s.Tracks)
			delete(t.s.Tracks, name)
		}
	}
}

// says reports whether a track has the word about an aspect of the server.
func (t *turn) says(ct fleet.ConditionType) bool {
	return slices.ContainsFunc(t.tracks(), func(b beside) bool { return b.Condition.Type == ct })
}

// tracksGone reports whether all tracks have come to their ends, after which what runs does (P18).
func (t *turn) tracksGone() bool {
	return !t.in.rule(RuleP18Tracks) || !slices.ContainsFunc(t.tracks(), func(b beside) bool { return !b.Gone || !b.fresh() || b.work.Plan != nil })
}

// shut says why a track keeps the server from becoming active; "": none does (P5).
func (t *turn) shut() (reason fleet.Reason) {
	for _, b := range t.tracks() {
		reason = cmp.Or(reason, b.Gate)
	}
	return reason
}

// awaitTracks counts how long the ends of tracks hold up that of what runs: no longer than the
// region's stall_after. The record waits for both, so that what is left is taken away later (P18).
func (t *turn) awaitTracks() {
	c := &t.s.Clock
	switch {
	case len(t.tracks()) == 0 || c.Expired || t.in.NotRenderable != nil:
	case t.tracksGone():
		*c = fleet.StallClock{}
	default:
		startClock(c, fleet.CauseDestroy, t.in.Now)
		at := expiry(*c, t.in.Region.StallAfter.Std())
		c.Expired = !at.After(t.in.Now)
	}
}

// unwithdrawn says what is not taken away yet of what leads to a server that goes; "" is nothing.
func (t *turn) unwithdrawn() string {
	var left []string
	for _, b := range t.tracks() {
		switch {
		case b.Gone && b.fresh() && b.work.Plan == nil, t.in.NotRenderable != nil:
		case b.work.Failing != nil:
			left = append(left, b.work.Failing.String())
		case b.Failure != nil:
			left = append(left, fmt.Sprintf("%s: %s", b.track, b.Failure.Message))
		default:
			left = append(left, b.Differs...)
		}
	}
	return strings.Join(left, "; ")
}

// underWay says why a track is not known to be as desired; "": all were when last seen.
func (t *turn) underWay() (reason fleet.Reason) {
	for _, b := range t.tracks() {
		switch {
		case b.Advisory:
		case b.work.Plan != nil || b.readable() && len(b.Steps) > 0:
			reason = cmp.Or(reason, b.Condition.Reason, fleet.ReasonRollingOut)
		case b.work.Revision != b.Revision:
			reason = cmp.Or(reason, fleet.ReasonNotObservedYet)
		}
	}
	return reason
}
