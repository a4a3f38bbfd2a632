package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// deleting makes eu a region of the cluster that deletes orphans.
func deleting(change func(*fleet.Region)) func(*fleet.Region) {
	return func(r *fleet.Region) {
		r.Kubernetes.DeleteOrphans = true
		if change != nil {
			change(r)
		}
	}
}

func TestK5_L30_orphansAreListedAndByDefaultLeftAlone(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(nil)
		lost := w.cluster().put(ours("lost", "eu"))
		k := w.start(options{})
		defer k.stop()
		begun := time.Now()
		w.pass(time.Hour)
		l := k.loop.KubeListings()
		if len(l) != 1 || l[0].Cluster != "prod" || l[0].Namespace != "kura" || len(l[0].Instances) != 1 || l[0].Begun.IsZero() || l[0].Unreadable != nil {
			t.Fatalf("listings %+v, want the one namespace of a region without servers", l)
		}
		if since := l[0].Since[lost.uid]; since.Before(begun) || since.After(begun.Add(20*time.Second)) {
			t.Errorf("first seen at %s, want about %s", since, begun)
		}
		if len(w.cluster().writes) != 0 || w.events("lost", "OrphanDeleted") != 0 {
			t.Errorf("writes %v", w.cluster().writes)
		}
		w.cluster().fallSilent(fleet.ReasonEndpointUnreachable)
		w.pass(time.Minute)
		if l := k.loop.KubeListings(); l[0].Unreadable == nil || len(l[0].Instances) != 1 {
			t.Errorf("listing %+v, want the last good one and why there is no newer", l[0])
		}
		w.cluster().fallSilent("")
		w.declare("lost", "v1") // and it goes on with what is there
		w.until("it runs v1", time.Minute, func() bool { return w.converged("lost", "v1") })
		if o := w.runs("lost", "v1"); o.uid != lost.uid {
			t.Errorf("the instance %s became %s", lost.uid, o.uid)
		}
	})
}

// L30: what an abandoned server left behind goes where its region wants that, and nothing
// else does.
func TestK5_L30_orphansOfARegionThatWantsItAreDeletedAfterAMinute(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		k := created(w, options{})
		defer k.stop()
		w.declare("left", "v1")
		w.until("left runs", time.Minute, func() bool { return w.converged("left", "v1") })
		production, nobodys, elsewhere := ours("one", "eu"), ours("two", "eu"), ours("three", "us")
		production.labels[fleet.LabelEnvironment] = "production"
		nobodys.labels = nil
		away := ours("four", "eu")
		away.namespace = "other"
		twin := ours("acme", "eu") // labels of a declared server under another name
		twin.name = "kura-acme-copy"
		for _, o := range []object{production, nobodys, elsewhere, away, twin} {
			w.cluster().put(o)
		}
		w.pass(10 * time.Minute)
		if n := w.cluster().count("delete"); n != 0 {
			t.Fatalf("%d deletions, want none: %v", n, w.cluster().writes)
		}
		g := w.server("left") // :abandon
		w.must(w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: key("left"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}))
		w.pass(55 * time.Second)
		if _, there := w.cluster().of("left"); !there {
			t.Error("it is gone before a minute has passed")
		}
		w.until("the orphan is gone", 25*time.Second, func() bool { _, there := w.cluster().of("left"); return !there })
		w.pass(10 * time.Minute)
		if got := w.cluster().writes; got[len(got)-1] != "delete kura-left-eu" || w.cluster().count("delete") != 1 {
			t.Errorf("writes %v, want the one deletion", got)
		}
		want := []string{"kura-acme-copy", "kura-acme-eu", "kura-four-eu", "kura-one-eu", "kura-three-us", "kura-two-eu"}
		if got := w.cluster().names(); !slices.Equal(got, want) {
			t.Errorf("there is %v, want %v", got, want)
		}
		if n := w.events("left", "OrphanDeleted"); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
	})
}

func TestK5_orphansOfAnotherPlaceOrOfAnUnknownRegionAreLeftAlone(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.region("us", func(r *fleet.Region) {
			r.Name, r.Containers, r.Readiness = "us", nil, fleet.Readiness{}
			r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Namespace: "us", Image: "localhost/kura:{image_tag}", DeleteOrphans: true}
		})
		w.cluster().put(ours("lost", "us"))      // in eu's namespace
		w.cluster().put(ours("lost", "retired")) // of a region that is no more
		k := w.start(options{})
		defer k.stop()
		w.pass(10 * time.Minute)
		if n := w.cluster().count("delete"); n != 0 {
			t.Errorf("%d deletions, want none", n)
		}
	})
}

