package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// kuraInstance is the kind of a server that is one KuraInstance.
type kuraInstance struct{}

// look: what runs is the controller's to say. The image is the one whose roll-out it reported
// complete.
func (kuraInstance) look(in Input, v *reading) {
	r := in.Seen.Instance.Resource
	v.fresh = v.fresh && !in.hidesAdopted()
	if r == nil {
		return
	}
	if r.Foreign != "" && in.rule(RuleK4Foreign) {
		v.presence, v.owner = foreign, whose(describe(*r), r.Foreign)
		return
	}
	v.presence, v.resource = present, r
	if r.ObservedImage != "" {
		v.image = imageEqual
		want := in.imageOf(*r)
		v.addImage(r.ObservedImage, in.Desired.ImageTag, want != in.imageWanted() && sameImage(r.ObservedImage, want)) // what its controller rolled out last may be older than its spec
		if v.image == imageEqual && !sameImage(r.ObservedImage, want) && in.rule(RuleP5Image) {
			v.image = imageOther
		}
	}
	v.document = r.Revision == in.Desired.Kubernetes.Revision && len(r.Differs) == 0
	v.running = !r.Deleting || !in.rule(RuleK4Terminating)
	v.converged = v.image == imageEqual && v.document && v.running
}

// imageWanted is the image of the document. The tag alone does not tell it: a region's
// images may move to another repository.
func (in Input) imageWanted() string {
	image, _ := in.Desired.Kubernetes.Spec["image"].(string)
	return image
}

// imageOf is what the document's image is in the KuraInstance, where its admission changes it
// (K10).
func (in Input) imageOf(r fleet.KubeInstance) string {
	if slices.ContainsFunc(r.Altered, func(d fleet.FieldDifference) bool { return d.Path == "spec.image" }) {
		return r.SpecImage
	}
	return in.imageWanted()
}

// sameImage reports whether a roll-out of the image is one of what the document wants.
// The controller copies what it was asked for; a digest that was not asked for is its own
// finding.
func sameImage(observed, want string) bool {
	if !strings.Contains(want, "@") {
		observed, _, _ = strings.Cut(observed, "@")
	}
	return observed == want
}

// hidesAdopted reports whether a watch shows no trace of the KuraInstance that was taken
// over: the request that did so read the cluster itself, and the watch may be behind it.
// Then only the cluster's own answer says anything (K6).
func (in Input) hidesAdopted() bool {
	if in.Prev == nil || in.Prev.AdoptedResource == nil || in.Seen.Instance.Direct || !in.rule(RuleK6Direct) {
		return false
	}
	return in.Seen.Instance.Resource == nil
}

func (kuraInstance) see(t *turn) (same bool) {
	is, was := t.in.Seen.Instance.Resource, t.s.Resource
	t.s.Resource = is
	if a := t.s.AdoptedResource; a != nil && t.in.rule(RuleK6Record) && (is == nil || is.UID != a.UID || is.Foreign == "" && !is.Adopted) {
		t.s.AdoptedResource = nil // it is gone, or carries our labels
	}
	t.rolledOut()
	return is != nil && was != nil && (is.UID == was.UID || !t.in.rule(RuleP5SameObject))
}

// prompted: it is gone or another one, a manager that was in the way of an apply has let go of
// a field, or the region takes fields over now.
func (kuraInstance) prompted(t *turn) bool {
	was, is := t.s.Resource, t.in.Seen.Instance.Resource
	if was == nil {
		return false
	}
	if is == nil || is.UID != was.UID || is.Foreign != was.Foreign {
		return true
	}
	if t.s.Runtime.Refusal == nil || t.s.Runtime.Refusal.Reason != fleet.ReasonFieldConflict {
		return false
	}
	if t.in.Desired.Kubernetes.Force {
		t.s.Runtime.Refusal = nil // so that this is said once
		return true
	}
	return slices.ContainsFunc(was.Held, func(d fleet.FieldDifference) bool {
		return !slices.ContainsFunc(is.Held, func(e fleet.FieldDifference) bool { return e.Path == d.Path && e.Manager == d.Manager })
	})
}

// unconfirmed reports whether the KuraInstance was taken over from somebody else and is
// not as declared in more than metadata, and nobody has applied that since (K6).
func (t *turn) unconfirmed() bool {
	a, r := t.s.AdoptedResource, t.seen.resource
	return a != nil && r != nil && t.seen.readable && r.Adopted && r.UID == a.UID && a.Generation == t.in.Intent.Generation &&
		t.in.Intent.Deleting == nil && slices.ContainsFunc(differing(*r), beyondMetadata) && t.in.rule(RuleK6Adoption)
}

