package server_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// limited makes a token that is limited to a prefix.
func (w *world) limited(name string, scope fleet.Scope, prefix string) string {
	w.t.Helper()
	_, secret, err := w.tokens.Create(w.t.Context(), "test", api.TokenRequest{Name: name, Scope: scope, AccountPrefix: prefix})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret.Reveal()
}

// putLimited declares accounts on both sides of the prefix "team-a-", each with a
// server and an event. Those that it does not see have "umbra" in their names.
func putLimited(w *world) error {
	w.t.Helper()
	accounts := []string{"team-a", "team-a-1", "team-a-2", "umbra-1", "a-umbra"}
	w.seed([]string{"eu"}, accounts...)
	tx := w.records.Begin()
	for _, a := range accounts {
		w.put(srv(a, "eu", "v1"))
		tx.AddEvent(fleet.Event{Account: a, Region: "eu", At: w.clock.now(), Type: fleet.EventNormal, Reason: "R", Message: "of " + a})
	}
	_, err := tx.Commit(w.t.Context())
	return err
}

func names[T any](items []T, name func(T) string) string {
	var all []string
	for _, i := range items {
		all = append(all, name(i))
	}
	return strings.Join(all, " ")
}

func TestToken_limitedToAPrefixSeesItsAccountsOnly(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(nil, putLimited(w))
	c := w.clientWith(w.limited("ci", fleet.ScopeWrite, "team-a-"))

	accounts, err := c.ListAccounts(ctx)
	if got := names(accounts, func(a api.Account) string { return a.ID }); err != nil || got != "team-a-1 team-a-2" {
		t.Errorf("accounts %q, %v", got, err)
	}
	for prefix, want := range map[string]string{"team-a": "team-a team-a-1 team-a-2", "team-a-2": "team-a-2", "a": "a-umbra", "z": "", "0": ""} {
		list, err := w.clientWith(w.limited("other", fleet.ScopeRead, prefix)).ListAccounts(ctx)
		if got := names(list, func(a api.Account) string { return a.ID }); err != nil || got != want {
			t.Errorf("prefix %q: accounts %q, %v; want %q", prefix, got, err, want)
		}
	}
	// Page by page: no cursor names another's account.
	for path := "/v1/accounts?limit=1"; path != ""; {
		var page api.List[api.Account]
		resp, b := w.do("GET", path, "", w.limited("pages", fleet.ScopeRead, "team-a-"))
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, b)
		}
		w.must(nil, json.Unmarshal(b, &page))
		path = ""
		if page.Next != "" {
			if got, err := base64.RawURLEncoding.DecodeString(page.Next); err != nil || strings.Contains(string(got), "umbra") || !strings.Contains(string(got), "team-a-") {
				t.Errorf("cursor %q, %v", got, err)
			}
			path = "/v1/accounts?limit=1&page=" + page.Next
		}
	}
	servers, err := c.ListServers(ctx, api.ServerFilter{})
	if got := names(servers, func(v fleet.ServerView) string { return v.Account }); err != nil || got != "team-a-1 team-a-2" {
		t.Errorf("servers %q, %v", got, err)
	}
	if servers, err = c.ListServers(ctx, api.ServerFilter{Account: "umbra-1"}); err != nil || len(servers) != 0 {
		t.Errorf("servers of another: %+v, %v", servers, err)
	}
	events, err := c.Events(ctx, api.EventFilter{})
	if got := names(events, func(e fleet.Event) string { return e.Account }); err != nil || strings.Contains(got, "umbra") || !strings.Contains(got, "team-a-1") {
		t.Errorf("events %q, %v", got, err)
	}
	if events, err = c.Events(ctx, api.EventFilter{Account: "umbra-1", Region: "eu"}); err != nil || len(events) != 0 {
		t.Errorf("events of another: %+v, %v", events, err)
	}

	// What it may do, and what not.
	w.must(c.PutAccount(ctx, fleet.Account{ID: "team-a-3"}, api.PutOptions{}))
	w.must(c.PutServer(ctx, srv("team-a-3", "eu", "v1"), api.PutOptions{}))
	w.must(c.Redeploy(ctx, key("team-a-3", "eu"), "once"))
	w.must(c.Deployments(ctx, key("team-a-3", "eu")))
	w.must(c.Resolve(ctx, "team-a-3"))
	w.must(c.Version(ctx))
	w.must(c.GetRegion(ctx, "eu"))
	w.must(c.ListHostTemplates(ctx))
	const which = `accounts whose id begins with "team-a-"`
	_, err = c.PutAccount(ctx, fleet.Account{ID: "umbra-1", Handle: "mine"}, api.PutOptions{})
	wantFault(t, err, fleet.CodeForbidden, "", which, `account "umbra-1" is none of them`)
	_, err = c.GetAccount(ctx, "team-a")
	wantFault(t, err, fleet.CodeForbidden, "", which)
	_, err = c.GetServer(ctx, key("nobody", "eu"), api.GetOptions{}) // whether it exists or not
	wantFault(t, err, fleet.CodeForbidden, "", which)
	_, err = c.PutServer(ctx, fleet.Server{Account: "umbra-1", Region: "eu", ImageTag: "v1"}, api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeForbidden, "", which)
	// Containers without labels are nobody's, and so not its own.
	w.lists(byHand(1, "made-by-hand", "v1", 31234))
	_, err = c.Adopt(ctx, key("team-a-3", "eu"), api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": "made-by-hand"}})
	wantFault(t, err, fleet.CodeForbidden, "", which, "containers and instances without labels are nobody's", "use a token without that limit")
	// What cannot be had does not tell who has it, unless that is its own.
	_, err = c.PutAccount(ctx, fleet.Account{ID: "team-a-3", Handle: "umbra-1"}, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/handle", `another account has the name "umbra-1"`)
	_, err = c.PutAccount(ctx, fleet.Account{ID: "team-a-3", Handle: "team-a-1"}, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/handle", `account "team-a-1" has the name "team-a-1"`)
	_, err = c.PutServer(ctx, w.lookalike("team-a-4", "umbra-1-eu-staging.kura.test"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", "server team-a-4/bare cannot have", "another account's server has")
	if strings.Contains(err.Error(), "server umbra") {
		t.Errorf("it names another account's server: %v", err)
	}
	_, err = c.PutServer(ctx, w.lookalike("team-a-4", "team-a-1-eu-staging.kura.test"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", "server team-a-1/eu has")
	// The body cannot name another account than the path.
	p := w.problem("PUT", "/v1/servers/team-a-3/eu", `{"account":"umbra-1","region":"eu","image_tag":"v1"}`, w.limited("sly", fleet.ScopeWrite, "team-a-"))
	if p.Code != fleet.CodeInvalid {
		t.Errorf("%+v", p)
	}
	_, err = c.PutRegion(ctx, region("us"), api.PutOptions{})
	wantFault(t, err, fleet.CodeForbidden, "", which, "shared with all others")
	wantFault(t, c.DeleteHostTemplate(ctx, "public"), fleet.CodeForbidden, "", which)
	_, err = c.ListTokens(ctx)
	wantFault(t, err, fleet.CodeForbidden, "", "scope write", "needs admin")
}

func TestToken_limitedToAPrefixWaitsForItsAccountsOnly(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(nil, putLimited(w))
	c := w.clientWith(w.limited("ci", fleet.ScopeRead, "team-a-"))
	first, err := c.WaitServers(ctx, "eu", "", 0)
	if got := names(first.Items, func(v fleet.ServerView) string { return v.Account }); err != nil || !first.Full || got != "team-a-1 team-a-2" {
		t.Fatalf("%q %+v, %v", got, first, err)
	}
	type answer struct {
		api.ServerChanges
		err error
	}
	heard := make(chan answer, 1)
	go func() {
		a, err := c.WaitServers(ctx, "eu", first.Cursor, 20*time.Second)
		heard <- answer{a, err}
	}()
	w.put(srv("umbra-1", "eu", "v2"))
	w.put(srv("team-a-2", "eu", "v2"))
	if a := <-heard; a.err != nil || a.Full || len(a.Items) != 1 || a.Items[0].Account != "team-a-2" || len(a.Gone) != 0 {
		t.Errorf("%+v", a)
	}
}

// A list of servers that another token began cannot be gone on with.
func TestToken_limitedToAPrefixCannotGoOnWithAnothersList(t *testing.T) {
	w := newWorld(t)
	w.must(nil, putLimited(w))
	var page api.List[fleet.ServerView]
	w.getJSON("/v1/servers?limit=1", &page)
	if page.Next == "" {
		t.Fatal("one page has all")
	}
	p := w.problem("GET", "/v1/servers?limit=1&page="+page.Next, "", w.limited("ci", fleet.ScopeRead, "team-a-"))
	if p.Code != api.CodeCursorExpired {
		t.Errorf("%+v", p)
	}
}

func TestToken_aLimitThatMeansNothingIsRefused(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	for _, r := range []api.TokenRequest{
		{Name: "x", Scope: fleet.ScopeAdmin, AccountPrefix: "team-"}, {Name: "x", Scope: fleet.ScopeRead, AccountPrefix: "Team"},
		{Name: "x", Scope: fleet.ScopeRead, AccountPrefix: "-"}, {Name: "x", Scope: fleet.ScopeRead, AccountPrefix: strings.Repeat("a", 64)},
	} {
		_, err := w.client.CreateToken(ctx, r)
		wantFault(t, err, fleet.CodeInvalid, "/account_prefix")
	}
	made, err := w.client.CreateToken(ctx, api.TokenRequest{Name: "x", Scope: fleet.ScopeRead, AccountPrefix: "team-"})
	if err != nil || made.AccountPrefix != "team-" {
		t.Errorf("%+v, %v", made, err)
	}
	list, err := w.client.ListTokens(ctx)
	if got := names(list, func(k api.TokenInfo) string { return k.AccountPrefix }); err != nil || !strings.Contains(got, "team-") {
		t.Errorf("%+v, %v", list, err)
	}
}
