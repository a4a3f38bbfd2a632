package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// declareEndpoints stores an account with endpoints, and returns them as they are stored.
func declareEndpoints(t *testing.T, r *store.Records, account string, urls ...string) []store.Versioned[fleet.CacheEndpoint] {
	t.Helper()
	tx := r.Begin()
	tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: account})
	var keys []string
	for _, url := range urls {
		e := fleet.CacheEndpoint{Account: account, URL: url}.WithDefaults()
		tx.PutCacheEndpoint(store.Versioned[fleet.CacheEndpoint]{}, e)
		keys = append(keys, e.Key())
	}
	commit(t, tx)
	var all []store.Versioned[fleet.CacheEndpoint]
	for _, key := range keys {
		all = append(all, must[store.Versioned[fleet.CacheEndpoint]](t)(r.CacheEndpoint(t.Context(), account, key)))
	}
	return all
}

func TestP18_anAccountWithEndpointsCannotGo(t *testing.T) {
	r, _ := records(t)
	e := declareEndpoints(t, r, "acme", "https://cache.example.dev")[0]
	declareEndpoints(t, r, "acme-two", "https://cache.example.dev") // whose keys begin alike
	account := must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "acme"))
	remove := func() error {
		tx := r.Begin()
		tx.DeleteAccount(account)
		_, err := tx.Commit(t.Context())
		return err
	}
	used, ok := errors.AsType[*store.UsedError](remove())
	if want := `account "acme" is still used by cache endpoint acme/default/https://cache.example.dev`; !ok || used.Error() != want {
		t.Fatalf("got %v, want %s", used, want)
	}
	tx := r.Begin()
	tx.DeleteCacheEndpoint(e)
	commit(t, tx)
	if err := remove(); err != nil {
		t.Errorf("the endpoint is gone, and still: %v", err)
	}
	if _, err := r.CacheEndpoint(t.Context(), "acme", e.Value.Key()); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("got %v, want not_found", err)
	}
}

func TestRecords_listEndpointsOfAllAccountsAndOfOne(t *testing.T) {
	r, _ := records(t)
	declareEndpoints(t, r, "acme", "https://a.example.dev", "https://b.example.dev")
	declareEndpoints(t, r, "bravo", "https://a.example.dev")
	for account, want := range map[string]int{"": 3, "acme": 2, "bravo": 1, "a": 0} {
		var seen []string
		for o := (store.PageOptions{Limit: 1}); ; {
			l, err := r.CacheEndpoints(t.Context(), account, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range l.Items {
				seen = append(seen, v.Value.String())
			}
			if o.Revision, o.After = l.Revision, l.After; l.After == "" {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("account %q has %v", account, seen)
		}
	}
}

func TestView_showsDeclaredEndpoints(t *testing.T) {
	r, _ := records(t)
	declareEndpoints(t, r, "acme", "https://b.example.dev", "https://a.example.dev")
	v := store.NewView(r, nil)
	var heard []string
	v.Subscribe(func(u store.Update) {
		if u.Kind == store.KindEndpoint {
			heard = append(heard, fmt.Sprint(u.Name, u.Deleted))
		}
	})
	viewing(t, v)
	if got, want := fmt.Sprint(v.CacheEndpoints("acme"), v.AccountsWithEndpoints()), "[acme/default/https://a.example.dev acme/default/https://b.example.dev] [acme]"; got != want {
		t.Errorf("listed: %s, want %s", got, want)
	}
	bravo := declareEndpoints(t, r, "bravo", "https://c.example.dev")[0]
	caughtUp(t, v, r)
	if got, want := fmt.Sprint(v.CacheEndpoints("bravo"), v.AccountsWithEndpoints()), "[bravo/default/https://c.example.dev] [acme bravo]"; got != want {
		t.Errorf("watched: %s, want %s", got, want)
	}
	tx := r.Begin()
	tx.DeleteCacheEndpoint(bravo)
	commit(t, tx)
	told(t, v, r)
	if got := fmt.Sprint(v.CacheEndpoints("bravo"), v.AccountsWithEndpoints()); got != "[] [acme]" {
		t.Errorf("deleted: %s", got)
	}
	name := "bravo/" + bravo.Value.Key()
	if d := cmp.Diff([]string{name + "false", name + "true"}, heard[2:]); d != "" {
		t.Errorf("heard (-want +got):\n%s", d)
	}
	if templates := v.Templates(); len(templates) != 0 {
		t.Errorf("templates: %v", templates)
	}
}
