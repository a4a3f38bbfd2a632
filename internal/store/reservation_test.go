package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestH4_aReservationHasOneOwner(t *testing.T) {
	r, _ := records(t)
	other := fleet.ServerKey{Account: "beta", Region: "eu"}
	declare(t, r, acme)
	declare(t, r, other)
	host, port := store.ReserveHost("x.kura.test"), store.ReservePort("local", 20000)

	tx := r.Begin()
	tx.Claim(acme, host, port)
	commit(t, tx)
	tx = r.Begin()
	tx.Claim(acme, host) // again
	commit(t, tx)

	tx = r.Begin()
	tx.Claim(other, host)
	_, err := tx.Commit(t.Context())
	used, ok := errors.AsType[*store.UsedError](err)
	if !ok || used.Server != acme || used.Reservation != host || kv.IsConflict(err) {
		t.Fatalf("err = %v, want that acme/eu uses it", err)
	}
	wantError(t, err, `host "x.kura.test" is already used by server acme/eu`)

	taken := must[map[int]fleet.ServerKey](t)(r.PortsTaken(t.Context(), "local"))
	if diff := cmp.Diff(map[int]fleet.ServerKey{20000: acme}, taken); diff != "" {
		t.Errorf("ports taken (-want +got):\n%s", diff)
	}

	tx = r.Begin()
	tx.Release(acme, host, port)
	tx.Release(acme, store.ReserveHost("never-held"))
	tx.Claim(other, store.ReserveHost("y.kura.test"))
	commit(t, tx)
	if owner, ok, err := r.Owner(t.Context(), host); ok || err != nil {
		t.Errorf("owner after the release: %v %v", owner, err)
	}
	tx = r.Begin()
	tx.Claim(other, host)
	tx.Release(acme, host) // not its own any more
	commit(t, tx)
	if owner, _, _ := r.Owner(t.Context(), host); owner != other {
		t.Errorf("owner %v, want %v", owner, other)
	}
	claims := must[store.Versioned[store.Claims]](t)(r.Claims(t.Context(), other))
	want := []store.Reservation{"hosts/beta-eu.kura.test", "hosts/x.kura.test", "hosts/y.kura.test", "instances/containers/local/kura-beta-eu"}
	if diff := cmp.Diff(want, claims.Value.Held); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A global host is its account's, whichever of its servers took it; it is nobody else's, and
// no server's own, until it is forgotten.
func TestH4_aGlobalHostIsOneAccounts(t *testing.T) {
	r, _ := records(t)
	us, other := fleet.ServerKey{Account: acme.Account, Region: "us"}, fleet.ServerKey{Account: "beta", Region: "eu"}
	for _, k := range []fleet.ServerKey{acme, us, other} {
		declare(t, r, k)
	}
	global, own := store.ReserveGlobal("all.kura.test"), store.ReserveHost("all.kura.test")
	tx := r.Begin() // both at once
	tx.Claim(acme, global)
	tx.Claim(us, global)
	commit(t, tx)
	refused := func(k fleet.ServerKey, res store.Reservation) *store.UsedError {
		t.Helper()
		tx := r.Begin()
		tx.Claim(k, res)
		_, err := tx.Commit(t.Context())
		used, ok := errors.AsType[*store.UsedError](err)
		if !ok || used.Server != (fleet.ServerKey{Account: acme.Account}) || used.Reservation != global {
			t.Fatalf("%s wants %s: %v, want that account acme has it", k, res, err)
		}
		return used
	}
	for _, k := range []fleet.ServerKey{other, acme} {
		_ = refused(k, own)
	}
	_ = refused(other, global)
	if diff := cmp.Diff([]fleet.ServerKey{acme, us}, must[[]fleet.ServerKey](t)(r.ServersOf(t.Context(), "acme"))); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}

	until := time.Now().Add(time.Hour)
	for _, k := range []fleet.ServerKey{acme, us} {
		tx = r.Begin()
		tx.GiveUp(k, until, global)
		tx.Release(k, global)
		commit(t, tx)
		if used := refused(other, own); !used.Until.Equal(until) {
			t.Errorf("kept until %s, want %s", used.Until, until)
		}
	}
	tx = r.Begin()
	tx.Forget(global, refused(other, own).Revision)
	commit(t, tx)
	tx = r.Begin()
	tx.Claim(other, global)
	commit(t, tx)
	if owner, held, _ := r.Owner(t.Context(), own); !held || owner != (fleet.ServerKey{Account: "beta"}) {
		t.Errorf("%v has it", owner)
	}
}

