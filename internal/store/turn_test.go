package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// turnOf is the write of a turn that has gathered g.
func turnOf(k fleet.ServerKey, g fleet.Gathered, message string) fleet.TurnWrite {
	return fleet.TurnWrite{
		Key: k, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision,
		Status: fleet.Status{Status: fleet.StatusProvisioning, Message: message},
	}
}

func gather(t *testing.T, r *store.Records, k fleet.ServerKey) fleet.Gathered {
	t.Helper()
	return must[fleet.Gathered](t)(r.Gather(t.Context(), k))
}

func TestTurn_statusDeploymentAndEventsAreOneWrite(t *testing.T) {
	r, m := records(t)
	declare(t, r, acme)
	g := gather(t, r, acme)
	if g.Latest == nil || g.Account == nil || g.Region == nil || g.Templates["default"].Pattern == "" || g.Status != nil {
		t.Fatalf("gathered %+v", g)
	}
	w := turnOf(acme, g, "first")
	latest := *g.Latest
	latest.Status = fleet.DeploymentRunning
	w.Latest, w.LatestRevision = &latest, g.LatestRevision
	w.Events = []fleet.Event{{Account: "acme", Region: "eu", Reason: "Created"}, {Account: "acme", Region: "eu", Reason: "Started"}}
	batches, err := m.Watch(t.Context(), "/kura/v1/staging/", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CommitTurn(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range (<-batches).Events {
		keys = append(keys, strings.TrimPrefix(e.Key, "/kura/v1/staging/"))
	}
	want := []string{"servers/eu/acme/status", "deployments/eu/acme/0000000001", "events/eu/acme/01", "events/eu/acme/02"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys of the one revision (-want +got):\n%s", diff)
	}
	g = gather(t, r, acme)
	if g.Status.Message != "first" || g.Latest.Status != fleet.DeploymentRunning {
		t.Errorf("gathered %+v %+v", g.Status, g.Latest)
	}
	status := must[store.Versioned[fleet.Status]](t)(r.Status(t.Context(), acme))
	if err := r.CommitTurn(t.Context(), turnOf(acme, g, "second")); err != nil {
		t.Fatal(err)
	}
	again := must[store.Versioned[fleet.Status]](t)(r.Status(t.Context(), acme))
	if again.Generation != 2 || !again.CreatedAt.Equal(status.CreatedAt) {
		t.Errorf("generation %d created %v, want 2 and %v", again.Generation, again.CreatedAt, status.CreatedAt)
	}
}

func TestP17_statusAgainstAChangedIntentIsRefused(t *testing.T) {
	ctx := t.Context()
	remove := func(t *testing.T, r *store.Records) {
		g := gather(t, r, acme)
		if err := r.CommitTurn(ctx, fleet.TurnWrite{Key: acme, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		change func(*testing.T, *store.Records)
		names  string
	}{
		{"changed intent", func(t *testing.T, r *store.Records) {
			tx := r.Begin()
			tx.PutIntent(must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme)), intentOf(acme, 1))
			commit(t, tx)
		}, "server acme/eu"},
		{"removed intent", remove, "acme/eu"},
		{"removed and declared again", func(t *testing.T, r *store.Records) { remove(t, r); createServer(t, r, acme) }, "acme/eu"},
		{"changed status", func(t *testing.T, r *store.Records) {
			if err := r.CommitTurn(ctx, turnOf(acme, gather(t, r, acme), "other")); err != nil {
				t.Fatal(err)
			}
		}, "the status of server acme/eu"},
		{"changed deployment", func(t *testing.T, r *store.Records) {
			tx := r.Begin()
			tx.PutDeployment(must[store.Versioned[fleet.Deployment]](t)(r.Deployment(ctx, acme, 1)), deploymentOf(acme, 1))
			commit(t, tx)
		}, "deployment 1 of server acme/eu"},
	}
	for _, test := range tests {
		for _, removing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removing %v", test.name, removing), func(t *testing.T) {
				r, _ := records(t)
				declare(t, r, acme)
				if err := r.CommitTurn(ctx, turnOf(acme, gather(t, r, acme), "before")); err != nil {
					t.Fatal(err)
				}
				g := gather(t, r, acme)
				w := turnOf(acme, g, "stale")
				w.Latest, w.LatestRevision, w.Remove = g.Latest, g.LatestRevision, removing
				w.Events = []fleet.Event{{Account: "acme", Region: "eu", Reason: "Stale"}}
				test.change(t, r)
				before := must[int64](t)(r.Revision(ctx))
				err := r.CommitTurn(ctx, w)
				if !kv.IsConflict(err) {
					t.Fatalf("err = %v, want a conflict", err)
				}
				wantError(t, err, test.names)
				if after := must[int64](t)(r.Revision(ctx)); after != before {
					t.Errorf("something was written at revision %d", after)
				}
			})
		}
	}
}

