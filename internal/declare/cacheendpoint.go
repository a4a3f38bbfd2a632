package declare

import (
	"context"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// CacheEndpoints declares cache endpoints, each by its account and key.
func (d *Declarer) CacheEndpoints() Kind[fleet.CacheEndpoint] {
	return Kind[fleet.CacheEndpoint]{
		declarer: d, names: func(e fleet.CacheEndpoint) []string { return []string{e.Account, e.Key()} },
		get: func(ctx context.Context, names []string) (store.Versioned[fleet.CacheEndpoint], error) {
			return d.records.CacheEndpoint(ctx, names[0], names[1])
		},
		named: func(e fleet.CacheEndpoint) string { return "cache endpoint " + e.String() },
		check: fleet.CacheEndpoint.Validate, complete: fleet.CacheEndpoint.WithDefaults,
		plan:   d.planCacheEndpoint,
		remove: (*store.Tx).DeleteCacheEndpoint,
	}
}

// planCacheEndpoint checks a new endpoint against what else is declared: the zones of this
// environment's host templates (H9), and how many endpoints its account has. It runs alone: a
// host template that makes it stale cannot come meanwhile, nor one too many.
func (d *Declarer) planCacheEndpoint(ctx context.Context, _ Request, prev store.Versioned[fleet.CacheEndpoint], next fleet.CacheEndpoint) (p plan, err error) {
	if err := d.catchUp(ctx); err != nil {
		return p, err
	}
	if err := next.CheckStale(d.env, store.Values(d.view.Templates())); err != nil {
		return p, err
	}
	if n := len(d.view.CacheEndpoints(next.Account)); n >= fleet.MaxCacheEndpoints {
		return p, fleet.Errorf(fleet.CodeConflict, "cache endpoint %s: account %q has %d declared endpoints, and no account has more; delete one that is not used any more", next, next.Account, n)
	}
	account, err := present(d.records.Account(ctx, next.Account))
	if err != nil {
		return p, err
	}
	if !account.Exists() {
		p.addMissing("/account", "account %q does not exist; declare it first (kura_account), or correct the id", next.Account)
	}
	p.write = func(tx *store.Tx) {
		tx.RequireAccount(account)
		tx.PutCacheEndpoint(prev, next)
	}
	return p, nil
}
