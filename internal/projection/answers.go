package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

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

// interrupted notes the services that a plan stopped and did not start again.
func (t *turn) interrupted(down []string) {
	if t.in.Intent.Deleting != nil || !t.in.rule(RuleC14Interrupted) {
		return
	}
	down = append(down, t.s.Outage.Interrupted...)
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
	if !t.seen.fresh || !preparing(p) || t.books().awaited() || t.books().busy() && t.crashing() {
		return
	}
	b := builder{in: t.in, seen: t.seen, crashes: t.s.Crashes}
	if b.revive(t.s.Outage) {
		t.books().dropPlan()
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

// books are those of the runtime.
func (t *turn) books() books {
	return books{turn: t, track: fleet.TrackRuntime, work: &t.s.Runtime, is: running{t}}
}

// running is the pursuit of what runs.
type running struct{ *turn }

// current implements pursuit, for the present generation and document.
func (r running) current(p *fleet.Plan) bool {
	destroying := r.in.Intent.Deleting != nil
	return p.Generation == r.in.Intent.Generation && (p.Revision == r.in.Desired.Revision || destroying) && (p.Kind == fleet.PlanDestroy) == destroying
}

func (r running) fits(p *fleet.Plan) bool { return r.in.runtime().fits(r.turn, p) }

func (r running) pause() time.Duration { return r.in.runtime().pause() }

// halted implements pursuit. What is left over from our own work is taken away even where the
// region only observes, until something drifts.
func (r running) halted(p *fleet.Plan) bool {
	if mends(p, r.s) {
		return false
	}
	return r.paused() || r.unconfirmed() || r.held() && (!onlyRemovals(p) || r.seen.fresh && r.seen.drifted())
}

// answers takes those of the runtime into account.
func (t *turn) answers() {
	if p := t.s.Runtime.Plan; p != nil { // its end may be seen with its beginning
		t.tried = len(p.Tasks) > 0 && p.Tasks[0].Tries > 0 && p.Generation >= t.latest.Generation
	}
	t.books().answers()
}

// done takes over what a plan has brought about all of whose tasks succeeded.
func (t *turn) done(p fleet.Plan) {
	if p.Cause == fleet.CauseOutage { // what ends from now on has ended by itself
		t.s.Outage.Interrupted = slices.DeleteFunc(slices.Clone(t.s.Outage.Interrupted), func(service string) bool {
			return slices.ContainsFunc(p.Tasks, func(task fleet.Task) bool { return task.Kind == fleet.TaskStart && task.Service == service })
		})
	}
	if slices.ContainsFunc(p.Tasks, func(task fleet.Task) bool { return task.Kind == fleet.TaskRemoveVolumes }) {
		t.s.VolumesRemoved = true
	}
	if p.Cause == fleet.CauseCleanup {
		t.note(fleet.EventNormal, "LeftoversRemoved", "containers of no active plan were removed")
	}
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
		b := t.books()
		b.course(b.work.Plan.Cause).Failing = nil
		b.endPlan("", minRetry, maxRestart)
		return true
	}
	return false
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