func TestP18_removalTakesEverythingButEvents(t *testing.T) {
	r, m := records(t)
	other := fleet.ServerKey{Account: "acme", Region: "eu-2"}
	declare(t, r, acme)
	declare(t, r, other)
	tx := r.Begin()
	for i := range 60 {
		tx.Claim(acme, store.ReservePort("local", 20000+i))
	}
	tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", Reason: "Declared"})
	commit(t, tx)
	for i := range 2 { // more than one transaction can give back
		tx = r.Begin()
		for p := range 60 {
			tx.Claim(acme, store.ReservePort(fmt.Sprintf("e%d", i), 20000+p))
		}
		commit(t, tx)
	}
	// One reservation that the record names has come to another server since.
	mustPut(t, m, "/kura/v1/staging/ports/e1/20007", `{"schema":1,"generation":1,"value":{"account":"acme","region":"eu-2"}}`)

	if err := r.CommitTurn(t.Context(), turnOf(acme, gather(t, r, acme), "x")); err != nil {
		t.Fatal(err)
	}
	g := gather(t, r, acme)
	w := fleet.TurnWrite{
		Key: acme, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true,
		Latest: g.Latest, LatestRevision: g.LatestRevision,
		Events: []fleet.Event{{Account: "acme", Region: "eu", Reason: "Destroyed"}},
	}
	if err := r.CommitTurn(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	page := must[kv.Page](t)(m.List(t.Context(), "/kura/v1/staging/", kv.ListOptions{}))
	var left []string
	for _, item := range page.Items {
		left = append(left, strings.TrimPrefix(item.Key, "/kura/v1/staging/"))
	}
	want := []string{
		"accounts/acme", "deployments/eu-2/acme/0000000001", "events/eu/acme/01", "events/eu/acme/02",
		"hosts/acme-eu-2.kura.test", "instances/containers/local/kura-acme-eu-2", "ports/e1/20007",
		"refs/accounts/acme/eu-2", "refs/departed", "refs/templates/default/eu", "refs/templates/default/eu-2", "regions/eu", "regions/eu-2", "schema",
		"servers/eu-2/acme/claims", "servers/eu-2/acme/intent", "templates/default",
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	createServer(t, r, acme)
}

func TestEvents_ofServersLongGoneAreForgotten(t *testing.T) {
	r, m := records(t)
	name := func(i int) fleet.ServerKey { return fleet.ServerKey{Account: fmt.Sprintf("a%04d", i), Region: "eu"} }
	leave := func(k fleet.ServerKey) {
		t.Helper()
		g := gather(t, r, k)
		w := fleet.TurnWrite{Key: k, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true,
			Latest: g.Latest, LatestRevision: g.LatestRevision, Events: []fleet.Event{{Account: k.Account, Region: k.Region, Reason: "Destroyed"}}}
		if err := r.CommitTurn(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	// The first and the second go once more, and the third comes back to stay.
	for i := range 3 {
		declare(t, r, name(i))
		leave(name(i))
	}
	for i := range 3 {
		createServer(t, r, name(i))
	}
	for i := range 2 {
		leave(name(i))
	}
	for i := 3; i < store.MaxDeparted+2; i++ {
		declare(t, r, name(i))
		leave(name(i))
	}
	for i, want := range map[int]int{0: 0, 1: 2, 2: 1, 3: 1, store.MaxDeparted + 1: 1} {
		if l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), name(i))); len(l.Items) != want {
			t.Errorf("server %d has %d events, want %d", i, len(l.Items), want)
		}
	}
	all := must[kv.Page](t)(m.List(t.Context(), "/kura/v1/staging/events/", kv.ListOptions{}))
	if most := store.MaxDeparted + 2; len(all.Items) > most {
		t.Errorf("%d events are kept, at most %d are to be", len(all.Items), most)
	}
}

func TestEvents_ringKeepsTheNewest(t *testing.T) {
	r, m := records(t)
	event := func(i int) fleet.Event {
		return fleet.Event{Account: "acme", Region: "eu", Reason: fmt.Sprint(i)}
	}
	n := 0
	for _, size := range []int{1, 30, 30, 70, 5} {
		tx := r.Begin()
		for range size {
			tx.AddEvent(event(n))
			n++
		}
		commit(t, tx)
	}
	got := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), acme))
	if len(got.Items) != store.MaxEvents {
		t.Fatalf("%d events are kept, want %d", len(got.Items), store.MaxEvents)
	}
	for i, v := range got.Items {
		if want := fmt.Sprint(n - store.MaxEvents + i); v.Value.Reason != want {
			t.Errorf("event %d is %s, want %s", i, v.Value.Reason, want)
		}
	}
	mustPut(t, m, "/kura/v1/staging/events/eu/acme/07", "broken")
	tx := r.Begin()
	tx.AddEvent(event(n), fleet.Event{Account: "beta", Region: "us", Reason: "x"})
	commit(t, tx)
	for k, want := range map[fleet.ServerKey][2]int{acme: {store.MaxEvents - 1, 1}, {Account: "beta", Region: "us"}: {1, 0}} {
		l := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), k))
		if got := [2]int{len(l.Items), len(l.Problems)}; got != want {
			t.Errorf("%s: %d events and %d problems, want %d", k, got[0], got[1], want)
		}
	}
}

