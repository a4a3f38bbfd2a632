package declare

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// ReserveGlobals reserves the global hosts of servers that an older kurad stored for their
// accounts (H4): it reserved none, and until somebody declared them again any account could
// have had the host. One that another account has by now is told of, and stays its.
func (d *Declarer) ReserveGlobals(ctx context.Context) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	held, err := d.records.Globals(ctx)
	if err != nil {
		return err
	}
	all, _ := d.view.Servers(nil)
	for _, g := range all {
		key, res := g.Intent.Key(), d.global(g)
		if res == "" || held[res] == key.Account {
			continue
		}
		err := d.beside(ctx, false, func(ctx context.Context, lock *store.Lock) error {
			g, err := d.stored(ctx, key)
			if err != nil || d.global(g) == "" {
				return err
			}
			tx := d.records.BeginAt(d.now())
			tx.Under(lock)
			tx.RequireIntent(intentOf(g))
			tx.Claim(key, d.global(g))
			_, err = tx.Commit(ctx)
			return err
		})
		if used, taken := asUsed(err); taken {
			d.log.Error("a server's global host is not its account's, for it was stored before hosts of accounts were reserved; change the template of one of the two", "server", key, "host", used.What, "held_by", used.By)
		} else if err != nil {
			return fmt.Errorf("reserve the global host of server %s: %w", key, err)
		}
	}
	return nil
}

// global is the reservation of a server's global host; "" where it has none.
func (d *Declarer) global(g fleet.Gathered) store.Reservation {
	if host := d.Desired(g).Hosts.Global; host != "" && g.Intent.Deleting == nil {
		return store.ReserveGlobal(host)
	}
	return ""
}
