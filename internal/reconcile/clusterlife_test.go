package reconcile_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestP18_aDestroyedInstanceIsGoneOnlyByTheServersOwnWord(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		gets := w.cluster().asks("get")
		w.destroy("acme")
		w.until("acme is gone", 10*time.Second, func() bool { return w.gone("acme") })
		if _, there := w.cluster().of("acme"); there || w.cluster().count("delete") != 1 {
			t.Errorf("there %v after %d deletions, want it gone by one", there, w.cluster().count("delete"))
		}
		if n := w.cluster().asks("get") - gets; n == 0 || n > 3 {
			t.Errorf("%d direct reads, want the one that says so", n)
		}
	})
}

func TestP18_aDirectReadThatFailsIsTriedAgainEverLessOften(t *testing.T) {
	virtual(t, func(w *world) {
		var failing atomic.Bool
		var reads atomic.Int64
		k := applied(w, options{onRead: func(read func() error) error {
			if failing.Load() {
				reads.Add(1)
				return errSilent
			}
			return read()
		}})
		defer k.stop()
		failing.Store(true)
		w.destroy("acme")
		w.pass(10 * time.Minute)
		if w.gone("acme") {
			t.Error("it is gone though nobody said so")
		}
		if n := reads.Load(); n < 10 || n > 40 {
			t.Errorf("%d reads in 10 minutes, want about one in 30 s", n)
		}
		failing.Store(false)
		w.until("acme is gone", 31*time.Second, func() bool { return w.gone("acme") })
	})
}

func TestL18_aDestroyThatComesBetweenLeavesNoInstance(t *testing.T) {
	virtual(t, func(w *world) {
		var destroyed atomic.Bool
		w.onKubernetes(nil)
		k := w.start(options{onTask: func(_ fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			if task.Kind == fleet.TaskApply && !destroyed.Swap(true) {
				w.destroy("acme") // while the apply is under way
				<-time.After(5 * time.Second)
			}
			return execute()
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("acme is gone", 2*time.Minute, func() bool { return destroyed.Load() && w.gone("acme") })
		if o, there := w.cluster().of("acme"); there {
			t.Errorf("%+v is left", o)
		}
	})
}

func TestP4_aForeignInstanceIsLeftAlone(t *testing.T) {
	virtual(t, func(w *world) {
		w.onKubernetes(nil)
		theirs := ours("acme", "eu")
		theirs.labels[fleet.LabelEnvironment] = "production"
		theirs = w.cluster().put(theirs)
		k := w.start(options{})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("it failed", time.Minute, func() bool { return w.status("acme").Reason == fleet.ReasonForeignInstance })
		w.destroy("acme")
		w.until("acme is gone", time.Minute, func() bool { return w.gone("acme") })
		if o, _ := w.cluster().of("acme"); o.uid != theirs.uid || len(w.cluster().writes) != 0 {
			t.Errorf("%+v after %v, want it as it was", o, w.cluster().writes)
		}
	})
}

func TestObserveNow_readsTheInstanceItself(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.pass(time.Minute)
		w.cluster().with(func() { w.cluster().lag = time.Hour }) // the watch says nothing
		o, _ := w.cluster().of("acme")
		o.deleting = true
		w.cluster().put(o)
		gets := w.cluster().asks("get")
		w.must(k.loop.ObserveNow(w.t.Context(), key("acme")))
		if n := w.cluster().asks("get") - gets; n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		if s := w.status("acme"); s.Resource == nil || !s.Resource.Deleting {
			t.Errorf("status %+v, want what is there now", s.Resource)
		}
		w.cluster().fallSilent(fleet.ReasonEndpointUnreachable)
		if err := k.loop.ObserveNow(w.t.Context(), key("acme")); err == nil || !strings.Contains(err.Error(), "namespace kura of cluster prod") {
			t.Errorf("observe now of a cluster that is away: %v, want it to name the place", err)
		}
	})
}

func TestG1_aRestartAppliesNothing(t *testing.T) {
	virtual(t, func(w *world) {
		applied(w, options{}).stop()
		revision := w.server("acme").StatusRevision
		for _, o := range []options{{}, {deaf: true}, {}} {
			k := w.start(o)
			w.pass(time.Minute)
			k.stop()
		}
		if n := w.cluster().count("apply"); n != 1 {
			t.Errorf("%d applies, want the one of the creation", n)
		}
		if after := w.server("acme").StatusRevision; after != revision {
			t.Errorf("the restarts wrote the status: revision %d became %d", revision, after)
		}
	})
}

// L31: kurad was started without the variable set, or the template is gone.
func TestP18_aServerThatCannotBeRenderedAnyMoreIsDestroyed(t *testing.T) {
	virtual(t, func(w *world) {
		k := applied(w, options{})
		defer k.stop()
		w.onKubernetes(func(r *fleet.Region) { r.Kubernetes.EnvFrom = []string{"missing"} })
		w.until("acme cannot be rendered", time.Minute, func() bool {
			return w.condition("acme", fleet.ConditionInstanceObserved).Reason == fleet.ReasonNotRenderable
		})
		before := w.status("acme").Revision
		w.destroy("acme")
		w.until("acme is gone", 10*time.Second, func() bool { return w.gone("acme") || w.status("acme").Revision != before })
		if _, there := w.cluster().of("acme"); !w.gone("acme") || there || w.cluster().count("delete") != 1 {
			t.Errorf("there %v after %d deletions, want it gone by one", there, w.cluster().count("delete"))
		}
	})
}
