package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const byHand = "made-by-hand"

// adopt makes acme's container one that nobody labelled, under a name of its own, and
// records it as the API does.
func (w *world) adopt() (id string) {
	w.t.Helper()
	digest := ""
	w.engine().with(func() {
		b := w.engine().named("kura-acme-eu-cache-staging")
		id, digest = b.ID, b.Digest
		b.Container = fleet.Container{Name: byHand, ID: b.ID, Image: b.Image, State: b.State, Foreign: fleet.NotByKurad}
	})
	prev, err := w.records.Status(context.Background(), key("acme"))
	w.must(err)
	next := prev.Value.Clone()
	next.Adopted = map[string]fleet.Adoption{"cache": {ID: id, Name: byHand, Digest: digest}}
	tx := w.records.Begin()
	tx.PutStatus(prev, key("acme"), next)
	w.commit(tx)
	return id
}

func (w *world) boxOf(id string) (found box, ok bool) {
	w.engine().with(func() {
		if b := w.engine().boxes[id]; b != nil {
			found, ok = *b, true
		}
	})
	return found, ok
}

func TestAdopt_aContainerWithoutLabelsIsTheServersByItsID(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		id := w.adopt()
		starts := func() int { b, _ := w.boxOf(id); return b.starts }
		before := starts()
		k := w.start(options{})
		defer k.stop()
		w.until("it bears its service's name", time.Minute, func() bool {
			b, ok := w.boxOf(id)
			return ok && b.Name == "kura-acme-eu-cache-staging" && w.converged("acme", "v1")
		})
		w.pass(2 * time.Minute)
		if s := w.status("acme"); len(s.Containers) != 1 || s.Containers[0].ID != id || !s.Containers[0].Adopted || starts() != before {
			t.Fatalf("containers %+v, started %d times after %d; want %s, untouched", s.Containers, starts(), before, id)
		}
		// Its end is known at once, and it is started again (C1, C2).
		w.engine().with(func() { w.engine().exit(w.engine().boxes[id], 1) })
		w.until("it runs again", 5*time.Second, func() bool { return starts() == before+1 && w.converged("acme", "v1") })

		w.declare("acme", "v2")
		w.until("it is replaced, and the record ends", time.Minute, func() bool { return w.converged("acme", "v2") && len(w.status("acme").Adopted) == 0 })
		if b := w.one("acme"); b.ID == id || b.Foreign != "" {
			t.Errorf("container %+v, want a new one with labels", b)
		}
		if b, there := w.boxOf(id); there {
			t.Errorf("the adopted container is still there: %+v", b)
		}
	})
}

func TestAdopt_aContainerThatVanishedIsMadeAnewWithLabels(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		id := w.adopt()
		k := w.start(options{})
		defer k.stop()
		w.until("it is seen", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.engine().with(func() { w.engine().drop(w.engine().boxes[id]) })
		w.until("another one is made", time.Minute, func() bool { return len(w.engine().of("acme")) == 1 && w.converged("acme", "v1") })
		if b := w.one("acme"); b.ID == id || len(w.status("acme").Adopted) != 0 {
			t.Errorf("container %+v, records %v", b, w.status("acme").Adopted)
		}
	})
}

func TestAdopt_theEndOfTheServerIsTheEndOfItsContainer(t *testing.T) {
	virtual(t, func(w *world) {
		created(w, options{}).stop()
		id := w.adopt()
		k := w.start(options{})
		defer k.stop()
		w.until("it is seen", time.Minute, func() bool { return w.converged("acme", "v1") })
		w.destroy("acme")
		w.until("it is gone", time.Minute, func() bool { return w.gone("acme") })
		if b, there := w.boxOf(id); there {
			t.Errorf("the destroyed server left %+v", b)
		}
	})
}

func TestCrash_atEveryWriteOfTheReplaceOfAnAdoptedContainer(t *testing.T) {
	everywhere(t, story{
		begin: func(w *world) { w.adopt(); w.declare("acme", "v2") },
		over:  func(w *world) bool { return w.converged("acme", "v2") },
		check: func(t *testing.T, w *world) {
			var left []string
			w.engine().with(func() {
				for _, b := range w.engine().boxes {
					if b.Foreign != "" {
						left = append(left, b.Name)
					}
				}
			})
			if len(left) != 0 || len(w.status("acme").Adopted) != 0 || len(w.engine().of("acme")) != 2 {
				t.Errorf("left %v, records %v, containers %+v", left, w.status("acme").Adopted, w.engine().of("acme"))
			}
		},
	})
}

// Listings say since when, and which endpoint did not answer, and keep what was last seen.
func TestC1_listingsOutliveAFailureAndSaySo(t *testing.T) {
	virtual(t, func(w *world) {
		k := created(w, options{})
		defer k.stop()
		first := k.loop.Listings()
		id := w.one("acme").ID
		since := first[0].Since[id]
		if len(first) != 1 || first[0].Unreadable != nil || len(first[0].Containers) != 1 || since.IsZero() {
			t.Fatalf("listings %+v", first)
		}
		w.engine().with(func() { w.engine().down = true })
		w.pass(time.Minute)
		l := k.loop.Listings()[0]
		if l.Unreadable == nil || len(l.Containers) != 1 || !l.Since[id].Equal(since) {
			t.Errorf("listing %+v, want the last good one and why there is no newer", l)
		}
	})
}