// An edit of the labels makes an object foreign (K4); what serves is never swept for it.
func TestK5_aServersInstanceWhoseLabelsWereEditedIsNoOrphan(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		k := created(w, options{})
		o, _ := w.cluster().of("acme")
		o.labels = maps.Clone(o.labels)
		o.labels[fleet.KubeLabelAccount] = "nobody"
		w.cluster().put(o)
		w.pass(10 * time.Minute)
		k.stop()
		k = w.start(options{}) // and knows it from the store alone
		defer k.stop()
		w.pass(10 * time.Minute)
		if n := w.cluster().count("delete"); n != 0 {
			t.Errorf("%d deletions, want none: %v", n, w.cluster().writes)
		}
	})
}

func TestK5_L38_whatIsHeldDeletesNoOrphan(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*fleet.Region)
		paused bool
	}{
		"a paused region":       {change: func(r *fleet.Region) { r.Paused = true }},
		"a region that watches": {change: func(r *fleet.Region) { r.Remediation = fleet.RemediationObserve }},
		"a paused daemon":       {paused: true},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				w.onKubernetes(deleting(tt.change))
				w.cluster().put(ours("lost", "eu"))
				k := w.start(options{paused: tt.paused})
				w.pass(10 * time.Minute)
				if len(w.cluster().writes) != 0 || w.events("lost", "OrphanDeleted") != 0 {
					t.Errorf("writes %v", w.cluster().writes)
				}
				k.stop()
				w.region("eu", func(r *fleet.Region) { r.Paused, r.Remediation = false, "" })
				k = w.start(options{})
				defer k.stop()
				w.until("it goes with the hold", 2*time.Minute, func() bool { _, there := w.cluster().of("lost"); return !there })
			})
		})
	}
}

func TestK5_whoLeadsNoMoreDeletesNoOrphan(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		l := newLead()
		l.expired.Store(true)
		k := w.start(options{lead: l})
		defer k.stop()
		w.pass(10 * time.Minute)
		if len(w.cluster().writes) != 0 {
			t.Errorf("writes %v", w.cluster().writes)
		}
	})
}

func TestK5_theStoreHasTheLastWordOnAnOrphan(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		lost := w.cluster().put(ours("lost", "eu"))
		var asked atomic.Int64
		k := w.start(options{onOrphan: func(k fleet.ServerKey) {
			if asked.Add(1) == 1 {
				w.declare(k.Account, "v1") // which no memory shows yet
			}
		}})
		defer k.stop()
		w.until("it runs v1", 5*time.Minute, func() bool { return asked.Load() > 0 && w.converged("lost", "v1") })
		w.pass(10 * time.Minute)
		if o := w.runs("lost", "v1"); o.uid != lost.uid || w.cluster().count("delete") != 0 || asked.Load() != 1 || w.events("lost", "OrphanDeleted") != 0 {
			t.Errorf("instance %s, %d deletions, asked %d times", o.uid, w.cluster().count("delete"), asked.Load())
		}
	})
}

// A server that is declared while its orphan goes waits for the end of that, and is then
// made anew.
func TestK5_aServerDeclaredWhileItsOrphanGoesIsMadeAnew(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		var tasks atomic.Int64
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			tasks.Add(1)
			if task.Kind == fleet.TaskDelete {
				w.declare("lost", "v1")
				<-time.After(10 * time.Second)
				if n := tasks.Load(); n != 1 {
					t.Errorf("%d tasks during the deletion, want none besides it", n)
				}
			}
			return execute()
		}})
		defer k.stop()
		w.until("it runs v1", 5*time.Minute, func() bool { return tasks.Load() > 0 && w.converged("lost", "v1") })
		if n := w.cluster().count("delete"); n != 1 {
			t.Errorf("%d deletions, want 1", n)
		}
		w.runs("lost", "v1")
	})
}

// orphans are those whose end is stored.
func (w *world) orphans() []fleet.Orphan {
	w.t.Helper()
	l, err := w.records.Orphans(w.t.Context(), "prod", "kura")
	w.must(err)
	return l
}

