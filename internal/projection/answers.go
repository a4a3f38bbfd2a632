package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// answers takes the outcomes of the stored plan's tasks into account, each once. Those of a
// plan that was made for something else only tell what may still land.
func (t *turn) answers() {
	p := t.s.Runtime.Plan
	if p == nil {
		return
	}
	t.tried = len(p.Tasks) > 0 && p.Tasks[0].Tries > 0 && p.Generation >= t.latest.Generation // its end may be seen with its beginning
	current := t.current(p)
	for i := range p.Tasks {
		task := &p.Tasks[i]
		if task.Outcome == nil || task.Noted {
			continue
		}
		task.Noted = true
		t.heard(*task)
		if !current {
			continue // what is wanted now was not refused, and waits for nothing
		}
		t.fails(t.s.Of(p.Cause), *task)
		switch task.Outcome.Class {
		case fleet.ClassOK:
		case fleet.ClassRefused:
			if t.movePort(*task) {
				return
			}
			t.refusedBy(*p, *task)
			return
		case fleet.ClassTransient:
			if task.Outcome.Reason == fleet.ReasonDrifted {
				// What the task was made for is no longer there: plan anew from what is.
				t.endPlan(task.Outcome.Message, minRetry, maxRestart)
				return
			}
			if task.Tries == 1 {
				t.note(fleet.EventWarning, "TaskRetried", fmt.Sprintf("%s: %s", task.Describe(), task.Outcome.Message))
			}
			if task.Outcome.Answered && task.Tries >= triesWhileDown && (p.Cause == fleet.CauseOutage || len(stoppedBy(*p)) > 0) {
				t.again() // what was stopped for it is put back first (C14)
				return
			}
			at := t.in.Now.Add(backoff(task.Tries, minRetry, maxTaskRetry, task.ID))
			task.NotBefore = &at
		}
	}
	if !current {
		return
	}
	switch i := p.Current(); {
	case i < 0:
		t.completed(*p)
	case p.Tasks[i].State == fleet.TaskPending && !p.Deadline.After(t.in.Now):
		if t.s.Of(p.Cause).Failing == nil || p.Attempt == 1 { // else it was said
			t.note(fleet.EventWarning, string(fleet.ReasonPlanTimedOut), fmt.Sprintf("the plan did not end by its deadline, at: %s", p.Tasks[i].Describe()))
		}
		t.again()
	}
}

// heard notes until when the effects of an answered task may land, and what the
// answer tells an operator.
func (t *turn) heard(task fleet.Task) {
	if task.Outcome.Answered && !task.Cancellable() {
		t.effectsUntil(task.Outcome.At)
	}
	if is := task.Outcome.Applied; is != nil {
		t.appliedAs(*is, task.Outcome.At)
		t.s.Altered = task.Outcome.Altered
	}
	if task.Outcome.Forced {
		t.note(fleet.EventWarning, "GraceExceeded", fmt.Sprintf("%s did not end within its grace period of %s and was killed (SIGKILL)", task.Service, task.Grace))
	}
}

// fails remembers what does not succeed, with how often and since when it was answered so
// (P21). That what a task was made for is gone is no failure.
func (t *turn) fails(c *fleet.Course, task fleet.Task) {
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
		c.Failing = &fleet.Failing{
			Kind: task.Kind, Service: task.Service, What: task.Describe(),
			Class: o.Class, Reason: o.Reason, Message: cut(o.Message), Since: o.At, Count: 1,
		}
	}
}

// trouble is what keeps the server from getting on, as far as the runtime said it: the last
// answers to what is tried again, or that a service does not stay up.
func (t *turn) trouble() (reason fleet.Reason, message string) {
	declared, served := t.s.Runtime.Failing, t.s.Outage.Failing
	switch {
	case declared != nil && served != nil:
		return declared.Reason, declared.String() + "; " + served.String()
	case declared != nil:
		return declared.Reason, declared.String()
	case served != nil:
		return served.Reason, served.String()
	case t.crashing():
		return fleet.ReasonCrashLoop, t.crashLoop()
	default:
		return "", ""
	}
}

// crashLoop says which services do not stay up.
func (t *turn) crashLoop() string {
	return "a service ends within 10 s of its start, again and again: " + t.crashed()
}

// effectsUntil remembers that a read begun before the time says nothing.
func (t *turn) effectsUntil(at time.Time) {
	if t.s.Runtime.EffectsUntil == nil || at.After(*t.s.Runtime.EffectsUntil) {
		t.s.Runtime.EffectsUntil = &at
	}
}

