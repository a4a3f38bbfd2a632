package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// object is the KuraInstance of the model's name in the model's cluster.
type object struct {
	uid      string
	made     time.Time
	spec     string // the revision that was applied last
	observed string // the image of the last complete roll-out
	image    string // what is to be rolled out

	generation int  // of the spec: each change makes another
	applied    int  // the one that our last apply made; 0: none did
	last       spec // as the controller's last pass has read it
	target     spec // what it rolls out
	rolled     spec // what it has rolled out
	phase      string
	writes     int  // of the status
	drained    bool // pods are away of which nothing was changed

	owner    string // whose it is; "" ours, by its labels
	edited   bool   // a field of the spec was changed by hand
	labels   bool   // a label was
	held     bool   // another manager applied a field with a value of its own
	heldImg  bool   // another manager applied the image
	claimed  bool   // another manager applied the revision, so that an apply is refused as a whole
	deleting bool   // it waits for a finalizer
}

// spec is one that the controller has read.
type spec struct {
	generation  int
	pods, image string
}

// now is the object's spec. Hosts that stay routed change no pod.
func (o object) now() spec {
	parts := strings.Split(o.spec+"///", "/")
	return spec{o.generation, strings.Join(parts[:3], "/") + o.image, o.image}
}

// cluster is the world of a server of a Kubernetes region.
type cluster struct {
	obj  *object
	uids int
	// asked says that the newest read asked the cluster itself, for this turn.
	asked   bool
	seenObj *fleet.KubeInstance // the newest read
}

// kubeFaults are what is not as it should be in a cluster.
type kubeFaults struct {
	stuck     bool // the controller completes no roll-out
	down      bool // it does nothing
	finalizer bool // what is deleted stays for a while
	old       bool // the schema lacks a field
	force     bool // the region takes fields over; no state of the exploration does
}

const kubeName = "kura-acme-eu"

// document renders the model's KuraInstance; as Render does, it keeps the hosts routed
// that lead clients to the server.
func (s *sim) document(d *fleet.Desired) {
	var aliases []string
	if s.status != nil {
		aliases = s.status.RoutedHosts(d.Hosts)
	}
	d.Revision = fmt.Sprintf("%s/%s/%d/%s", s.intent.ImageTag, s.latest.RestartMark, s.doc, strings.Join(aliases, "+"))
	d.Kubernetes = &fleet.KubeDocument{Cluster: "local", Namespace: "kura", Name: kubeName, Revision: d.Revision, Force: s.force, Spec: map[string]any{"image": imageOf(d.Revision)}}
}

// imageOf is the image of a document of the model. The region's images move to another
// repository with its first change.
func imageOf(revision string) string {
	parts := strings.Split(revision, "/")
	if len(parts) > 2 && (parts[2] == "1" || parts[2] == "2") {
		return "mirror.test/kura:" + parts[0]
	}
	return "registry.test/kura:" + parts[0]
}

// takenOver is what is recorded of a KuraInstance that was taken over.
func (s *sim) takenOver() *fleet.KubeAdoption {
	if s.status == nil {
		return nil
	}
	return s.status.AdoptedResource
}

// adopted reports whether the object is ours by the record only.
func (s *sim) adopted() bool {
	a := s.takenOver()
	return s.obj != nil && s.obj.owner == fleet.NotByKurad && a != nil && a.UID == s.obj.uid
}

// unconfirmed reports whether the object was taken over, differs in its spec, and waits
// for somebody to apply it.
func (s *sim) unconfirmed() bool {
	return s.adopted() && (s.obj.edited || s.obj.held) && s.takenOver().Generation == s.intent.Generation && s.intent.Deleting == nil
}

// ours reports whether there is an object that is the server's.
func (s *sim) ours() bool { return s.obj != nil && (s.obj.owner == "" || s.adopted()) }

