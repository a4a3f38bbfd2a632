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

// serviceView is one service with its containers, which their labels tell, whatever they
// are called (C15).
type serviceView struct {
	doc   fleet.ServiceDocument // of a service that left the document its names alone
	last  *fleet.Container      // what served last: it runs or ran; nil where nothing did
	next  *fleet.Container      // of the desired document, and waits to take the place of last
	rest  []fleet.Container     // what nothing needs
	waits string                // says which server's container bears the service's name, where ours is there as well
}

// containers is the kind of a server that is a set of containers.
type containers struct{}

func (containers) look(in Input, v *reading) {
	if in.Desired.Containers == nil {
		return
	}
	mine := map[string][]fleet.Container{}
	for _, c := range in.Seen.Instance.Containers {
		if c.Foreign == "" {
			mine[c.Service] = append(mine[c.Service], c)
		}
	}
	for _, doc := range in.Desired.Containers.Services {
		s := viewOf(doc, mine[doc.Service])
		delete(mine, doc.Service)
		for _, c := range in.Seen.Instance.Containers {
			switch {
			case c.Foreign == "":
			case c.Name == doc.Name && c.Account != "" && s.current() != nil:
				s.waits = whose("container "+c.Name, c.Foreign) // which gives way by itself (C15)
			case c.Name == doc.Name && in.rule(RuleC7Foreign):
				v.owner = whose("container "+c.Name, c.Foreign)
			}
		}
		v.services = append(v.services, s)
	}
	for _, service := range slices.Sorted(maps.Keys(mine)) {
		doc := fleet.ServiceDocument{Service: service, Name: in.Desired.Instance + "-" + service}
		v.left = append(v.left, viewOf(doc, mine[service]))
	}
	v.summarise(in.Desired.ImageTag)
}

// see takes over the containers, and forgets those that were adopted and are gone: what comes
// after them carries labels.
func (containers) see(t *turn) (same bool) {
	var mine []fleet.Container
	for _, c := range t.in.Seen.Instance.Containers {
		if c.Foreign == "" {
			mine = append(mine, c)
		}
	}
	maps.DeleteFunc(t.s.Adopted, func(_ string, a fleet.Adoption) bool {
		return !slices.ContainsFunc(mine, func(c fleet.Container) bool { return c.ID == a.ID })
	})
	same = t.seen.ids(mine) == t.seen.ids(t.s.Containers)
	t.s.Containers = mine
	return same
}

// prompted: they are gone (P4), or a part of them while only leftovers were to be taken away.
func (containers) prompted(t *turn) bool {
	leftovers := t.s.Runtime.Failing != nil && t.s.ConvergedAt != nil && t.s.Settled == t.key() // were all there was to do
	return t.s.ObservedImageTag != "" && t.seen.presence == absent || leftovers && !(t.seen.image.equal() && t.seen.document && t.seen.running)
}

func (containers) fits(*turn, *fleet.Plan) bool { return true }

func (containers) gone(t *turn) (gone, ask bool) {
	return t.s.VolumesRemoved && len(t.s.Containers) == 0, false
}

func (containers) document(t *turn) (fleet.ConditionStatus, fleet.Reason, string) {
	v := t.seen
	switch {
	case v.missing != "":
		return fleet.False, fleet.ReasonServiceMissing, fmt.Sprintf("service %s has no container", v.missing)
	case v.differs != "":
		return fleet.False, fleet.ReasonDocumentDiffers, fmt.Sprintf("service %s runs from another document", v.differs)
	case len(v.left) > 0:
		return fleet.False, fleet.ReasonDocumentDiffers, fmt.Sprintf("service %s left the document and its container %s is still there", v.left[0].doc.Service, v.left[0].all()[0].Name)
	case t.crashing():
		return fleet.False, fleet.ReasonCrashLoop, fmt.Sprintf("service %s ends within 10 s of its start", t.crashed())
	case v.halted != "":
		return fleet.False, fleet.ReasonServiceStopped, fmt.Sprintf("service %s does not run", v.halted)
	default:
		return fleet.True, fleet.ReasonConverged, ""
	}
}

func (containers) missing(t *turn) string {
	switch {
	case !t.seen.document:
		return "the instance does not run the desired document"
	case t.crashing(): // whether or not it runs right now
		return "a service does not stay up"
	case !t.seen.running:
		return "a service does not run"
	case t.seen.image == imageOther:
		return t.imageDiffers()
	default:
		return ""
	}
}

func (containers) mark(v reading) (mark string) {
	for _, s := range v.services {
		if c := s.current(); c != nil {
			mark = cmp.Or(mark, c.RestartMark)
		}
	}
	return mark
}

