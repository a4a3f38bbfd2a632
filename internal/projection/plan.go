package projection

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Plan returns the steps that bring the server nearer to what is wanted, or nil: where
// nothing differs, where the last read did not answer or is older than an effect of
// ours, where a plan is stored already, and where the next attempt is not due.
// It says what would be done; whether it may be is for the holds to say (Decide).
func Plan(in Input, out Output) *fleet.Plan {
	if out.Status.Runtime.Plan != nil || out.Remove {
		return nil
	}
	t := resume(in, out)
	in, s, v := t.in, t.s, t.seen
	if !v.fresh || t.marked() || in.Intent.Deleting != nil && !t.tracksGone() && !s.Clock.Expired {
		return nil
	}
	b := builder{in: in, seen: v, crashes: s.Crashes, adopted: s.Adopted, there: slices.Clone(in.Seen.Instance.Containers)}
	kind, attempt := fleet.PlanApply, s.Runtime.Attempts+1
	cause := t.cause()
	b.waits = s.Runtime.NextAttempt != nil && s.Runtime.NextAttempt.After(in.Now)
	b.goesOn = !b.waits && s.Runtime.Refusal == nil && s.Admitted && !blocked(s.Holds) && v.presence != foreign && v.prepared()
	switch {
	case in.Intent.Deleting != nil && !b.waits:
		kind, cause = fleet.PlanDestroy, fleet.CauseDestroy
		in.runtime().destroy(&b, s)
	case in.Intent.Deleting != nil:
		return nil
	case b.revive(s.Outage):
		cause, attempt = fleet.CauseOutage, s.Outage.Attempts+1
	case b.waits:
		return nil
	case v.presence == foreign:
		cause = fleet.CauseManifest
		b.namesBack()
	default:
		if in.runtime().converge(&b) {
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
	p := &fleet.Plan{Kind: kind, Cause: cause, Revision: in.Desired.Revision, Attempt: attempt, Tasks: b.tasks}
	for i := range p.Tasks {
		if by := p.Tasks[i].CreatedBy; by != "" {
			p.Tasks[i].CreatedBy = fmt.Sprint(b.creates[by] + 1)
		}
	}
	t.books().draft(p, string(cause))
	return p
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
	seen    reading
	crashes map[string]fleet.CrashCount
	adopted map[string]fleet.Adoption
	tasks   []fleet.Task
	creates map[string]int    // service → index of its create task
	there   []fleet.Container // once the tasks so far are done
	goesOn  bool              // what is prepared for the place of what served last is started now
	waits   bool              // the next attempt is not due
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
	b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskPull, Service: doc.Service, Image: doc.Image, Digest: doc.Digest}})
	b.creates[doc.Service] = len(b.tasks)
	b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Service: doc.Service, Name: name, Digest: doc.Digest}})
	b.there = append(b.there, fleet.Container{Service: doc.Service, Name: name, Digest: doc.Digest, State: fleet.ContainerCreated})
}

// revive plans the start of what served last and does not run; and its name, if what was
// to take its place has that (C14), or while the next attempt waits (C15). It waits for
// nothing but the pause between the exits of what does not stay up. What a plan of ours
// stopped comes first and alone.
func (b *builder) revive(o fleet.Outage) bool {
	if o.NextAttempt != nil && o.NextAttempt.After(b.in.Now) {
		return false
	}
	for _, s := range b.seen.down() {
		rule := RuleC2Restart
		if s.replaced() {
			rule = RuleC14Alive
		}
		switch c := b.crashes[s.doc.Service]; {
		case len(o.Interrupted) > 0 && !slices.Contains(o.Interrupted, s.doc.Service):
		case b.goesOn && s.replaced() && s.waits == "":
		case len(o.Interrupted) == 0 && c.SeenAt.Add(crashDelay(c.Quick)).After(b.in.Now):
		case b.in.rule(rule):
			b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, Service: s.doc.Service, ContainerID: s.last.ID}})
			if s.waits == "" && slices.ContainsFunc(b.seen.services, func(o serviceView) bool { return o.doc.Service == s.doc.Service }) {
				b.nameBack(s)
			}
		}
	}
	for _, s := range b.seen.services {
		if b.waits && s.runs() && len(o.Interrupted) == 0 {
			b.nameBack(s)
		}
	}
	return len(b.tasks) > 0
}

