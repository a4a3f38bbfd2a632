package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

const aliasPeriod = 7 * 24 * time.Hour

func (w *world) handle(c *api.Client, id, handle string) error {
	_, err := c.PutAccount(w.t.Context(), fleet.Account{ID: id, Handle: handle}, api.PutOptions{})
	return err
}

// What a token that is limited to its own accounts may take of others' names: nothing.
func TestH5_noTwoAccountsShareANameAsIdOrHandle(t *testing.T) {
	w := newWorld(t)
	w.must(nil, putLimited(w))
	w.must(nil, w.handle(w.client, "umbra-1", "shade"))
	sly := w.clientWith(w.limited("sly", fleet.ScopeWrite, "team-a-"))
	for _, c := range []struct{ id, handle, pointer, name string }{
		{"team-a-1", "shade", "/handle", "shade"},     // a handle
		{"team-a-1", "umbra-1", "/handle", "umbra-1"}, // an id behind a handle
		{"team-a-9", "a-umbra", "/handle", "a-umbra"}, // of a new account
	} {
		err := w.handle(sly, c.id, c.handle)
		wantFault(t, err, fleet.CodeConflict, c.pointer, `another account has the name "`+c.name+`"`, "choose another")
		if strings.Contains(strings.ReplaceAll(err.Error(), `"`+c.name+`"`, ""), "umbra") {
			t.Errorf("it names whose it is: %v", err)
		}
		wantFault(t, w.handle(w.client, c.id, c.handle), fleet.CodeConflict, c.pointer, `account "`) // an admin neither
	}
	wantFault(t, w.handle(w.client, "shade", "new"), fleet.CodeConflict, "/id", `account "umbra-1" has the name "shade"`)
	_, err := sly.PutAccount(t.Context(), fleet.Account{ID: "team-a-1", Handle: "shade"}, api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeConflict, "/handle", "shade") // in the plan already
	// Its own may be changed as before, and other fields of an account as well.
	w.must(nil, w.handle(sly, "team-a-1", "team-a-one"))
	w.must(sly.PutAccount(t.Context(), fleet.Account{ID: "team-a-1", Handle: "team-a-one", Labels: map[string]string{"a": "b"}}, api.PutOptions{}))
}

func TestH10_aNameThatIsGivenUpStaysItsAccountsForTheAliasPeriod(t *testing.T) {
	for name, giveUp := range map[string]func(w *world){
		"renamed": func(w *world) { w.must(nil, w.handle(w.client, "umbra-1", "dusk")) },
		"deleted": func(w *world) {
			w.must(w.client.DeleteServer(w.t.Context(), key("umbra-1", "eu")))
			w.remove(key("umbra-1", "eu"))
			w.must(nil, w.client.DeleteAccount(w.t.Context(), "umbra-1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(nil, putLimited(w))
			w.must(nil, w.handle(w.client, "umbra-1", "shade"))
			giveUp(w)
			sly := w.clientWith(w.limited("sly", fleet.ScopeWrite, "team-a-"))
			wantFault(t, w.handle(sly, "team-a-1", "shade"), fleet.CodeConflict, "/handle", `another account had the name "shade" and gave it up`, "until 2026-11-28 12:00:00 UTC", "choose another")
			wantFault(t, w.handle(w.client, "team-a-1", "shade"), fleet.CodeConflict, "/handle", `account "umbra-1" had`)
			wantFault(t, w.handle(w.client, "shade", ""), fleet.CodeConflict, "/id", `account "umbra-1" had`)
			w.must(nil, w.handle(w.client, "umbra-1", "shade")) // back, or declared again
			giveUpAgain := w.handle(w.client, "umbra-1", "dusk")
			w.must(nil, giveUpAgain)
			w.clock.advance(aliasPeriod - time.Second)
			wantFault(t, w.handle(sly, "team-a-1", "shade"), fleet.CodeConflict, "/handle", "gave it up")
			w.clock.advance(time.Second)
			w.must(nil, w.handle(sly, "team-a-1", "shade"))
			w.must(nil, w.declarer.GiveBack(t.Context()))
			if kept, err := w.records.Kept(t.Context()); len(kept) != 0 || err != nil {
				t.Errorf("%v is kept, %v", kept, err)
			}
		})
	}
}

// Who renames in a loop neither takes everybody's names away nor fills the store.
func TestH10_whatIsKeptOfAnAccountAndOfATokensAccountsIsBounded(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil)
	sly := w.clientWith(w.limited("sly", fleet.ScopeWrite, "team-a-"))
	var err error
	for i := range 20 {
		if err = w.handle(sly, "team-a-1", fmt.Sprintf("name-%d", i)); err != nil {
			break
		}
	}
	wantFault(t, err, fleet.CodeConflict, "", "gave up 16 handles", "take one of them back, or wait")
	w.must(nil, w.handle(sly, "team-a-1", "name-3"))
	for i := range 600 {
		id := fmt.Sprintf("team-a-x%d", i)
		if err = w.handle(sly, id, id+"-h"); err == nil {
			err = sly.DeleteAccount(ctx, id)
		}
		if err != nil {
			break
		}
	}
	wantFault(t, err, fleet.CodeConflict, "", "within the last 168h", "use a token without a limit")
	if kept, err := w.records.Kept(ctx); err != nil || len(kept) > 1024+2 {
		t.Errorf("%d names are kept, %v", len(kept), err)
	}
	w.must(nil, w.handle(w.client, "other", "name")) // nobody else notices
	w.must(nil, w.client.DeleteAccount(ctx, "other"))
}