// reading is what the runtime makes of the object, compared with the document.
func (s *sim) reading() *fleet.KubeInstance {
	o := s.obj
	if o == nil {
		return nil
	}
	r := &fleet.KubeInstance{Namespace: "kura", Name: kubeName, UID: o.uid, Deleting: o.deleting, SpecImage: o.image, ObservedImage: o.observed,
		Phase: o.phase, Generation: int64(o.generation), Written: fmt.Sprint(o.writes)}
	if !s.ours() {
		r.Foreign = o.owner
		return r
	}
	r.Revision, r.RestartMark, r.Adopted = o.spec, markOf(o.spec), s.adopted()
	if o.edited {
		r.Differs = append(r.Differs, fleet.FieldDifference{Path: "spec.storageSize", Have: `"1Gi"`, Want: `"2Gi"`, Manager: "kubectl-edit"})
	}
	if o.labels || r.Adopted {
		r.Differs = slices.Insert(r.Differs, 0, fleet.FieldDifference{Path: "metadata.labels[tuist.dev/account]", Want: `"acme"`})
	}
	if o.held {
		r.Held = []fleet.FieldDifference{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "autoscaler"}}
	}
	if want := imageOf(s.desired().Revision); o.heldImg && o.image != want {
		r.Held = append(r.Held, fleet.FieldDifference{Path: "spec.image", Have: o.image, Want: want, Manager: "tool"})
	}
	if o.claimed {
		r.Revision = "theirs"
	}
	if s.force {
		r.Differs, r.Held = append(r.Differs, r.Held...), nil
	}
	if s.old {
		r.Dropped = []string{"spec.clientHostAliases"}
	}
	return r
}

// watch is what the watch shows now.
func (s *sim) watch() {
	s.roll()
	s.seenObj, s.asked = s.reading(), false
}

// refresh asks the cluster itself.
func (s *sim) refresh() {
	s.look()
	s.asked = s.kube && !s.seenFails
}

// roll is a pass of the controller, and lets the object go that nothing holds. What a pass
// writes is of the spec as the one before has left it to be read: one that began before an
// apply ends after it. What is new is Pending for a pass, if a pod sees it.
func (s *sim) roll() {
	if s.obj == nil {
		return
	}
	o := *s.obj
	if o.deleting && !s.finalizer {
		s.obj = nil
		return
	}
	if s.down {
		return
	}
	if o.target != o.last {
		complete := o.target == o.rolled
		o.target, o.phase = o.last, phasePending
		if complete && o.target.pods == o.rolled.pods {
			o.rolled, o.observed, o.phase = o.target, o.target.image, "Ready"
		}
	} else if o.rolled != o.target || o.drained {
		o.phase = phasePending
		if !s.stuck {
			o.rolled, o.observed, o.drained, o.phase = o.target, o.target.image, false, "Ready"
		}
	}
	o.last = o.now()
	o.writes++
	s.obj = &o
}

// rolls reports whether the controller's next pass changes more than that it was.
func (s *sim) rolls() bool {
	o := s.obj
	return o != nil && !s.down && !s.unreadable && (o.last != o.now() || o.target != o.last || !s.stuck && (o.rolled != o.target || o.drained))
}

// change changes the object in the cluster.
func (s *sim) change(do func(*object)) {
	o := *s.obj
	do(&o)
	s.obj = &o
}

// edit changes its spec.
func (s *sim) edit(do func(*object)) {
	s.change(func(o *object) { do(o); o.generation++ })
}

// create makes an object, which nobody has rolled out yet unless its image was.
func (s *sim) create(o object) {
	s.uids++
	o.uid, o.made, o.generation, o.applied = fmt.Sprintf("uid%d", s.uids), s.now, 1, 0
	o.last, o.target, o.rolled, o.phase = o.now(), spec{}, spec{}, ""
	if o.observed != "" && o.observed == o.image {
		o.target, o.rolled, o.phase = o.last, o.last, "Ready"
	}
	s.obj = &o
}

