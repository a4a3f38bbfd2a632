package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// client is what every store on etcd has in common: it speaks to etcd, wherever that runs.
type client struct {
	api *clientv3.Client
	log hclog.Logger
	// attempt is how long one attempt of a read may take before the next one, which goes
	// to another endpoint; 0: as long as the caller has time.
	attempt time.Duration
	// write is how long a transaction may take; 0: as long as the caller has time.
	write time.Duration

	closing atomic.Bool
	life    context.Context // ends with Close and with a failure
	end     context.CancelFunc
	failed  chan struct{}
	failure atomic.Pointer[error]
	once    sync.Once
	watches sync.WaitGroup // and leaderships

	rerouted atomic.Pointer[route]
}

func (c *client) init(log hclog.Logger) {
	if c.log = log; log == nil {
		c.log = hclog.NewNullLogger()
	}
	c.failed = make(chan struct{})
	c.life, c.end = context.WithCancel(context.Background())
	c.reroute()
}

func (c *client) fail(err error) {
	if c.closing.Load() {
		return
	}
	if c.failure.CompareAndSwap(nil, &err) {
		c.log.Error("the store has stopped", "error", err)
		close(c.failed)
		c.end()
	}
}

// within returns a context that also ends with the store: what runs when it stops would
// wait for an answer that never comes.
func (c *client) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// readTimeout bounds a read whose caller gave it no deadline: a store without a quorum may
// never answer, and nobody waits for ever.
const readTimeout = 10 * time.Second

// read gets keys, again where an attempt was not answered: reading twice harms nobody.
func (c *client) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, done := c.within(ctx)
	defer done()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readTimeout)
		defer cancel()
	}
	for {
		attempt, cancel := ctx, context.CancelFunc(func() {})
		if c.attempt > 0 {
			attempt, cancel = context.WithTimeout(ctx, c.attempt)
		}
		r, err := c.api.Get(attempt, key, opts...)
		again := err != nil && attempt.Err() != nil && ctx.Err() == nil
		cancel()
		if !again {
			return r, c.translate(ctx, err)
		}
	}
}

// Get implements Store.
func (c *client) Get(ctx context.Context, key string) (kv.Item, error) {
	r, err := c.read(ctx, key)
	if err != nil {
		return kv.Item{}, err
	}
	if len(r.Kvs) == 0 {
		return kv.Item{}, fmt.Errorf("%s: %w", key, kv.ErrNotFound)
	}
	return kv.Item{Key: key, Value: r.Kvs[0].Value, Revision: r.Kvs[0].ModRevision}, nil
}

// List implements Store.
func (c *client) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	if err := kv.CheckPrefix(prefix); err != nil {
		return kv.Page{}, err
	}
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	if o.After != "" {
		from = max(from, o.After+"\x00")
	}
	if from >= end { // etcd would take an empty range for an error
		from, end, o.Limit = prefix, prefix+"\x00", -1
	}
	opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithRev(o.Revision)}
	if o.Limit > 0 {
		opts = append(opts, clientv3.WithLimit(int64(o.Limit)))
	}
	r, err := c.read(ctx, from, opts...)
	if err != nil {
		return kv.Page{}, err
	}
	page := kv.Page{Revision: o.Revision, More: r.More}
	if o.Revision == 0 {
		page.Revision = r.Header.Revision
	}
	if o.Limit < 0 {
		page.More = false
		return page, nil
	}
	for _, item := range r.Kvs {
		page.Items = append(page.Items, kv.Item{Key: string(item.Key), Value: item.Value, Revision: item.ModRevision})
	}
	return page, nil
}

// Txn implements Store.
func (c *client) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	return c.txn(ctx, t, 0)
}

// txn runs a transaction whose puts last as long as the lease; 0: for ever.
func (c *client) txn(ctx context.Context, t kv.Txn, lease clientv3.LeaseID) (int64, error) {
	var ifs []clientv3.Cmp
	var then, otherwise []clientv3.Op
	for _, x := range t.If {
		cmp := clientv3.Compare(clientv3.ModRevision(x.Key), "=", x.Revision)
		look := []clientv3.OpOption{clientv3.WithKeysOnly()}
		if x.Prefix {
			cmp = cmp.WithPrefix()
			look = append(look, clientv3.WithPrefix(), clientv3.WithLimit(1))
		}
		ifs = append(ifs, cmp)
		otherwise = append(otherwise, clientv3.OpGet(x.Key, look...))
	}
	for _, op := range t.Then {
		switch op.Kind {
		case kv.OpPut:
			then = append(then, clientv3.OpPut(op.Key, string(op.Value), clientv3.WithLease(lease)))
		case kv.OpDelete:
			then = append(then, clientv3.OpDelete(op.Key))
		case kv.OpDeletePrefix:
			then = append(then, clientv3.OpDelete(op.Key, clientv3.WithPrefix()))
		}
	}
	ctx, done := c.within(ctx)
	defer done()
	once, cancel := ctx, context.CancelFunc(func() {})
	if c.write > 0 {
		once, cancel = context.WithTimeout(ctx, c.write)
	}
	defer cancel()
	r, err := c.api.Txn(once).If(ifs...).Then(then...).Else(otherwise...).Commit()
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		return 0, fmt.Errorf("etcd did not answer a transaction within %s; it may have run", c.write)
	}
	if err != nil {
		return 0, c.translate(ctx, err)
	}
	if r.Succeeded {
		return r.Header.Revision, nil
	}
	for i, x := range t.If {
		kvs := r.Responses[i].GetResponseRange().Kvs
		switch {
		case x.Prefix && len(kvs) > 0:
			return 0, &kv.ConflictError{Key: x.Key, Found: string(kvs[0].Key)}
		case !x.Prefix && len(kvs) == 0 && x.Revision != 0,
			!x.Prefix && len(kvs) > 0 && kvs[0].ModRevision != x.Revision:
			return 0, &kv.ConflictError{Key: x.Key}
		}
	}
	return 0, errors.New("etcd refused a transaction whose comparisons all hold")
}

// Failed implements Store.
func (c *client) Failed() <-chan struct{} { return c.failed }

// Err implements Store.
func (c *client) Err() error {
	if err := c.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Compact forgets what was before revision.
func (c *client) Compact(ctx context.Context, revision int64) error {
	_, err := c.api.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return c.translate(ctx, err)
}

// shut ends everything that the client runs.
func (c *client) shut() error {
	err := c.api.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // the client's own context, which its Close ends
	}
	c.watches.Wait()
	return err
}

// translate makes an error of etcd one of ours.
func (c *client) translate(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return kv.ErrCompacted
	case errors.Is(err, rpctypes.ErrNoSpace):
		return kv.ErrNoSpace
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %w", kv.ErrTooLarge, err)
	case c.Err() != nil:
		return fmt.Errorf("%w: %w", kv.ErrClosed, c.Err())
	case c.closing.Load():
		return kv.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("etcd: %w", err)
	}
}