func TestS4_S5_theEndOfAnOrphanIsStoredBeforeItAndRunAgainAfterACrash(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		lost := w.cluster().put(ours("lost", "eu"))
		var begun atomic.Int64
		claimed := func(task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			if l := w.orphans(); len(l) != 1 || l[0].UID != lost.uid || len(l[0].Plan.Tasks) != 1 || l[0].Plan.Tasks[0].ID != task.ID || l[0].Plan.Tasks[0].State != fleet.TaskRunning {
				t.Errorf("%s runs, and the store holds %+v", task.Describe(), l)
			}
			begun.Add(1)
			return execute()
		}
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			return claimed(task, func() fleet.Outcome { <-time.After(20 * time.Second); return execute() })
		}})
		w.until("it is being deleted", 2*time.Minute, func() bool { return begun.Load() == 1 })
		k.kill()
		if _, there := w.cluster().of("lost"); !there || len(w.orphans()) != 1 {
			t.Fatalf("there: %v, stored: %+v; want the claim of what has not happened", there, w.orphans())
		}
		k = w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			return claimed(task, execute)
		}})
		defer k.stop()
		w.until("it is gone, at once", 15*time.Second, func() bool { _, there := w.cluster().of("lost"); return !there })
		w.until("and no work is left", 15*time.Second, func() bool { return len(w.orphans()) == 0 })
		if n := w.events("lost", "OrphanDeleted"); n != 1 || w.cluster().count("delete") != 1 {
			t.Errorf("%d events, %d deletions, want one each", n, w.cluster().count("delete"))
		}
	})
}

func TestS11_theEndOfAnOrphanIsDroppedWhenItIsHeldOrItsServerDeclared(t *testing.T) {
	for name, tt := range map[string]struct{ change func(w *world) }{
		"a pause":                  {func(w *world) { w.region("eu", func(r *fleet.Region) { r.Paused = true }) }},
		"a region that keeps them": {func(w *world) { w.region("eu", func(r *fleet.Region) { r.Kubernetes.DeleteOrphans = false }) }},
		"a declaration":            {func(w *world) { w.declare("lost", "v1") }},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				w.onKubernetes(deleting(nil))
				w.cluster().put(ours("lost", "eu"))
				var tries atomic.Int64
				w.cluster().refuse = func(_ fleet.ServerKey, task fleet.Task, _ fleet.KubeDocument) *fleet.Outcome {
					if task.Kind != fleet.TaskDelete {
						return nil
					}
					tries.Add(1)
					return refused(fleet.ReasonForbidden)
				}
				k := w.start(options{})
				defer k.stop()
				w.until("it was tried, and waits", 2*time.Minute, func() bool { return tries.Load() == 1 && len(w.orphans()) == 1 })
				tt.change(w)
				w.until("it is not wanted any more", time.Minute, func() bool { return len(w.orphans()) == 0 })
				w.pass(10 * time.Minute)
				if n := tries.Load(); n != 1 || len(w.orphans()) != 0 {
					t.Errorf("%d tries, stored %+v", n, w.orphans())
				}
			})
		})
	}
}

func TestK5_anOrphanThatCannotBeDeletedIsTriedAgainAndToldOnce(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		var tries atomic.Int64
		w.cluster().refuse = func(_ fleet.ServerKey, task fleet.Task, _ fleet.KubeDocument) *fleet.Outcome {
			tries.Add(1)
			return refused(fleet.ReasonForbidden)
		}
		k := w.start(options{})
		defer k.stop()
		w.pass(10*time.Minute + 30*time.Second)
		if n := tries.Load(); n < 5 || n > 10 {
			t.Errorf("%d tries in ten minutes, want about one a minute", n)
		}
		w.cluster().with(func() { w.cluster().refuse = nil })
		w.until("it is gone", 2*time.Minute, func() bool { _, there := w.cluster().of("lost"); return !there })
		if n := w.events("lost", "OrphanDeleted"); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
	})
}

func TestK5_G4_orphansGoInBoundedSteps(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		for i := range 35 {
			w.cluster().put(ours(fmt.Sprintf("s%04d", i), "eu"))
		}
		k := w.start(options{})
		defer k.stop()
		w.until("the first ones go", 2*time.Minute, func() bool { return w.cluster().count("delete") > 0 })
		w.pass(2 * time.Second)
		if n := w.cluster().count("delete"); n != 10 {
			t.Errorf("%d deletions at once, want 10", n)
		}
		w.pass(20 * time.Second)
		if n := w.cluster().count("delete"); n != 30 {
			t.Errorf("%d deletions after two more looks, want 30", n)
		}
		w.until("all are gone", time.Minute, func() bool { return len(w.cluster().names()) == 0 })
	})
}

