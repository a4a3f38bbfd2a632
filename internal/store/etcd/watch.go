package etcd

import (
	"context"
	"errors"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// route is the stream that watches share. A stream stays with the endpoint that it was
// opened to; when that one does not answer, watches go on with another route.
type route struct {
	number int
	life   context.Context
	end    context.CancelFunc
}

// routeKey tells streams apart: etcd's client opens one for each set of metadata.
const routeKey = "kura-route"

// reroute makes all watches go on with a new stream.
func (c *client) reroute() {
	next := &route{}
	next.life, next.end = context.WithCancel(context.Background())
	if old := c.rerouted.Load(); old != nil {
		next.number = old.number + 1
		defer old.end()
	}
	c.rerouted.Store(next)
}

// outgoing makes ctx one of the route's. A member that has lost its cluster ends watches
// instead of staying silent.
func (r *route) outgoing(ctx context.Context) context.Context {
	return clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(ctx, routeKey, strconv.Itoa(r.number)))
}

// Watch implements Store.
func (c *client) Watch(ctx context.Context, prefix string, from int64) (<-chan kv.Batch, error) {
	if err := kv.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if from == 0 {
		// etcd would begin whenever it comes to it, and miss what is written until then.
		page, err := c.List(ctx, prefix, kv.ListOptions{Limit: 1})
		if err != nil {
			return nil, err
		}
		from = page.Revision + 1
	}
	if c.life.Err() != nil {
		return nil, c.translate(ctx, kv.ErrClosed)
	}
	out := make(chan kv.Batch)
	c.watches.Go(func() { c.watch(ctx, prefix, from, out) })
	return out, nil
}

// Progress implements Store.
func (c *client) Progress(ctx context.Context) error {
	ctx, done := c.within(ctx)
	defer done()
	return c.translate(ctx, c.api.RequestProgress(c.rerouted.Load().outgoing(ctx)))
}

func (c *client) watch(ctx context.Context, prefix string, from int64, out chan<- kv.Batch) {
	defer close(out)
	ctx, done := c.within(ctx)
	defer done()
	last := from - 1
	for c.watchBy(ctx, c.rerouted.Load(), prefix, &last, out) {
	}
}

// watchBy delivers what comes after last, and reports whether another route is to go on.
func (c *client) watchBy(ctx context.Context, r *route, prefix string, last *int64, out chan<- kv.Batch) bool {
	via, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	send := func(b kv.Batch) bool {
		select {
		case out <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for answer := range c.api.Watch(r.outgoing(via), prefix, clientv3.WithPrefix(), clientv3.WithRev(*last+1)) {
		if via.Err() != nil {
			break
		}
		if err := answer.Err(); err != nil {
			if err = c.translate(ctx, err); !errors.Is(err, kv.ErrClosed) {
				send(kv.Batch{Err: err})
			}
			return false
		}
		for _, b := range batches(answer) {
			if b.Revision < *last {
				continue // a member that is behind says how far it is
			}
			if !send(b) {
				return false
			}
			*last = b.Revision
		}
	}
	return ctx.Err() == nil && r.life.Err() != nil
}

// batches cuts the events of an answer, which may hold several revisions but never a
// part of one, where the revision changes.
func batches(answer clientv3.WatchResponse) []kv.Batch {
	if answer.IsProgressNotify() {
		return []kv.Batch{{Revision: answer.Header.Revision}}
	}
	var out []kv.Batch
	for _, ev := range answer.Events {
		revision := ev.Kv.ModRevision
		if len(out) == 0 || out[len(out)-1].Revision != revision {
			out = append(out, kv.Batch{Revision: revision})
		}
		c := kv.Change{Key: string(ev.Kv.Key), Deleted: ev.Type == clientv3.EventTypeDelete}
		c.Item = kv.Item{Key: c.Key, Value: ev.Kv.Value, Revision: revision}
		out[len(out)-1].Events = append(out[len(out)-1].Events, c)
	}
	return out
}
