package declare

import (
	"context"
	"errors"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Kind declares the objects of one type: accounts, host templates, regions or cache endpoints.
// Their writes run alone.
type Kind[T any] struct {
	declarer  *Declarer
	named     func(T) string   // such as `account "acme"`
	names     func(T) []string // that it is stored under
	get       func(context.Context, []string) (store.Versioned[T], error)
	complete  func(T) T     // as it is stored; nil: as it was declared
	check     func(T) error // by itself
	plan      func(context.Context, Request, store.Versioned[T], T) (plan, error)
	protected func(T) bool                                // from deletion; nil: it is not
	mayGo     func(context.Context, fleet.Token, T) error // nil: it may
	remove    func(*store.Tx, store.Versioned[T])
	next      string // what to do where somebody needs it
}

func byName[T any](get func(context.Context, string) (store.Versioned[T], error)) func(context.Context, []string) (store.Versioned[T], error) {
	return func(ctx context.Context, names []string) (store.Versioned[T], error) { return get(ctx, names[0]) }
}

// Get reads an object.
func (k Kind[T]) Get(ctx context.Context, names ...string) (store.Versioned[T], error) {
	return k.get(ctx, names)
}

// Put declares an object.
func (k Kind[T]) Put(ctx context.Context, req Request, declared T) (out Result[store.Versioned[T]], err error) {
	if err := k.check(declared); err != nil {
		return out, err
	}
	if k.complete != nil {
		declared = k.complete(declared)
	}
	what := k.named(declared)
	err = k.declarer.alone(ctx, req.DryRun, func(ctx context.Context, lock *store.Lock) error {
		prev, err := present(k.get(ctx, k.names(declared)))
		if err != nil {
			return err
		}
		if err := req.check(what, prev.Generation); err != nil {
			return err
		}
		if prev.Exists() && equal(prev.Value, declared) {
			out = Result[store.Versioned[T]]{Object: prev}
			return nil
		}
		p, err := k.plan(ctx, req, prev, declared)
		if err != nil {
			return err
		}
		p.by = req.By
		out = Result[store.Versioned[T]]{Object: store.Versioned[T]{Value: declared, Generation: prev.Generation + 1}, Created: !prev.Exists(), Changed: true}
		out.Warnings, err = k.declarer.carryOut(ctx, lock, what, p, req.DryRun)
		return err
	})
	return out, err
}

// Delete removes an object that nobody needs.
func (k Kind[T]) Delete(ctx context.Context, req Request, names ...string) error {
	return k.declarer.alone(ctx, false, func(ctx context.Context, lock *store.Lock) error {
		v, err := k.get(ctx, names)
		if err != nil {
			return err
		}
		what := k.named(v.Value)
		if err := req.check(what, v.Generation); err != nil {
			return err
		}
		if k.protected != nil && k.protected(v.Value) {
			return fleet.Errorf(fleet.CodeConflict, "%s is protected from deletion; set deletion_protection = false and apply that first", what)
		}
		if k.mayGo != nil {
			if err := k.mayGo(ctx, req.By, v.Value); err != nil {
				return err
			}
		}
		tx := k.declarer.records.Begin()
		tx.Under(lock)
		k.remove(tx, v)
		_, err = tx.Commit(ctx)
		if used, ok := errors.AsType[*store.UsedError](err); ok {
			return fleet.Errorf(fleet.CodeConflict, "%v; %s", used, k.next)
		}
		return err
	})
}