func TestEvents_concurrentWritersLoseNone(t *testing.T) {
	r, _ := records(t)
	errs := make(chan error)
	const writers = 12
	for i := range writers {
		go func() {
			tx := r.Begin()
			tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", Reason: fmt.Sprint(i)})
			_, err := tx.Commit(t.Context())
			errs <- err
		}()
	}
	var err error
	for range writers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := must[store.Listing[fleet.Event]](t)(r.Events(t.Context(), acme))
	seen := map[string]bool{}
	for _, v := range got.Items {
		seen[v.Value.Reason] = true
	}
	if len(seen) != writers {
		t.Errorf("%d of %d events were kept", len(seen), writers)
	}
}

func TestDeployments_newestFiftyAreKept(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	for seq := int64(2); seq <= 60; seq++ {
		tx := r.Begin()
		prev := must[store.Versioned[fleet.Deployment]](t)(r.Deployment(t.Context(), acme, seq-1))
		old := prev.Value
		old.Status = fleet.DeploymentSuperseded
		tx.PutDeployment(prev, old)
		tx.PutDeployment(store.Versioned[fleet.Deployment]{}, deploymentOf(acme, seq))
		tx.PutIntent(must[store.Versioned[fleet.Intent]](t)(r.Intent(t.Context(), acme)), intentOf(acme, seq))
		commit(t, tx)
	}
	l := must[store.Listing[fleet.Deployment]](t)(r.Deployments(t.Context(), acme, store.PageOptions{}))
	if n := len(l.Items); n != store.MaxDeployments || l.Items[0].Value.Seq != 11 || l.Items[n-1].Value.Seq != 60 {
		t.Errorf("%d deployments, want %d from 11 to 60", n, store.MaxDeployments)
	}
	if g := gather(t, r, acme); g.Latest.Seq != 60 {
		t.Errorf("latest is %d, want 60", g.Latest.Seq)
	}
}
