package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// filling is a store that says how full it is.
type filling struct {
	kv.Store
	reserved atomic.Bool
	asked    atomic.Int64
}

func (f *filling) Health(context.Context) (kv.Health, error) {
	f.asked.Add(1)
	return kv.Health{Size: 91, Quota: 100, Reserved: f.reserved.Load(), Full: f.reserved.Load()}, nil
}

// Near the quota nothing new is made and no turn is stored; what an operator needs then goes on.
func TestG12_aReserveIsKeptForWhatAnOperatorNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		below := &filling{Store: conformance.NewMemory()}
		r := store.NewRecords(below, "staging")
		if err := r.Prepare(ctx); err != nil {
			t.Fatal(err)
		}
		declare(t, r, acme)
		tx := r.Begin()
		tx.PutToken(store.Versioned[fleet.Token]{}, fleet.Token{ID: "t1"})
		commit(t, tx)
		below.reserved.Store(true)
		time.Sleep(6 * time.Second) // the bubble's

		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, kv.ErrReserved) || fleet.CodeOf(err) != fleet.CodeUnavailable {
				t.Errorf("%s: %v", what, err)
			}
		}
		tx = r.Begin()
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "new"})
		_, err := tx.Commit(ctx)
		refused("a new account", err)
		g := gather(t, r, acme)
		refused("a turn", r.CommitTurn(ctx, turnOf(acme, g, "first")))

		tx = r.Begin()
		tx.DeleteToken(must[store.Versioned[fleet.Token]](t)(r.Token(ctx, "t1")))
		commit(t, tx) // revoke
		change := func(do func(*fleet.Intent)) {
			t.Helper()
			prev := must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme))
			next := prev.Value
			next.Generation++
			do(&next)
			tx := r.Begin()
			tx.PutIntent(prev, next)
			tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", Reason: "Changed"})
			commit(t, tx)
		}
		change(func(in *fleet.Intent) { in.Paused = true })
		at := time.Now()
		change(func(in *fleet.Intent) { in.Deleting = &at })
		g = gather(t, r, acme)
		destroying := turnOf(acme, g, "")
		destroying.Status.Status = fleet.StatusDestroying
		if err := r.CommitTurn(ctx, destroying); err != nil {
			t.Errorf("a destroy: %v", err)
		}
		g = gather(t, r, acme)
		if err := r.CommitTurn(ctx, fleet.TurnWrite{Key: acme, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}); err != nil {
			t.Errorf("its end: %v", err)
		}

		below.reserved.Store(false)
		time.Sleep(6 * time.Second) // the bubble's
		asked := below.asked.Load()
		for _, id := range []string{"one", "two"} {
			tx = r.Begin()
			tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: id})
			commit(t, tx)
		}
		if n := below.asked.Load() - asked; n != 1 {
			t.Errorf("%d looks at how full it is for two writes", n)
		}
		if err := below.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
