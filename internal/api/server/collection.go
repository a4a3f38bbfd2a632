package server

import (
	"context"
	"encoding/json"

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
	page := api.List[W]{Items: []W{}}
	size := 0
	for step := firstStep; ; step *= 2 { // so that little more is read than the page may hold
		left := o
		left.Limit = min(step, o.Limit-len(page.Items))
		l, err := list(ctx, left)
		part, err := pageOf(s, l, err, show)
		if err != nil {
			return nil, err
		}
		for _, item := range part.Items {
			size += sizeOf(item)
		}
		page.Items, page.Next = append(page.Items, part.Items...), part.Next
		if page.Next == "" || len(page.Items) >= o.Limit || size >= maxPage {
			return &listOutput[W]{page}, nil
		}
		o.Revision, o.After = l.Revision, l.After
	}
}

// Bounds of what a list answers (G8). A page ends with the item that makes it as large; a long
// poll cannot end earlier and is refused.
const (
	maxPage   = 1 << 20
	maxWhole  = 32 << 20
	firstStep = 16 // items
)

// sizeOf is how large something is in an answer.
func sizeOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // the answer says so
	}
	return len(b)
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
	return s.alone(ctx, false, func(ctx context.Context, lock *store.Lock) error {
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
		tx.Under(lock)
		o.remove(tx, v)
		_, err = tx.Commit(ctx)
		return inUse(err, o.next)
	})
}
