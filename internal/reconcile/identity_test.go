package reconcile_test

import (
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// accept makes the namespace that is there now the one that is observed, as the API does.
func (w *world) accept() {
	w.t.Helper()
	prev, err := w.records.Identity(w.t.Context(), "prod", "kura")
	w.must(err)
	next := prev.Value
	next.UID = w.cluster().uid
	tx := w.records.Begin()
	if next.UID == "" {
		tx.DeleteIdentity(prev)
	} else {
		tx.PutIdentity(prev, next)
	}
	w.commit(tx)
}

// exchanged is a world in which acme serves and beta is about to be destroyed, in a namespace
// that kurad then finds exchanged: another cluster answers after a restart, or the namespace is
// made anew under it.
func exchanged(t *testing.T, running bool, test func(*world, *kurad, *apiserver)) {
	t.Helper()
	virtual(t, func(w *world) {
		first := w.cluster()
		first.uid = "one"
		k := applied(w, options{})
		defer func() { k.stop() }()
		w.declare("beta", "v1")
		w.until("beta runs", time.Minute, func() bool { return w.converged("beta", "v1") })
		if id, err := w.records.Identity(w.t.Context(), "prod", "kura"); err != nil || id.Value.UID != "one" {
			t.Fatalf("the namespace is stored as %+v, %v", id.Value, err)
		}
		if running {
			objects := first.objects
			first.with(func() { first.uid, first.objects = "two", map[string]object{}; first.ring() })
			w.destroy("beta")
			test(w, k, &apiserver{objects: objects})
			return
		}
		k.stop()
		w.destroy("beta")
		second := newAPIServer()
		second.uid = "two"
		w.clusters["prod"] = second
		k = w.start(options{})
		test(w, k, first)
	})
}

func TestK9_inAnotherClusterNothingIsDoneUntilItIsAccepted(t *testing.T) {
	for name, running := range map[string]bool{"after a restart": false, "while it runs": true} {
		t.Run(name, func(t *testing.T) {
			exchanged(t, running, func(w *world, _ *kurad, first *apiserver) {
				before := w.status("acme")
				w.pass(20 * time.Minute)
				for _, account := range []string{"acme", "beta"} {
					if c := w.condition(account, fleet.ConditionInstanceObserved); c.Status != fleet.Unknown || c.Reason != fleet.ReasonClusterChanged {
						t.Errorf("%s: InstanceObserved is %s/%s, want Unknown/ClusterChanged", account, c.Status, c.Reason)
					}
				}
				if s := w.status("acme"); s.Status != fleet.StatusActive || s.Verdict != fleet.VerdictUnobserved || s.ObservedImageTag != before.ObservedImageTag || s.Runtime.Plan != nil {
					t.Errorf("acme is %s, %s, runs %q, plan %+v; want it as it was", s.Status, s.Verdict, s.ObservedImageTag, s.Runtime.Plan)
				}
				if w.gone("beta") {
					t.Fatal("beta counts as destroyed")
				}
				if names := w.cluster().names(); len(names) > 0 {
					t.Errorf("%v was made in the other one", names)
				}
				if len(first.objects) != 2 {
					t.Errorf("the first one holds %v, want both", first.names())
				}
				w.accept()
				w.until("beta is gone", time.Minute, func() bool { return w.gone("beta") })
				w.until("acme runs", time.Minute, func() bool { return w.converged("acme", "v1") })
				if names := w.cluster().names(); len(names) != 1 || names[0] != "kura-acme-eu" {
					t.Errorf("the accepted one holds %v, want acme's", names)
				}
			})
		})
	}
}

func TestK9_backInItsClusterEverythingGoesOn(t *testing.T) {
	exchanged(t, false, func(w *world, k *kurad, first *apiserver) {
		w.pass(time.Minute)
		k.stop()
		applies := first.count("apply")
		w.clusters["prod"] = first
		again := w.start(options{})
		defer again.stop()
		w.until("beta is gone", time.Minute, func() bool { return w.gone("beta") })
		w.until("acme runs", time.Minute, func() bool { return w.converged("acme", "v1") })
		if n := first.count("apply") - applies; n > 0 {
			t.Errorf("%d applies, want acme as it was", n)
		}
		if names := first.names(); len(names) != 1 || names[0] != "kura-acme-eu" {
			t.Errorf("it holds %v, want acme's", names)
		}
	})
}

// A namespace that is gone for good is no reason to wait for ever: that is accepted, too, and
// what comes after it is observed as the first was.
func TestK9_aNamespaceThatIsGoneIsAcceptedAndTheNextIsObserved(t *testing.T) {
	exchanged(t, true, func(w *world, _ *kurad, _ *apiserver) {
		w.cluster().with(func() { w.cluster().uid = ""; w.cluster().ring() })
		w.pass(time.Minute)
		if w.gone("beta") {
			t.Error("beta counts as destroyed")
		}
		w.accept()
		w.until("beta is gone", time.Minute, func() bool { return w.gone("beta") })
		w.cluster().with(func() { w.cluster().uid = "three"; w.cluster().ring() })
		w.until("the next one is stored", time.Hour, func() bool {
			id, err := w.records.Identity(w.t.Context(), "prod", "kura")
			return err == nil && id.Value.UID == "three"
		})
	})
}

// Nothing is made of what a namespace shows before it is stored which one it is: another one
// may answer after a crash.
func TestK9_nothingIsDoneBeforeItIsStoredWhichNamespaceItIs(t *testing.T) {
	virtual(t, func(w *world) {
		w.cluster().uid = "one"
		w.onKubernetes(nil)
		refuse := true
		k := w.start(options{onIdentify: func() error {
			if refuse {
				return errDead
			}
			return nil
		}})
		defer k.stop()
		w.declare("acme", "v1")
		w.pass(time.Minute)
		if n := w.cluster().count("apply"); n > 0 {
			t.Errorf("%d applies while the store does not take it", n)
		}
		refuse = false
		w.until("acme runs", time.Minute, func() bool { return w.converged("acme", "v1") })
	})
}
