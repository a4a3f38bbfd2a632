package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Store is what turns read and write.
type Store interface {
	// Gather reads everything about one server at one moment; an error of
	// fleet.CodeNotFound says that there is no such server.
	Gather(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, error)
	// CommitTurn stores a turn as a whole, or nothing of it.
	CommitTurn(ctx context.Context, w fleet.TurnWrite) error
	// ServerKeys names all servers.
	ServerKeys() []fleet.ServerKey
	// IsConflict tells that a commit was refused because a record changed meanwhile.
	IsConflict(err error) bool
}

// Runtime is a container endpoint.
type Runtime interface {
	List(ctx context.Context) ([]fleet.Container, error)
	// Watch calls changed with the name of a container that may have changed, "" for
	// any, until ctx ends. It is a hint.
	Watch(ctx context.Context, changed func(name string)) error
	Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome
}

// Target is an endpoint to probe.
type Target struct {
	URL, Path string
	Timeout   time.Duration
}

// Probes keeps the newest observation of endpoints, at the pace that their state asks
// for (R5).
type Probes interface {
	Set(key fleet.ServerKey, targets []Target, pending bool)
	Latest(key fleet.ServerKey, url string) (fleet.ProbeObservation, bool)
	// Now probes the server's targets afresh and waits for the answers.
	Now(ctx context.Context, key fleet.ServerKey) error
}

// Config is what a Reconciler works with.
type Config struct {
	Environment fleet.Environment
	Store       Store
	Probes      Probes
	Runtimes    map[string]Runtime // by container endpoint
	ReadFailure func(error) fleet.ReadFailure
	Log         hclog.Logger
	Tick        time.Duration // between listings of an endpoint; 0: 10 s (C1)
	Resync      time.Duration // between turns without a cause; 0: 10 min
	Paused      bool          // the daemon is paused (S11)
	Now         func() time.Time
}

const (
	workers        = 8
	effectsAtOnce  = 16 // per endpoint
	listTimeout    = 15 * time.Second
	storeTimeout   = 10 * time.Second
	shutdownGrace  = 5 * time.Second
	defaultTick    = 10 * time.Second
	defaultResync  = 10 * time.Minute
	firstRetry     = 50 * time.Millisecond
	slowestRetry   = 30 * time.Second
	noSlotRetry    = 200 * time.Millisecond
	noRuntimeRetry = time.Minute
)

// Reconciler keeps the servers of one environment as they were declared.
type Reconciler struct {
	cfg       Config
	log       hclog.Logger
	queue     workqueue.TypedRateLimitingInterface[fleet.ServerKey]
	endpoints map[string]*endpoint
	admission *admission

	mu      sync.Mutex
	live    map[fleet.ServerKey]bool            // a task runs in this process
	places  map[fleet.ServerKey]string          // the endpoint of each known server
	names   map[string]fleet.ServerKey          // by container name
	waiters map[fleet.ServerKey][]chan struct{} // for a turn that begins from now on

	tasks     sync.WaitGroup
	taskStart context.Context // ends when running tasks must end
	endTasks  context.CancelFunc
}

// New returns a Reconciler; Run starts it.
func New(cfg Config) *Reconciler {
	if cfg.Tick == 0 {
		cfg.Tick = defaultTick
	}
	if cfg.Resync == 0 {
		cfg.Resync = defaultResync
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Reconciler{
		cfg: cfg, log: cfg.Log,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[fleet.ServerKey](firstRetry, slowestRetry)),
		endpoints: map[string]*endpoint{},
		admission: newAdmission(),
		live:      map[fleet.ServerKey]bool{},
		places:    map[fleet.ServerKey]string{},
		names:     map[string]fleet.ServerKey{},
		waiters:   map[fleet.ServerKey][]chan struct{}{},
	}
	for name, rt := range cfg.Runtimes {
		r.endpoints[name] = newEndpoint(name, rt, r)
	}
	return r
}

// Kick makes a turn of the server due: its intent changed, or something about it did.
func (r *Reconciler) Kick(key fleet.ServerKey) { r.queue.Add(key) }

