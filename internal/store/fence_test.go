package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestG2_aDeposedLeadersTurnIsRefused(t *testing.T) {
	r, m := records(t)
	declare(t, r, acme)
	first, err := m.Campaign(t.Context(), r.LeaderPrefix(), []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	leading := r.Fenced(first)
	if err := leading.CommitTurn(t.Context(), turnOf(acme, gather(t, r, acme), "while it leads")); err != nil {
		t.Fatal(err)
	}
	if value, ok, err := r.Leader(t.Context()); string(value) != "first" || !ok || err != nil {
		t.Errorf("the leader says %q %v %v", value, ok, err)
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := r.Leader(t.Context()); ok || err != nil {
		t.Errorf("somebody leads after the leader resigned: %v", err)
	}
	next, err := m.Campaign(t.Context(), r.LeaderPrefix(), []byte("next"))
	if err != nil {
		t.Fatal(err)
	}
	before := gather(t, r, acme)
	late := turnOf(acme, before, "after another one leads")
	late.Events = []fleet.Event{{Account: "acme", Region: "eu"}}
	if err := leading.CommitTurn(t.Context(), late); !errors.Is(err, kv.ErrNotLeader) || kv.IsConflict(err) {
		t.Errorf("the turn of a deposed leader: %v, want ErrNotLeader, which no second attempt helps", err)
	}
	late.Remove = true
	if err := leading.CommitTurn(t.Context(), late); !errors.Is(err, kv.ErrNotLeader) {
		t.Errorf("the removal by a deposed leader: %v, want ErrNotLeader", err)
	}
	if after := gather(t, r, acme); after.StatusRevision != before.StatusRevision {
		t.Error("a deposed leader has written")
	}
	if err := r.Fenced(next).CommitTurn(t.Context(), turnOf(acme, before, "the next one's")); err != nil {
		t.Errorf("the next leader's turn: %v", err)
	}
}

// Other environments, and strangers, write to a shared store: what was written last is
// nothing that the view watches.
func TestG1_theViewCatchesUpWhoeverWroteLast(t *testing.T) {
	stores := map[string]func(*testing.T) kv.Store{
		"memory":   func(t *testing.T) kv.Store { m := conformance.NewMemory(); t.Cleanup(func() { m.Close() }); return m },
		"embedded": func(t *testing.T) kv.Store { return embedded(t, filepath.Join(t.TempDir(), "store")) },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { catchUpWhoeverWrote(t, open(t)) })
	}
}

func catchUpWhoeverWrote(t *testing.T, s kv.Store) {
	r := prepared(t, s)
	v := store.NewView(r, nil)
	viewing(t, v)
	for i := range 20 {
		key := fleet.ServerKey{Account: "acme", Region: fmt.Sprintf("r%d", i)}
		declare(t, r, key)
		last := mustPut(t, s, []string{"/kura/v1/canary/accounts/x", "/somebody/else", "/kura/v1/stagingx/a"}[i%3], "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := v.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, ok := v.Server(key); !ok || v.Revision() < last {
			t.Fatalf("caught up at revision %d of %d, server shown: %v", v.Revision(), last, ok)
		}
	}
}

func TestView_catchUpEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := records(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := store.NewView(r, nil).CatchUp(ctx) // nobody runs it
		if fleet.CodeOf(err) != fleet.CodeUnavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
	})
}
