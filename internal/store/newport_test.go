package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// The intent, its reservations and the status move in one write, or nothing does.
func TestC12_aTurnGivesAnotherPort(t *testing.T) {
	ctx := t.Context()
	r, _ := records(t)
	beta := fleet.ServerKey{Account: "beta", Region: "eu"}
	declare(t, r, acme)
	declare(t, r, beta)
	prev := must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme))
	in := prev.Value
	in.Offered = map[string]int{"cache/http": 20001, "cache/admin": 20009} // of a region that needs the first by now
	tx := r.Begin()
	tx.PutIntent(prev, in)
	tx.Claim(acme, store.ReservePort("local", 20001), store.ReservePort("local", 20009))
	commit(t, tx)
	tx = r.Begin()
	tx.Claim(beta, store.ReservePort("local", 20002))
	tx.RequireIntent(must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, beta)))
	commit(t, tx)

	w := turnOf(acme, gather(t, r, acme), "another port")
	w.Port = &fleet.PortMove{Endpoint: "local", Need: "cache/http", From: 20001, To: 20002}
	if err := r.CommitTurn(ctx, w); err == nil {
		t.Fatal("it got another server's port")
	}
	w.Port.To = 20003
	if err := r.CommitTurn(ctx, w); err != nil {
		t.Fatal(err)
	}
	now := must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme))
	want := in
	want.Ports, want.Offered = map[string]int{"cache/http": 20003}, map[string]int{"cache/admin": 20009}
	if diff := cmp.Diff(want, now.Value); diff != "" || now.Generation != prev.Generation {
		t.Errorf("generation %d of %d; intent (-want +got):\n%s", now.Generation, prev.Generation, diff)
	}
	taken := must[map[int]fleet.ServerKey](t)(r.PortsTaken(ctx, "local"))
	if diff := cmp.Diff(map[int]fleet.ServerKey{20002: beta, 20003: acme, 20009: acme}, taken); diff != "" {
		t.Errorf("reservations (-want +got):\n%s", diff)
	}
	if err := r.CommitTurn(ctx, w); !kv.IsConflict(err) {
		t.Errorf("the same turn again: %v", err)
	}
}
