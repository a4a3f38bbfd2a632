package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// A campaign whose write was not answered in time may have been stored all the same: the
// key that nobody holds must not stop the only process of its store for ever.
func TestG2_aLeadersKeyThatNobodyHoldsStopsNoEmbeddedStore(t *testing.T) {
	s := must[*store.Embedded](t)(store.OpenEmbedded(store.Options{Dir: filepath.Join(t.TempDir(), "store")}))
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const prefix = "/kura/v1/staging/leader/"
	first := must[store.Leadership](t)(s.Campaign(t.Context(), prefix, []byte("me")))
	key := first.Guard().Key
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, key, "nobody")
	next := must[store.Leadership](t)(s.Campaign(t.Context(), prefix, []byte("me")))
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
