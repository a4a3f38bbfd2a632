package server_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// greed declares servers of so many bytes, each with an account of its own whose id begins with
// the prefix, until one is refused. It returns how many were taken, and why not more.
func (w *world) greed(c *api.Client, prefix string, bytes int) (taken int, refused error) {
	w.t.Helper()
	for {
		account := fmt.Sprint(prefix, taken)
		if _, err := c.PutAccount(w.t.Context(), fleet.Account{ID: account}, api.PutOptions{}); err != nil {
			return taken, err
		}
		if _, err := c.PutServer(w.t.Context(), heavy(account, bytes), api.PutOptions{}); err != nil {
			return taken, err
		}
		if taken++; taken > 1000 {
			w.t.Fatal("nothing bounds what a token stores")
		}
	}
}

// A token stores servers as large as may be, and as many as it can: others go on writing.
func TestAttack_G8_aTokenThatFillsTheStoreKeepsNobodyFromWriting(t *testing.T) {
	below, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(t.TempDir(), "store"), Quota: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, below)
	w.seed([]string{"eu"})
	greedy := w.clientWith(w.limited("greedy", fleet.ScopeWrite, "team-a-"))
	others := map[string]*api.Client{"another token": w.clientWith(w.limited("honest", fleet.ScopeWrite, "team-b-")), "an admin": w.client}
	taken, refused := w.greed(greedy, "team-a-", 60<<10)
	t.Logf("%d servers were taken, then: %v", taken, refused)
	for name, c := range others {
		id := "team-b-" + name[:2]
		if _, err := c.PutAccount(t.Context(), fleet.Account{ID: id}, api.PutOptions{}); err != nil {
			t.Errorf("%s is refused an account: %v", name, err)
		}
		if _, err := c.PutServer(t.Context(), heavy(id, 60<<10), api.PutOptions{}); err != nil {
			t.Errorf("%s is refused a server: %v", name, err)
		}
	}
	wantFault(t, refused, fleet.CodeConflict, "", `token "greedy"`, "8.0 MiB", "half of the store's quota")
}

// small is a store that says how little it may take, and takes more.
type small struct {
	kv.Store
	quota int64
}

func (s small) Health(context.Context) (kv.Health, error) { return kv.Health{Quota: s.quota}, nil }

// writer is a caller with a token of scope write.
type writer struct {
	*api.Client
	w      *world
	id     string
	secret string
}

func (w *world) writer(name string) writer {
	w.t.Helper()
	made, secret, err := w.tokens.Create(w.t.Context(), "test", api.TokenRequest{Name: name, Scope: fleet.ScopeWrite})
	w.must(nil, err)
	return writer{w.clientWith(secret.Reveal()), w, made.ID, secret.Reveal()}
}

// stored is what counts for its token by now.
func (c writer) stored() store.Stored {
	c.w.t.Helper()
	c.w.viewed()
	return c.w.view.Stored(c.id)
}

// labelled is an account whose labels take so many bytes.
func labelled(id string, bytes int) fleet.Account {
	a := fleet.Account{ID: id, Labels: map[string]string{}}
	for i := 0; bytes > 0; i, bytes = i+1, bytes-256 {
		a.Labels[fmt.Sprint("l", i)] = strings.Repeat("x", min(bytes, 256))
	}
	return a
}

// exhaust has a token store all that it may, and returns the last refusal.
func (c writer) exhaust(prefix string) (refused error) {
	if _, err := c.w.greed(c.Client, prefix, 60<<10); fleet.CodeOf(err) != fleet.CodeConflict {
		c.w.t.Fatal(err)
	}
	for i := 0; ; i++ {
		if _, err := c.PutAccount(c.w.t.Context(), fleet.Account{ID: fmt.Sprint(prefix, "small-", i)}, api.PutOptions{}); err != nil {
			return err
		}
	}
}

