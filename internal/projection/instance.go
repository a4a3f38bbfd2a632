package projection

import (
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// presence says whether the runtime holds the server's instance.
type presence string

const (
	absent  presence = "absent"
	present presence = "present"
	foreign presence = "foreign"
)

// imageState compares the observed image with the desired one.
type imageState string

const (
	imageNone  imageState = "none"
	imageEqual imageState = "equal"
	imageOther imageState = "other"
)

// instance is what the newest good read says, as the rules need it.
type instance struct {
	readable bool // the newest read answered
	fresh    bool // and it began after every effect of ours ended

	presence  presence
	owner     string // says which foreign container or object bears one of our names, and whose it is
	image     imageState
	tag       string // observed; of the carrier that differs where they differ
	illegible string // the image of a carrier whose tag cannot be read (P23)
	document  bool   // every service has a container made from the desired document, and there is no other
	running   bool   // and every one of them runs
	converged bool   // image, document and all running, no leftovers
	misnamed  bool   // what serves bears another name than its service's
	missing   string
	differs   string
	halted    string
	services  []serviceView
	left      []serviceView       // services that left the document
	resource  *fleet.KubeInstance // ours, in a Kubernetes region; nil where there is none
}

// serviceView is one service with its containers, which their labels tell, whatever they
// are called (C15).
type serviceView struct {
	doc   fleet.ServiceDocument // of a service that left the document its names alone
	last  *fleet.Container      // what served last: it runs or ran; nil where nothing did
	next  *fleet.Container      // of the desired document, and waits to take the place of last
	rest  []fleet.Container     // what nothing needs
	waits string                // says which server's container bears the service's name, where ours is there as well
}

// look reads the observation against the desired document.
func look(in Input, effects bool) instance {
	o := in.Seen.Instance
	v := instance{readable: in.NotRenderable == nil && o.Unreadable == nil && !o.Begun.IsZero()}
	if !in.rule(RuleP2Unreadable) {
		v.readable = true
	}
	v.fresh = v.readable && effects
	if in.kubernetes() {
		v.lookAtResource(in)
		return v
	}
	if in.Desired.Containers == nil {
		v.presence, v.image = absent, imageNone
		return v
	}
	mine := map[string][]fleet.Container{}
	for _, c := range o.Containers {
		if c.Foreign == "" {
			mine[c.Service] = append(mine[c.Service], c)
		}
	}
	for _, doc := range in.Desired.Containers.Services {
		s := viewOf(doc, mine[doc.Service])
		delete(mine, doc.Service)
		for _, c := range o.Containers {
			switch {
			case c.Foreign == "":
			case c.Name == doc.Name && c.Account != "" && s.current() != nil:
				s.waits = taken("container "+c.Name, c.Foreign) // which gives way by itself (C15)
			case c.Name == doc.Name && in.rule(RuleC7Foreign):
				v.owner = taken("container "+c.Name, c.Foreign)
			}
		}
		v.services = append(v.services, s)
	}
	for _, service := range slices.Sorted(maps.Keys(mine)) {
		doc := fleet.ServiceDocument{Service: service, Name: in.Desired.Instance + "-" + service}
		v.left = append(v.left, viewOf(doc, mine[service]))
	}
	v.summarise(in.Desired.ImageTag)
	return v
}

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

func (v *instance) summarise(want string) {
	v.presence, v.image, v.document, v.running = absent, imageEqual, true, true
	leftovers := false
	for _, s := range v.services {
		c := s.current()
		if s.doc.Carrier {
			if carrier := s.any(); carrier == nil {
				v.image = imageNone
			} else {
				v.presence = present
				v.weigh(carrier.Image, want, carrier.Digest == s.doc.Digest)
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

// drifted reports whether what runs differs from what is wanted; leftovers of our own
// work do not count.
func (v instance) drifted() bool {
	return v.presence != present || v.image != imageEqual || !v.document || !v.running || v.misnamed
}

// weigh takes a carrier's image into account: one that differs speaks for all. An engine
// calls an image by its id once the tag has moved on, and by the digest that it was pinned
// to; what was made from the desired document runs the desired one all the same.
func (v *instance) weigh(image, want string, made bool) {
	tag, ok := fleet.TagOf(image)
	if made && fleet.ByDigest(image) {
		tag, ok = want, true
	}
	switch {
	case !ok:
		v.illegible, v.tag = image, ""
		v.image = imageOther
	case tag != want:
		if v.image != imageNone {
			v.image = imageOther
		}
		v.tag = tag
	case v.tag == "" && v.illegible == "":
		v.tag = tag
	}
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
func (v instance) down() []serviceView {
	all := v.services
	if !v.running || v.missing != "" || v.differs != "" {
		all = slices.Concat(v.services, v.left)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s serviceView) bool { return s.last == nil || s.runs() })
}

// prepared reports whether there is a container for every service that can be started.
func (v instance) prepared() bool {
	return !slices.ContainsFunc(v.services, func(s serviceView) bool { return s.current() == nil || s.replaced() && s.next == nil })
}

// stopped reports whether what served last as the service is there and does not run.
func (v instance) stopped(service string) bool {
	return slices.ContainsFunc(v.down(), func(s serviceView) bool { return s.doc.Service == service })
}

// ids names the containers that carry the document, for telling a replaced one.
func (v instance) ids(cs []fleet.Container) string {
	var b strings.Builder
	for _, s := range v.services {
		i := slices.IndexFunc(cs, func(c fleet.Container) bool { return s.current() != nil && c.ID == s.current().ID })
		if i >= 0 {
			b.WriteString(s.doc.Service + "=" + cs[i].ID + "=" + string(cs[i].State) + ";")
		}
	}
	return b.String()
}

// taken says whose a foreign container or object is.
func taken(what, by string) string {
	if by == fleet.NotByKurad {
		return what + " is there and was " + by
	}
	return what + " is held by " + by
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