// Who has found that no server of an account needs its host loses against one that comes to.
func TestH4_aGlobalHostThatIsNeededAgainIsNotForgotten(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	global := store.ReserveGlobal("all.kura.test")
	tx := r.Begin()
	tx.Claim(acme, global)
	commit(t, tx)
	before := must[int64](t)(r.Revision(t.Context()))
	us := fleet.ServerKey{Account: acme.Account, Region: "us"}
	declare(t, r, us)
	tx = r.Begin()
	tx.Claim(us, global)
	commit(t, tx)
	tx = r.Begin()
	tx.Forget(global, before)
	if _, err := tx.Commit(t.Context()); !kv.IsConflict(err) {
		t.Errorf("forgotten: %v, want a conflict", err)
	}

	// What was forgotten is no claim of a server any more once it is written again.
	h := must[store.Versioned[store.Claims]](t)(r.Claims(t.Context(), us))
	tx = r.Begin()
	tx.Claim(acme, global)
	commit(t, tx)
	if m := must[store.Versioned[store.Claims]](t)(r.Claims(t.Context(), us)); m.Revision != h.Revision {
		t.Error("another server's claim wrote these")
	}
	all := must[map[store.Reservation]string](t)(r.Globals(t.Context()))
	if diff := cmp.Diff(map[store.Reservation]string{global: "acme"}, all); diff != "" {
		t.Errorf("global hosts (-want +got):\n%s", diff)
	}
	_, err := (func() (int64, error) {
		tx := r.Begin()
		tx.Claim(fleet.ServerKey{Account: "beta", Region: "eu"}, global)
		return tx.Commit(t.Context())
	})()
	used, _ := errors.AsType[*store.UsedError](err)
	tx = r.Begin()
	tx.Forget(global, used.Revision)
	commit(t, tx)
	tx = r.Begin()
	tx.Claim(us, store.ReservePort("local", 20000))
	commit(t, tx)
	want := []store.Reservation{"hosts/acme-us.kura.test", "instances/containers/local/kura-acme-us", "ports/local/20000"}
	if diff := cmp.Diff(want, must[store.Versioned[store.Claims]](t)(r.Claims(t.Context(), us)).Value.Held); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestH4_ofManyServersThatWantOneHostOneGetsIt(t *testing.T) {
	r, _ := records(t)
	host := store.ReserveHost("x.kura.test")
	var mu sync.Mutex
	var winners, losers int
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			tx := r.Begin()
			tx.Claim(fleet.ServerKey{Account: fmt.Sprintf("a%d", i), Region: "eu"}, host)
			_, err := tx.Commit(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if _, used := errors.AsType[*store.UsedError](err); used {
				losers++
			} else if err == nil {
				winners++
			} else {
				t.Errorf("commit: %v", err)
			}
		})
	}
	group.Wait()
	if winners != 1 || losers != 15 {
		t.Errorf("%d winners and %d losers, want 1 and 15", winners, losers)
	}
}

func TestReservation_readsAsWords(t *testing.T) {
	for res, want := range map[store.Reservation]string{
		store.ReserveHost("a.b"):                              `host "a.b"`,
		store.ReserveInstance("kubernetes/c/ns", "kura-acme"): `instance name "kura-acme" on kubernetes/c/ns`,
		store.ReservePort("local", 20001):                     `port 20001 of container endpoint "local"`,
		"instances/odd":                                       "instances/odd",
		"other/x":                                             "other/x",
	} {
		if got := res.String(); got != want {
			t.Errorf("%q reads %s, want %s", string(res), got, want)
		}
	}
}

