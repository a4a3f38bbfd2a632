package reconcile_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A declaration that others are rendered from is under way for ten seconds, and a hundred
// servers have a host to give back, which needs a moment without one. They wait; nobody
// else's turn does, and nobody asks in a loop.
func TestP19_whoWaitsForTheEndOfADeclarationHoldsUpNobodyElse(t *testing.T) {
	virtual(t, func(w *world) {
		const n = 100
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 1000 })
		k := w.start(options{alias: 10 * time.Minute})
		defer k.stop()
		var accounts []string
		for i := range n {
			accounts = append(accounts, fmt.Sprintf("s%03d", i))
			w.declare(accounts[i], "v1")
		}
		w.declare("acme", "v1")
		w.until("all run", time.Minute, func() bool { return w.count("v1") == n+1 })
		for _, account := range accounts {
			w.claim(w.beside(), account, account+"-eu-staging.kura.test")
		}
		synctest.Wait()
		for _, account := range accounts { // all at the same moment, as by one template
			w.rename(account, "h"+account, "h"+account+"-eu-staging.kura.test")
		}
		aliases := func() (left int) {
			list, _ := w.view.Servers(nil)
			for _, g := range list {
				left += len(g.Status.Aliases)
			}
			return left
		}
		w.until("all have moved", time.Minute, func() bool { return aliases() == n })
		w.pass(9*time.Minute + 50*time.Second)

		lock, err := w.records.Lock(t.Context())
		w.must(err)
		over := make(chan struct{})
		w.ended.Go(func() {
			for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(500 * time.Millisecond) { // the bubble's
				tx := w.records.Begin()
				tx.Under(lock) // a sign of life
				w.commit(tx)
			}
			w.must(lock.Unlock(t.Context()))
			close(over)
		})
		w.pass(12 * time.Second)
		turns := k.gathers.Load()
		w.engine().removeAll("acme")
		w.until("acme's container is made anew", 2*time.Second, func() bool {
			boxes := w.engine().of("acme")
			return len(boxes) == 1 && boxes[0].State == fleet.ContainerRunning
		})
		if d := k.gathers.Load() - turns; d > n {
			t.Errorf("%d turns meanwhile", d)
		}
		if left := aliases(); left != n {
			t.Errorf("%d hosts were given back during the declaration", n-left)
		}
		<-over
		w.until("the hosts are given back", 2*time.Second, func() bool { return aliases() == 0 })
	})
}
