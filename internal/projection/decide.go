package projection

import (
	"bytes"
	"encoding/json"
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
	// Holds are those the caller knows of: the daemon is paused, another one leads.
	Holds []fleet.Hold
	// Opened says that what failed for this server and others alike has succeeded for one of
	// them: its next try is due (G12).
	Opened bool
	// Admit says that a place of the region's max_unsettled is given to this server (G4).
	Admit bool
	// NewPort is another host port for the server, where Output.WantsPort asked for one (C12).
	NewPort int
	// AliasPeriod is how long an old host is kept after the new one serves (H8); 0: not
	// at all.
	AliasPeriod time.Duration

	without Rule // for tests: the rule to drop
}

// Output is what a turn stores, and what it needs next.
type Output struct {
	Status fleet.Status
	// Latest is the latest deployment where it changed, else nil.
	Latest *fleet.Deployment
	Events []fleet.Event
	// Remove says that the server is destroyed and its records go (P18).
	Remove bool
	// Freed are the hosts that nobody is led to any more: what reserves them goes (H8).
	Freed []string
	// WantsPort asks for another port in the place of one that somebody else has; with
	// Input.NewPort it is what the turn stores (C12).
	WantsPort *fleet.PortMove

	// Due is when time alone may change the outcome; zero: never.
	Due time.Time
	// MayAct says that a task of the stored plan may be claimed, or claimed again where the
	// process that ran it is no more. A task that runs ends, whatever this says (S11).
	MayAct bool
	// NeedFreshRead says that the newest read began before an effect of ours ended.
	NeedFreshRead bool
	// WantsAdmission says that a plan waits for a place of the region (G4).
	WantsAdmission bool
	// Urgent: a newer image for a server that was admitted or failed goes first (G4).
	Urgent bool
	// Unsettled says that the server counts against max_unsettled.
	Unsettled bool
	// Pending says that something waits for an endpoint: probe fast (R5).
	Pending bool

	seen  instance
	notes []fleet.Event // events of plan bookkeeping, kept apart from the diff
	input Input
}

// Decide projects the status, plans, and says what a turn stores: at most one plan,
// stored when nothing holds it and shown as intended otherwise (S4, S10, S11).
func Decide(in Input) Output {
	out := Project(in)
	plan := Plan(in, out)
	if plan == nil {
		return out
	}
	s := &out.Status
	if needsPlace(*plan) && !s.Admitted && !blocked(s.Holds) {
		if in.Admit || !in.rule(RuleG4Admission) {
			s.Admitted = true
		} else {
			out.WantsAdmission, out.Urgent = true, urgent(in, out)
			s.Holds = append(s.Holds, waitsForPlace(out.Urgent))
		}
	}
	if (&turn{s: *s, seen: out.seen}).halts(plan) && in.rule(RuleS11Holds) {
		plan.CreatedAt, plan.Deadline = time.Time{}, time.Time{}
		s.Runtime.Intended = plan
	} else {
		s.Runtime.Plan = plan
		s.RollOut = rollsOut(in, s.RollOut, *plan, out.seen.resource)
		s.Runtime.Plans++
		c := s.Of(plan.Cause)
		c.Attempts, c.NextAttempt, c.Again = plan.Attempt, nil, nil
		if t := (&turn{in: in, s: *s, latest: latestOf(in, out), seen: out.seen}); needsPlace(*plan) {
			startClock(&s.Clock, plan.Cause, in.Now)
		} else if plan.Cause == fleet.CauseOutage && t.outlasts() {
			startClock(&s.Clock, t.cause(), in.Now)
		}
		out.MayAct = true
	}
	if in.clockStands(s.Holds) {
		stopClock(&s.Clock, in.Now)
	}
	out.Due = nextDue(in, out)
	out.Unsettled = Unsettled(out.Status)
	report(in, &out)
	return out
}

// Claimed is the output with the claim of the plan's current task, and with what follows from
// the claim alone: both are one write.
func (o Output) Claimed(deadline time.Time) (Output, fleet.Task) {
	in := o.input
	s := o.Status.Clone()
	task := s.Runtime.Plan.Claim(s.Runtime.Plan.Current(), deadline)
	in.Prev, in.Latest, in.Answered = &s, latestOf(in, o), false
	next := Project(in)
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
	return o.input.Answered || o.Remove || o.Latest != nil || o.Port() != nil || len(o.Events) > 0 || o.input.Prev == nil || !sameRecord(*o.input.Prev, o.Status)
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