// converge plans what brings every service to its document and says whether one is
// replaced. All that may fail for reasons of the document comes first and costs nobody
// anything; then one service after the other is swapped (C4).
func (containers) converge(b *builder) (replaced bool) {
	swaps := func(s serviceView) bool { return s.replaced() && s.waits == "" && b.in.rule(RuleP14Document) }
	for _, s := range b.seen.services {
		switch {
		case s.current() == nil:
			b.free(s.doc.Name)
			b.create(s.doc, s.doc.Name)
		case s.next == nil || !s.replaced():
			b.nameBack(s)
			if swaps(s) {
				b.free(s.doc.TemporaryName())
				b.create(s.doc, s.doc.TemporaryName())
			}
		case s.next.Name != s.doc.Name && s.last.Name != s.doc.Name:
			b.free(s.doc.Name) // before anything is stopped
		}
	}
	for _, s := range b.seen.services {
		switch {
		case s.last == nil:
			b.begin(s)
		case swaps(s):
			b.swap(s)
			replaced = true
		}
	}
	for _, s := range b.seen.left {
		for _, c := range s.all() {
			b.takeAway(c)
		}
	}
	return replaced
}

// swap takes what served last out of the way of the container that waits, or is made by the
// plan, and starts that under the service's name.
func (b *builder) swap(s serviceView) {
	aside := b.named(*s.last) == s.doc.Name
	if aside { // an -old of an earlier plan would be in the way of the rename
		b.free(s.doc.RetiredName())
	}
	b.stop(*s.last)
	if aside {
		b.rename(*s.last, b.spareName(*s.last))
	}
	b.begin(s)
	b.takeAway(*s.last)
}

// begin starts the container that waits, or is made by the plan, under the service's name;
// what of ours holds a port that it needs gives way first (C15).
func (b *builder) begin(s serviceView) {
	for _, c := range s.rest {
		if c.State.Alive() && b.at(func(o fleet.Container) bool { return o.ID == c.ID }) != nil {
			b.takeAway(c)
		}
	}
	rename := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, Service: s.doc.Service, Name: s.doc.Name}}
	start := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, Service: s.doc.Service}}
	if s.next != nil {
		rename.ContainerID, start.ContainerID = s.next.ID, s.next.ID
	} else {
		rename.CreatedBy, start.CreatedBy = s.doc.Service, s.doc.Service
	}
	for _, c := range slices.Clone(b.there) {
		if c.Foreign == "" && c.State.Alive() && publishes(c, s.doc) && b.in.rule(RuleC15GiveWay) {
			b.stop(c)
		}
	}
	if s.last != nil && (s.next == nil || b.named(*s.next) != s.doc.Name) {
		b.add(rename)
	}
	b.add(start)
}

// publishes reports whether the container has a host port that the document needs.
func publishes(c fleet.Container, doc fleet.ServiceDocument) bool {
	return slices.ContainsFunc(doc.Ports, func(p fleet.PortDocument) bool {
		for port, host := range c.Ports {
			if host == p.Host && strings.HasSuffix(port, "/"+p.Protocol) {
				return true
			}
		}
		return false
	})
}

// namesBack gives every service's container its name.
func (b *builder) namesBack() {
	for _, s := range b.seen.services {
		b.nameBack(s)
	}
}

// nameBack gives a service's container the service's name. Where another server's bears that,
// it gives up what is not its own, for that may be what the other one waits for (C15).
func (b *builder) nameBack(s serviceView) {
	c := s.current()
	if c == nil || !b.in.rule(RuleC15Names) {
		return
	}
	holder := b.at(func(o fleet.Container) bool { return o.Name == s.doc.Name })
	switch {
	case b.named(*c) == s.doc.Name:
	case holder == nil || holder.Foreign == "":
		b.free(s.doc.Name)
		b.rename(*c, s.doc.Name)
	case holder.Account != "" && !slices.Contains(spareNames(s.doc, *c), b.named(*c)):
		b.rename(*c, b.spareName(*c))
	}
}

