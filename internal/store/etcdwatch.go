package store

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Watch implements Store.
func (e *Embedded) Watch(ctx context.Context, prefix string, from int64) (<-chan Batch, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if from == 0 {
		// etcd would begin whenever it comes to it, and miss what is written until then.
		page, err := e.List(ctx, prefix, ListOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		from = page.Revision + 1
	}
	if e.life.Err() != nil {
		return nil, e.translate(ctx, ErrClosed)
	}
	out := make(chan Batch)
	e.watches.Go(func() { e.watch(ctx, prefix, from, out) })
	return out, nil
}

func (e *Embedded) watch(ctx context.Context, prefix string, from int64, out chan<- Batch) {
	defer close(out)
	ctx, done := e.within(ctx)
	defer done()
	send := func(b Batch) bool {
		select {
		case out <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for r := range e.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if err := r.Err(); err != nil {
			if err = e.translate(ctx, err); ctx.Err() == nil && !errors.Is(err, ErrClosed) {
				send(Batch{Err: err})
			}
			return
		}
		for _, b := range batches(r.Events) {
			if !send(b) {
				return
			}
		}
	}
}

// batches cuts the events of a response, which may hold several revisions but never a
// part of one, where the revision changes.
func batches(events []*clientv3.Event) []Batch {
	var out []Batch
	for _, ev := range events {
		revision := ev.Kv.ModRevision
		if len(out) == 0 || out[len(out)-1].Revision != revision {
			out = append(out, Batch{Revision: revision})
		}
		c := Change{Key: string(ev.Kv.Key), Deleted: ev.Type == clientv3.EventTypeDelete}
		c.KV = KV{Key: c.Key, Value: ev.Kv.Value, Revision: revision}
		out[len(out)-1].Events = append(out[len(out)-1].Events, c)
	}
	return out
}
