package server

import (
	"fmt"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
)

func TestChanges_whatIsTooLongAgoIsSaidToBe(t *testing.T) {
	view := store.NewView(store.NewRecords(conformance.NewMemory(), "staging"), nil)
	c := follow(view)
	defer c.close()
	all := func(fleet.ServerKey) bool { return true }
	one := store.Update{Kind: store.KindStatus, Key: fleet.ServerKey{Account: "a", Region: "r"}, Revision: 7}
	start := c.now()
	c.take(view, one)
	c.take(view, one)
	keys, at, known, _ := c.since(start, all)
	if len(keys) != 1 || !known || at != start+2 {
		t.Errorf("%v at %d, known %v", keys, at, known)
	}
	for i := range maxChanges {
		c.take(view, store.Update{Kind: store.KindIntent, Key: fleet.ServerKey{Account: fmt.Sprint(i), Region: "r"}})
	}
	if _, _, known, _ := c.since(start, all); known {
		t.Error("it pretends to know what it forgot")
	}
	if keys, _, known, _ := c.since(at, all); !known || len(keys) != maxChanges {
		t.Errorf("%d keys, known %v", len(keys), known)
	}
	before := c.now()
	c.take(view, store.Update{Kind: store.KindToken, Name: "t"})
	if keys, _, known, _ := c.since(before, all); len(keys) != 0 || !known {
		t.Error("a token is no change of a server")
	}
	c.take(view, store.Update{Kind: store.KindTemplate, Name: "t"})
	if _, _, known, _ := c.since(before, all); known {
		t.Error("a template changes every server")
	}
	if keys, at, known, _ := c.since(c.now(), all); len(keys) != 0 || !known || at != c.now() {
		t.Errorf("%v, known %v", keys, known)
	}
	if _, _, known, _ := c.since(c.now()+1, all); known {
		t.Error("a point to come is known")
	}
}
