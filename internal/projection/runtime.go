package projection

import (
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// runtime is one of the two kinds of what runs: the containers of a server, or its KuraInstance.
type runtime interface {
	// look reads what was observed against what is desired.
	look(in Input, v *reading)
	// see takes over what a good read saw, and reports whether it is what was seen before.
	see(t *turn) (same bool)
	// prompted reports whether what the next attempt waits for has changed since the last
	// read, not by an effect of ours (P9).
	prompted(t *turn) bool
	// converge plans what brings it to its document, and says whether a part is replaced.
	converge(b *builder) (replaced bool)
	// destroy plans its end.
	destroy(b *builder, s fleet.Status)
	// fits reports whether a stored plan is still for what is there (S6).
	fits(t *turn, p *fleet.Plan) bool
	// gone reports whether nothing is left of a destroyed server; or, where nothing is seen of
	// it, that a read of the runtime itself has to say so (P18).
	gone(t *turn) (gone, ask bool)
	// document says how what is there compares with the document, for ManifestConverged.
	document(t *turn) (fleet.ConditionStatus, fleet.Reason, string)
	// missing says what keeps it from being as desired; "" is nothing.
	missing(t *turn) string
	// mark is the mark of the redeploy that made what is there; "" is none.
	mark(v reading) string
	// routes reports whether hosts lead to it by its own doing, and not by what listens (K7).
	routes() bool
	// pause is the longest between plans that each succeed, and that something undoes (P9).
	pause() time.Duration
	// describe says for an event what a destroyed server loses.
	describe() string
}

// runtime returns the kind of the server.
func (in Input) runtime() runtime {
	if in.Desired.Kubernetes != nil {
		return kuraInstance{}
	}
	return containers{}
}

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

func (i imageState) equal() bool { return i == imageEqual }

// reading is what the newest good read says, as the rules need it.
type reading struct {
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

// look reads the observation against what is desired. effects says that it began after all
// effects of ours were over.
func look(in Input, effects bool) reading {
	o := in.Seen.Instance
	v := reading{readable: in.NotRenderable == nil && o.Unreadable == nil && !o.Begun.IsZero(), presence: absent, image: imageNone}
	if !in.rule(RuleP2Unreadable) {
		v.readable = true
	}
	v.fresh = v.readable && effects
	in.runtime().look(in, &v)
	return v
}

// drifted reports whether what runs differs from what is wanted; leftovers of our own
// work do not count.
func (v reading) drifted() bool {
	return v.presence != present || v.image != imageEqual || !v.document || !v.running || v.misnamed
}

// addImage takes a carrier's image into account: one that differs speaks for all. An engine
// calls an image by its id once the tag has moved on, and by the digest that it was pinned
// to; what was made from the desired document runs the desired one all the same.
func (v *reading) addImage(image, want string, made bool) {
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

// whose says whose a foreign container or object is.
func whose(what, by string) string {
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
