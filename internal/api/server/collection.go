package server

import (
	"context"
	"encoding/json"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// listAll answers with a page of a collection.
func listAll[T, W any](ctx context.Context, s *Server, in PageInput, list lister[T], show func(store.Versioned[T]) W) (page api.List[W], err error) {
	o, err := s.pageOptions(in)
	if err != nil {
		return page, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	page.Items = []W{}
	size := 0
	for step := firstStep; ; step *= 2 { // so that little more is read than the page may hold
		left := o
		left.Limit = min(step, o.Limit-len(page.Items))
		l, err := list(ctx, left)
		part, err := pageOf(s, l, err, show)
		if err != nil {
			return api.List[W]{}, err
		}
		for _, item := range part.Items {
			size += sizeOf(item)
		}
		page.Items, page.Next = append(page.Items, part.Items...), part.Next
		if page.Next == "" || len(page.Items) >= o.Limit || size >= maxPage {
			return page, nil
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
