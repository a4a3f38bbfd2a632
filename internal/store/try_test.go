package store_test

import (
	"bytes"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// A claim beside the status is refused, and over, with any change of what it goes on from; it
// goes with its server.
func TestG12_aClaimBelongsToOneStatus(t *testing.T) {
	ctx := t.Context()
	r, _ := records(t)
	declare(t, r, acme)
	if err := r.CommitTurn(ctx, turnOf(acme, gather(t, r, acme), "first")); err != nil {
		t.Fatal(err)
	}
	g := gather(t, r, acme)
	claim := fleet.TryWrite{Key: acme, IntentRevision: g.IntentRevision, Try: fleet.Try{Status: g.StatusRevision, Claim: fleet.Claim{Tries: 1}}}
	revision := must[int64](t)(r.CommitTry(ctx, claim))
	if _, err := r.CommitTry(ctx, claim); !kv.IsConflict(err) {
		t.Errorf("a second claim in the place of the same one: %v", err)
	}
	if g = gather(t, r, acme); g.Try == nil || g.TryRevision != revision || g.Try.Tries != 1 {
		t.Fatalf("gathered %+v at %d, want %d", g.Try, g.TryRevision, revision)
	}
	v := store.NewView(r, nil)
	viewing(t, v)
	if err := v.WaitFor(ctx, revision); err != nil {
		t.Fatal(err)
	}
	if shown, _ := v.Server(acme); shown.Try == nil || shown.TryRevision != revision {
		t.Errorf("the view has %+v at %d", shown.Try, shown.TryRevision)
	}

	claim.TryRevision = revision
	if err := r.CommitTurn(ctx, turnOf(acme, g, "second")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.CommitTry(ctx, claim); !kv.IsConflict(err) {
		t.Errorf("a claim on a status that has changed: %v", err)
	}
	if g = gather(t, r, acme); g.Try != nil || g.TryRevision != revision {
		t.Errorf("a claim of another status: %+v at %d", g.Try, g.TryRevision)
	}
	claim.Try.Status = g.StatusRevision
	claim.IntentRevision++
	if _, err := r.CommitTry(ctx, claim); !kv.IsConflict(err) {
		t.Errorf("a claim on another intent: %v", err)
	}
	claim.IntentRevision--
	newest := must[int64](t)(r.CommitTry(ctx, claim))
	for at, fits := range map[int64]bool{revision: false, newest: true} {
		beside := r.Begin()
		beside.RequireTry(acme, at)
		if _, err := beside.Commit(ctx); kv.IsConflict(err) == fits {
			t.Errorf("a write that has seen the claim of %d, where the newest is of %d: %v", at, newest, err)
		}
	}
	var b bytes.Buffer
	if info, err := r.Save(ctx, &b); err != nil || info.Kinds[store.KindTry] != 0 {
		t.Errorf("a snapshot, %v, has a claim on a revision of this store: %v", err, info.Kinds)
	}

	g = gather(t, r, acme)
	if err := r.CommitTurn(ctx, fleet.TurnWrite{Key: acme, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}); err != nil {
		t.Fatal(err)
	}
	region := must[store.Versioned[fleet.Region]](t)(r.Region(ctx, "eu"))
	tx := r.Begin()
	tx.DeleteRegion(region)
	commit(t, tx)
}

// A claim that cannot be read costs one more try, and not all turns of its server: who gathers
// it and who views it say the same.
func TestG12_aClaimThatCannotBeReadIsNone(t *testing.T) {
	ctx := t.Context()
	r, m := records(t)
	declare(t, r, acme)
	if err := r.CommitTurn(ctx, turnOf(acme, gather(t, r, acme), "first")); err != nil {
		t.Fatal(err)
	}
	mustPut(t, m, "/kura/v1/staging/servers/eu/acme/try", "broken")
	v := store.NewView(r, nil)
	viewing(t, v)
	if shown, ok := v.Server(acme); !ok || shown.Try != nil || shown.TryRevision == 0 {
		t.Errorf("the view shows %v with the claim %+v at %d", ok, shown.Try, shown.TryRevision)
	}
	g, err := r.Gather(ctx, acme)
	if err != nil || g.Try != nil || g.TryRevision == 0 {
		t.Fatalf("gathered with the claim %+v at %d: %v", g.Try, g.TryRevision, err)
	}
	must[int64](t)(r.CommitTry(ctx, fleet.TryWrite{Key: acme, IntentRevision: g.IntentRevision, TryRevision: g.TryRevision, Try: fleet.Try{Status: g.StatusRevision}}))
}