// free takes a name from what of ours bears it and is not the service's own container.
func (b *builder) free(name string) {
	c := b.at(func(c fleet.Container) bool { return c.Name == name })
	switch {
	case c == nil || c.Foreign != "" || c.ID == "":
	case b.needless(*c):
		b.takeAway(*c)
	default:
		b.rename(*c, b.spareName(*c))
	}
}

// needless reports whether nothing needs the container.
func (b *builder) needless(c fleet.Container) bool {
	return slices.ContainsFunc(slices.Concat(b.seen.services, b.seen.left), func(s serviceView) bool {
		return slices.ContainsFunc(s.rest, func(o fleet.Container) bool { return o.ID == c.ID })
	})
}

// spareName is a name that the container may have until its own is free.
func (b *builder) spareName(c fleet.Container) string {
	doc := fleet.ServiceDocument{Name: b.in.Desired.Instance + "-" + c.Service}
	for _, s := range b.seen.services {
		if s.doc.Service == c.Service {
			doc = s.doc
		}
	}
	names := append([]string{doc.Name}, spareNames(doc, c)...)
	i := slices.IndexFunc(names, func(name string) bool {
		return b.at(func(o fleet.Container) bool { return o.Name == name }) == nil
	})
	return names[max(i, 0)]
}

// spareNames are names of a service's container that does not have the service's; the last
// is free for certain.
func spareNames(doc fleet.ServiceDocument, c fleet.Container) []string {
	return []string{doc.RetiredName(), doc.TemporaryName(), doc.Name + "-" + c.ID[:min(len(c.ID), 12)]}
}

// at returns what is there once the tasks so far are done.
func (b *builder) at(is func(fleet.Container) bool) *fleet.Container {
	if i := slices.IndexFunc(b.there, is); i >= 0 {
		c := b.there[i]
		return &c
	}
	return nil
}

// named is the container's name once the tasks so far are done.
func (b *builder) named(c fleet.Container) string {
	if now := b.at(func(o fleet.Container) bool { return o.ID == c.ID }); now != nil {
		return now.Name
	}
	return c.Name
}

// update changes what is there once the tasks so far are done.
func (b *builder) update(c fleet.Container, change func(*fleet.Container)) {
	for i := range b.there {
		if b.there[i].ID == c.ID {
			change(&b.there[i])
		}
	}
}

func (b *builder) rename(c fleet.Container, name string) {
	b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, Service: c.Service, ContainerID: c.ID, Name: name}})
	b.update(c, func(c *fleet.Container) { c.Name = name })
}

// all are the service's containers.
func (s serviceView) all() []fleet.Container {
	all := slices.Clone(s.rest)
	for _, c := range []*fleet.Container{s.next, s.last} {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// cleanUp plans the removal of labelled leftovers of no active plan (C4).
func (b *builder) cleanUp() {
	if !b.in.rule(RuleC4Leftovers) {
		return
	}
	for _, s := range b.seen.services {
		for _, c := range s.rest {
			b.takeAway(c)
		}
	}
}

// destroy plans the removal of every container of ours, then of the volumes.
func (containers) destroy(b *builder, s fleet.Status) {
	b.there = slices.Clone(s.Containers)
	for _, c := range s.Containers {
		b.takeAway(c)
	}
	if len(b.tasks) > 0 || !s.VolumesRemoved {
		b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}})
	}
}

func (b *builder) takeAway(c fleet.Container) {
	b.stop(c)
	b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, Service: c.Service, ContainerID: c.ID}})
	b.there = slices.DeleteFunc(b.there, func(o fleet.Container) bool { return o.ID == c.ID })
}

// stop plans the end of a container that runs, unless an earlier task does.
func (b *builder) stop(c fleet.Container) {
	now := b.at(func(o fleet.Container) bool { return o.ID == c.ID })
	if now == nil || !now.State.Alive() {
		return
	}
	grace := fleet.Duration(30 * time.Second)
	if i := slices.IndexFunc(b.seen.services, func(s serviceView) bool { return s.doc.Service == c.Service }); i >= 0 {
		grace = b.seen.services[i].doc.GracePeriod
	}
	b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, Service: c.Service, ContainerID: c.ID, Grace: grace}})
	b.update(c, func(c *fleet.Container) { c.State = fleet.ContainerExited })
}
