package reconcile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestP19_aSlotIsNotLostToWhoNoLongerWantsIt(t *testing.T) {
	var woken []work
	s := slots{most: effectsAtOnce, kick: func(k work) { woken = append(woken, k) }}
	name := func(what string, i int) work {
		return work{ServerKey: fleet.ServerKey{Account: fmt.Sprintf("%s%02d", what, i), Region: "eu"}}
	}
	for i := range effectsAtOnce {
		if !s.begin(name("busy", i)) {
			t.Fatalf("no room for %d", i)
		}
	}
	for i := range 3 {
		if s.begin(name("waits", i)) {
			t.Fatal("more at once than may be")
		}
	}
	s.end() // the first is paused by now
	if want := []work{name("waits", 0)}; !slices.Equal(woken, want) {
		t.Fatalf("woken %v, want %v", woken, want)
	}
	woken = nil
	s.stopWaiting(name("waits", 0))
	if want := []work{name("waits", 1)}; !slices.Equal(woken, want) {
		t.Fatalf("woken %v, want %v", woken, want)
	}
	woken = nil
	s.end() // before the one that was woken begins
	if want := []work{name("waits", 1), name("waits", 2)}; !slices.Equal(woken, want) {
		t.Fatalf("woken %v, want %v", woken, want)
	}
	if !s.begin(name("waits", 2)) || !s.begin(name("waits", 1)) || len(s.queued) != 0 {
		t.Errorf("who was woken did not begin; %v wait", s.queued)
	}
	s.stopWaiting(name("stranger", 0)) // who never waited
}

func TestP19_whoFindsItsSlotTakenKeepsItsPlace(t *testing.T) {
	var woken []work
	s := slots{most: effectsAtOnce, kick: func(k work) { woken = append(woken, k) }}
	name := func(what string, i int) work {
		return work{ServerKey: fleet.ServerKey{Account: fmt.Sprintf("%s%02d", what, i), Region: "eu"}}
	}
	for i := range effectsAtOnce {
		s.begin(name("busy", i))
	}
	for i := range 3 {
		s.begin(name("waits", i))
	}
	s.end()
	if !s.begin(name("newcomer", 0)) { // before the one that was woken
		t.Fatal("no room")
	}
	if s.begin(name("waits", 0)) {
		t.Fatal("more at once than may be")
	}
	woken = nil
	s.end()
	if want := []work{name("waits", 0)}; !slices.Equal(woken, want) {
		t.Errorf("woken %v, want %v", woken, want)
	}
}
