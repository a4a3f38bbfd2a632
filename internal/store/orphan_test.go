package store_test

import (
	"errors"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestK5_L30_theStoreSaysWhetherAServerIsDeclared(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	told := fleet.Event{Account: "acme", Region: "eu", Reason: "OrphanDeleted"}
	for _, events := range [][]fleet.Event{nil, {told}} {
		if err := r.Orphaned(t.Context(), acme, events...); !kv.IsConflict(err) {
			t.Errorf("of a declared server with %d events: %v, want a conflict", len(events), err)
		}
	}
	if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), acme)); len(l.Items) != 0 {
		t.Errorf("events %+v, want none", l.Items)
	}
	lost := fleet.ServerKey{Account: "lost", Region: "eu"}
	told.Account = "lost"
	for range 2 {
		if err := r.Orphaned(t.Context(), lost); err != nil {
			t.Error(err)
		}
	}
	if err := r.Orphaned(t.Context(), lost, told); err != nil {
		t.Fatal(err)
	}
	if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), lost)); len(l.Items) != 1 || l.Items[0].Value.Reason != "OrphanDeleted" {
		t.Errorf("events %+v, want the one", l.Items)
	}
}

// The events of orphans are bounded as those of servers that are gone.
func TestK5_eventsOfOrphansAreForgottenInTheEnd(t *testing.T) {
	r, _ := records(t)
	name := func(i int) fleet.ServerKey {
		return fleet.ServerKey{Account: "s" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Region: "eu"}
	}
	for i := range store.MaxDeparted + 1 {
		k := name(i)
		if err := r.Orphaned(t.Context(), k, fleet.Event{Account: k.Account, Region: k.Region, Reason: "OrphanDeleted"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range map[int]int{0: 0, 1: 1, store.MaxDeparted: 1} {
		if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), name(i))); len(l.Items) != want {
			t.Errorf("%d events of orphan %d, want %d", len(l.Items), i, want)
		}
	}
}

func TestG2_whoLeadsNoMoreNotesNoOrphan(t *testing.T) {
	r, _ := records(t)
	fenced := r.Fenced(kv.Unchanged("/kura/v1/staging/no-such-leader", 7))
	if err := fenced.Orphaned(t.Context(), acme); !errors.Is(err, kv.ErrNotLeader) {
		t.Errorf("%v, want %v", err, kv.ErrNotLeader)
	}
}
