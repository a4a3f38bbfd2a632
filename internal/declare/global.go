package declare

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// ShareGlobals gives servers that an older kurad stored their share in the global host of
// their account (H4): it reserved none, and until somebody declared them again any account
// could have had the host. One that another account has by now is told of, and stays its.
func (d *Declarer) ShareGlobals(ctx context.Context) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	held, err := d.records.Shares(ctx)
	if err != nil {
		return err
	}
	all, _ := d.view.Servers(nil)
	for _, g := range all {
		key := g.Intent.Key()
		if share := d.share(g); share == "" || held[share] {
			continue
		}
		err := d.beside(ctx, false, func(ctx context.Context, lock *store.Lock) error { return d.takeShare(ctx, lock, key) })
		if used, taken := asUsed(err); taken {
			d.log.Error("a server's global host is not its account's, for it was stored before hosts of accounts were reserved; change the template of one of the two", "server", key, "host", used.What, "held_by", used.By)
		} else if err != nil {
			return fmt.Errorf("reserve the global host of server %s: %w", key, err)
		}
	}
	return nil
}

// share is what a server needs of its account's global host; "" where it has none.
func (d *Declarer) share(g fleet.Gathered) store.Reservation {
	if host := d.Desired(g).Hosts.Global; host != "" && g.Intent.Deleting == nil {
		return store.ReserveShare(host, g.Intent.Key())
	}
	return ""
}

func (d *Declarer) takeShare(ctx context.Context, lock *store.Lock, key fleet.ServerKey) error {
	g, err := d.records.Gather(ctx, key)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return nil
	}
	share := d.share(g)
	if err != nil || share == "" {
		return err
	}
	tx := d.records.BeginAt(d.now())
	tx.Under(lock)
	tx.RequireIntent(intentOf(g))
	tx.Claim(key, share)
	_, err = tx.Commit(ctx)
	return err
}
