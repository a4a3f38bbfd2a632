package projection

import (
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// kubeMoves are what may happen to a cluster.
func kubeMoves(set func(string, func(*sim)) move) []move {
	change := func(name string, when func(*sim, object) bool, do func(*object)) move {
		return move{name, func(s *sim) bool {
			if s.obj == nil || !when(s, *s.obj) {
				return false
			}
			s.change(do)
			return true
		}}
	}
	ours := func(s *sim, _ object) bool { return s.ours() }
	edit := func(name string, when func(*sim, object) bool, do func(*object)) move {
		return change(name, when, func(o *object) { do(o); o.generation++ })
	}
	return []move{
		set("the controller is stuck", func(s *sim) { s.stuck = true }),
		set("the controller rolls out", func(s *sim) { s.stuck = false }),
		set("the controller is down", func(s *sim) { s.down = true }),
		set("the controller is up", func(s *sim) { s.down = false }),
		set("a finalizer holds what is deleted", func(s *sim) { s.finalizer = true }),
		set("no finalizer holds anything", func(s *sim) { s.finalizer = false }),
		set("the schema lacks a field", func(s *sim) { s.old = true }),
		set("the schema has every field", func(s *sim) { s.old = false }),
		{"the object is deleted behind its back", func(s *sim) bool {
			if !s.ours() || s.obj.deleting {
				return false
			}
			s.change(func(o *object) { o.deleting = true })
			s.roll()
			return true
		}},
		{"the object is swapped for another of ours", func(s *sim) bool {
			if s.obj == nil || s.obj.owner != "" {
				return false
			}
			o := *s.obj
			if o.deleting = false; s.stuck || s.down {
				o.observed = "" // else it is rolled out before anybody looks
			}
			s.create(o)
			return true
		}},
		edit("a field is edited by hand", func(s *sim, o object) bool { return s.ours() && !o.edited }, func(o *object) { o.edited = true }),
		edit("another image is edited in by hand", func(s *sim, o object) bool { return s.ours() && !o.edited }, func(o *object) {
			o.edited, o.image = true, "registry.test/kura:v0"
		}),
		change("an image without a tag runs", func(s *sim, o object) bool { return s.ours() && !o.edited }, func(o *object) {
			o.edited, o.image, o.observed, o.generation = true, "registry.test/kura", "registry.test/kura", o.generation+1
			o.last, o.target, o.rolled = o.now(), o.now(), o.now()
		}),
		change("a label is edited by hand", func(s *sim, o object) bool { return s.ours() && !o.labels }, func(o *object) { o.labels = true }),
		change("our labels are removed", func(_ *sim, o object) bool { return o.owner == "" }, func(o *object) { o.owner = fleet.NotByKurad }),
		change("another environment labels it", ours, func(o *object) { o.owner = "server other/eu of environment staging" }),
		edit("another manager applies a field", func(s *sim, o object) bool { return s.ours() && !o.held }, func(o *object) { o.held = true }),
		edit("another manager applies an image", func(s *sim, o object) bool { return s.ours() && !s.adopted() && !o.heldImg }, func(o *object) {
			o.heldImg, o.image = true, "registry.test/kura:v0"
		}),
		change("the other manager lets go", func(_ *sim, o object) bool { return o.held || o.heldImg }, func(o *object) { o.held, o.heldImg, o.edited = false, false, true }),
		{"a foreign object takes the name", func(s *sim) bool {
			if s.obj != nil {
				return false
			}
			s.create(object{owner: "server other/eu of environment staging", image: imageOf("v1/"), observed: imageOf("v1/")})
			return true
		}},
		{"the foreign object goes", func(s *sim) bool {
			if s.obj == nil || s.ours() {
				return false
			}
			s.obj = nil
			return true
		}},
	}
}

// adoptedOn is a server whose KuraInstance somebody else made, just after it was adopted.
func adoptedOn(v variant, edited bool) *sim {
	s := newSim(v)
	s.create(object{owner: fleet.NotByKurad, edited: edited, image: imageOf("v1/"), observed: imageOf("v1/")})
	s.status = &fleet.Status{Status: fleet.StatusProvisioning, Verdict: fleet.VerdictProgressing,
		AdoptedResource: &fleet.KubeAdoption{UID: s.obj.uid, Generation: s.intent.Generation}}
	s.look()
	return s
}

// adoptedUnseen is one that was adopted and that a watch which is behind does not show yet.
func adoptedUnseen() *sim {
	s := adoptedOn(kube, false)
	s.seenObj, s.lag = nil, true
	return s
}

// objects is what the cluster holds.
func objects() dimension {
	const v0, v1 = "registry.test/kura:v0", "registry.test/kura:v1"
	wanted := func(s *sim) string { // by v1, whatever was declared since
		c := *s
		c.intent.ImageTag, c.latest.RestartMark = "v1", ""
		return c.desired().Revision
	}
	one := func(what string, o object, change func(*sim, *object)) value {
		return value{what, func(s *sim) {
			o := o
			o.spec, o.image = wanted(s), v1
			if change != nil {
				change(s, &o)
			}
			s.create(o)
			s.obj.made = s.now.Add(-time.Hour)
		}}
	}
	stuck := func(s *sim, _ *object) { s.stuck = true }
	takenOver := func(s *sim, o *object) {
		o.spec, o.owner = "", fleet.NotByKurad
		s.status.AdoptedResource = &fleet.KubeAdoption{UID: "uid1", Generation: 1}
	}
	return dimension{"object", []value{
		{"absent", func(*sim) {}},
		one("as desired", object{observed: v1}, nil),
		one("not rolled out yet", object{}, stuck),
		one("another image rolled out", object{observed: v0}, stuck),
		one("another document", object{observed: v1}, func(_ *sim, o *object) { o.spec = "v1//9/" }),
		one("another document and image", object{observed: v0}, func(_ *sim, o *object) { o.spec, o.image = "v0//0/", v0 }),
		one("a field edited", object{observed: v1, edited: true}, nil),
		one("a label edited", object{observed: v1, labels: true}, nil),
		one("a field held by another manager", object{observed: v1, held: true}, nil),
		one("no tag", object{observed: "registry.test/kura", edited: true}, func(_ *sim, o *object) { o.image = "registry.test/kura" }),
		one("being deleted", object{observed: v1, deleting: true}, func(s *sim, _ *object) { s.finalizer = true }),
		one("foreign", object{observed: v1, owner: "server other/eu of environment staging"}, nil),
		one("made by hand", object{observed: v1, owner: fleet.NotByKurad}, nil),
		one("taken over", object{observed: v1}, takenOver),
		one("taken over, with a difference", object{observed: v1, edited: true}, takenOver),
	}}
}