func (containers) routes() bool         { return false }
func (containers) pause() time.Duration { return maxRestart }
func (containers) describe() string     { return "containers and volumes go" }

// viewOf tells a service's containers apart.
func viewOf(doc fleet.ServiceDocument, cs []fleet.Container) serviceView {
	s := serviceView{doc: doc}
	ranked := slices.Clone(cs)
	slices.SortStableFunc(ranked, func(a, b fleet.Container) int { return s.rank(a) - s.rank(b) })
	for _, c := range ranked {
		switch {
		case s.last == nil && c.Ran():
			s.last = &c
		case s.next == nil && c.Digest == doc.Digest && (s.last == nil || s.last.Digest != doc.Digest):
			s.next = &c
		default:
			s.rest = append(s.rest, c)
		}
	}
	slices.SortFunc(s.rest, func(a, b fleet.Container) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// rank orders a service's containers: what runs before what ran, and that before what never
// did; among those the service's name, then that of what was put aside.
func (s serviceView) rank(c fleet.Container) int {
	names := []string{s.doc.Name, s.doc.RetiredName(), s.doc.TemporaryName()}
	rank := slices.Index(names, c.Name)
	if rank < 0 {
		rank = len(names)
	}
	switch {
	case c.State == fleet.ContainerRunning:
		return rank
	case c.Ran():
		return rank + 10
	default:
		return rank + 20
	}
}

// current is the container that stands for the service: what served last, or before
// anything did what waits to.
func (s serviceView) current() *fleet.Container {
	if s.last != nil {
		return s.last
	}
	return s.next
}

// runs reports whether a container of the service runs.
func (s serviceView) runs() bool { return s.last != nil && s.last.State == fleet.ContainerRunning }

// replaced reports whether what served last was made from another document.
func (s serviceView) replaced() bool { return s.last != nil && s.last.Digest != s.doc.Digest }

func (v *reading) summarise(want string) {
	v.presence, v.image, v.document, v.running = absent, imageEqual, true, true
	leftovers := false
	for _, s := range v.services {
		c := s.current()
		if s.doc.Carrier {
			if carrier := s.any(); carrier == nil {
				v.image = imageNone
			} else {
				v.presence = present
				v.addImage(carrier.Image, want, carrier.Digest == s.doc.Digest)
			}
		}
		switch {
		case c == nil:
			v.document, v.running = false, false
			v.missing = firstOf(v.missing, s.doc.Service)
		case c.Digest != s.doc.Digest:
			v.document = false
			v.differs = firstOf(v.differs, s.doc.Service)
		case !s.runs():
			v.running = false
			v.halted = firstOf(v.halted, s.doc.Service)
		}
		leftovers = leftovers || len(s.rest) > 0 || s.last != nil && s.next != nil
		v.misnamed = v.misnamed || c != nil && c.Name != s.doc.Name
	}
	if len(v.left) > 0 {
		v.document = false
	}
	if v.presence == absent {
		v.image, v.tag = imageNone, ""
	}
	if v.owner != "" {
		v.presence = foreign
	}
	v.converged = v.presence == present && v.image == imageEqual && v.document && v.running && !leftovers && !v.misnamed
}

// any returns a container of the service, the most telling first.
func (s serviceView) any() *fleet.Container {
	if c := s.current(); c != nil || len(s.rest) == 0 {
		return c
	}
	return &s.rest[0]
}

// down are the services that served last and do not run, with those that left the document
// while what came after them does not run.
func (v reading) down() []serviceView {
	all := v.services
	if !v.running || v.missing != "" || v.differs != "" {
		all = slices.Concat(v.services, v.left)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s serviceView) bool { return s.last == nil || s.runs() })
}

// prepared reports whether there is a container for every service that can be started.
func (v reading) prepared() bool {
	return !slices.ContainsFunc(v.services, func(s serviceView) bool { return s.current() == nil || s.replaced() && s.next == nil })
}

// stopped reports whether what served last as the service is there and does not run.
func (v reading) stopped(service string) bool {
	return slices.ContainsFunc(v.down(), func(s serviceView) bool { return s.doc.Service == service })
}

// ids names the containers that carry the document, for telling a replaced one.
func (v reading) ids(cs []fleet.Container) string {
	var b strings.Builder
	for _, s := range v.services {
		i := slices.IndexFunc(cs, func(c fleet.Container) bool { return s.current() != nil && c.ID == s.current().ID })
		if i >= 0 {
			b.WriteString(s.doc.Service + "=" + cs[i].ID + "=" + string(cs[i].State) + ";")
		}
	}
	return b.String()
}
