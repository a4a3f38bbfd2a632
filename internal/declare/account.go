package declare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Bounds of what is kept for those who gave it up.
const (
	maxKeptHandles = 16   // of an account, within the alias period
	maxKeptInSight = 1024 // of all accounts that a limited token sees
)

func nameAccount(a fleet.Account) string { return fmt.Sprintf("account %q", a.ID) }

// Accounts declares accounts, each by its id.
func (d *Declarer) Accounts() Kind[fleet.Account] {
	return Kind[fleet.Account]{
		declarer: d, named: nameAccount, get: byName(d.records.Account), names: func(a fleet.Account) []string { return []string{a.ID} },
		check:     fleet.Account.Validate,
		plan:      d.planAccount,
		protected: func(a fleet.Account) bool { return a.DeletionProtection },
		// What is kept of accounts that are deleted is bounded, but not of one of them alone: it
		// must be able to go.
		mayGo: func(ctx context.Context, by fleet.Token, a fleet.Account) error {
			kept, err := d.records.Kept(ctx)
			if err != nil {
				return err
			}
			return d.mayGiveUp(by, nameAccount(a), "", len(a.Names()), kept)
		},
		remove: func(tx *store.Tx, v store.Versioned[fleet.Account]) {
			tx.DeleteAccount(v)
			d.keepHandles(tx, v.Value.ID, v.Value.Names())
		},
		next: "destroy its servers first and wait until they are gone, and delete its cache endpoints",
	}
}

func (d *Declarer) keepHandles(tx *store.Tx, account string, names []string) {
	for _, name := range names {
		tx.KeepHandle(account, name, d.now().UTC().Add(d.aliases))
	}
}

func (d *Declarer) planAccount(ctx context.Context, req Request, prev store.Versioned[fleet.Account], next fleet.Account) (p plan, err error) {
	given, err := d.namesFree(ctx, req.By, prev.Value, next)
	if err != nil {
		return p, err
	}
	p.write = func(tx *store.Tx) {
		tx.PutAccount(prev, next)
		for _, name := range next.Names() {
			tx.ForgetHandle(name)
		}
		d.keepHandles(tx, next.ID, given)
	}
	if !prev.Exists() || prev.Value.PublicHandle() == next.PublicHandle() {
		return p, nil
	}
	err = d.affect(ctx, req, &p, proposal{
		pointer: "/handle",
		advice:  "choose another handle",
		keep:    func(k fleet.ServerKey) bool { return k.Account == next.ID },
		apply:   func(g *fleet.Gathered) bool { g.Account = &next; return true },
	})
	return p, err
}

// namesFree checks that no other account has a name that this one comes to have (H5), and
// that none gave it up within the alias period (H10). It returns the names that the
// account gives up.
func (d *Declarer) namesFree(ctx context.Context, by fleet.Token, prev, next fleet.Account) (given []string, err error) {
	var had, wanted []string
	if prev.ID != "" {
		had = prev.Names()
	}
	for _, name := range next.Names() {
		if !slices.Contains(had, name) {
			wanted = append(wanted, name)
		}
	}
	if given = slices.DeleteFunc(had, func(name string) bool { return slices.Contains(next.Names(), name) }); len(given)+len(wanted) == 0 {
		return nil, nil
	}
	if err := d.catchUp(ctx); err != nil {
		return nil, err
	}
	kept, err := d.records.Kept(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range d.view.Accounts() {
		for _, name := range wanted {
			if a.ID != next.ID && slices.Contains(a.Names(), name) {
				return nil, nameTaken(by, next, name, a.ID, "%s has the name %q as its id or handle, and no two accounts share one; choose another", name)
			}
		}
	}
	for _, name := range wanted {
		if until := kept[name].KeptFrom(next.ID, d.now()); !until.IsZero() {
			return nil, nameTaken(by, next, name, kept[name].Account, "%s had the name %q and gave it up; it stays its own until %s, for clients of its hosts may still come; wait until then, or choose another", name, instant(until))
		}
	}
	for _, name := range wanted {
		delete(kept, name) // it has it again
	}
	return given, d.mayGiveUp(by, nameAccount(next), next.ID, len(given), kept)
}

// nameTaken says whose a name is, as far as the author may know.
func nameTaken(by fleet.Token, next fleet.Account, name, holder, format string, args ...any) error {
	pointer, whose := "/handle", "another account"
	if name == next.ID {
		pointer = "/id"
	}
	if by.Sees(holder) {
		whose = fmt.Sprintf("account %q", holder)
	}
	return &fleet.Error{Code: fleet.CodeConflict, Message: nameAccount(next) + " cannot have its name",
		Fields: []fleet.FieldError{{Pointer: pointer, Detail: fmt.Sprintf(format, append([]any{whose}, args...)...)}}}
}

// mayGiveUp bounds what is kept of an account, and of all that a limited token sees: who
// renames and deletes again and again must not use up everybody's names, nor the store.
func (d *Declarer) mayGiveUp(by fleet.Token, what, account string, names int, kept map[string]store.Holder) error {
	if names == 0 {
		return nil
	}
	own, seen := names, names
	for _, h := range kept {
		if h.KeptFrom("", d.now()).IsZero() {
			continue
		}
		if h.Account == account {
			own++
		}
		if by.Limited() && by.Sees(h.Account) {
			seen++
		}
	}
	switch {
	case account != "" && own > maxKeptHandles:
		return fleet.Errorf(fleet.CodeConflict, "%s gave up %d handles within the last %s, which all stay its own for that long; take one of them back, or wait", what, own-names, d.aliases)
	case seen > maxKeptInSight:
		return fleet.Errorf(fleet.CodeConflict, "%s gives up a name, and the accounts of this token gave up %d within the last %s, which all stay theirs for that long; wait, or use a token without a limit", what, seen-names, d.aliases)
	}
	return nil
}

// GiveBack removes the reservations of hosts and handles that were given up and whose time
// is over (H10).
func (d *Declarer) GiveBack(ctx context.Context) error {
	over, err := d.records.Over(ctx, d.now())
	if err != nil {
		return err
	}
	for res, h := range over {
		if err := d.giveBack(ctx, res, h); err != nil && !kv.IsConflict(err) {
			return fmt.Errorf("give back %s: %w", res, err)
		}
	}
	return nil
}

func (d *Declarer) giveBack(ctx context.Context, res store.Reservation, h store.Versioned[store.Holder]) error {
	return d.beside(ctx, false, func(ctx context.Context, lock *store.Lock) error {
		g, spare, err := d.unneeded(ctx, h.Value.ServerKey, res)
		if err != nil || !spare {
			return err
		}
		return d.reclaim(ctx, lock, g, res, h.Revision)
	})
}

// GiveBackEvery gives back what is over, and reserves what an older kurad did not, again and
// again until ctx ends.
func (d *Declarer) GiveBackEvery(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := errors.Join(d.ReserveGlobals(ctx), d.GiveBack(ctx)); err != nil && ctx.Err() == nil {
			d.log.Warn("could not reserve global hosts, or give back the names whose time is over; tried again later", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
