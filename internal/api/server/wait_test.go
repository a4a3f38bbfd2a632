package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"net/http"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func newHTTPServer(h http.Handler) *http.Server {
	return server.HTTPServer("127.0.0.1:0", h, hclog.NewNullLogger())
}

func TestWaitServers_answersOnceSomethingChanged(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu", "us"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	all, err := w.client.WaitServers(ctx, "eu", "", time.Minute)
	if err != nil || !all.Full || len(all.Items) != 1 || all.Items[0].Account != "acme" || all.Cursor == "" {
		t.Fatalf("%+v, %v", all, err)
	}
	type answer struct {
		changes api.ServerChanges
		err     error
	}
	next := func(cursor string) <-chan answer {
		ch := make(chan answer, 1)
		go func() {
			c, err := w.client.WaitServers(ctx, "eu", cursor, time.Minute)
			ch <- answer{c, err}
		}()
		return ch
	}
	waiting := next(all.Cursor)
	w.put(srv("beta", "us", "v1")) // of another region
	w.turn(key("acme", "eu"), active("v1", "https://acme-eu-staging.kura.test"))
	got := <-waiting
	if got.err != nil || got.changes.Full || len(got.changes.Items) != 1 || got.changes.Items[0].Verdict != fleet.VerdictConverged {
		t.Fatalf("%+v", got)
	}
	waiting = next(got.changes.Cursor)
	w.put(srv("beta", "eu", "v1"))
	if got = <-waiting; len(got.changes.Items) != 1 || got.changes.Items[0].Account != "beta" {
		t.Fatalf("%+v", got)
	}
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "beta", Handle: "b2"}, api.PutOptions{})) // what a server is rendered from
	for cursor := got.changes.Cursor; ; cursor = got.changes.Cursor {
		if got = <-next(cursor); got.err != nil {
			t.Fatal(got.err)
		}
		if len(got.changes.Items) == 1 && got.changes.Items[0].Hosts.Public == "b2-eu-staging.kura.test" {
			break
		}
	}
	w.must(w.client.DeleteServer(ctx, key("beta", "eu")))
	w.remove(key("beta", "eu"))
	for cursor := got.changes.Cursor; len(got.changes.Gone) == 0; cursor = got.changes.Cursor {
		if got = <-next(cursor); got.err != nil {
			t.Fatal(got.err)
		}
	}
	if diff := cmp.Diff([]fleet.ServerKey{key("beta", "eu")}, got.changes.Gone); diff != "" {
		t.Error(diff)
	}
	quiet, err := w.client.WaitServers(ctx, "eu", got.changes.Cursor, time.Millisecond)
	if err != nil || quiet.Full || len(quiet.Items)+len(quiet.Gone) > 0 || quiet.Cursor == "" {
		t.Errorf("%+v, %v", quiet, err)
	}
}

func TestWaitServers_aForeignCursorGetsTheFullAnswerAtOnce(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	foreign, err := other.client.WaitServers(t.Context(), "eu", "", 0)
	w.must(nil, err)
	for _, cursor := range []string{foreign.Cursor, "nonsense", "AAAA"} {
		got, err := w.client.WaitServers(t.Context(), "eu", cursor, time.Minute)
		if err != nil || !got.Full || len(got.Items) != 1 {
			t.Errorf("%s: %+v, %v", cursor, got, err)
		}
	}
}

func TestWaitServer_showsChangeAndAbsence(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	k := key("acme", "eu")
	absent, err := w.client.WaitServer(ctx, k, "", time.Minute)
	if err != nil || absent.Server != nil || absent.Cursor == "" {
		t.Fatalf("%+v, %v", absent, err)
	}
	came := make(chan api.ServerChange, 1)
	go func() {
		c, _ := w.client.WaitServer(ctx, k, absent.Cursor, time.Minute)
		came <- c
	}()
	w.put(srv("acme", "eu", "v1"))
	if c := <-came; !c.Changed || c.Server == nil || c.Server.Intent.ImageTag != "v1" {
		t.Errorf("%+v", c)
	}
}

func TestWait_endsWithTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"})
	all, err := w.client.WaitServers(t.Context(), "eu", "", 0)
	w.must(nil, err)
	done := make(chan error, 1)
	go func() {
		_, err := w.client.WaitServers(t.Context(), "eu", all.Cursor, time.Minute)
		done <- err
	}()
	w.api.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestObserveNow_endsWithTheDaemon(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	begun := make(chan struct{})
	w.turns.observe = func(ctx context.Context, _ fleet.ServerKey) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	go func() {
		<-begun
		w.api.Close()
	}()
	started := time.Now()
	got, err := w.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{ObserveNow: true})
	if err != nil || !got.Stale || got.Account != "acme" {
		t.Errorf("%+v, %v", got, err)
	}
	if took := time.Since(started); took >= api.MaxObserve {
		t.Errorf("it kept the daemon for %s", took)
	}
}

