package reconcile_test

import (
	"context"
	"fmt"
	"sync"
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

	mu      sync.Mutex
	seconds map[int64]int64 // writes in each
}

func (c *counter) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	revision, err := c.Store.Txn(ctx, t)
	if err == nil {
		c.writes.Add(1)
		for _, op := range t.Then {
			c.bytes.Add(int64(len(op.Key) + len(op.Value)))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.seconds == nil {
			c.seconds = map[int64]int64{}
		}
		c.seconds[time.Now().Unix()]++
	}
	return revision, err
}

// worst returns the most that was written in a second that began after the time.
func (c *counter) worst(after time.Time) (most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for second, n := range c.seconds {
		if second > after.Unix() {
			most = max(most, n)
		}
	}
	return most
}

const mostWrites = 100 // in a second, whatever fails (G12)

// A registry outage for an hour: the store and its writes are bounded by the fleet, not by
// what goes wrong in it.
func TestG12_aRegistryOutageOfAnHourFillsNoStore(t *testing.T) {
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 100 })
		d := &down{registry: "localhost", varies: true, late: time.Second}
		w.refuseBy(d)
		for i := range refusedServers {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		declared := w.below.bytes.Load()
		k := w.start(options{})
		w.until("the first was tried", time.Minute, func() bool { return d.all() > 0 })
		// That all wait for places was written before anything failed.
		began, writes := time.Now(), w.below.writes.Load()
		w.until("all were tried", 30*time.Minute, func() bool { return d.all() == refusedServers })
		first := w.below.bytes.Load() - declared
		t.Logf("%d servers: %d writes until all were tried once, after %s, %d in the worst second; %d KiB", refusedServers, w.below.writes.Load()-writes, time.Since(began), w.below.worst(began), first>>10)
		if each := w.below.writes.Load() - writes; each > int64(refusedServers)*5 {
			t.Errorf("%d writes", each)
		}
		writes, bytes := w.below.writes.Load(), w.below.bytes.Load()
		w.pass(time.Hour)
		writes, bytes = w.below.writes.Load()-writes, w.below.bytes.Load()-bytes
		t.Logf("%d writes and %d KiB in the hour after; %d writes in the worst second", writes, bytes>>10, w.below.worst(began))
		w.bounded(refusedServers, began, writes, first+bytes)
		d.set("")
		w.until("all run, after one has succeeded", 30*time.Minute, func() bool { return w.count("v1") == refusedServers })
		k.stop()
	})
}

// bounded fails the test where an hour in which all that is tried fails took too many writes.
func (w *world) bounded(n int, began time.Time, writes, bytes int64) {
	w.t.Helper()
	// Each server may say once more that its attempt has another cause, and that it stalled.
	if most := int64(n*6 + 60*20); writes > most {
		w.t.Errorf("%d writes, want at most %d", writes, most)
	}
	if most := int64(200<<20) * int64(n) / 5000; bytes > most+1<<20 {
		w.t.Errorf("%d bytes were written, want at most %d", bytes, most)
	}
	if worst := w.below.worst(began); worst > mostWrites {
		w.t.Errorf("%d writes in a second", worst)
	}
}

// A host comes back without what its containers need to start: the same for what served last.
func TestG12_C14_anHourInWhichNothingThatServedCanBeStartedFillsNoStore(t *testing.T) {
	n := min(refusedServers, 1000)
	virtual(t, func(w *world) {
		w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = n })
		for i := range n {
			w.declare(fmt.Sprintf("s%04d", i), "v1")
		}
		k := w.start(options{})
		w.until("all run", 30*time.Minute, func() bool { return w.count("v1") == n })
		d := &down{registry: "localhost", starts: true, varies: true, late: time.Second}
		w.refuseBy(d)
		before := w.below.bytes.Load()
		w.engine().reboot()
		seen := time.Now()
		w.until("one was tried", time.Minute, func() bool { return d.all() > 0 })
		// That it does not run, and does not answer, is news of each server.
		w.pass(30 * time.Second)
		began, writes := time.Now(), w.below.writes.Load()
		w.until("all were tried", 30*time.Minute, func() bool { return d.all() == n })
		t.Logf("%d servers: all were tried once after %s, %d writes in the worst second", n, time.Since(seen), w.below.worst(seen))
		w.pass(time.Hour)
		writes = w.below.writes.Load() - writes
		bytes := w.below.bytes.Load() - before
		t.Logf("%d writes and %d KiB; %d writes in the worst second", writes, bytes>>10, w.below.worst(began))
		w.bounded(n, began, writes, bytes)
		d.set("")
		w.until("all run, after one has succeeded", 30*time.Minute, func() bool { return w.count("v1") == n })
		k.stop()
	})
}