// What cannot be read is not known to be an orphan still: its minute begins anew.
func TestK5_P2_aClusterThatWasAwayBeginsTheMinuteAnew(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		k := w.start(options{})
		defer k.stop()
		w.pass(45 * time.Second)
		w.cluster().fallSilent(fleet.ReasonRuntimeError)
		w.pass(time.Minute)
		w.cluster().fallSilent("")
		w.pass(45 * time.Second)
		if len(w.cluster().writes) != 0 {
			t.Errorf("writes %v, want none before a minute without a break", w.cluster().writes)
		}
		w.until("it is gone", time.Minute, func() bool { _, there := w.cluster().of("lost"); return !there })
		if _, err := w.records.Gather(w.t.Context(), key("lost")); fleet.CodeOf(err) != fleet.CodeNotFound {
			t.Errorf("gather: %v", err)
		}
		if l := k.loop.KubeListings(); len(l) != 1 || len(l[0].Instances) != 0 || strings.Contains(fmt.Sprint(l[0].Since), "uid") {
			t.Errorf("listing %+v, want nothing left", l)
		}
	})
}

// A watch that is behind shows what is gone already: its end is told once, and asked for once.
func TestK5_theEndOfAnOrphanIsToldOnceThoughTheWatchIsLate(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		k := w.start(options{})
		defer k.stop()
		w.pass(30 * time.Second)
		w.cluster().with(func() { w.cluster().lag = 25 * time.Second })
		w.pass(10 * time.Minute)
		if n := w.events("lost", "OrphanDeleted"); n != 1 || w.cluster().count("delete") != 1 {
			t.Errorf("%d events, %d deletions, want one each", n, w.cluster().count("delete"))
		}
	})
}

type manyReads struct {
	kv.Store
	regions atomic.Int64
}

func (m *manyReads) Get(ctx context.Context, key string) (kv.Item, error) {
	if strings.Contains(key, "/regions/") {
		m.regions.Add(1)
	}
	return m.Store.Get(ctx, key)
}

// Orphans that wait for their next try cost a look one read of their region, however many.
func TestP16_K5_orphansThatWaitCostNoReadEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &manyReads{Store: conformance.NewMemory()}
		w := newWorldOn(t, m)
		defer w.close()
		w.onKubernetes(deleting(nil))
		const n = 200
		for i := range n {
			w.cluster().put(ours(fmt.Sprintf("s%04d", i), "eu"))
		}
		w.cluster().refuse = func(fleet.ServerKey, fleet.Task, fleet.KubeDocument) *fleet.Outcome {
			return refused(fleet.ReasonForbidden)
		}
		k := w.start(options{})
		defer k.stop()
		w.pass(10 * time.Minute)
		before := m.regions.Load()
		w.pass(time.Minute) // six looks
		if got := m.regions.Load() - before; got > 60 {
			t.Errorf("%d reads of one region in six looks at %d orphans, %d of them stored", got, n, len(w.orphans()))
		}
	})
}

// Orphans of which some cannot be deleted go in the steps of G4 all the same.
func TestG12_K5_orphansThatCannotBeDeletedDoNotHoldUpTheOthers(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		for i := range 60 {
			w.cluster().put(ours(fmt.Sprintf("s%04d", i), "eu"))
		}
		w.cluster().refuse = func(k fleet.ServerKey, _ fleet.Task, _ fleet.KubeDocument) *fleet.Outcome {
			if k.Account < "s0030" {
				return refused(fleet.ReasonForbidden)
			}
			return nil
		}
		k := w.start(options{})
		defer k.stop()
		w.pass(90 * time.Second)
		start := time.Now()
		defer func() { t.Log("took", time.Since(start)) }()
		w.until("those that can be deleted are gone", 3*time.Minute, func() bool { return len(w.cluster().names()) == 30 })
	})
}

// A server that is declared just before the claim of its orphan's end waits for nothing after
// that was refused.
func TestK5_aServerDeclaredBeforeTheClaimOfItsOrphansEndIsNotForgotten(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(deleting(nil))
		w.cluster().put(ours("lost", "eu"))
		var asked atomic.Int64
		var declared atomic.Bool
		k := w.start(options{onOrphan: func(k fleet.ServerKey) {
			if asked.Add(1) == 2 { // the plan is stored, the claim not yet
				w.declare(k.Account, "v1")
				<-time.After(2 * time.Second) // a slow store
				declared.Store(true)
			}
		}})
		defer k.stop()
		w.until("it is declared", 5*time.Minute, func() bool { return declared.Load() })
		w.until("it runs v1", 30*time.Second, func() bool { return w.converged("lost", "v1") })
	})
}