// dropPlan forgets the plan. Where its last try was not answered, that effect may
// still land until the task's deadline (P18); a later answer to the same task would
// have settled it, for tasks are idempotent.
func (t *turn) dropPlan() {
	if i := t.s.Runtime.Plan.Current(); i >= 0 && (unansweredTask(t.s.Runtime.Plan.Tasks[i]) || t.awaited()) {
		t.effectsUntil(*t.s.Runtime.Plan.Tasks[i].Deadline)
	}
	c := t.s.Of(t.s.Runtime.Plan.Cause)
	c.Again, c.NextAttempt = nil, nil
	if t.s.Runtime.Plan.Cause != fleet.CauseOutage {
		t.interrupted(*t.s.Runtime.Plan)
	}
	t.s.Runtime.Plan = nil
}

// again ends a plan that failed: the next attempt is due with a backoff up to a minute in the
// first hour, then up to ten (P9), and costs little where it takes the same steps. What
// served last is not left down for that long (C14).
func (t *turn) again() {
	least, most := minRetry, maxFirst
	p := t.s.Runtime.Plan
	c := t.s.Of(p.Cause)
	switch {
	case len(stoppedBy(*p)) > 0: // which costs a swap each time
		least, most = minSwap, maxRetry
	case c.Failing != nil && t.in.Now.Sub(c.Failing.Since) >= firstTries && p.Cause != fleet.CauseOutage:
		most = maxRetry
	}
	t.endPlan("", least, most)
	c.Again = p
}

// interrupted notes the services that the plan stopped and did not start again.
func (t *turn) interrupted(p fleet.Plan) {
	if t.in.Intent.Deleting != nil || !t.in.rule(RuleC14Interrupted) {
		return
	}
	down := append(stoppedBy(p), t.s.Outage.Interrupted...)
	t.s.Outage.Interrupted = slices.Compact(slices.Sorted(slices.Values(down)))
}

// stoppedBy are the services that the plan stopped, or is about to, and in whose place it has
// started nothing.
func stoppedBy(p fleet.Plan) []string {
	if p.Kind == fleet.PlanDestroy || p.Cause == fleet.CauseCleanup {
		return nil
	}
	var down []string
	for _, task := range p.Tasks {
		down = slices.DeleteFunc(down, func(service string) bool {
			return task.Kind == fleet.TaskStart && task.State == fleet.TaskDone && service == task.Service
		})
		if task.Kind == fleet.TaskStop && (task.State != fleet.TaskPending || task.Outcome != nil) {
			down = append(down, task.Service)
		}
	}
	return down
}

// outage forgets what was noted of what served last as soon as it runs under its name, and
// all that was planned for it is done.
func (t *turn) outage() {
	if p := t.s.Runtime.Plan; p != nil && p.Cause == fleet.CauseOutage {
		return
	}
	down := t.seen.down()
	if len(down) == 0 && !t.seen.misnamed {
		t.s.Outage = fleet.Outage{}
		return
	}
	t.s.Outage.Interrupted = slices.DeleteFunc(slices.Clone(t.s.Outage.Interrupted), func(service string) bool {
		return !slices.ContainsFunc(down, func(s serviceView) bool { return s.doc.Service == service })
	})
}

// yield drops a plan that has cost nobody anything yet where what served last is down and is
// to be started now (C14). What does not stay up is not worth a pull begun anew.
func (t *turn) yield() {
	p := t.s.Runtime.Plan
	if !t.seen.fresh || !preparing(p) || t.awaited() || t.busy() && t.crashing() {
		return
	}
	b := builder{in: t.in, seen: t.seen, crashes: t.s.Crashes}
	if b.revive(t.s.Outage) {
		t.dropPlan()
	}
}

// preparing reports whether the plan makes ready what will take the place of what serves.
func preparing(p *fleet.Plan) bool {
	i := p.Current()
	return i >= 0 && (p.Tasks[i].Kind == fleet.TaskPull || p.Tasks[i].Kind == fleet.TaskCreate)
}

// mends reports whether the plan puts back what an earlier one stopped: no hold stops that.
func mends(p *fleet.Plan, s fleet.Status) bool {
	return p != nil && p.Cause == fleet.CauseOutage && len(s.Outage.Interrupted) > 0
}

func unansweredTask(task fleet.Task) bool {
	return task.Outcome != nil && !task.Outcome.Answered && task.Deadline != nil && !task.Cancellable()
}

