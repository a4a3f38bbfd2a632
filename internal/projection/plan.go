package projection

import (
	"fmt"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Plan returns the steps that bring the server nearer to what is wanted, or nil: where
// nothing differs, where the last read did not answer or is older than an effect of
// ours, where a plan is stored already, and where the next attempt is not due.
// It says what would be done; whether it may be is for the holds to say (Decide).
func Plan(in Input, out Output) *fleet.Plan {
	s, v := out.Status, out.seen
	in.Now = in.Now.UTC().Round(0)
	if !v.readable || !v.fresh || s.Plan != nil || out.Remove {
		return nil
	}
	if s.NextAttempt != nil && s.NextAttempt.After(in.Now) {
		return nil
	}
	b := builder{in: in, seen: v, crashes: s.Crashes, adopted: s.Adopted}
	kind := fleet.PlanApply
	cause := (&turn{in: in, s: s, latest: latestOf(in, out), seen: v}).cause()
	switch {
	case in.Intent.Deleting != nil:
		kind, cause = fleet.PlanDestroy, fleet.CauseDestroy
		b.destroy(s)
	case v.presence == foreign:
		return nil
	default:
		if b.converge() {
			kind = fleet.PlanReplace
		}
		if len(b.tasks) == 0 {
			cause = fleet.CauseCleanup
			b.cleanUp()
		}
	}
	if len(b.tasks) == 0 {
		return nil
	}
	p := &fleet.Plan{
		ID:         fmt.Sprintf("%s/g%d/%s/p%d", in.Intent.Key(), in.Intent.Generation, cause, s.Plans+1),
		Kind:       kind,
		Cause:      cause,
		Generation: in.Intent.Generation,
		Revision:   in.Desired.Revision,
		Attempt:    s.Attempts + 1,
		CreatedAt:  in.Now,
	}
	limit := 5 * time.Minute // for tries that fail transiently (S6)
	for i, task := range b.tasks {
		task.ID, task.State = fmt.Sprintf("%s/%d", p.ID, i+1), fleet.TaskPending
		if task.CreatedBy != "" {
			task.CreatedBy = fmt.Sprintf("%s/%d", p.ID, b.creates[task.CreatedBy]+1)
		}
		limit += task.Timeout()
		p.Tasks = append(p.Tasks, task)
	}
	p.Deadline = in.Now.Add(limit)
	if p.Repeats(s.Again) {
		for i := range p.Tasks {
			p.Tasks[i].Tries = s.Again.Tasks[i].Tries
		}
	}
	return p
}

func latestOf(in Input, out Output) fleet.Deployment {
	if out.Latest != nil {
		return *out.Latest
	}
	return in.Latest
}

// cause says why the server is not settled; while it counts, the clock keeps its first.
func (t *turn) cause() fleet.Cause {
	switch {
	case t.latest.Status.Open():
		return fleet.CauseRollOut
	case t.seen.presence != present || t.seen.missing != "":
		return fleet.CauseRecreation
	case t.seen.image != imageEqual:
		return fleet.CauseRollOut
	case !t.seen.document, t.seen.misnamed:
		return fleet.CauseManifest
	case !t.seen.running:
		return fleet.CauseRecreation
	case t.s.PublishedURL != "" && t.s.PublishedURL != t.in.Desired.URL:
		return fleet.CauseURLMove
	default:
		return fleet.CauseEndpoint
	}
}

// builder collects the tasks of one plan. A task that acts on a container which an
// earlier task creates names that service in CreatedBy; Plan turns it into an id.
type builder struct {
	in      Input
	seen    instance
	crashes map[string]fleet.CrashCount
	adopted map[string]fleet.Adoption
	tasks   []fleet.Task
	creates map[string]int // service → index of its create task
}

func (b *builder) add(t fleet.Task) {
	for _, a := range b.adopted {
		t.Adopted = t.Adopted || a.ID == t.ContainerID
	}
	b.tasks = append(b.tasks, t)
}

func (b *builder) create(doc fleet.ServiceDocument, name string) {
	if b.creates == nil {
		b.creates = map[string]int{}
	}
	b.add(fleet.Task{Kind: fleet.TaskPull, Service: doc.Service, Image: doc.Image, Digest: doc.Digest})
	b.creates[doc.Service] = len(b.tasks)
	b.add(fleet.Task{Kind: fleet.TaskCreate, Service: doc.Service, Name: name, Digest: doc.Digest})
}

// converge plans what brings every service to its document and says whether one is
// replaced. All that may fail for reasons of the document comes first and costs nobody
// anything; then one service after the other is swapped (C4).
func (b *builder) converge() (replaced bool) {
	if b.in.kubernetes() {
		b.resource()
		return false
	}
	for _, s := range b.seen.services {
		switch {
		case s.main == nil && s.waiting():
		case s.main == nil:
			b.create(s.doc, s.doc.Name)
		case s.main.Digest != s.doc.Digest && !s.waiting() && b.in.rule(RuleP14Document):
			b.create(s.doc, s.doc.TemporaryName())
		}
	}
	for _, s := range b.inTurn() {
		switch {
		case s.main == nil && s.waiting():
			b.stop(s.doc.Service, s.old)
			b.swapIn(s)
			replaced = true
		case s.main == nil:
			b.stop(s.doc.Service, s.old)
			b.add(fleet.Task{Kind: fleet.TaskStart, Service: s.doc.Service, CreatedBy: s.doc.Service})
		case s.main.Digest != s.doc.Digest:
			if !b.in.rule(RuleP14Document) {
				continue
			}
			// An -old of an earlier plan would be in the way of the rename.
			b.takeAway(s.doc.Service, s.old)
			aside := fleet.Task{Kind: fleet.TaskRename, Service: s.doc.Service, ContainerID: s.main.ID, Name: s.doc.RetiredName()}
			if s.blocked { // which refuses the rename: better before the stop than after it
				b.add(aside)
				b.stop(s.doc.Service, s.main)
			} else {
				b.stop(s.doc.Service, s.main)
				b.add(aside)
			}
			s.old = s.main
			b.swapIn(s)
			replaced = true
		default:
			b.keep(s)
		}
	}
	for _, c := range b.seen.extra { // services that left the document
		b.takeAway(c.Service, &c)
	}
	return replaced
}

// inTurn are the services in the order in which they are swapped: one that a foreign
// container is in the way of comes last, and holds nobody up.
func (b *builder) inTurn() []serviceView {
	var first, last []serviceView
	for _, s := range b.seen.services {
		if s.blocked {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return append(first, last...)
}

// keep plans what a container of the desired document lacks: its name, if it was adopted
// under another one, and to run.
func (b *builder) keep(s serviceView) {
	if s.main.Name != s.doc.Name {
		b.add(fleet.Task{Kind: fleet.TaskRename, Service: s.doc.Service, ContainerID: s.main.ID, Name: s.doc.Name})
	}
	if s.main.State == fleet.ContainerRunning {
		return
	}
	if c := b.crashes[s.doc.Service]; !c.SeenAt.Add(crashDelay(c.Quick)).After(b.in.Now) && b.in.rule(RuleC2Restart) {
		b.add(fleet.Task{Kind: fleet.TaskStart, Service: s.doc.Service, ContainerID: s.main.ID})
	}
}

// swapIn gives the waiting container the service's name, starts it and takes the old
// one away.
func (b *builder) swapIn(s serviceView) {
	rename := fleet.Task{Kind: fleet.TaskRename, Service: s.doc.Service, Name: s.doc.Name}
	start := fleet.Task{Kind: fleet.TaskStart, Service: s.doc.Service}
	if s.waiting() {
		rename.ContainerID, start.ContainerID = s.next.ID, s.next.ID
	} else {
		rename.CreatedBy, start.CreatedBy = s.doc.Service, s.doc.Service
	}
	b.add(rename)
	b.add(start)
	if s.old != nil {
		b.add(fleet.Task{Kind: fleet.TaskRemove, Service: s.doc.Service, ContainerID: s.old.ID})
	}
}

// waiting reports whether a container of the desired document waits under the
// temporary name: an interrupted replace goes on with it.
func (s serviceView) waiting() bool { return s.next != nil && s.next.Digest == s.doc.Digest }

// cleanUp plans the removal of labelled leftovers of no active plan (C4).
func (b *builder) cleanUp() {
	if !b.in.rule(RuleC4Leftovers) {
		return
	}
	for _, s := range b.seen.services {
		if s.main == nil {
			continue
		}
		b.takeAway(s.doc.Service, s.next)
		b.takeAway(s.doc.Service, s.old)
	}
}

// destroy plans the removal of every container of ours, then of the volumes; or of the
// KuraInstance.
func (b *builder) destroy(s fleet.Status) {
	if b.in.kubernetes() {
		b.deleteResource()
		return
	}
	for _, c := range s.Containers {
		b.takeAway(c.Service, &c)
	}
	if len(b.tasks) > 0 || !s.VolumesRemoved {
		b.add(fleet.Task{Kind: fleet.TaskRemoveVolumes})
	}
}

func (b *builder) takeAway(service string, c *fleet.Container) {
	if c == nil {
		return
	}
	b.stop(service, c)
	b.add(fleet.Task{Kind: fleet.TaskRemove, Service: service, ContainerID: c.ID})
}

// stop plans the end of a container that runs, or that the engine is about to run.
func (b *builder) stop(service string, c *fleet.Container) {
	if c == nil || c.State != fleet.ContainerRunning {
		return
	}
	grace := fleet.Duration(30 * time.Second)
	if i := slices.IndexFunc(b.seen.services, func(s serviceView) bool { return s.doc.Service == service }); i >= 0 {
		grace = b.seen.services[i].doc.GracePeriod
	}
	b.add(fleet.Task{Kind: fleet.TaskStop, Service: service, ContainerID: c.ID, Grace: grace})
}
