package projection

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Input is everything a decision about one server depends on.
type Input struct {
	Now     time.Time
	Intent  fleet.Intent
	Region  fleet.Region  // with defaults
	Desired fleet.Desired // rendered from the intent
	// NotRenderable is set where Desired could not be rendered (L31): a reason and a
	// message. It is a read that says nothing.
	NotRenderable *fleet.ReadFailure
	Latest        fleet.Deployment
	Prev          *fleet.Status // nil before the first turn
	// Answered says that Prev has an answer that is stored nowhere.
	Answered bool
	Seen     fleet.Observation
	// Holds are those the caller knows of: the daemon is paused.
	Holds []fleet.Hold
	// Tracks are those beside the runtime.
	Tracks []Track
	// Opened are the tracks whose next try is due, for what failed for this server and others
	// alike has succeeded for one of them (G12).
	Opened Tracks
	// Admit says that a place of the region's max_unsettled is given to this server (G4).
	Admit bool
	// NewPort is another host port for the server, where Output.WantsPort asked for one (C12).
	NewPort int
	// AliasPeriod is how long an old host is kept after the new one serves (H8); 0: not
	// at all.
	AliasPeriod time.Duration

	// Trace asks for Output.Trace.
	Trace bool

	without Rule // for tests: the rule to drop
}

// Output is what a turn stores, and what it needs next.
type Output struct {
	Status fleet.Status
	// Latest is the latest deployment where it changed, else nil.
	Latest *fleet.Deployment
	Events []fleet.Event
	// Notes are those of the bookkeeping; the other events follow from what differs.
	Notes []fleet.Event
	// Remove says that the server is destroyed and its records go (P18).
	Remove bool
	// Freed are the hosts that nobody is led to any more: what reserves them goes (H8).
	Freed []string
	// WantsPort asks for another port in the place of one that somebody else has; with
	// Input.NewPort it is what the turn stores (C12).
	WantsPort *fleet.PortMove

	// Due is when time alone may change the outcome; zero: never.
	Due time.Time
	// MayAct are the tracks of whose stored plan a task may be claimed, or claimed again where
	// the process that ran it is no more. A task that runs ends, whatever this says (S11).
	MayAct Tracks
	// NeedFreshRead are the tracks whose newest read began before an effect of ours ended.
	NeedFreshRead Tracks
	// WantsAdmission says that a plan waits for a place of the region (G4).
	WantsAdmission bool
	// Urgent: a newer image for a server that was admitted or failed goes first (G4).
	Urgent bool
	// Unsettled says that the server counts against max_unsettled.
	Unsettled bool
	// Pending says that something waits for an endpoint: probe fast (R5).
	Pending bool

	// Trace is what led to this, in order, where Input.Trace asks for it.
	Trace []Finding

	stored *fleet.Status // what Changed compares with; nil: what the turn began with is not stored
}

// Decide projects the status, plans, and says what a turn stores: at most one plan of each
// track, stored when nothing holds it and shown as intended otherwise (S4, S10, S11).
func Decide(in Input) Output {
	out := Project(in)
	plan := Plan(in, out)
	if plan == nil && len(in.Tracks) == 0 {
		return out
	}
	t := resume(in, out)
	planned := t.takeUp(plan, &out)
	for _, track := range t.tracks() {
		planned = track.plan(&out) || planned
	}
	if !planned {
		return out
	}
	if in.clockStands(t.s.Holds) {
		stopClock(&t.s.Clock, t.in.Now)
	}
	out.Status, out.Trace = t.s, t.trace
	out.Unsettled = Unsettled(t.s)
	return out.shown(in)
}

// takeUp stores a plan of the runtime, from which on the server's clock counts, or shows it.
func (t *turn) takeUp(plan *fleet.Plan, out *Output) bool {
	if plan == nil {
		return false
	}
	if needsPlace(*plan) && !t.s.Admitted && !blocked(t.s.Holds) {
		t.s.Admitted = !t.follow(RuleG4Admission, func() bool {
			if t.in.Admit {
				return false
			}
			out.WantsAdmission, out.Urgent = true, t.urgent()
			t.s.Holds = append(t.s.Holds, waitsForPlace(out.Urgent))
			return true
		})
	}
	if t.follow(RuleS11Holds, func() bool { return t.halts(plan) && t.books().intend(plan) }) {
		return true
	}
	t.books().store(plan)
	out.MayAct = out.MayAct.with(fleet.TrackRuntime)
	t.s.RollOut = rollsOut(t.in, t.s.RollOut, *plan, t.seen.resource)
	if needsPlace(*plan) {
		startClock(&t.s.Clock, plan.Cause, t.in.Now)
	} else if plan.Cause == fleet.CauseOutage && t.outlasts() {
		startClock(&t.s.Clock, t.cause(), t.in.Now)
	}
	return true
}

// shown is the output with what follows from its status: when time alone may change it, and
// what is said of it.
func (o Output) shown(in Input) Output {
	t := resume(in, o)
	o.Due = t.nextDue()
	t.report()
	o.Status, o.Freed, o.Events = t.s, t.freed(), slices.Concat(o.Notes, t.differences())
	for _, host := range o.Freed {
		o.Events = append(o.Events, event(t.in, fleet.EventNormal, "HostFreed", host+" is no longer kept for it: another server may have it"))
	}
	return o
}

// Claimed is the output with the claim of the current task of a track's plan, and with what
// follows from the claim alone: both are one write. What holds the other tracks, and what they
// would run, is decided as before.
func (o Output) Claimed(in Input, track fleet.Track, deadline time.Time) (Output, fleet.Task) {
	s := o.Status.Clone()
	p := s.PlanOf(track)
	task := p.Claim(p.Current(), deadline)
	in.Prev, in.Latest, in.Answered = &s, resume(in, o).latest, false
	next := Decide(in)
	o.Status, o.Due, o.Events = next.Status, next.Due, append(o.Events, next.Events...)
	o.Pending, o.NeedFreshRead = next.Pending, next.NeedFreshRead
	if next.Latest != nil {
		o.Latest = next.Latest
	}
	return o, task
}

// Port is the port that the server gets in this turn (C12).
func (o Output) Port() *fleet.PortMove {
	if o.WantsPort == nil || o.WantsPort.To == 0 {
		return nil
	}
	return o.WantsPort
}

// Changed reports whether the output differs from what is stored, so that a converged
// server costs no write (P16).
func (o Output) Changed() bool {
	return o.Remove || o.Latest != nil || o.Port() != nil || len(o.Events) > 0 || o.stored == nil || !sameRecord(*o.stored, o.Status)
}

// Repeats reports whether nothing differs from what is stored but that what had failed is
// tried again, or failed once more: that is kept in memory (G12).
func (o Output) Repeats(stored *fleet.Status) bool {
	return !o.Remove && o.Latest == nil && len(o.Events) == 0 && stored != nil && o.Status.Repeats(*stored)
}

// sameRecord compares what would be stored, so that a nil and an empty list are one.
func sameRecord(a, b fleet.Status) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (in Input) rule(r Rule) bool { return in.without != r }
