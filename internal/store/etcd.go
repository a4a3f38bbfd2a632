package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/features"
)

// DefaultQuota is how large the store may become where Options say nothing.
const DefaultQuota = 2 << 30

const (
	startTimeout = time.Minute
	closeTimeout = 10 * time.Second // of a store that has failed
	compactAfter = "30m"            // how long old revisions are kept for watches and pages
)

// Options say how the embedded store runs.
type Options struct {
	// Dir is where the data lives. It is created for its owner only; an existing one
	// that others may look into is refused.
	Dir string
	// Quota is how many bytes the store may take; 0: DefaultQuota. A full one refuses
	// writes until it was compacted and defragmented.
	Quota int64
	// Logger gets what etcd logs; nil: nothing is logged.
	Logger hclog.Logger
}

// Embedded is a Store that is etcd inside this process: a single member that listens
// nowhere, neither on a port nor on a socket, and acknowledges a write when it is on
// the disk.
type Embedded struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	lock   *fileutil.LockedFile
	log    hclog.Logger
	quota  int64

	closing atomic.Bool
	life    context.Context // ends with Close and with a failure
	end     context.CancelFunc
	failed  chan struct{}
	failure atomic.Pointer[error]
	once    sync.Once
	tasks   sync.WaitGroup
	watches sync.WaitGroup
}

// OpenEmbedded starts the embedded store and waits until it can be used.
func OpenEmbedded(o Options) (*Embedded, error) {
	e := &Embedded{log: o.Logger, quota: o.Quota, failed: make(chan struct{})}
	e.life, e.end = context.WithCancel(context.Background())
	if e.log == nil {
		e.log = hclog.NewNullLogger()
	}
	if e.quota == 0 {
		e.quota = DefaultQuota
	}
	var err error
	if e.lock, err = openDir(o.Dir); err != nil {
		return nil, fmt.Errorf("open data directory %s: %w", o.Dir, err)
	}
	if err := e.start(o.Dir); err != nil {
		e.end()
		return nil, errors.Join(fmt.Errorf("start the store in %s: %w", o.Dir, err), e.lock.Close())
	}
	return e, nil
}

func (e *Embedded) start(dir string) error {
	cfg, err := e.config(dir)
	if err != nil {
		return err
	}
	// etcd ends its goroutine where it cannot go on, which would be this one.
	type started struct {
		etcd *embed.Etcd
		err  error
	}
	result := make(chan started, 1)
	go func() {
		s := started{err: errors.New("etcd gave up")}
		defer func() { result <- s }()
		s.etcd, s.err = embed.StartEtcd(cfg)
	}()
	s := <-result
	if s.err != nil {
		if cause := e.Err(); cause != nil {
			return cause
		}
		return s.err
	}
	e.etcd = s.etcd
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-e.etcd.Server.ReadyNotify():
	case <-e.failed:
		err = e.Err()
	case <-e.etcd.Server.StopNotify():
		err = errors.New("etcd stopped while it started")
	case <-timer.C:
		err = fmt.Errorf("not ready after %s: the disk is very slow, or the write-ahead log is damaged and a backup must be restored", startTimeout)
	}
	if err != nil {
		e.closing.Store(true)
		e.etcd.Close()
		return err
	}
	e.client = v3client.New(e.etcd.Server)
	e.tasks.Go(e.supervise)
	e.tasks.Go(e.maintain)
	return nil
}

// config is a single member without listeners; the advertised addresses are only
// names, nobody dials them.
func (e *Embedded) config(dir string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "kurad", dir
	name := url.URL{Scheme: "http", Host: "127.0.0.1:2380"}
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = []url.URL{name}, []url.URL{name}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	// One member waits for nobody's vote: short ticks make it leader at once.
	cfg.TickMs, cfg.ElectionMs = 10, 100
	cfg.MaxTxnOps = MaxOps
	cfg.MaxRequestBytes = MaxBytes + MaxBytes/2
	cfg.QuotaBackendBytes = e.quota
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, compactAfter
	cfg.BootstrapDefragThresholdMegabytes = defragThreshold >> 20
	// The log is only replayed by ourselves: there are no followers to keep it for.
	cfg.SnapshotCatchUpEntries = 100
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newEtcdLog(e.log, &e.closing, e.fail))
	gates := string(features.InitialCorruptCheck) + "=true," + string(features.CompactHashCheck) + "=true"
	if err := setGates(cfg, gates); err != nil {
		return nil, err
	}
	return cfg, nil
}

// supervise notices when etcd stops by itself.
func (e *Embedded) supervise() {
	select {
	case <-e.life.Done():
	case err := <-e.etcd.Err():
		e.fail(fmt.Errorf("etcd: %w", err))
	case <-e.etcd.Server.StopNotify():
		e.fail(errors.New("etcd has stopped"))
	}
}

func (e *Embedded) fail(err error) {
	if e.closing.Load() {
		return
	}
	if e.failure.CompareAndSwap(nil, &err) {
		e.log.Error("the store has stopped", "error", err)
		close(e.failed)
		e.end()
	}
}

