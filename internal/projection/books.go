package projection

import (
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// books keep what the plans of one track come to: what its tasks were answered, when what
// failed is tried again, and what ends a plan. They are the same for all tracks.
type books struct {
	*turn
	track fleet.Track
	work  *fleet.Work
	is    pursuit
}

// pursuit is what the books ask of their track.
type pursuit interface {
	// current reports whether a plan was made for what is desired now.
	current(p *fleet.Plan) bool
	// fits reports whether it is still for what is there (S6).
	fits(p *fleet.Plan) bool
	// halted reports whether it is dropped for a hold, where none of its tasks runs (S10, S11).
	halted(p *fleet.Plan) bool
	// pause is the longest between plans that each succeed, and that something undoes (P9).
	pause() time.Duration
}

// course is that of the plans of a cause.
func (b books) course(cause fleet.Cause) *fleet.Course {
	if b.track == fleet.TrackRuntime {
		return b.s.Course(b.track, cause)
	}
	return &b.work.Course
}

// answers takes the outcomes of the stored plan's tasks into account, each once. Those of a
// plan that was made for something else only tell what may still land.
func (b books) answers() {
	p := b.work.Plan
	if p == nil {
		return
	}
	current := b.is.current(p)
	for i := range p.Tasks {
		task := &p.Tasks[i]
		if task.Outcome == nil || task.Noted {
			continue
		}
		task.Noted = true
		b.noteAnswer(*task)
		if !current {
			continue // what is wanted now was not refused, and waits for nothing
		}
		b.fails(b.course(p.Cause), *task)
		switch task.Outcome.Class {
		case fleet.ClassOK:
		case fleet.ClassRefused:
			if b.movePort(*task) {
				return
			}
			b.refusedBy(*p, *task)
			return
		case fleet.ClassTransient:
			if task.Outcome.Reason == fleet.ReasonDrifted {
				// What the task was made for is no longer there: plan anew from what is.
				b.endPlan(task.Outcome.Message, minRetry, maxRestart)
				return
			}
			if task.Tries == 1 {
				b.note(fleet.EventWarning, "TaskRetried", fmt.Sprintf("%s: %s", task.Describe(), task.Outcome.Message))
			}
			if task.Outcome.Answered && task.Tries >= triesWhileDown && (p.Cause == fleet.CauseOutage || len(stoppedBy(*p)) > 0) {
				b.retryLater() // what was stopped for it is put back first (C14)
				return
			}
			at := b.in.Now.Add(max(task.Outcome.After.Std(), backoff(task.Tries, minRetry, maxTaskRetry, task.ID)))
			task.NotBefore = &at
			if end := at.Add(task.Timeout()); task.Outcome.After > 0 && end.After(p.Deadline) {
				p.Deadline = end // a plan that was begun anew would come too early
			}
		}
	}
	if !current {
		return
	}
	switch i := p.Current(); {
	case i < 0:
		b.completed(*p)
	case p.Tasks[i].State == fleet.TaskPending && !p.Deadline.After(b.in.Now):
		if b.course(p.Cause).Failing == nil || p.Attempt == 1 { // else it was said
			b.note(fleet.EventWarning, string(fleet.ReasonPlanTimedOut), fmt.Sprintf("the plan did not end by its deadline, at: %s", p.Tasks[i].Describe()))
		}
		b.retryLater()
	}
}

// noteAnswer notes until when the effects of an answered task may land, and what the
// answer tells an operator.
func (b books) noteAnswer(task fleet.Task) {
	if task.Outcome.Answered && !task.Cancellable() {
		b.effectsUntil(task.Outcome.At)
	}
	if is := task.Outcome.Applied; is != nil {
		b.appliedAs(*is, task.Outcome.At)
		b.s.Altered = task.Outcome.Altered
	}
	if task.Outcome.Forced {
		b.note(fleet.EventWarning, "GraceExceeded", fmt.Sprintf("%s did not end within its grace period of %s and was killed (SIGKILL)", task.Service, task.Grace))
	}
}

// fails remembers what does not succeed, with how often and since when it was answered so
// (P21). That what a task was made for is gone is no failure.
func (b books) fails(c *fleet.Course, task fleet.Task) {
	o, f := *task.Outcome, c.Failing
	switch {
	case o.Class == fleet.ClassOK:
		if f.Of(task) {
			c.Failing = nil
		}
	case o.Reason == fleet.ReasonDrifted:
	case f.Same(task, o):
		next := *f
		next.What, next.Message, next.Count = task.Describe(), cut(o.Message), f.Count+1
		c.Failing = &next
	default:
		since := o.At
		if f.Of(task) {
			since = f.Since // what is answered now so and now otherwise fails as long
		}
		c.Failing = &fleet.Failing{
			Kind: task.Kind, Service: task.Service, What: task.Describe(),
			Class: o.Class, Reason: o.Reason, Message: cut(o.Message), Since: since, Count: 1,
		}
	}
}

// effectsUntil remembers that a read begun before the time says nothing.
func (b books) effectsUntil(at time.Time) {
	if b.work.EffectsUntil == nil || at.After(*b.work.EffectsUntil) {
		b.work.EffectsUntil = &at
	}
}

// dropPlan forgets the plan. Where its last try was not answered, that effect may
// still land until the task's deadline (P18); a later answer to the same task would
// have settled it, for tasks are idempotent.
func (b books) dropPlan() {
	if i := b.work.Plan.Current(); i >= 0 && (unansweredTask(b.work.Plan.Tasks[i]) || b.awaited()) {
		b.effectsUntil(*b.work.Plan.Tasks[i].Deadline)
	}
	c := b.course(b.work.Plan.Cause)
	c.LastFailed, c.NextAttempt = nil, nil
	if down := stoppedBy(*b.work.Plan); len(down) > 0 && b.work.Plan.Cause != fleet.CauseOutage {
		b.interrupted(down)
	}
	b.work.Plan = nil
}

// retryLater ends a plan that failed: the next attempt is due with a backoff up to a minute in the
// first hour, then up to ten (P9), but for the start of what served last (C14). The plan is kept:
// an attempt that takes the same steps writes little more than its claims (G12).
func (b books) retryLater() {
	least, most := minRetry, maxFirst
	p := b.work.Plan
	c := b.course(p.Cause)
	switch {
	case len(stoppedBy(*p)) > 0: // which costs a swap each time
		least, most = minSwap, maxRetry
	case c.Failing != nil && b.in.Now.Sub(c.Failing.Since) >= firstTries && p.Cause != fleet.CauseOutage:
		most = maxRetry
	}
	b.endPlan("", least, most)
	c.LastFailed = p
}

// refusedBy ends a plan that the runtime refused. A refusal to take leftovers away
// says nothing about the server.
func (b books) refusedBy(p fleet.Plan, task fleet.Task) {
	reason, message := task.Outcome.Reason, task.Outcome.Message
	if f := b.course(p.Cause).Failing; f == nil || f.Count == 1 { // told once
		b.note(fleet.EventWarning, string(reason), fmt.Sprintf("%s: %s", task.Describe(), message))
	}
	said := p.Cause == fleet.CauseOutage && b.work.Refusal != nil && b.work.Failing != nil // the refusal of what is declared stays
	if p.Kind != fleet.PlanDestroy && !removal(task) && !b.ofAnotherDocument(p, task) && !said {
		b.work.Refusal = &fleet.Refusal{
			Reason: reason, Message: cut(message), Task: task.ID,
			Generation: p.Generation, Revision: p.Revision, At: task.Outcome.At,
		}
	}
	b.retryLater()
}

// completed ends a plan all of whose tasks succeeded.
func (b books) completed(p fleet.Plan) {
	b.course(p.Cause).Failing = nil
	b.done(p)
	if p.Cause == fleet.CauseOutage {
		b.dropPlan()
	} else {
		b.endPlan("", minRetry, b.is.pause())
	}
}

// endPlan drops the plan; the next one for the same cause waits, the longer the more
// there were, from least to most (P9).
func (b books) endPlan(why string, least, most time.Duration) {
	if why != "" {
		b.note(fleet.EventWarning, "Replanned", why)
	}
	c := b.course(b.work.Plan.Cause)
	at := b.in.Now.Add(backoff(c.Attempts, least, most, b.in.Intent.Key().String()))
	b.dropPlan()
	c.NextAttempt = &at
	if !b.in.rule(RuleP9Retry) && c == &b.work.Course {
		never := b.in.Now.Add(1000 * time.Hour)
		c.NextAttempt = &never
	}
}

// supersede drops a plan that was made for another generation or document, or for another
// object than there is, at a task boundary: a running task is awaited, unless it may be
// given up (S6).
func (b books) supersede() {
	p := b.work.Plan
	if p == nil || b.awaited() {
		return
	}
	if !b.is.current(p) || !b.is.fits(p) {
		b.dropPlan()
	}
}

// dropHeld drops a plan when a hold is first seen (S10, S11).
func (b books) dropHeld() {
	if p := b.work.Plan; p != nil && (!b.busy() || b.lapsed()) && b.is.halted(p) {
		b.dropPlan()
	}
}

// effectsOver reports whether a read that began then began after every effect of the track's.
func (b books) effectsOver(begun time.Time) bool {
	i := b.work.Plan.Current()
	open := i >= 0 && unansweredTask(b.work.Plan.Tasks[i]) && begun.Before(*b.work.Plan.Tasks[i].Deadline)
	return !open && (b.work.EffectsUntil == nil || !begun.Before(*b.work.EffectsUntil))
}

// draft completes a plan of the steps that follow each other; name is the track's for what it
// is about. A task's CreatedBy counts the tasks from one.
func (b books) draft(p *fleet.Plan, name string) {
	p.ID = fmt.Sprintf("%s/g%d/%s/p%d", b.in.Intent.Key(), b.in.Intent.Generation, name, b.work.Plans+1)
	p.Generation, p.CreatedAt = b.in.Intent.Generation, b.in.Now
	limit := 5 * time.Minute // for tries that fail transiently (S6)
	again := b.course(p.Cause).LastFailed
	for i := range p.Tasks {
		task := &p.Tasks[i]
		task.ID, task.State = fmt.Sprintf("%s/%d", p.ID, i+1), fleet.TaskPending
		if task.CreatedBy != "" {
			task.CreatedBy = p.ID + "/" + task.CreatedBy
		}
		limit += task.Timeout()
	}
	p.Deadline = b.in.Now.Add(limit)
	if p.Repeats(again) {
		for i := range p.Tasks {
			p.Tasks[i].Tries = again.Tasks[i].Tries
		}
	}
}

// store takes up a plan.
func (b books) store(p *fleet.Plan) {
	b.work.Plan = p
	b.work.Plans++
	c := b.course(p.Cause)
	c.Attempts, c.NextAttempt, c.LastFailed = p.Attempt, nil, nil
}

// intend shows a plan that is held.
func (b books) intend(p *fleet.Plan) bool {
	p.CreatedAt, p.Deadline = time.Time{}, time.Time{}
	b.work.Intended = p
	return true
}

// waits reports whether the next attempt is not due.
func (b books) waits() bool {
	return b.work.NextAttempt != nil && b.work.NextAttempt.After(b.in.Now)
}

// due adds the times at which time alone may change what the track pursues.
func (b books) due(add func(*time.Time)) {
	add(b.work.NextAttempt)
	add(b.work.EffectsUntil)
	p := b.work.Plan
	if p == nil {
		return
	}
	add(&p.Deadline)
	if i := p.Current(); i >= 0 {
		add(p.Tasks[i].NotBefore)
		if task := p.Tasks[i]; task.State == fleet.TaskRunning && task.Deadline != nil {
			recorded := task.Deadline.Add(recordedWithin)
			add(task.Deadline)
			add(&recorded)
		}
	}
}

// open makes due what waits only because it has failed (G12).
func (b books) open() {
	b.work.NextAttempt = nil
	if i := b.work.Plan.Current(); i >= 0 {
		b.work.Plan.Tasks[i].NotBefore = nil
	}
}

// busy reports whether a task runs.
func (b books) busy() bool {
	i := b.work.Plan.Current()
	return i >= 0 && b.work.Plan.Tasks[i].State == fleet.TaskRunning
}

// awaited reports whether a task runs whose end has to be awaited, whoever wants something
// else by now.
func (b books) awaited() bool {
	return b.busy() && !b.work.Plan.Tasks[b.work.Plan.Current()].Cancellable()
}

// lapsed reports whether the task that runs has none who runs it any more: who does records
// its end, at its deadline at the latest.
func (b books) lapsed() bool {
	task := b.work.Plan.Tasks[b.work.Plan.Current()]
	return task.Deadline != nil && !task.Deadline.Add(recordedWithin).After(b.in.Now)
}
