package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// sickFrom makes the turns of the servers named sick… fail while begun says so.
func sickFrom(begun *atomic.Bool) func(fleet.ServerKey) error {
	return func(k fleet.ServerKey) error {
		if begun.Load() && strings.HasPrefix(k.Account, "sick") {
			return errors.New("malformed")
		}
		return nil
	}
}

// Sixteen servers wait at the head of the queue for a slot, and then their turns fail: who
// comes after them is not kept waiting.
func TestP19_aServerWhoseTurnsFailGivesItsSlotOn(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1000 })
		w.engine().took = 62 * time.Second // not when a listing is due
		var begun atomic.Bool
		k := w.start(options{onGather: sickFrom(&begun)})
		defer k.stop()
		for i := range 16 {
			w.declare(fmt.Sprintf("busy%02d", i), "v1")
		}
		w.until("all slots are taken", 10*time.Second, func() bool { return k.tasks.Load() == 16 })
		for i := range 16 {
			w.declare(fmt.Sprintf("sick%02d", i), "v1")
		}
		w.pass(55 * time.Second)
		w.declare("acme", "v1")
		w.declare("beta", "v1")
		w.pass(time.Second)
		begun.Store(true)
		w.engine().with(func() { w.engine().took = 100 * time.Millisecond })
		w.until("the first slots are free", time.Minute, func() bool { return w.engine().count("create") >= 16 })
		w.until("acme and beta run", 2*time.Second, func() bool { return w.converged("acme", "v1") && w.converged("beta", "v1") })
	})
}

// Pulls that hang take no room from what else is done on an engine.
func TestP19_pullsThatHangKeepNoOtherEffectWaiting(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1000 })
		k := created(w, options{})
		defer k.stop()
		w.engine().with(func() {
			w.engine().pulling = map[string]time.Duration{"localhost/kura:lost": 24 * time.Hour}
		})
		for i := range 40 {
			w.declare(fmt.Sprintf("s%02d", i), "lost")
		}
		w.pass(5 * time.Second)
		w.engine().with(func() {
			for _, b := range w.engine().boxes {
				w.engine().exit(b, 1)
			}
		})
		w.until("acme's container is started again", 2*time.Second, func() bool { return w.engine().of("acme")[0].starts == 2 })
		w.destroy("acme")
		w.until("acme is destroyed", 5*time.Second, func() bool { return w.gone("acme") })
	})
}