// applied is what the cluster does with a task.
func (s *sim) applied(t fleet.Task, answer *fleet.Outcome) string {
	drifted := func() { answer.Class, answer.Reason = fleet.ClassTransient, fleet.ReasonDrifted }
	refused := func(r fleet.Reason) {
		answer.Class, answer.Reason, answer.Message = fleet.ClassRefused, r, "refused"
	}
	switch {
	case t.UID != "" && (s.obj == nil || s.obj.uid != t.UID):
		if t.Kind == fleet.TaskApply {
			drifted()
		}
		return ""
	case s.obj != nil && !s.ours():
		refused(fleet.ReasonForeignInstance)
		return ""
	}
	switch t.Kind {
	case fleet.TaskApply:
		if s.obj == nil {
			s.create(object{image: imageOf(t.Digest), spec: t.Digest})
			s.obj.applied = 1
		}
		if s.obj.claimed && !s.force {
			refused(fleet.ReasonFieldConflict)
			return ""
		}
		left := s.obj.heldImg && !s.force && s.obj.image != imageOf(t.Digest)
		s.change(func(o *object) {
			was := *o
			o.spec, o.edited, o.labels, o.owner = t.Digest, false, false, ""
			o.held, o.heldImg, o.claimed = o.held && !s.force, o.heldImg && !s.force, false
			if !left {
				o.image = imageOf(t.Digest)
			}
			if was.edited || was.held != o.held || was.image != o.image || was.spec != t.Digest && was.spec != "" {
				o.generation++ // what was taken over is as declared but for its labels
				o.applied = o.generation
			}
		})
		if left {
			refused(fleet.ReasonFieldConflict)
		}
		is := s.reading().State()
		answer.Applied = &is
	case fleet.TaskDelete:
		if t.UID == "" {
			return "a delete without the object's uid"
		}
		if s.obj == nil {
			return ""
		}
		if !s.finalizer {
			s.obj = nil
			return ""
		}
		s.change(func(o *object) { o.deleting = true })
	default:
		return "a task of another runtime: " + t.Describe()
	}
	return ""
}

// resourceEnded reports whether the cluster holds what was declared, and nothing else.
func (s *sim) resourceEnded(d fleet.Desired) bool {
	o := s.obj
	return o != nil && o.owner == "" && o.spec == d.Revision && o.observed == imageOf(d.Revision) && !o.edited && !o.labels && !o.deleting
}

// clusterHeals takes from the cluster what no kurad can mend, and applies what waits for
// somebody to apply it.
func (s *sim) clusterHeals() {
	if s.obj == nil {
		return
	}
	if !s.ours() || s.obj.owner != "" && s.obj.spec != "" { // ours once: its record ends any time
		s.obj = nil
		return
	}
	if s.unconfirmed() {
		s.declare(s.intent.ImageTag, "")
	}
	s.change(func(o *object) { o.edited, o.held, o.heldImg = o.edited || o.heldImg, false, false })
}

// kubeKey is what tells states of a cluster apart.
func (s *sim) kubeKey(w func(...any), d fleet.Desired) {
	f := s.kubeFaults
	w(f.stuck, f.down, f.finalizer, f.old, s.asked)
	if o := s.obj; o != nil {
		w("object", o.spec == d.Revision, o.image == imageOf(d.Revision), o.observed == imageOf(d.Revision), o.observed == "", o.observed == "registry.test/kura",
			o.last == o.now(), o.target == o.last, o.rolled == o.target, o.rolled.pods == o.target.pods, o.rolled.generation >= o.applied, o.phase, o.drained,
			cmp.Or(o.owner, "us"), o.edited, o.labels, o.held, o.heldImg, o.deleting, s.adopted())
	}
	if r := s.seenObj; r != nil && (s.lag || s.asked) {
		w("seen", r.UID == uidOf(s.obj), r.Revision == d.Revision, r.ObservedImage == imageOf(d.Revision), r.ObservedImage == "", r.Phase, r.Foreign, r.Deleting, r.Adopted, len(r.Differs), len(r.Held), len(r.Dropped))
	}
	if st := s.status; st != nil {
		a := st.AdoptedResource
		if ro := st.RollOut; ro != nil {
			silent := silentFrom(*st)
			w("rolls out", ro.Latches, ro.Applied != nil, ro.Writes, silent != nil && !silent.After(s.now))
			if o := s.obj; o != nil {
				w(o.uid == ro.Before.UID, int64(o.generation) == ro.Before.Generation, ro.Applied != nil && o.uid == ro.Applied.UID,
					ro.Applied != nil && ro.Applied.Written == fmt.Sprint(o.writes), ro.Written == fmt.Sprint(o.writes))
			}
		}
		w("stored", a != nil, a != nil && a.Generation == s.intent.Generation, st.Resource != nil && st.Resource.UID == uidOf(s.obj), st.Resource != nil && len(st.Resource.Dropped) > 0)
	}
}

func uidOf(o *object) string {
	if o == nil {
		return ""
	}
	return o.uid
}
