package reconcile_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const oldHost, newHost = "acme-eu-staging.kura.test", "ada-eu-staging.kura.test"

// rename gives an account another handle, as the API does: what its servers come to need
// is reserved first.
func (w *world) rename(account, handle string, hosts ...string) {
	w.t.Helper()
	lock, err := w.records.Lock(context.Background())
	w.must(err)
	w.claim(lock, account, hosts...)
	w.setHandle(lock, account, handle)
	w.must(lock.Unlock(context.Background()))
}

func (w *world) beside() *store.Lock {
	w.t.Helper()
	lock, err := w.records.RLock(context.Background())
	w.must(err)
	return lock
}

func (w *world) claim(lock *store.Lock, account string, hosts ...string) {
	w.t.Helper()
	intent, err := w.records.Intent(context.Background(), key(account))
	w.must(err)
	tx := w.records.Begin()
	tx.Under(lock)
	tx.RequireIntent(intent)
	for _, host := range hosts {
		tx.Claim(key(account), store.ReserveHost(host))
	}
	w.commit(tx)
}

func (w *world) setHandle(lock *store.Lock, account, handle string) {
	w.t.Helper()
	w.mu.Lock()
	w.handles[handle] = account
	w.mu.Unlock()
	prev, err := w.records.Account(context.Background(), account)
	w.must(err)
	next := prev.Value
	next.Handle = handle
	tx := w.records.Begin()
	tx.Under(lock)
	tx.PutAccount(prev, next)
	w.commit(tx)
}

// owns says which of the two hosts are reserved.
func (w *world) owns(account string) (was, is bool) {
	w.t.Helper()
	owner := func(host string) bool {
		k, ok, err := w.records.Owner(context.Background(), store.ReserveHost(host))
		w.must(err)
		return ok && k == key(account)
	}
	return owner(oldHost), owner(newHost)
}

func TestH8_aRenamedAccountKeepsTheOldHostForTheAliasPeriod(t *testing.T) {
	virtual(t, func(w *world) {
		k := w.start(options{alias: 10 * time.Minute})
		defer k.stop()
		w.declare("acme", "v1")
		time.Sleep(time.Minute) // the bubble's
		w.claim(w.beside(), "acme", oldHost)
		before := w.server("acme")
		w.rename("acme", "ada", newHost)
		time.Sleep(time.Minute) // the bubble's
		after := w.server("acme")
		if after.Status.PublishedURL == before.Status.PublishedURL || after.Status.Verdict != fleet.VerdictConverged {
			t.Fatalf("publishes %s, %s", after.Status.PublishedURL, after.Status.Verdict)
		}
		if after.Status.Containers[0].ID != before.Status.Containers[0].ID || after.Latest.Seq != before.Latest.Seq {
			t.Errorf("container %s was %s, deployment %d was %d", after.Status.Containers[0].ID, before.Status.Containers[0].ID, after.Latest.Seq, before.Latest.Seq)
		}
		if was, is := w.owns("acme"); !was || !is || len(after.Status.Aliases) != 1 {
			t.Errorf("reserved: old %v, new %v; aliases %+v", was, is, after.Status.Aliases)
		}
		time.Sleep(8 * time.Minute) // the bubble's
		if was, _ := w.owns("acme"); !was {
			t.Error("the old host is free before the period is over")
		}
		time.Sleep(2 * time.Minute) // the bubble's
		if was, is := w.owns("acme"); was || !is || len(w.status("acme").Aliases) != 0 {
			t.Errorf("after the period: reserved old %v, new %v; aliases %+v", was, is, w.status("acme").Aliases)
		}
	})
}

// A rename back reserves nothing, because the server holds the old host still. The turn
// that would give it up at that moment must not.
func TestH4_aHostThatARenameCountsOnIsNotGivenBack(t *testing.T) {
	virtual(t, func(w *world) {
		var refused atomic.Int32
		k := w.start(options{alias: 10 * time.Minute, onCommit: func(write fleet.TurnWrite, commit func() error) error {
			if len(write.Freed) == 0 {
				return commit()
			}
			w.rename("acme", "acme") // after the turn has decided
			err := commit()
			if kv.IsConflict(err) {
				refused.Add(1)
			}
			return err
		}})
		defer k.stop()
		w.declare("acme", "v1")
		time.Sleep(time.Minute) // the bubble's
		w.claim(w.beside(), "acme", oldHost)
		w.rename("acme", "ada", newHost)
		time.Sleep(15 * time.Minute) // the bubble's
		if n := refused.Load(); n != 1 {
			t.Errorf("the turn that gives the old host back was refused %d times, want once", n)
		}
		if was, _ := w.owns("acme"); !was || w.status("acme").PublishedURL != "http://"+oldHost+":20001" {
			t.Errorf("old host reserved %v, published %s", was, w.status("acme").PublishedURL)
		}
	})
}
