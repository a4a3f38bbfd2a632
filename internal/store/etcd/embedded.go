package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/features"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
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
	client
	etcd  *embed.Etcd
	lock  *fileutil.LockedFile
	quota int64
	tasks sync.WaitGroup

	growth growth

	holding sync.Mutex
	held    map[string]*kv.Held // of this process, by key
}

// OpenEmbedded starts the embedded store and waits until it can be used.
func OpenEmbedded(o Options) (*Embedded, error) {
	e := &Embedded{quota: o.Quota, held: map[string]*kv.Held{}}
	e.init(o.Logger)
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
	if err := checkLog(dir); err != nil {
		return err
	}
	// etcd ends its goroutine where it cannot go on, which would be this one, or panics.
	type started struct {
		etcd *embed.Etcd
		err  error
	}
	result := make(chan started, 1)
	go func() {
		s := started{err: errors.New("etcd gave up")}
		defer func() {
			if p := recover(); p != nil {
				s.err = fmt.Errorf("etcd: %v: %w", p, errDamaged)
			}
			result <- s
		}()
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
	e.api = v3client.New(e.etcd.Server)
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
	cfg.MaxTxnOps = kv.MaxOps
	cfg.MaxRequestBytes = kv.MaxBytes + kv.MaxBytes/2
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

// Campaign implements Store.
func (e *Embedded) Campaign(ctx context.Context, prefix string, value []byte) (kv.Leadership, error) {
	take := func(ctx context.Context, key string, value []byte) (*kv.Held, error) {
		e.holding.Lock()
		defer e.holding.Unlock()
		l, err := kv.HoldForLife(ctx, e, key, value)
		if err == nil {
			e.held[key] = l
		}
		return l, err
	}
	l, err := kv.Election{Store: e, Log: e.log, Sweep: e.sweep, Take: take}.Campaign(ctx, prefix, value)
	if err != nil {
		return nil, err
	}
	e.watches.Go(l.Watch)
	return l, nil
}

// sweep removes a leader's key that is nobody's. The lock of the directory says that no
// other process runs, so it is nobody's where no leadership of this one holds it: it is of
// a former life, or of a write that was not answered in time and happened all the same.
func (e *Embedded) sweep(ctx context.Context, key string) error {
	e.holding.Lock()
	defer e.holding.Unlock()
	item, err := e.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if l := e.held[key]; l != nil && l.Guard().Revision == item.Revision && l.Valid() {
		return nil
	}
	_, err = e.Txn(ctx, kv.Txn{If: []kv.Compare{kv.Unchanged(key, item.Revision)}, Then: []kv.Op{kv.Delete(key)}})
	return err
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
	err := e.client.shut()
	e.tasks.Wait()
	e.etcd.Close()
	return errors.Join(err, e.lock.Close())
}
