package server_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestG7_snapshotOfTheAPIServesTheSameFleetElsewhere(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	var snapshot bytes.Buffer
	if err := w.client.SaveSnapshot(t.Context(), &snapshot); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{w.admin, w.token("reader", fleet.ScopeRead)} {
		if strings.Contains(snapshot.String(), strings.Split(token, "_")[2]) {
			t.Error("the snapshot holds a token")
		}
	}
	elsewhere := conformance.NewMemory()
	if _, err := store.Restore(t.Context(), elsewhere, "staging", bytes.NewReader(snapshot.Bytes())); err != nil {
		t.Fatal(err)
	}
	other := newWorldOn(t, elsewhere)
	got, err := other.clientWith(w.admin).GetServer(t.Context(), key("acme", "eu"), api.GetOptions{})
	if err != nil || got.Intent.ImageTag != "v1" {
		t.Errorf("with the token of before: %+v, %v", got, err)
	}
	err = w.clientWith(w.token("writer", fleet.ScopeWrite)).SaveSnapshot(t.Context(), &snapshot)
	if fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Errorf("a writer's snapshot: %v, want forbidden", err)
	}
}

// half is a store whose lists of everything break off after the first page.
type half struct{ kv.Store }

func (h half) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	all := prefix == "/kura/v1/staging/"
	if all && o.After != "" {
		return kv.Page{}, errors.New("disk broken")
	}
	page, err := h.Store.List(ctx, prefix, o)
	page.More = page.More || all
	return page, err
}

func TestG7_snapshotThatBreaksOffIsNoWholeAnswer(t *testing.T) {
	w := newWorldOn(t, half{conformance.NewMemory()})
	w.seed([]string{"eu"}, "acme")
	var got bytes.Buffer
	err := w.client.SaveSnapshot(t.Context(), &got)
	if _, verr := store.Verify(&got); err == nil || verr == nil {
		t.Errorf("half a snapshot: saved with %v, verified with %v", err, verr)
	}
}

// filling is a store whose health is what a test says.
type filling struct {
	kv.Store
	mu     sync.Mutex
	health kv.Health
	err    error
}

func (f *filling) Health(context.Context) (kv.Health, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health, f.err
}

func TestG7_aStoreThatFillsUpShows(t *testing.T) {
	below := &filling{Store: conformance.NewMemory()}
	w := newWorldOn(t, below)
	tests := []struct {
		health kv.Health
		err    error
		status fleet.ConditionStatus
		reason fleet.Reason
		says   string
		ready  string
	}{
		{kv.Health{Size: 10, InUse: 5, Quota: 100}, nil, fleet.True, "Healthy", "has room", `{"status":"ready"}`},
		{kv.Health{Size: 85, InUse: 5, Quota: 100, Full: true}, nil, fleet.False, "NearQuota", "85 of 100", `{"status":"ready","store":"NearQuota"}`},
		{kv.Health{Size: 101, Quota: 100, Full: true, Refusing: true}, nil, fleet.False, "QuotaExceeded", "etcdctl alarm disarm", `{"status":"ready","store":"QuotaExceeded"}`},
		{kv.Health{}, errors.New("no leader"), fleet.Unknown, "StoreUnreachable", "no leader", `{"status":"ready","store":"StoreUnreachable"}`},
	}
	for _, test := range tests {
		below.mu.Lock()
		below.health, below.err = test.health, test.err
		below.mu.Unlock()
		got, err := w.client.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c := got.Conditions[0]; c.Type != "StoreHealthy" || c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
			t.Errorf("%+v, %v shows as %+v", test.health, test.err, c)
		}
		if test.err == nil && (got.Store == nil || got.Store.Size != test.health.Size || got.Store.Refusing != test.health.Refusing) {
			t.Errorf("%+v shows as %+v", test.health, got.Store)
		}
		if resp, b := w.do("GET", "/readyz", "", ""); resp.StatusCode != 200 || strings.TrimSpace(string(b)) != test.ready {
			t.Errorf("readyz: %d %s, want 200 %s", resp.StatusCode, b, test.ready)
		}
	}
}

// racing is a store on which another kurad makes its first token in between.
type racing struct {
	kv.Store
	once  sync.Once
	other func()
}

func (r *racing) Txn(ctx context.Context, x kv.Txn) (int64, error) {
	r.once.Do(r.other)
	return r.Store.Txn(ctx, x)
}

func TestBootstrap_ofSeveralKuradsOnANewStoreOneMakesTheToken(t *testing.T) {
	m := conformance.NewMemory()
	records := store.NewRecords(m, "staging")
	if err := records.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	winner, loser := t.TempDir(), t.TempDir()
	race := &racing{Store: m, other: func() {
		if _, made, err := server.NewTokens(records, nil).Bootstrap(t.Context(), winner); !made || err != nil {
			t.Errorf("the first one: %v, %v", made, err)
		}
	}}
	_, made, err := server.NewTokens(store.NewRecords(race, "staging"), nil).Bootstrap(t.Context(), loser)
	if made || err != nil {
		t.Errorf("the second one: %v, %v", made, err)
	}
	if all, err := records.Tokens(t.Context(), store.PageOptions{}); len(all.Items) != 1 || err != nil {
		t.Errorf("%d tokens, %v; want one", len(all.Items), err)
	}
	if _, err := os.Stat(filepath.Join(loser, server.TokenFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second one left a token that is not valid: %v", err)
	}
}
