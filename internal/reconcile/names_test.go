package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// exchange exchanges the names of two servers' containers, as somebody does by hand: through
// a temporary name, one step after another with time between them.
func (w *world) exchange(a, b string, between time.Duration) {
	e := w.engine()
	name := func(account string) string { return "kura-" + account + "-eu-cache-staging" }
	var x, y *box
	e.with(func() { x, y = e.named(name(a)), e.named(name(b)) })
	for _, step := range []struct {
		box  *box
		name string
	}{{x, "by-hand"}, {y, name(a)}, {x, name(b)}} {
		e.with(func() {
			if e.named(step.name) == nil { // else it is refused
				step.box.Name = step.name
				e.changed("rename", step.box)
			}
		})
		w.pass(between)
	}
}

// Two servers' containers that were exchanged by hand get their names back, however long the
// exchange takes and whatever is declared meanwhile: none is stopped, lost or refused for good.
func TestC15_twoServersContainersThatWereExchangedGetTheirNamesBack(t *testing.T) {
	for _, between := range []time.Duration{0, time.Millisecond, 120 * time.Millisecond, 230 * time.Millisecond, 400 * time.Millisecond} {
		for what, set := range map[string]func(*world, *kurad){
			"nothing":         func(*world, *kurad) {},
			"one is paused":   func(w *world, _ *kurad) { w.change("acme", func(in *fleet.Intent) { in.Paused = true }) },
			"kurad restarted": nil,
		} {
			t.Run(fmt.Sprintf("%s between, %s", between, what), func(t *testing.T) {
				virtual(t, func(w *world) {
					k := w.start(options{})
					w.declare("acme", "v1")
					w.declare("beta", "v1")
					both := func() bool { return w.converged("acme", "v1") && w.converged("beta", "v1") }
					w.until("both run", time.Minute, both)
					was := []box{w.one("acme"), w.one("beta")}
					if set == nil {
						k.stop()
					} else {
						set(w, k)
					}
					w.exchange("acme", "beta", between)
					if set == nil {
						k = w.start(options{})
					}
					defer k.stop()
					w.pass(time.Minute)
					if w.server("acme").Intent.Paused {
						w.change("acme", func(in *fleet.Intent) { in.Paused = false })
					}
					w.until("both have their names", 15*time.Second, both)
					for i, account := range []string{"acme", "beta"} {
						if is := w.one(account); is.ID != was[i].ID || is.starts != 1 || w.status(account).Runtime.Refusal != nil {
							t.Errorf("%s: %+v, was %+v; %+v", account, is, was[i], w.status(account).Runtime.Refusal)
						}
					}
					if n := w.engine().count("rename"); n > 10 {
						t.Errorf("%d renames: %v", n, w.engine().history())
					}
					w.pass(20 * time.Minute)
					commits := k.commits.Load()
					w.pass(time.Hour)
					if n := k.commits.Load() - commits; n != 0 || !both() {
						t.Errorf("%d writes in an hour afterwards\n%s", n, w.describe())
					}
				})
			})
		}
	}
}