// The view leaves out a server whose record cannot be read. It is not gone for that.
func TestWaitServers_whatCannotBeReadIsNotGone(t *testing.T) {
	below := conformance.NewMemory()
	w := newWorldOn(t, below)
	ctx := t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("beta", "eu", "v1"))
	all, err := w.client.WaitServers(ctx, "eu", "", 0)
	w.must(nil, err)
	_, err = below.Txn(ctx, kv.Txn{Then: []kv.Op{kv.Put("/kura/v1/staging/servers/eu/acme/status", []byte("not JSON"))}})
	w.must(nil, err)
	got, err := w.client.WaitServers(ctx, "eu", all.Cursor, time.Minute)
	if err != nil || got.Full || len(got.Gone) != 0 || got.Cursor == all.Cursor {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = w.client.GetServer(ctx, key("acme", "eu"), api.GetOptions{})
	wantFault(t, err, fleet.CodeInternal, "")
	if got, err := w.client.GetServer(ctx, key("beta", "eu"), api.GetOptions{}); err != nil || got.Account != "beta" {
		t.Errorf("its neighbour: %+v, %v", got, err)
	}
}

func TestObserveNow_asksForATurnAndSaysWhenItIsStale(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	k := key("acme", "eu")
	w.turns.observe = func(context.Context, fleet.ServerKey) error {
		w.turn(k, active("v1", "https://acme-eu-staging.kura.test"))
		return nil
	}
	fresh, err := w.client.GetServer(ctx, k, api.GetOptions{ObserveNow: true})
	if err != nil || fresh.Stale || fresh.Verdict != fleet.VerdictConverged {
		t.Errorf("%+v, %v", fresh, err)
	}
	w.turns.observe = func(context.Context, fleet.ServerKey) error { return errors.New("took too long") }
	w.turns.at, w.turns.failed = w.clock.now(), 3
	stale, err := w.client.GetServer(ctx, k, api.GetOptions{ObserveNow: true})
	if err != nil || !stale.Stale || stale.FailedReads != 3 || !stale.LastObservedAt.Equal(w.clock.now()) {
		t.Errorf("%+v, %v", stale, err)
	}
	_, err = w.client.GetServer(ctx, key("nobody", "eu"), api.GetOptions{ObserveNow: true})
	wantFault(t, err, fleet.CodeNotFound, "", "nobody/eu")
	if diff := cmp.Diff([]fleet.ServerKey{k, k}, w.turns.asked); diff != "" {
		t.Error(diff)
	}
}

func TestResolve_listsWhatAnswersFirstAndNothingThatGoes(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"a", "b", "c", "d"}, "acme", "beta")
	for _, r := range []string{"a", "b", "c", "d"} {
		w.put(srv("acme", r, "v1"))
	}
	w.put(srv("beta", "a", "v1"))
	w.turn(key("acme", "a"), func(s *fleet.Status) {
		active("v1", "https://a.kura.test")(s)
		s.Conditions[0].Status = fleet.False
	})
	w.turn(key("acme", "b"), active("v1", "https://b.kura.test"))
	w.turn(key("acme", "c"), active("v1", "https://c.kura.test"))
	w.must(w.client.DeleteServer(ctx, key("acme", "c")))
	got, err := w.client.Resolve(ctx, "acme")
	want := []api.Endpoint{{URL: "https://b.kura.test", Technology: "kura", Region: "b", Ready: true}, {URL: "https://a.kura.test", Technology: "kura", Region: "a"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if none, err := w.client.Resolve(ctx, "beta"); len(none) != 0 || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

func TestEvents_areTheNewestFirst(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	at := w.clock.now()
	tx := w.records.Begin()
	for i, account := range []string{"acme", "beta", "acme"} {
		tx.AddEvent(fleet.Event{Account: account, Region: "eu", At: at.Add(time.Duration(i) * time.Second), Type: fleet.EventNormal, Reason: "R", Message: string(rune('a' + i))})
	}
	w.must(tx.Commit(ctx))
	for filter, want := range map[api.EventFilter]string{
		{}: "cba", {Limit: 2}: "cb", {Account: "acme"}: "ca", {Account: "acme", Region: "eu"}: "ca", {Region: "us"}: "", {Account: "beta", Region: "eu", Limit: 1}: "b",
	} {
		got, err := w.client.Events(ctx, filter)
		text := ""
		for _, e := range got {
			text += e.Message
		}
		if text != want || err != nil {
			t.Errorf("%+v: %q, want %q; %v", filter, text, want, err)
		}
	}
}

func TestBootstrap_writesOneAdminTokenReadableByItsOwner(t *testing.T) {
	records := store.NewRecords(conformance.NewMemory(), "staging")
	if err := records.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	tokens, dir := server.NewTokens(records, nil), t.TempDir()
	path, made, err := tokens.Bootstrap(t.Context(), dir)
	if err != nil || !made || path != filepath.Join(dir, "token") {
		t.Fatal(path, made, err)
	}
	stat, err := os.Stat(path)
	if err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", stat, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	token, err := tokens.Authenticate(t.Context(), strings.TrimSpace(string(text)))
	if err != nil || token.Scope != fleet.ScopeAdmin {
		t.Errorf("%+v, %v", token, err)
	}
	if err := os.WriteFile(path, []byte("the operator's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, made, err := tokens.Bootstrap(t.Context(), dir); made || err != nil {
		t.Errorf("second start: %v, %v", made, err)
	}
	if text, err := os.ReadFile(path); string(text) != "the operator's" || err != nil {
		t.Errorf("the second start wrote the file again: %q, %v", text, err)
	}
	if _, _, err := server.NewTokens(store.NewRecords(conformance.NewMemory(), "x"), nil).Bootstrap(t.Context(), filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing data directory was no error")
	}
	entries, err := os.ReadDir(dir)
	if len(entries) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
