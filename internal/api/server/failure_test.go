package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// silent is a store that stops answering.
type silent struct {
	kv.Store
	off atomic.Bool
}

var errSilent = errors.New("no leader")

func (s *silent) Get(ctx context.Context, key string) (kv.Item, error) {
	if s.off.Load() {
		return kv.Item{}, errSilent
	}
	return s.Store.Get(ctx, key)
}

func (s *silent) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	if s.off.Load() {
		return kv.Page{}, errSilent
	}
	return s.Store.List(ctx, prefix, o)
}

func TestUnavailable_aStoreThatDoesNotAnswerIsNotAnAbsence(t *testing.T) {
	below := &silent{Store: conformance.NewMemory()}
	w := newWorldOn(t, below)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	below.off.Store(true)
	for _, path := range []string{"/readyz", "/v1/version", "/v1/accounts", "/v1/accounts/acme", "/v1/servers", "/v1/servers/acme/eu"} {
		resp, b := w.do(http.MethodGet, path, "", w.admin)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(b), "unavailable") {
			t.Errorf("%s: %d %v %s", path, resp.StatusCode, resp.Header, b)
		}
	}
	if resp, _ := w.do(http.MethodGet, "/healthz", "", ""); resp.StatusCode != 200 {
		t.Errorf("the process lives: %d", resp.StatusCode)
	}
	below.off.Store(false)
	if _, err := w.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestH3_aServerThatCannotRenderIsRefusedAtItsField(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, strings.Repeat("l", 50))
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "wide", Handle: strings.Repeat("w", 60)}, api.PutOptions{}))
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "clash", Handle: "acme"}, api.PutOptions{}))
	r := region("canary")
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	for _, c := range []struct{ account, region, word string }{
		{"wide", "eu", "63"}, {strings.Repeat("l", 50), "eu", "53"}, {"clash", "canary", "canary"},
	} {
		_, err := w.client.PutServer(ctx, srv(c.account, c.region, "v1"), api.PutOptions{})
		wantFault(t, err, fleet.CodeInvalid, "/account", c.word)
	}
}

func TestC12_anEndpointWithoutPortsSaysHowToGetSome(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil)
	for _, c := range []struct {
		first, last int
		pointer     string
		words       []string
	}{
		{0, 0, "/containers/endpoint", []string{"no ports to assign", "ports=<first>-<last>"}},
		{20000, 20000, "/containers/services", []string{"takes 2 assigned ports", "has only 1", "widen its ports="}},
	} {
		w.runtimes.first, w.runtimes.last = c.first, c.last
		r := region("eu")
		r.Containers.Services["cache"].Ports["admin"] = fleet.Port{Container: 9000}
		_, err := w.client.PutRegion(ctx, r, api.PutOptions{})
		wantFault(t, err, fleet.CodeInvalid, c.pointer, c.words...)
	}
}

func TestTokens_endedOnesMakeRoomAndLiveOnesAreCounted(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	fill := func(from, to int, ended bool) {
		t.Helper()
		for ; from < to; from += 100 {
			tx := w.records.Begin()
			for i := from; i < min(to, from+100); i++ {
				token := fleet.Token{ID: fmt.Sprintf("t%07d", i), Name: "t", Scope: fleet.ScopeRead, Hash: "x", CreatedAt: w.clock.now()}
				if at := w.clock.now(); ended {
					token.ExpiresAt = &at
				}
				tx.PutToken(store.Versioned[fleet.Token]{}, token)
			}
			w.must(tx.Commit(ctx))
		}
	}
	fill(0, 50, true)
	fill(50, 999, false) // and the admin's
	_, err := w.client.CreateToken(ctx, api.TokenRequest{Name: "late", Scope: fleet.ScopeRead})
	wantFault(t, err, fleet.CodeConflict, "", "1000 tokens", "revoke those that nobody uses")
	w.clock.advance(31 * 24 * time.Hour)
	if _, err := w.client.CreateToken(ctx, api.TokenRequest{Name: "late", Scope: fleet.ScopeRead}); err != nil {
		t.Fatal(err)
	}
	if list, err := w.client.ListTokens(ctx); len(list) != 951 || err != nil {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}
