package reconcile_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// counter counts what is written to a store.
type counter struct {
	kv.Store
	writes, bytes atomic.Int64
}

func (c *counter) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	revision, err := c.Store.Txn(ctx, t)
	if err == nil {
		c.writes.Add(1)
		for _, op := range t.Then {
			c.bytes.Add(int64(len(op.Key) + len(op.Value)))
		}
	}
	return revision, err
}

// A registry outage for an hour: the store and its writes are bounded by the fleet, not by
// what goes wrong in it.
func TestG12_aRegistryOutageOfAnHourFillsNoStore(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 100 })
		d := &down{registry: "localhost", varies: true}
		w.refuseBy(d)
		for i := range refusedServers {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		k := w.start(options{})
		began := time.Now()
		w.until("all were tried", 30*time.Minute, func() bool {
			for i := range refusedServers {
				if d.tries(fmt.Sprintf("s%04d", i)) == 0 {
					return false
				}
			}
			return true
		})
		first := w.below.bytes.Load()
		t.Logf("%d servers: %d writes and %d KiB until all were tried once, after %s", refusedServers, w.below.writes.Load(), first>>10, time.Since(began))
		writes, bytes := w.below.writes.Load(), w.below.bytes.Load()
		worst := int64(0)
		for range 60 {
			before := w.below.writes.Load()
			w.pass(time.Minute)
			worst = max(worst, w.below.writes.Load()-before)
		}
		writes, bytes = w.below.writes.Load()-writes, w.below.bytes.Load()-bytes
		t.Logf("%d writes and %d KiB in the hour after; %d writes in its worst minute", writes, bytes>>10, worst)
		// Each server may say once more that its attempt has another cause, and that it stalled.
		if most := int64(refusedServers*6 + 60*20); writes > most {
			t.Errorf("%d writes, want at most %d", writes, most)
		}
		if most := int64(200<<20) * refusedServers / 5000; first+bytes > most+1<<20 {
			t.Errorf("%d bytes were written, want at most %d", first+bytes, most)
		}
		if worst > 100*60 {
			t.Errorf("%d writes in a minute", worst)
		}
		d.set("")
		w.until("all run, after one has succeeded", 30*time.Minute, func() bool { return w.count("v1") == refusedServers })
		k.stop()
	})
}
