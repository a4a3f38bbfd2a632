package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// So many lists of a token go on at a time, and the one that it does not go on with makes room.
func TestG8_theUnfinishedListsOfATokenAreItsOwnMatter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := &lists{now: func() time.Time { return now }}
	keep := func(token string) int64 {
		return s.keep(fleet.Token{ID: token, Name: token}, make([]fleet.Gathered, 1))
	}
	kept := func(id int64) bool { _, ok := s.get(id, ""); return ok }
	other := keep("other")
	var ids []int64
	for range shareOfKeptLists.each {
		ids = append(ids, keep("greedy"))
	}
	if !kept(ids[0]) { // the oldest is in use
		t.Fatal("the oldest list is gone")
	}
	last := keep("greedy")
	if _, ok := s.get(ids[0], "team-"); ok {
		t.Error("a list is shown to somebody of another view")
	}
	for i, id := range ids {
		if want := i != 1; kept(id) != want {
			t.Errorf("list %d: kept %t, want %t", id, !want, want)
		}
	}
	if !kept(other) {
		t.Error("the other token's list is gone")
	}
	// All together: who has the most gives one.
	for i := len(s.kept); i < shareOfKeptLists.all; i++ {
		keep(fmt.Sprint("one of many ", i))
	}
	if keep("yet another"); len(s.kept) != shareOfKeptLists.all || kept(last) || !kept(other) {
		t.Errorf("%d lists are kept, that of the one who has most: %t, the other's: %t", len(s.kept), kept(last), kept(other))
	}
	now = now.Add(listLife)
	if kept(ids[3]) || len(s.kept) != 0 {
		t.Errorf("%d lists that nobody went on with are kept", len(s.kept))
	}
}