// KickAll makes a turn of every server due: a region, an account or a template changed.
func (r *Reconciler) KickAll() {
	for _, key := range r.cfg.Store.ServerKeys() {
		r.queue.Add(key)
	}
}

// Run takes turns until ctx ends, then lets running tasks end for a few seconds. The
// places of servers that are being settled are taken up before the first turn.
func (r *Reconciler) Run(ctx context.Context) error {
	r.taskStart, r.endTasks = context.WithCancel(context.WithoutCancel(ctx))
	defer r.endTasks()
	if err := r.recount(ctx); err != nil {
		return fmt.Errorf("count the servers that are being settled: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, e := range r.endpoints {
		group.Go(func() error { return ended(ctx, e.observe(ctx)) })
		group.Go(func() error { return ended(ctx, e.runtime.Watch(ctx, e.hint)) })
	}
	for range workers {
		group.Go(func() error { r.work(ctx); return nil })
	}
	group.Go(func() error { return ended(ctx, r.resync(ctx)) })
	<-ctx.Done()
	r.queue.ShutDown()
	err := group.Wait()
	r.drain()
	return err
}

// ended hides the error of a context that was meant to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// drain waits for running tasks; what does not end in time is ended, and run again by
// the next start: its claim stays in the store.
func (r *Reconciler) drain() {
	over := make(chan struct{})
	go func() { r.tasks.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(shutdownGrace):
		r.endTasks()
		<-over
	}
}

// resync makes every server's turn due now and then: the level that counts when every
// hint was lost.
func (r *Reconciler) resync(ctx context.Context) error {
	for {
		r.KickAll()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.cfg.Resync):
		}
	}
}

func (r *Reconciler) work(ctx context.Context) {
	for {
		key, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		r.take(ctx, key)
	}
}

// take gives the server one turn. Whatever happens in it stays with this server (P19).
func (r *Reconciler) take(ctx context.Context, key fleet.ServerKey) {
	waiting := r.takeWaiters(key)
	defer r.queue.Done(key)
	defer func() {
		for _, w := range waiting {
			close(w)
		}
	}()
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		return r.turn(ctx, key)
	}()
	switch {
	case err == nil:
		r.queue.Forget(key)
	case ctx.Err() != nil:
	case r.cfg.Store.IsConflict(err):
		r.log.Debug("a record changed during the turn: again", "server", key.String())
		r.queue.AddRateLimited(key)
	default:
		r.log.Error("turn failed", "server", key.String(), "error", err)
		r.queue.AddRateLimited(key)
	}
}

// ObserveNow waits for one turn of the server that began after the call, with a fresh
// read and a fresh probe (?observe=now).
func (r *Reconciler) ObserveNow(ctx context.Context, key fleet.ServerKey) error {
	r.mu.Lock()
	e := r.endpoints[r.places[key]]
	r.mu.Unlock()
	if e != nil {
		if err := e.fresh(ctx); err != nil {
			return fmt.Errorf("list endpoint %s: %w", e.name, err)
		}
	}
	if err := r.cfg.Probes.Now(ctx, key); err != nil && ctx.Err() != nil {
		return fmt.Errorf("probe %s: %w", key, err)
	}
	done := make(chan struct{})
	r.mu.Lock()
	r.waiters[key] = append(r.waiters[key], done)
	r.mu.Unlock()
	r.queue.Add(key)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a turn of %s: %w", key, ctx.Err())
	}
}

func (r *Reconciler) takeWaiters(key fleet.ServerKey) []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiters[key]
	delete(r.waiters, key)
	return w
}

// Memory returns what is known of the server's reads and is not stored: when the last
// good one began, and how many have failed since.
func (r *Reconciler) Memory(key fleet.ServerKey) (lastObserved time.Time, failedReads int) {
	r.mu.Lock()
	e := r.endpoints[r.places[key]]
	r.mu.Unlock()
	if e == nil {
		return time.Time{}, 0
	}
	return e.memory()
}
