package server

import (
	"context"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// What accounts, host templates and regions share: they are listed, read and removed
// alike.

type objectOutput[T any] struct{ Body T }

type listOutput[T any] struct{ Body api.List[T] }

// listAll answers with a page of a collection.
func listAll[T, W any](ctx context.Context, s *Server, in PageInput, list lister[T], show func(store.Versioned[T]) W) (*listOutput[W], error) {
	o, err := s.pageOptions(in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l, err := list(ctx, o)
	page, err := pageOf(s, l, err, show)
	return &listOutput[W]{page}, err
}

// object is how one member of a collection is found, and what removes it.
type object[T any] struct {
	what, name string
	get        func(context.Context, string) (store.Versioned[T], error)
	protected  func(T) bool
	mayGo      func(context.Context, T) error // nil: it may
	remove     func(*store.Tx, store.Versioned[T])
	next       string // what to do where somebody needs it
}

func (o object[T]) read(ctx context.Context) (store.Versioned[T], error) {
	if err := plainName(o.what, o.name); err != nil {
		return store.Versioned[T]{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return o.get(ctx, o.name)
}

func (o object[T]) delete(ctx context.Context, s *Server, m Match) error {
	if _, err := o.read(ctx); err != nil { // what is not there makes nobody wait
		return err
	}
	return s.alone(ctx, false, func(ctx context.Context, right *store.Right) error {
		v, err := o.get(ctx, o.name)
		if err != nil {
			return err
		}
		if err := m.check(o.what, v.Generation); err != nil {
			return err
		}
		if o.protected(v.Value) {
			return fleet.Errorf(fleet.CodeConflict, "%s is protected from deletion; set deletion_protection = false and apply that first", o.what)
		}
		if o.mayGo != nil {
			if err := o.mayGo(ctx, v.Value); err != nil {
				return err
			}
		}
		tx := s.records.Begin()
		tx.Under(right)
		o.remove(tx, v)
		_, err = tx.Commit(ctx)
		return inUse(err, o.next)
	})
}