// movePort gives a server that never served another port where somebody else has an assigned
// one: nobody knows its url yet. One that served keeps it, for its clients do (C12).
func (t *turn) movePort(task fleet.Task) bool {
	if task.Outcome.Reason != fleet.ReasonPortTaken || t.s.ServingImageTag != "" || t.s.PublishedURL != "" || len(t.s.Adopted) > 0 {
		return false
	}
	for _, need := range fleet.PortNeeds(t.in.Region) {
		from := t.in.Intent.Ports[need.Key()]
		if need.Service != task.Service || need.Fixed != 0 || from == 0 || from != task.Outcome.Port {
			continue
		}
		t.port = &fleet.PortMove{Endpoint: t.in.Region.Containers.Endpoint, Need: need.Key(), From: from, To: t.in.NewPort}
		if t.port.To == 0 {
			return false // there is none: it is tried as it is (P9)
		}
		t.note(fleet.EventWarning, "PortChanged", fmt.Sprintf("%s from %d to %d: %s", t.port.Need, from, t.port.To, task.Outcome.Message))
		t.s.Of(t.s.Runtime.Plan.Cause).Failing = nil
		t.endPlan("", minRetry, maxRestart)
		return true
	}
	return false
}

// refusedBy ends a plan that the runtime refused. A refusal to take leftovers away
// says nothing about the server.
func (t *turn) refusedBy(p fleet.Plan, task fleet.Task) {
	reason, message := task.Outcome.Reason, task.Outcome.Message
	if f := t.s.Of(p.Cause).Failing; f == nil || f.Count == 1 { // told once
		t.note(fleet.EventWarning, string(reason), fmt.Sprintf("%s: %s", task.Describe(), message))
	}
	said := p.Cause == fleet.CauseOutage && t.s.Runtime.Refusal != nil && t.s.Runtime.Failing != nil // of what is declared
	if p.Kind != fleet.PlanDestroy && !removal(task) && !t.ofAnotherDocument(p, task) && !said {
		t.s.Runtime.Refusal = &fleet.Refusal{
			Reason: reason, Message: cut(message), Task: task.ID,
			Generation: p.Generation, Revision: p.Revision, At: task.Outcome.At,
		}
	}
	t.again()
}

// ofAnotherDocument reports whether the task is about what served last and was made from
// another document than the desired one: its refusal says nothing about that.
func (t *turn) ofAnotherDocument(p fleet.Plan, task fleet.Task) bool {
	if p.Cause != fleet.CauseOutage {
		return false
	}
	is := func(c fleet.Container) bool { return c.ID == task.ContainerID }
	i := slices.IndexFunc(t.s.Containers, is)
	return i < 0 || t.in.Desired.Containers == nil || !slices.ContainsFunc(t.in.Desired.Containers.Services, func(d fleet.ServiceDocument) bool {
		return d.Service == t.s.Containers[i].Service && d.Digest == t.s.Containers[i].Digest
	})
}

// completed ends a plan all of whose tasks succeeded.
func (t *turn) completed(p fleet.Plan) {
	t.s.Of(p.Cause).Failing = nil
	if p.Cause == fleet.CauseOutage {
		t.s.Outage.Interrupted = slices.DeleteFunc(slices.Clone(t.s.Outage.Interrupted), func(service string) bool {
			return slices.ContainsFunc(p.Tasks, func(task fleet.Task) bool { return task.Kind == fleet.TaskStart && task.Service == service })
		}) // what ends from now on has ended by itself
		t.dropPlan()
		return
	}
	if slices.ContainsFunc(p.Tasks, func(task fleet.Task) bool { return task.Kind == fleet.TaskRemoveVolumes }) {
		t.s.VolumesRemoved = true
	}
	if p.Cause == fleet.CauseCleanup {
		t.note(fleet.EventNormal, "LeftoversRemoved", "containers of no active plan were removed")
	}
	t.endPlan("", minRetry, t.in.runtime().pause())
}

// endPlan drops the plan; the next one for the same cause waits, the longer the more
// there were, from least to most (P9).
func (t *turn) endPlan(why string, least, most time.Duration) {
	if why != "" {
		t.note(fleet.EventWarning, "Replanned", why)
	}
	c := t.s.Of(t.s.Runtime.Plan.Cause)
	at := t.in.Now.Add(backoff(c.Attempts, least, most, t.in.Intent.Key().String()))
	t.dropPlan()
	c.NextAttempt = &at
	if !t.in.rule(RuleP9Retry) && c == &t.s.Runtime.Course {
		never := t.in.Now.Add(1000 * time.Hour)
		c.NextAttempt = &never
	}
}

// supersede drops a plan that was made for another generation or document, or for another
// object than there is, at a task boundary: a running task is awaited, unless it may be
// given up (S6).
func (t *turn) supersede() {
	p := t.s.Runtime.Plan
	if p == nil || t.awaited() {
		return
	}
	if !t.current(p) || !t.in.runtime().fits(t, p) {
		t.dropPlan()
	}
}

