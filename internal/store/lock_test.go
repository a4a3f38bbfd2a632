package store_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// under stores an event's worth of nothing under a lock: whether it may is all that counts.
func under(t *testing.T, r *store.Records, lock *store.Lock) error {
	t.Helper()
	tx := r.Begin()
	tx.Under(lock)
	_, err := tx.Commit(t.Context())
	return err
}

func TestG2_aWriteThatRunsAloneEndsTheLocksBesideIt(t *testing.T) {
	r, _ := records(t)
	first, second := must[*store.Lock](t)(r.RLock(t.Context())), must[*store.Lock](t)(r.RLock(t.Context()))
	for _, lock := range []*store.Lock{first, second, first} {
		if err := under(t, r, lock); err != nil {
			t.Errorf("two write beside each other: %v", err)
		}
	}
	alone := must[*store.Lock](t)(r.Lock(t.Context()))
	if err := under(t, r, first); !kv.IsConflict(err) {
		t.Errorf("beside a write that runs alone: err = %v, want a conflict", err)
	}
	for range 3 {
		if err := under(t, r, alone); err != nil {
			t.Errorf("alone: %v", err)
		}
	}
	if err := alone.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := under(t, r, alone); !kv.IsConflict(err) {
		t.Errorf("after the unlock: err = %v, want a conflict", err)
	}
	if err := under(t, r, must[*store.Lock](t)(r.RLock(t.Context()))); err != nil {
		t.Errorf("after the unlock: %v", err)
	}
}

func TestG2_nobodyWritesUntilAWriteThatRunsAloneHasEnded(t *testing.T) {
	for _, next := range []string{"beside", "alone"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := records(t)
				alone := must[*store.Lock](t)(r.Lock(t.Context()))
				got := make(chan *store.Lock)
				go func() {
					if next == "alone" {
						got <- must[*store.Lock](t)(r.Lock(t.Context()))
					} else {
						got <- must[*store.Lock](t)(r.RLock(t.Context()))
					}
				}()
				start := time.Now()
				for range 7 { // each transaction is a sign of life
					time.Sleep(1500 * time.Millisecond) // the bubble's
					if err := under(t, r, alone); err != nil {
						t.Fatal(err)
					}
				}
				if err := alone.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := under(t, r, <-got); err != nil {
					t.Error(err)
				}
				if waited := time.Since(start); waited < 10*time.Second || waited > 11*time.Second {
					t.Errorf("the next one waited %s, want until the release after 10.5 s", waited)
				}
			})
		})
	}
}

func TestG2_aWriteThatRanAloneAndDiedStopsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := records(t)
		dead := must[*store.Lock](t)(r.Lock(t.Context()))
		start := time.Now()
		next := must[*store.Lock](t)(r.Lock(t.Context()))
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("the next one waited %s, want a few seconds", waited)
		}
		if err := under(t, r, dead); !kv.IsConflict(err) {
			t.Errorf("it was only slow, and writes: err = %v, want a conflict", err)
		}
		if err := under(t, r, next); err != nil {
			t.Error(err)
		}
		// Nobody may have the time to wait long enough by himself.
		for try := 1; ; try++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := r.RLock(ctx)
			cancel()
			if err == nil && try > 1 {
				break
			}
			if fleet.CodeOf(err) != fleet.CodeUnavailable || try > 4 {
				t.Fatalf("try %d: err = %v, want that it is unavailable for now", try, err)
			}
		}
	})
}

func TestG2_theOnlyProcessOfAStoreWaitsForNoDeadWrite(t *testing.T) {
	r, _ := records(t)
	dead := must[*store.Lock](t)(r.Lock(t.Context()))
	if err := r.BreakLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := under(t, r, must[*store.Lock](t)(r.RLock(t.Context()))); err != nil {
		t.Error(err)
	}
	if err := under(t, r, dead); !kv.IsConflict(err) {
		t.Errorf("err = %v, want a conflict", err)
	}
}
