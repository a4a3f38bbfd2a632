package server

import (
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// visible reports whether the caller may know of an account and of what is its own.
func visible(ctx context.Context) func(account string) bool { return caller(ctx).Sees }

type lister[T any] func(context.Context, store.PageOptions) (store.Listing[T], error)

// seen limits a list that is in the order of account ids to what the caller sees. Those
// lie side by side; no page begins or ends at another, for its cursor would name that.
func seen[T any](ctx context.Context, list lister[T], account func(T) string) lister[T] {
	token := caller(ctx)
	if !token.Limited() {
		return list
	}
	return func(ctx context.Context, o store.PageOptions) (store.Listing[T], error) {
		if o.After == "" {
			o.After = before(token.AccountPrefix)
		}
		l, err := list(ctx, o)
		l.Items = slices.DeleteFunc(l.Items, func(v store.Versioned[T]) bool { return !token.Sees(account(v.Value)) })
		if !token.Sees(l.After) {
			l.After = "" // what follows is behind all that it sees
		}
		return l, err
	}
}

// before returns a text behind every id that comes before those with the prefix, and
// before these: "~" is behind all that ids are made of.
func before(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(rune(prefix[last]-1)) + "~"
}
