package etcd_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// A campaign whose write was not answered in time may have been stored all the same: the
// key that nobody holds must not stop the only process of its store for ever.
func TestG2_aLeadersKeyThatNobodyHoldsStopsNoEmbeddedStore(t *testing.T) {
	s := embedded(t, filepath.Join(t.TempDir(), "store"))
	const prefix = "/kura/v1/staging/leader/"
	lead := func() kv.Leadership {
		t.Helper()
		l, err := s.Campaign(t.Context(), prefix, []byte("me"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := lead()
	key := first.Guard().Key
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, key, "nobody")
	next := lead()
	if !next.Valid() {
		t.Error("it does not lead")
	}
	// One that is held is waited for.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Campaign(ctx, prefix, []byte("another")); !errors.Is(err, context.DeadlineExceeded) || !next.Valid() {
		t.Errorf("err = %v, the first one leads: %v", err, next.Valid())
	}
}

func TestEmbedded_aLeaderOfAFormerLifeDelaysNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	if _, err := s.Campaign(t.Context(), "/leader/", []byte("former")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // as a crash does, without resigning
		t.Fatal(err)
	}
	s = embedded(t, dir)
	l, err := s.Campaign(t.Context(), "/leader/", []byte("present"))
	if err != nil || !l.Valid() {
		t.Fatalf("campaign: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Campaign(ctx, "/leader/", []byte("second")); !errors.Is(err, context.Canceled) {
		t.Errorf("a second campaign of the same life: %v, want one that waits", err)
	}
}