// A host is given up in many ways; whoever asks for it gets it when the period is over.
func TestH10_aHostThatIsGivenUpStaysItsAccountsForTheAliasPeriod(t *testing.T) {
	const host = "acme-eu-staging.kura.test"
	served := func(w *world) { w.turn(key("acme", "eu"), active("v1", "https://"+host)) }
	gone := func(w *world) {
		w.must(w.client.DeleteServer(w.t.Context(), key("acme", "eu")))
		w.remove(key("acme", "eu"))
	}
	tests := map[string]func(w *world){
		"a server that served is destroyed":               func(w *world) { served(w); gone(w) },
		"one that never served":                           gone,
		"and its account is deleted":                      func(w *world) { gone(w); w.must(nil, w.client.DeleteAccount(w.t.Context(), "acme")) },
		"an account is renamed whose server never served": func(w *world) { w.must(nil, w.handle(w.client, "acme", "apex")) },
		"a region gets another template": func(w *world) {
			w.must(w.client.PutHostTemplate(w.t.Context(), fleet.HostTemplate{Name: "other", Pattern: "{account_handle}-{cluster_id}-new{env_suffix}.kura.test"}, api.PutOptions{}))
			r := region("eu")
			r.Hosts.Public = "other"
			w.must(w.client.PutRegion(w.t.Context(), r, api.PutOptions{}))
		},
		"a template changes": func(w *world) {
			w.must(w.client.PutHostTemplate(w.t.Context(), fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}-new{env_suffix}.kura.test"}, api.PutOptions{}))
		},
	}
	for name, giveUp := range tests {
		t.Run(name, func(t *testing.T) {
			w, ctx := newWorld(t), t.Context()
			w.seed([]string{"eu"}, "acme")
			w.put(srv("acme", "eu", "v1"))
			thief := w.lookalike("team-a-1", host)
			giveUp(w)
			sly := w.clientWith(w.limited("sly", fleet.ScopeWrite, "team-a-"))
			for _, dry := range []bool{true, false} {
				_, err := sly.PutServer(ctx, thief, api.PutOptions{DryRun: dry})
				wantFault(t, err, fleet.CodeConflict, "/account", "server team-a-1/bare cannot have host", host, "another account's server had it and gave it up", "until 2026-11-28 12:00:00 UTC")
				if strings.Contains(err.Error(), "acme/") {
					t.Errorf("it names whose it was: %v", err)
				}
			}
			_, err := w.client.PutServer(ctx, thief, api.PutOptions{})
			wantFault(t, err, fleet.CodeConflict, "/account", "server acme/eu had it")
			w.clock.advance(aliasPeriod - time.Second)
			w.must(nil, w.declarer.GiveBack(ctx)) // too early
			if _, err := sly.PutServer(ctx, thief, api.PutOptions{}); fleet.CodeOf(err) != fleet.CodeConflict {
				t.Errorf("a second before the end: %v", err)
			}
			w.clock.advance(time.Second)
			w.must(sly.PutServer(ctx, thief, api.PutOptions{DryRun: true}))
			w.must(sly.PutServer(ctx, thief, api.PutOptions{}))
		})
	}
}

func TestH10_theSameAccountTakesBackWhatItGaveUp(t *testing.T) {
	const host = "acme-eu-staging.kura.test"
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.must(nil, w.handle(w.client, "acme", "apex"))
	w.must(nil, w.handle(w.client, "acme", ""))
	if h, _, err := w.records.Holder(ctx, store.ReserveHost(host)); h.ServerKey != key("acme", "eu") || h.Until != nil || err != nil {
		t.Errorf("renamed back: %+v, %v", h, err)
	}
	w.must(w.client.DeleteServer(ctx, key("acme", "eu")))
	w.remove(key("acme", "eu"))
	// Another server of the account, then the same again.
	twin := region("twin")
	twin.ClusterID = "eu"
	w.must(w.client.PutRegion(ctx, twin, api.PutOptions{}))
	w.put(srv("acme", "twin", "v1"))
	w.must(w.client.DeleteServer(ctx, key("acme", "twin")))
	w.remove(key("acme", "twin"))
	w.put(srv("acme", "eu", "v1"))
	if h, _, err := w.records.Holder(ctx, store.ReserveHost(host)); h.ServerKey != key("acme", "eu") || h.Until != nil || err != nil {
		t.Errorf("declared again: %+v, %v", h, err)
	}
}

// What nobody wants is swept when its time is over, and what is needed again is not.
func TestH10_whatIsOverIsGivenBack(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("beta", "eu", "v1"))
	w.must(nil, w.handle(w.client, "acme", "apex"))
	w.must(w.client.DeleteServer(ctx, key("beta", "eu")))
	w.remove(key("beta", "eu"))
	// As a rename leaves it that reserved and marked, and was cut off before it wrote the account.
	holder, err := w.records.Intent(ctx, key("acme", "eu"))
	w.must(nil, err)
	tx := w.records.Begin()
	tx.RequireIntent(holder)
	tx.GiveUp(key("acme", "eu"), w.clock.now().Add(time.Hour), store.ReserveHost("apex-eu-staging.kura.test"))
	w.must(tx.Commit(ctx))

	held := func() (hosts []string) {
		for _, h := range []string{"acme-eu", "apex-eu", "beta-eu"} {
			if _, ok, err := w.records.Owner(ctx, store.ReserveHost(h+"-staging.kura.test")); ok || err != nil {
				hosts = append(hosts, h)
			}
		}
		return hosts
	}
	w.must(nil, w.declarer.GiveBack(ctx))
	if got := held(); len(got) != 3 {
		t.Errorf("before the end %v are held", got)
	}
	w.clock.advance(aliasPeriod)
	w.must(nil, w.declarer.GiveBack(ctx))
	if got := held(); len(got) != 1 || got[0] != "apex-eu" {
		t.Errorf("after it %v are held, want what the server needs", got)
	}
	claims, err := w.records.Claims(ctx, key("acme", "eu"))
	if strings.Contains(fmt.Sprint(claims.Value.Held), "acme-eu-staging") || err != nil {
		t.Errorf("the server still holds %v, %v", claims.Value.Held, err)
	}
}
