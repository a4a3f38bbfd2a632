package projection

import (
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
	misnamed  bool   // an adopted container bears another name than its service's
	missing   string
	differs   string
	halted    string
	services  []serviceView
	extra     []fleet.Container   // ours, of services that left the document
	resource  *fleet.KubeInstance // ours, in a Kubernetes region; nil where there is none
}

// serviceView is one desired service with the containers that bear its names.
type serviceView struct {
	doc             fleet.ServiceDocument
	main, next, old *fleet.Container // ours; nil where there is none
	blocked         bool             // a foreign container bears the name that main gets aside
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
	used := map[string]bool{}
	find := func(name string) *fleet.Container {
		i := slices.IndexFunc(o.Containers, func(c fleet.Container) bool { return c.Name == name })
		if i < 0 {
			return nil
		}
		c := o.Containers[i]
		if c.Foreign != "" {
			return nil
		}
		used[c.Name] = true
		return &c
	}
	for _, doc := range in.Desired.Containers.Services {
		s := serviceView{
			doc: doc, main: find(doc.Name), next: find(doc.TemporaryName()), old: find(doc.RetiredName()),
		}
		if s.main == nil {
			s.main = adopted(o.Containers, doc, used)
		}
		s.blocked = slices.ContainsFunc(o.Containers, func(c fleet.Container) bool { return c.Name == doc.RetiredName() && c.Foreign != "" })
		v.services = append(v.services, s)
		for _, c := range o.Containers {
			if c.Name == doc.Name && c.Foreign != "" && in.rule(RuleC7Foreign) {
				v.owner = taken("container "+c.Name, c.Foreign)
			}
		}
	}
	for _, c := range o.Containers {
		if c.Foreign == "" && !used[c.Name] {
			v.extra = append(v.extra, c)
		}
	}
	v.summarise(in.Desired.ImageTag)
	return v
}

// adopted returns the container that was adopted as the service under a name of its own.
// The name it has while it is replaced is no such.
func adopted(cs []fleet.Container, doc fleet.ServiceDocument, used map[string]bool) *fleet.Container {
	i := slices.IndexFunc(cs, func(c fleet.Container) bool {
		return c.Adopted && c.Service == doc.Service && !used[c.Name]
	})
	if i < 0 {
		return nil
	}
	c := cs[i]
	used[c.Name] = true
	return &c
}

func (v *instance) summarise(want string) {
	v.presence, v.image, v.document, v.running = absent, imageEqual, true, true
	leftovers := false
	for _, s := range v.services {
		carrier := s.any()
		if s.doc.Carrier {
			if carrier == nil {
				v.image = imageNone
			} else {
				v.presence = present
				v.weigh(carrier.Image, want, carrier.Digest == s.doc.Digest)
			}
		}
		switch {
		case s.main == nil:
			v.document, v.running = false, false
			v.missing = firstOf(v.missing, s.doc.Service)
		case s.main.Digest != s.doc.Digest:
			v.document = false
			v.differs = firstOf(v.differs, s.doc.Service)
		case s.main.State != fleet.ContainerRunning:
			v.running = false
			v.halted = firstOf(v.halted, s.doc.Service)
		}
		leftovers = leftovers || s.next != nil || s.old != nil
		v.misnamed = v.misnamed || s.main != nil && s.main.Name != s.doc.Name
	}
	if len(v.extra) > 0 {
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

// any returns the container that stands for the service: the one that bears its name,
// while it is replaced the one that serves last.
func (s serviceView) any() *fleet.Container {
	for _, c := range []*fleet.Container{s.main, s.old, s.next} {
		if c != nil {
			return c
		}
	}
	return nil
}

// stopped reports whether the service's container is there and does not run.
func (v instance) stopped(service string) bool {
	return slices.ContainsFunc(v.services, func(s serviceView) bool {
		return s.doc.Service == service && s.main != nil && s.main.State != fleet.ContainerRunning
	})
}

// ids names the containers that carry the document, for telling a replaced one.
func (v instance) ids(cs []fleet.Container) string {
	var b strings.Builder
	for _, c := range cs {
		if slices.ContainsFunc(v.services, func(s serviceView) bool { return s.doc.Name == c.Name }) {
			b.WriteString(c.Name + "=" + c.ID + "=" + string(c.State) + ";")
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