// within returns a context that also ends with the store: what runs when it stops would
// wait for an answer that never comes.
func (e *Embedded) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Get implements Store.
func (e *Embedded) Get(ctx context.Context, key string) (KV, error) {
	ctx, done := e.within(ctx)
	defer done()
	r, err := e.client.Get(ctx, key)
	if err != nil {
		return KV{}, e.translate(ctx, err)
	}
	if len(r.Kvs) == 0 {
		return KV{}, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return KV{Key: key, Value: r.Kvs[0].Value, Revision: r.Kvs[0].ModRevision}, nil
}

// List implements Store.
func (e *Embedded) List(ctx context.Context, prefix string, o ListOptions) (Page, error) {
	if err := checkPrefix(prefix); err != nil {
		return Page{}, err
	}
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	if o.After != "" && !o.Reverse {
		from = max(from, o.After+"\x00")
	}
	if o.After != "" && o.Reverse {
		end = min(end, o.After)
	}
	if from >= end { // etcd would take an empty range for an error
		from, end, o.Limit = prefix, prefix+"\x00", -1
	}
	opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithRev(o.Revision)}
	if o.Limit > 0 {
		opts = append(opts, clientv3.WithLimit(int64(o.Limit)))
	}
	if o.Reverse {
		opts = append(opts, clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	}
	ctx, done := e.within(ctx)
	defer done()
	r, err := e.client.Get(ctx, from, opts...)
	if err != nil {
		return Page{}, e.translate(ctx, err)
	}
	page := Page{Revision: o.Revision, More: r.More}
	if o.Revision == 0 {
		page.Revision = r.Header.Revision
	}
	if o.Limit < 0 {
		page.More = false
		return page, nil
	}
	for _, kv := range r.Kvs {
		page.Items = append(page.Items, KV{Key: string(kv.Key), Value: kv.Value, Revision: kv.ModRevision})
	}
	return page, nil
}

// Txn implements Store.
func (e *Embedded) Txn(ctx context.Context, t Txn) (int64, error) {
	if err := t.check(); err != nil {
		return 0, err
	}
	var ifs []clientv3.Cmp
	var then, otherwise []clientv3.Op
	for _, c := range t.If {
		cmp := clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Revision)
		look := []clientv3.OpOption{clientv3.WithKeysOnly()}
		if c.Prefix {
			cmp = cmp.WithPrefix()
			look = append(look, clientv3.WithPrefix(), clientv3.WithLimit(1))
		}
		ifs = append(ifs, cmp)
		otherwise = append(otherwise, clientv3.OpGet(c.Key, look...))
	}
	for _, op := range t.Then {
		switch op.Kind {
		case OpPut:
			then = append(then, clientv3.OpPut(op.Key, string(op.Value)))
		case OpDelete:
			then = append(then, clientv3.OpDelete(op.Key))
		case OpDeletePrefix:
			then = append(then, clientv3.OpDelete(op.Key, clientv3.WithPrefix()))
		}
	}
	ctx, done := e.within(ctx)
	defer done()
	r, err := e.client.Txn(ctx).If(ifs...).Then(then...).Else(otherwise...).Commit()
	if err != nil {
		return 0, e.translate(ctx, err)
	}
	if r.Succeeded {
		return r.Header.Revision, nil
	}
	for i, c := range t.If {
		kvs := r.Responses[i].GetResponseRange().Kvs
		switch {
		case c.Prefix && len(kvs) > 0:
			return 0, &ConflictError{Key: c.Key, Found: string(kvs[0].Key)}
		case !c.Prefix && len(kvs) == 0 && c.Revision != 0,
			!c.Prefix && len(kvs) > 0 && kvs[0].ModRevision != c.Revision:
			return 0, &ConflictError{Key: c.Key}
		}
	}
	return 0, errors.New("etcd refused a transaction whose comparisons all hold")
}

// Failed implements Store.
func (e *Embedded) Failed() <-chan struct{} { return e.failed }

// Err implements Store.
func (e *Embedded) Err() error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Compact forgets what was before revision; etcd does it by itself after half an hour.
func (e *Embedded) Compact(ctx context.Context, revision int64) error {
	_, err := e.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return e.translate(ctx, err)
}

// Close implements Store.
func (e *Embedded) Close() (err error) {
	e.once.Do(func() {
		e.closing.Store(true)
		e.end()
		done := make(chan error, 1)
		go func() { done <- e.shut() }()
		if e.Err() == nil {
			err = <-done
			return
		}
		timer := time.NewTimer(closeTimeout) // what has broken may never end
		defer timer.Stop()
		select {
		case err = <-done:
		case <-timer.C:
			err = fmt.Errorf("etcd did not end within %s", closeTimeout)
		}
	})
	return err
}

func (e *Embedded) shut() error {
	err := e.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // the client's own context, which its Close ends
	}
	e.watches.Wait()
	e.tasks.Wait()
	e.etcd.Close()
	return errors.Join(err, e.lock.Close())
}

// translate makes an error of etcd one of ours.
func (e *Embedded) translate(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return ErrCompacted
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ErrNoSpace
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case e.Err() != nil:
		return fmt.Errorf("%w: %w", ErrClosed, e.Err())
	case e.closing.Load():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("etcd: %w", err)
	}
}
