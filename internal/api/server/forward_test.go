package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// elsewhere is the leader as a follower knows it.
type elsewhere struct{ url string }

func (elsewhere) Leads() bool                               { return false }
func (e elsewhere) Address(context.Context) (string, error) { return e.url, nil }

// lent is a store whose owner is another world.
type lent struct{ kv.Store }

func (lent) Close() error { return nil }

// replicated returns two kurads on one store: one that leads, and one that follows it.
func replicated(t *testing.T) (leader, follower *world, at *elsewhere) {
	t.Helper()
	leader = newWorld(t)
	at = &elsewhere{leader.url}
	follower = newWorldOn(t, lent{leader.records.Store()}, func(c *server.Config) { c.Leader = at })
	leader.seed([]string{"eu"}, "acme")
	leader.put(srv("acme", "eu", "v1"))
	leader.turns.at = time.Date(2026, 11, 21, 11, 59, 0, 0, time.UTC)
	return leader, follower, at
}

func TestG2_aFollowerPassesOnWhatOnlyTheLeaderKnows(t *testing.T) {
	leader, follower, _ := replicated(t)
	v, err := follower.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{ObserveNow: true})
	if err != nil {
		t.Fatal(err)
	}
	if v.Stale || v.LastObservedAt == nil || !v.LastObservedAt.Equal(leader.turns.at) {
		t.Errorf("stale %v, last observed at %v, want the leader's %v", v.Stale, v.LastObservedAt, leader.turns.at)
	}
	if !slices.Equal(leader.turns.asked, []fleet.ServerKey{key("acme", "eu")}) || len(follower.turns.asked) != 0 {
		t.Errorf("the leader looked at %v, the follower at %v", leader.turns.asked, follower.turns.asked)
	}
	list, err := follower.client.ListServers(t.Context(), api.ServerFilter{})
	if err != nil || len(list) != 1 || list[0].LastObservedAt == nil {
		t.Errorf("the list is %+v, %v", list, err)
	}
	info, err := follower.client.Version(t.Context())
	if err != nil || info.Leader.Self || info.Leader.URL != leader.url {
		t.Errorf("the follower says of the leader: %+v, %v", info.Leader, err)
	}
}

func TestG2_aFollowerRefusesBeforeItPassesOn(t *testing.T) {
	leader, follower, _ := replicated(t)
	before := len(leader.audit.Entries())
	_, err := follower.clientWith("kura_aaaaaaaa_nobody").GetServer(t.Context(), key("acme", "eu"), api.GetOptions{})
	if fleet.CodeOf(err) != fleet.CodeUnauthorized {
		t.Errorf("err = %v, want unauthorized", err)
	}
	if n := len(leader.audit.Entries()) - before; n != 0 {
		t.Errorf("the leader was asked %d times", n)
	}
}

func TestG2_aFollowerReadsOnWithoutALeader(t *testing.T) {
	_, follower, at := replicated(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"one that does not answer": gone.URL, "none at all": "", "nonsense": "::"} {
		at.url = url
		v, err := follower.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{})
		if err != nil || v.Intent.ImageTag != "v1" {
			t.Errorf("%s: read %q, %v", name, v.Intent.ImageTag, err)
		}
		// It looks itself where it can, which it says.
		follower.turns.observe = func(context.Context, fleet.ServerKey) error {
			return fleet.Errorf(fleet.CodeUnavailable, "another kurad leads")
		}
		if v, err = follower.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{ObserveNow: true}); err != nil || !v.Stale {
			t.Errorf("%s: a fresh look that is not: stale %v, %v", name, v.Stale, err)
		}
	}
}

func TestG2_aPageOfAnotherReplicaBeginsAgain(t *testing.T) {
	leader, follower, at := replicated(t)
	leader.must(leader.client.PutAccount(t.Context(), fleet.Account{ID: "beta"}, api.PutOptions{}))
	leader.put(srv("beta", "eu", "v1"))
	first := follower.page("/v1/servers?limit=1")
	if first.status != http.StatusOK || first.Next == "" {
		t.Fatalf("the first page: %+v", first)
	}
	next := "/v1/servers?limit=1&page=" + first.Next
	if second := follower.page(next); second.status != http.StatusOK || len(second.Items) != 1 || second.Next != "" {
		t.Errorf("the second page, of the replica that keeps the list: %+v", second)
	}
	at.url = "" // it is gone
	if lost := follower.page(next); lost.Code != api.CodeCursorExpired {
		t.Errorf("the second page, of another one: %+v, want that the list begins again", lost)
	}
}

// page is a page of a list, or what is said instead.
type page struct {
	Items  []fleet.ServerView
	Next   string
	Code   fleet.Code
	status int
}

func (w *world) page(path string) (p page) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.admin)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		w.t.Fatal(err)
	}
	p.status = res.StatusCode
	return p
}
