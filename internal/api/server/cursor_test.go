package server

import (
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// So many lists go on at a time, and the one that nobody goes on with makes room.
func TestSnapshots_theListThatWasUsedLongestAgoGoesFirst(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := &snapshots{now: func() time.Time { return now }}
	var ids []int64
	for range 16 {
		ids = append(ids, s.keep("", make([]fleet.Gathered, 1)))
	}
	kept := func(id int64) bool { _, ok := s.get(id, ""); return ok }
	for _, id := range ids {
		if !kept(id) {
			t.Errorf("list %d of 16 is gone", id)
		}
	}
	if !kept(ids[0]) { // the oldest is in use
		t.Fatal("the oldest list is gone")
	}
	s.keep("", nil)
	if _, ok := s.get(ids[0], "team-"); ok {
		t.Error("a list is shown to somebody of another view")
	}
	for i, id := range ids {
		if want := i != 1; kept(id) != want {
			t.Errorf("list %d, used %d of 16: kept %t, want %t", id, i, !want, want)
		}
	}
	if len(s.kept) != 16 {
		t.Errorf("%d lists are kept", len(s.kept))
	}
	now = now.Add(snapshotLife)
	if kept(ids[2]) || len(s.kept) != 0 {
		t.Errorf("%d lists that nobody went on with are kept", len(s.kept))
	}
}