func TestP18_usedRecordsCannotGo(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	ctx := t.Context()
	account := must[store.Versioned[fleet.Account]](t)(r.Account(ctx, "acme"))
	region := must[store.Versioned[fleet.Region]](t)(r.Region(ctx, "eu"))
	template := must[store.Versioned[fleet.HostTemplate]](t)(r.Template(ctx, "default"))
	tests := []struct {
		want   string
		server fleet.ServerKey
		delete func(*store.Tx)
	}{
		{`account "acme" is still used by server acme/eu`, acme, func(tx *store.Tx) { tx.DeleteAccount(account) }},
		{`region "eu" is still used by server acme/eu`, acme, func(tx *store.Tx) { tx.DeleteRegion(region) }},
		{`host template "default" is still used by region "eu"`, fleet.ServerKey{}, func(tx *store.Tx) { tx.DeleteTemplate(template) }},
	}
	for _, test := range tests {
		tx := r.Begin()
		test.delete(tx)
		_, err := tx.Commit(ctx)
		used, ok := errors.AsType[*store.UsedError](err)
		if !ok || used.Server != test.server || err.Error() != test.want {
			t.Errorf("err = %v, want %s", err, test.want)
		}
	}
	g := must[fleet.Gathered](t)(r.Gather(ctx, acme))
	if err := r.CommitTurn(ctx, fleet.TurnWrite{Key: acme, IntentRevision: g.IntentRevision, Remove: true}); err != nil {
		t.Fatal(err)
	}
	tx := r.Begin() // another template first: the reference of the old one goes
	other := fleet.HostTemplate{Name: "other"}
	tx.PutTemplate(store.Versioned[fleet.HostTemplate]{}, other)
	tx.PutRegion(region, fleet.Region{Name: "eu", Hosts: fleet.RegionHosts{Public: "other", GRPC: "other"}})
	commit(t, tx)
	tx = r.Begin()
	tx.DeleteTemplate(template)
	commit(t, tx)
	region = must[store.Versioned[fleet.Region]](t)(r.Region(ctx, "eu"))
	tx = r.Begin()
	tx.DeleteAccount(account)
	tx.DeleteRegion(region)
	commit(t, tx)
	tx = r.Begin()
	tx.DeleteTemplate(must[store.Versioned[fleet.HostTemplate]](t)(r.Template(ctx, "other")))
	commit(t, tx)
}

// Servers are created while their region and account are deleted: whatever wins, no
// server is left without them.
func TestP18_noServerOutlivesItsRegionOrAccount(t *testing.T) {
	for round := range 30 {
		r, _ := records(t)
		ctx := t.Context()
		tx := r.Begin()
		tx.PutRegion(store.Versioned[fleet.Region]{}, fleet.Region{Name: "eu"})
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "acme"})
		commit(t, tx)
		account := must[store.Versioned[fleet.Account]](t)(r.Account(ctx, "acme"))
		region := must[store.Versioned[fleet.Region]](t)(r.Region(ctx, "eu"))
		var created, deleted error
		var group sync.WaitGroup
		group.Go(func() {
			tx := r.Begin()
			tx.RequireAccount(account)
			tx.RequireRegion(region)
			tx.PutIntent(store.Versioned[fleet.Intent]{}, intentOf(acme, 1))
			_, created = tx.Commit(context.WithoutCancel(ctx))
		})
		group.Go(func() {
			tx := r.Begin()
			if round%2 == 0 {
				tx.DeleteRegion(region)
			} else {
				tx.DeleteAccount(account)
			}
			_, deleted = tx.Commit(context.WithoutCancel(ctx))
		})
		group.Wait()
		if (created == nil) == (deleted == nil) {
			t.Fatalf("round %d: creation %v, deletion %v: want exactly one to win", round, created, deleted)
		}
	}
}