// current reports whether the plan was made for the present generation and document.
func (t *turn) current(p *fleet.Plan) bool {
	destroying := t.in.Intent.Deleting != nil
	return p.Generation == t.in.Intent.Generation && (p.Revision == t.in.Desired.Revision || destroying) && (p.Kind == fleet.PlanDestroy) == destroying
}

// dropHeld drops a plan when a hold is first seen (S10, S11). What is left over from
// our own work is taken away even where the region only observes, until something
// drifts.
func (t *turn) dropHeld() {
	p := t.s.Runtime.Plan
	if p == nil || t.busy() && !t.lapsed() || mends(p, t.s) {
		return
	}
	paused := t.in.Region.Paused || t.in.Intent.Paused || blocked(t.in.Holds)
	if paused || t.unconfirmed() || t.held() && (!onlyRemovals(p) || t.seen.fresh && t.seen.drifted()) {
		t.dropPlan()
	}
}

// busy reports whether a task runs.
func (t *turn) busy() bool {
	i := t.s.Runtime.Plan.Current()
	return i >= 0 && t.s.Runtime.Plan.Tasks[i].State == fleet.TaskRunning
}

// awaited reports whether a task runs whose end has to be awaited, whoever wants something
// else by now.
func (t *turn) awaited() bool {
	return t.busy() && !t.s.Runtime.Plan.Tasks[t.s.Runtime.Plan.Current()].Cancellable()
}

// lapsed reports whether the task that runs has none who runs it any more: who does records
// its end, at its deadline at the latest.
func (t *turn) lapsed() bool {
	task := t.s.Runtime.Plan.Tasks[t.s.Runtime.Plan.Current()]
	return task.Deadline != nil && !task.Deadline.Add(recordedWithin).After(t.in.Now)
}

// removal reports whether the task only takes away what nothing needs.
func removal(task fleet.Task) bool { return task.Kind == fleet.TaskRemove }

// onlyRemovals reports whether all that is left of the plan is taking leftovers away.
func onlyRemovals(p *fleet.Plan) bool {
	if p == nil || p.Cause == fleet.CauseCleanup {
		return true
	}
	return !slices.ContainsFunc(p.Tasks, func(t fleet.Task) bool { return t.State != fleet.TaskDone && !removal(t) })
}

// crashes counts exits within 10 s of their start (C11). While a plan owns the
// services their exits are its own doing.
func (t *turn) crashes() {
	if !t.seen.fresh || t.destroying() || t.s.Runtime.Plan != nil && !preparing(t.s.Runtime.Plan) {
		return
	}
	counts := map[string]fleet.CrashCount{}
	for _, s := range t.seen.services {
		c, known := t.s.Crashes[s.doc.Service]
		if s.last == nil {
			if known {
				c.RunningSince = nil
				counts[s.doc.Service] = c
			}
			continue
		}
		switch {
		case s.last.State == fleet.ContainerRunning && known:
			if c.RunningSince == nil {
				now := t.in.Now
				c.RunningSince = &now
			}
			if !c.RunningSince.Add(stableRun).After(t.in.Now) {
				continue // it stays up: forgotten
			}
			counts[s.doc.Service] = c
		case s.last.State == fleet.ContainerExited && s.last.Finished != nil && !s.last.Finished.Equal(c.LastFinished):
			quick := s.last.Started != nil && s.last.Finished.Sub(*s.last.Started) < quickExit
			n := 0
			if quick {
				n = c.Quick + 1
			}
			counts[s.doc.Service] = fleet.CrashCount{Quick: n, LastFinished: *s.last.Finished, SeenAt: t.in.Now}
			if !quick || !c.Loops() { // else it was said
				t.note(fleet.EventWarning, "ServiceExited", fmt.Sprintf("%s ended with exit code %d", s.doc.Service, s.last.ExitCode))
			}
		case known:
			counts[s.doc.Service] = c
		}
	}
	t.s.Crashes = counts
	if len(counts) == 0 {
		t.s.Crashes = nil
	}
}

// crashing reports whether a service is in a crash loop.
func (t *turn) crashing() bool { return t.crashed() != "" }

// succeeded reports whether all that is in a crash loop is what the open deployment replaces:
// it says nothing about that (C11).
func (t *turn) succeeded() bool {
	return t.latest.Status.Open() && !slices.ContainsFunc(t.seen.services, func(s serviceView) bool {
		return t.s.Crashes[s.doc.Service].Loops() && !s.replaced()
	})
}

// crashed names the services in a crash loop.
func (t *turn) crashed() string {
	var names []string
	for _, service := range slices.Sorted(maps.Keys(t.s.Crashes)) {
		if t.s.Crashes[service].Loops() {
			names = append(names, service)
		}
	}
	return strings.Join(names, ", ")
}