// differing are all fields of a KuraInstance that are not as declared. An apply changes some
// of them, and is refused for those that another manager applied.
func differing(r fleet.KubeInstance) []fleet.FieldDifference { return slices.Concat(r.Differs, r.Held) }

func beyondMetadata(d fleet.FieldDifference) bool { return !strings.HasPrefix(d.Path, "metadata.") }

// gone: a watch may be behind the cluster, so only the cluster itself says so; a foreign one
// counts as absence.
func (kuraInstance) gone(t *turn) (gone, ask bool) {
	direct := t.in.Seen.Instance.Direct
	return t.seen.presence != present && (direct || !t.in.rule(RuleP18Direct)), t.seen.presence != present && !direct
}

// converge plans one apply, to the very object that was seen. One that somebody deletes is
// made anew when it is gone.
func (kuraInstance) converge(b *builder) (replaced bool) {
	doc, r := b.in.Desired.Kubernetes, b.seen.resource
	task := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskApply, Name: doc.Name, Digest: doc.Revision}}
	switch {
	case r == nil:
	case !b.seen.running, b.seen.document, !b.in.rule(RuleP14Document):
		return false
	default:
		task.UID, task.Adopted = r.UID, r.Adopted
	}
	b.add(task)
	return false
}

func (kuraInstance) destroy(b *builder, _ fleet.Status) {
	if r := b.seen.resource; r != nil && !r.Deleting {
		b.add(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: r.Name, UID: r.UID, Adopted: r.Adopted}})
	}
}

// fits: the object may have gone, become somebody else's, or be as desired already.
func (k kuraInstance) fits(t *turn, p *fleet.Plan) bool {
	if !t.seen.readable || !t.effectsOver() || !t.in.rule(RuleS6Object) {
		return true
	}
	b := builder{in: t.in, seen: t.seen}
	if p.Kind == fleet.PlanDestroy {
		k.destroy(&b, t.s)
	} else {
		k.converge(&b)
	}
	return len(b.tasks) == 1 && len(p.Tasks) == 1 && b.tasks[0].UID == p.Tasks[0].UID && b.tasks[0].Adopted == p.Tasks[0].Adopted && t.seen.presence != foreign
}

func (kuraInstance) mark(v reading) string {
	if v.resource == nil {
		return ""
	}
	return v.resource.RestartMark
}

// rendersAnew reports whether the turn changes what the server renders to: a mark, or the hosts
// that stay routed beside the declared ones (K7). Nothing else asks for the turn that sees it.
func (t *turn) rendersAnew() bool {
	in, s := t.in, t.s
	return t.marked() || in.runtime().routes() && in.Prev != nil && !slices.Equal(in.Prev.RoutedHosts(in.Desired.Hosts), s.RoutedHosts(in.Desired.Hosts)) && in.rule(RuleK7Rerender)
}

// withdrawn reports whether the KuraInstance routes no more hosts than its document says,
// from which aliases that had ended before are left out.
func (t *turn) withdrawn() bool {
	return t.seen.fresh && (t.seen.resource == nil || t.seen.document) || !t.in.rule(RuleK7Withdrawn)
}

func (kuraInstance) routes() bool { return true }

// pause: somebody reverts what is applied.
func (kuraInstance) pause() time.Duration { return maxRetry }

func (kuraInstance) describe() string { return "KuraInstance goes" }

// describe names a KuraInstance.
func describe(r fleet.KubeInstance) string {
	return fmt.Sprintf("KuraInstance %s/%s", r.Namespace, r.Name)
}

// list says how fields differ.
func list(ds []fleet.FieldDifference) string {
	texts := make([]string, 0, len(ds))
	for _, d := range ds {
		text := fmt.Sprintf("%s is %s, wanted %s", d.Path, cmp.Or(d.Have, "not there"), cmp.Or(d.Want, "none"))
		if d.Manager != "" {
			text += fmt.Sprintf(" (set by %s)", d.Manager)
		}
		texts = append(texts, text)
	}
	return cut(strings.Join(texts, "; "))
}

// cut makes a text fit to be stored and shown: short, and without control characters (G11).
func cut(s string) string {
	const most = 1024
	s = fleet.Printable(s)
	if len(s) > most {
		return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
	}
	return s
}
