package declare

import (
	"context"
	"fmt"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// plan is what a declaration writes: a dry run shows it, commit writes it.
type plan struct {
	missing  []fleet.Warning // what has to be declared first
	servers  []affected      // that need other reservations for it, taken before it is written
	own      *affected       // the server that is declared, whose reservations are taken with it
	at       func(fleet.ServerKey) place
	by       fleet.Token     // for which counts what is declared; zero: for whom it did
	warnings []fleet.Warning // of a dry run
	write    func(*store.Tx)
}

// carryOut writes a plan, or shows it, and says what it means.
func (d *Declarer) carryOut(ctx context.Context, lock *store.Lock, what string, p plan, dry bool) ([]fleet.Warning, error) {
	if len(p.missing) > 0 && !dry {
		return nil, missing(p.missing, what)
	}
	all := p.servers
	if p.own != nil {
		all = append(all, *p.own)
	}
	if err := disjoint(all, p.at); err != nil {
		return nil, err
	}
	token, err := d.counted(ctx, lock, p, dry)
	if err != nil {
		return nil, err
	}
	warnings := append(p.missing, impact(p.servers)...)
	if dry { // a write is made while others wait for their turn, and asks no cluster
		err := d.claimable(ctx, lock, all, p.at, dry)
		return slices.Concat(warnings, d.unrouted(ctx, p.servers), d.whose(ctx, all), p.warnings), err
	}
	return warnings, d.commit(ctx, lock, p, token)
}

// commit reserves what other servers will need, and then makes the change. What would be
// refused is refused before anything is taken: nobody can change that meanwhile, for a write
// that others need something for runs alone.
func (d *Declarer) commit(ctx context.Context, lock *store.Lock, p plan, token string) error {
	if err := d.claimable(ctx, lock, p.servers, p.at, false); err != nil {
		return err
	}
	if err := d.reserve(ctx, lock, p.servers, p.at); err != nil {
		return err
	}
	tx := d.records.BeginAt(d.now())
	tx.Under(lock)
	tx.DeclaredBy(token)
	p.write(tx)
	if p.own == nil {
		_, err := tx.Commit(ctx)
		return err
	}
	tx.Claim(p.own.key(), p.own.claims...)
	_, err := tx.Commit(ctx)
	return d.taken(ctx, lock, p.at, []affected{*p.own}, err)
}

// addMissing notes what has to be declared first.
func (p *plan) addMissing(pointer, format string, args ...any) {
	p.missing = append(p.missing, fleet.Warning{Code: fleet.WarnNeighbourUnknown, Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

// missing is the error of a write that is no dry run.
func missing(list []fleet.Warning, what string) error {
	var v fleet.Invalid
	for _, m := range list {
		v.Add(m.Pointer, "%s", m.Detail)
	}
	return v.Err(what)
}
