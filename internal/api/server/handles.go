package server

import (
	"context"
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

// namesFree checks that no other account has a name that this one comes to have (H5), and
// that none gave it up within the alias period (H10). It returns the names that the
// account gives up.
func (s *Server) namesFree(ctx context.Context, what string, prev, next fleet.Account) (given []string, err error) {
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
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	kept, err := s.records.Kept(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range s.view.Accounts() {
		for _, name := range wanted {
			if a.ID != next.ID && slices.Contains(a.Names(), name) {
				return nil, nameTaken(ctx, what, next, name, a.ID, "%s has the name %q as its id or handle, and no two accounts share one; choose another", name)
			}
		}
	}
	for _, name := range wanted {
		if until := kept[name].KeptFrom(next.ID, s.now()); !until.IsZero() {
			return nil, nameTaken(ctx, what, next, name, kept[name].Account, "%s had the name %q and gave it up; it stays its own until %s, for clients of its hosts may still come; wait until then, or choose another", name, instant(until))
		}
	}
	for _, name := range wanted {
		delete(kept, name) // it has it again
	}
	return given, s.mayGiveUp(ctx, what, next.ID, len(given), kept)
}

// nameTaken says whose a name is, as far as the author may know.
func nameTaken(ctx context.Context, what string, next fleet.Account, name, holder, format string, args ...any) error {
	pointer, whose := "/handle", "another account"
	if name == next.ID {
		pointer = "/id"
	}
	if visible(ctx)(holder) {
		whose = fmt.Sprintf("account %q", holder)
	}
	return &fleet.Error{Code: fleet.CodeConflict, Message: what + " cannot have its name",
		Fields: []fleet.FieldError{{Pointer: pointer, Detail: fmt.Sprintf(format, append([]any{whose}, args...)...)}}}
}

// mayDelete bounds what is kept of accounts that are deleted, but not of one of them alone:
// it must be able to go.
func (s *Server) mayDelete(ctx context.Context, a fleet.Account) error {
	kept, err := s.records.Kept(ctx)
	if err != nil {
		return err
	}
	return s.mayGiveUp(ctx, fmt.Sprintf("account %q", a.ID), "", len(a.Names()), kept)
}

// mayGiveUp bounds what is kept of an account, and of all that a limited token sees: who
// renames and deletes again and again must not use up everybody's names, nor the store.
func (s *Server) mayGiveUp(ctx context.Context, what, account string, names int, kept map[string]store.Holder) error {
	if names == 0 {
		return nil
	}
	own, seen := names, names
	for _, h := range kept {
		if h.KeptFrom("", s.now()).IsZero() {
			continue
		}
		if h.Account == account {
			own++
		}
		if caller(ctx).Limited() && visible(ctx)(h.Account) {
			seen++
		}
	}
	switch {
	case account != "" && own > maxKeptHandles:
		return fleet.Errorf(fleet.CodeConflict, "%s gave up %d handles within the last %s, which all stay its own for that long; take one of them back, or wait", what, own-names, s.aliases)
	case seen > maxKeptInSight:
		return fleet.Errorf(fleet.CodeConflict, "%s gives up a name, and the accounts of this token gave up %d within the last %s, which all stay theirs for that long; wait, or use a token without a limit", what, seen-names, s.aliases)
	}
	return nil
}

// GiveBack removes the reservations of hosts and handles that were given up and whose time
// is over (H10).
func (s *Server) GiveBack(ctx context.Context) error {
	over, err := s.records.Over(ctx, s.now())
	if err != nil {
		return err
	}
	for res, h := range over {
		if err := s.giveBack(ctx, res, h); err != nil && !kv.IsConflict(err) {
			return fmt.Errorf("give back %s: %w", res, err)
		}
	}
	return nil
}

func (s *Server) giveBack(ctx context.Context, res store.Reservation, h store.Versioned[store.Holder]) error {
	return s.beside(ctx, false, func(ctx context.Context, lock *store.Lock) error {
		g, spare, err := s.spare(ctx, h.Value.ServerKey, res)
		if err != nil || !spare {
			return err
		}
		if g.IntentRevision != 0 {
			return s.reclaim(ctx, lock, g, res)
		}
		tx := s.records.BeginAt(s.now())
		tx.Under(lock)
		tx.Forget(res, h)
		_, err = tx.Commit(ctx)
		return err
	})
}

// GiveBackEvery gives back what is over, again and again until ctx ends.
func (s *Server) GiveBackEvery(ctx context.Context, pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := s.GiveBack(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("could not give back the names whose time is over; tried again later", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
