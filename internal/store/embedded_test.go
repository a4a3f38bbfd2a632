package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
)

func embedded(t *testing.T, dir string) *etcd.Embedded {
	t.Helper()
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

var mustPut, wantError = conformance.Put, conformance.WantError

func TestEmbedded_recordsAndViewWorkOnIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	r := store.NewRecords(s, "staging")
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := store.NewView(r, nil)
	viewing(t, v)
	beta := fleet.ServerKey{Account: "beta", Region: "eu"}
	declare(t, r, acme)
	declare(t, r, beta)
	for i := range 3 {
		if err := r.CommitTurn(t.Context(), turnOf(acme, gather(t, r, acme), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	tx := r.Begin()
	tx.DeleteRegion(must[store.Versioned[fleet.Region]](t)(r.Region(t.Context(), "eu")))
	_, err := tx.Commit(t.Context())
	wantError(t, err, `region "eu" is still used by server acme/eu`)
	g := gather(t, r, beta)
	if err := r.CommitTurn(t.Context(), fleet.TurnWrite{Key: beta, IntentRevision: g.IntentRevision, Remove: true}); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, v, r)
	if err := s.Compact(t.Context(), v.Revision()); err != nil {
		t.Fatal(err)
	}
	tx = r.Begin()
	tx.DeleteAccount(must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "beta")))
	commit(t, tx)
	caughtUp(t, v, r)
	fresh := store.NewView(r, nil)
	viewing(t, fresh)
	for name, view := range map[string]*store.View{"kept": v, "fresh": fresh} {
		if g, ok := view.Server(acme); !ok || !cmp.Equal(g, gather(t, r, acme)) || len(view.ServerKeys()) != 1 || len(view.Regions()) != 1 {
			t.Errorf("%s view: %+v %v, servers %v, regions %v", name, g, ok, view.ServerKeys(), view.Regions())
		}
	}
}
