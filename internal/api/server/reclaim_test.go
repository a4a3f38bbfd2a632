package server_test

import (
	"context"
	"slices"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// beforehand runs something right before the first transaction that writes or removes a key.
type beforehand struct {
	kv.Store
	key  string
	then func()
	n    int // how many such transactions there were
}

func (b *beforehand) Close() error { return nil }

func (b *beforehand) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	if slices.ContainsFunc(t.Then, func(op kv.Op) bool { return op.Key == b.key }) {
		b.n++
		if then := b.then; then != nil {
			b.then = nil
			then()
		}
	}
	return b.Store.Txn(ctx, t)
}

// One replica takes back a host that its holder does not need, in the moment in which
// another renames the holder to it: the host must not get two owners.
func TestH4_aHostIsNotTakenBackFromAServerThatARenameGivesIt(t *testing.T) {
	one := newWorld(t)
	one.seed([]string{"eu"}, "acme")
	one.put(srv("acme", "eu", "v1"))
	const host = "apex-eu-staging.kura.test"
	beta := one.lookalike("beta", host)
	holder, err := one.records.Intent(t.Context(), key("acme", "eu"))
	if err != nil {
		t.Fatal(err)
	}
	tx := one.records.Begin() // as a rename leaves it that was cut off
	tx.RequireIntent(holder)
	tx.Claim(key("acme", "eu"), store.ReserveHost(host))
	one.must(tx.Commit(t.Context()))

	meanwhile := &beforehand{Store: one.records.Store(), key: "/kura/v1/staging/" + store.ReserveHost(host).Key()}
	other := newWorldOn(t, meanwhile)
	meanwhile.then = func() {
		one.must(one.client.PutAccount(t.Context(), fleet.Account{ID: "acme", Handle: "apex"}, api.PutOptions{}))
	}
	_, err = other.client.PutServer(t.Context(), beta, api.PutOptions{})
	if meanwhile.then != nil {
		t.Fatal("nothing was taken back")
	}
	if fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("err = %v, want a collision", err)
	}
	if owner, held, err := one.records.Owner(t.Context(), store.ReserveHost(host)); owner != key("acme", "eu") || !held {
		t.Errorf("the host is %v's (%v, %v), want that of the renamed account's server", owner, held, err)
	}
}
