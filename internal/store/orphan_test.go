package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// lost is the work on an orphan of a server that may be declared or not.
func lost(k fleet.ServerKey) fleet.Orphan {
	o := fleet.Orphan{Server: k, Cluster: "prod", Namespace: "kura", Name: "kura-" + k.Account + "-eu", UID: "uid-" + k.Account}
	return o.End(time.Unix(1700000000, 0).UTC())
}

func TestK5_L30_theStoreSaysWhetherAServerIsDeclared(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	told := fleet.Event{Account: "acme", Region: "eu", Reason: "OrphanDeleted"}
	for _, events := range [][]fleet.Event{nil, {told}} {
		if _, err := r.CommitOrphan(t.Context(), lost(acme), events...); !kv.IsConflict(err) {
			t.Errorf("of a declared server with %d events: %v, want a conflict", len(events), err)
		}
	}
	if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), acme)); len(l.Items) != 0 {
		t.Errorf("events %+v, want none", l.Items)
	}
	left := fleet.ServerKey{Account: "lost", Region: "eu"}
	told.Account = "lost"
	o := lost(left)
	o.Revision = must[int64](t)(r.CommitOrphan(t.Context(), o, told))
	if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), left)); len(l.Items) != 1 || l.Items[0].Value.Reason != "OrphanDeleted" {
		t.Errorf("events %+v, want the one", l.Items)
	}
	if d := cmp.Diff([]fleet.Orphan{o}, must[[]fleet.Orphan](t)(r.Orphans(t.Context(), "prod", "kura"))); d != "" {
		t.Errorf("stored (-want +got):\n%s", d)
	}
	if l := must[[]fleet.Orphan](t)(r.Orphans(t.Context(), "prod", "kura2")); len(l) != 0 {
		t.Errorf("of another namespace: %+v", l)
	}
	stale := o
	stale.Revision--
	if _, err := r.CommitOrphan(t.Context(), stale); !kv.IsConflict(err) {
		t.Errorf("over another revision: %v, want a conflict", err)
	}
	declare(t, r, left)
	if _, err := r.CommitOrphan(t.Context(), o); !kv.IsConflict(err) {
		t.Errorf("once the server is declared: %v, want a conflict", err)
	}
	o.Plan = nil // which is taken back whoever is declared
	must[int64](t)(r.CommitOrphan(t.Context(), o))
	if l := must[[]fleet.Orphan](t)(r.Orphans(t.Context(), "prod", "kura")); len(l) != 0 {
		t.Errorf("stored %+v, want nothing", l)
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
		if _, err := r.CommitOrphan(t.Context(), lost(k), fleet.Event{Account: k.Account, Region: k.Region, Reason: "OrphanDeleted"}); err != nil {
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
	r, m := records(t)
	leadership := kv.Hold(m, kv.Unchanged("/kura/v1/staging/no-such-leader", 7), time.Time{})
	if _, err := r.Fenced(leadership).CommitOrphan(t.Context(), lost(acme)); !errors.Is(err, kv.ErrNotLeader) {
		t.Errorf("%v, want %v", err, kv.ErrNotLeader)
	}
	if leadership.Valid() {
		t.Error("a refused write leaves the leadership valid")
	}
}

func TestD6_anEventThatNoTurnStoresIsKeptAsThoseOfItsServer(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	for i := range store.MaxDeparted + 2 { // who is gone keeps its events until so many others went
		must[any](t)(nil, r.Note(t.Context(), fleet.Event{Account: fmt.Sprintf("gone-%d", i), Region: "eu", Reason: "DNSPruned"}))
	}
	must[any](t)(nil, r.Note(t.Context(), fleet.Event{Account: "acme", Region: "eu", Reason: "DNSPruned"}))
	for account, want := range map[string]int{"acme": 1, "gone-0": 0, "gone-1": 0, "gone-2": 1} {
		if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), fleet.ServerKey{Account: account, Region: "eu"})); len(l.Items) != want {
			t.Errorf("%s has %d events, want %d", account, len(l.Items), want)
		}
	}
}