func TestG8_whatATokenStoresIsBoundedAndCountsForWhoWroteItLast(t *testing.T) {
	const share = 2 << 20
	w, ctx := newWorldOn(t, small{conformance.NewMemory(), 2 * share}), t.Context()
	w.seed([]string{"eu"})
	ours, theirs := w.writer("ours"), w.writer("theirs")
	refused := ours.exhaust("a-")
	wantFault(t, refused, fleet.CodeConflict, "", `token "ours"`, ours.id, "2.0 MiB", "delete or shrink")
	full := ours.stored()
	if full.Bytes > share || full.Bytes < share-5<<10 {
		t.Errorf("it stores %+v of %d bytes", full, share)
	}
	same := func(what string, c writer, want store.Stored) {
		t.Helper()
		if got := c.stored(); got != want {
			t.Errorf("%s: it stores %+v, want %+v", what, got, want)
		}
	}
	put := func(c *api.Client, s fleet.Server) error {
		_, err := c.PutServer(ctx, s, api.PutOptions{})
		return err
	}

	_, err := ours.PutAccount(ctx, fleet.Account{ID: "another"}, api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeConflict, "", "one token may have")
	_, err = ours.PutAccount(ctx, labelled("a-0", 12<<10), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", "one token may have")
	same("after what was refused", ours, full)

	again := heavy("a-0", 60<<10)
	again.ImageTag = "v2"
	w.must(nil, put(ours.Client, again)) // as large as before
	w.must(ours.Redeploy(ctx, key("a-0", "eu"), "once"))
	w.must(theirs.Redeploy(ctx, key("a-0", "eu"), "twice")) // declares nothing
	same("a redeploy by another", theirs, store.Stored{})
	same("after the same was declared again", ours, full)

	// What somebody else makes larger is his.
	w.must(nil, put(theirs.Client, heavy("a-0", 63<<10)))
	same("who made another's larger", theirs, store.Stored{Objects: 1, Bytes: 64<<10 + 64<<10})
	same("whose it was", ours, store.Stored{Objects: full.Objects - 1, Bytes: full.Bytes - 64<<10 - 64<<10})
	_, err = ours.PutAccount(ctx, labelled("a-0", 12<<10), api.PutOptions{})
	w.must(nil, err)
	wantFault(t, ours.exhaust("b-"), fleet.CodeConflict, "", "one token may have")

	// Who has no room left makes what is another's smaller, and it stays the other's.
	full = ours.stored()
	w.must(nil, put(ours.Client, heavy("a-0", 40<<10)))
	same("after another's was made smaller", ours, full)
	same("whose it stays", theirs, store.Stored{Objects: 1, Bytes: 64<<10 + 44<<10})
	wantFault(t, put(ours.Client, heavy("a-0", 50<<10)), fleet.CodeConflict, "", "one token may have")

	// Room is made by making smaller, by deleting, and by an admin who takes it over.
	w.must(nil, put(ours.Client, heavy("a-1", 1<<10)))
	w.must(ours.PutAccount(ctx, labelled("a-1", 12<<10), api.PutOptions{}))
	now := ours.stored()
	w.must(nil, ours.DeleteAccount(ctx, "a-small-0"))
	same("after an account went", ours, store.Stored{Objects: now.Objects - 1, Bytes: now.Bytes - 4<<10})
	w.must(ours.DeleteServer(ctx, key("a-1", "eu")))
	same("while a server is being destroyed", ours, store.Stored{Objects: now.Objects - 1, Bytes: now.Bytes - 4<<10})
	w.remove(key("a-1", "eu"))
	same("after it went", ours, store.Stored{Objects: now.Objects - 2, Bytes: now.Bytes - 4<<10 - 68<<10})
	now = ours.stored()
	w.must(nil, put(w.client, heavy("a-2", 61<<10)))
	if got := ours.stored(); got.Objects != now.Objects-1 {
		t.Errorf("after an admin declared a server it stores %+v, and had %+v", got, now)
	}
	for i := range 20 { // more than a share
		account := fmt.Sprint("admins-", i)
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: account}, api.PutOptions{}))
		w.must(nil, put(w.client, heavy(account, 60<<10)))
	}
}

// The bound holds whichever kurad is asked, though many are asked at once, and after a restart.
func TestG8_whatATokenStoresIsBoundedByAllReplicasTogether(t *testing.T) {
	const share, each = 4 << 20, 32
	below := small{conformance.NewMemory(), 2 * share}
	one := newWorldOn(t, below)
	var accounts []string
	for i := range 4 * each {
		accounts = append(accounts, fmt.Sprintf("a%03d", i))
	}
	one.seed([]string{"eu"}, accounts...)
	two := newWorldOn(t, lent{below})
	ours := one.writer("ours")
	there := two.clientWith(ours.secret)
	var all sync.WaitGroup
	for i, c := range []*api.Client{ours.Client, there, ours.Client, there} {
		all.Go(func() {
			for _, account := range accounts[i*each : (i+1)*each] {
				if _, err := c.PutServer(t.Context(), heavy(account, 60<<10), api.PutOptions{}); err != nil {
					wantFault(t, err, fleet.CodeConflict, "", "one token may have")
					return
				}
			}
		})
	}
	all.Wait()
	restarted := newWorldOn(t, lent{below})
	restarted.viewed()
	if got, there := ours.stored(), restarted.view.Stored(ours.id); got != there || got.Bytes > share || got.Bytes < share-130<<10 {
		t.Errorf("it stores %+v, after a restart %+v, of %d bytes", got, there, share)
	}
	_, err := restarted.clientWith(ours.secret).PutServer(t.Context(), heavy(accounts[len(accounts)-1], 60<<10), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", "one token may have")
}
