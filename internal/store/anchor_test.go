package store_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestG10_anchorsAreKeptForABoundedNumberOfLogs(t *testing.T) {
	r, _ := records(t)
	ctx := t.Context()
	var first store.Versioned[fleet.AuditAnchor]
	for i := range store.MaxAnchors + 5 {
		a, err := r.PutAnchor(ctx, fmt.Sprintf("host-%d:/var/lib/kurad/audit.log", i), store.Versioned[fleet.AuditAnchor]{}, fleet.AuditAnchor{First: 1, Seq: 2, Hash: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = a
		} else if first, err = r.PutAnchor(ctx, "host-0:/var/lib/kurad/audit.log", first, fleet.AuditAnchor{First: 1, Seq: uint64(i), Hash: "y"}); err != nil {
			t.Fatal(err)
		}
	}
	anchors := must[map[string]store.Versioned[fleet.AuditAnchor]](t)(r.Anchors(ctx))
	if _, ok := anchors["host-1:/var/lib/kurad/audit.log"]; ok || len(anchors) != store.MaxAnchors {
		t.Errorf("%d anchors are kept, the oldest %v", len(anchors), ok)
	}
	if got := anchors["host-0:/var/lib/kurad/audit.log"]; got.Value != first.Value || got.Revision != first.Revision {
		t.Errorf("%+v, want %+v", got, first)
	}
	if _, err := r.PutAnchor(ctx, "host-0:/var/lib/kurad/audit.log", store.Versioned[fleet.AuditAnchor]{}, first.Value); !kv.IsConflict(err) {
		t.Errorf("a second writer: %v, want a conflict", err)
	}
	// They are a fact of this store, and no part of a snapshot.
	var b bytes.Buffer
	if info, err := r.Save(ctx, &b); err != nil || info.Kinds[store.KindAnchor] != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
