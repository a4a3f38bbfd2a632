package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/util/workqueue"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// Store is what turns read and write.
type Store interface {
	// Gather reads everything about one server at one moment; an error of
	// fleet.CodeNotFound says that there is no such server.
	Gather(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, error)
	// CommitTurn stores a turn as a whole, or nothing of it.
	CommitTurn(ctx context.Context, w fleet.TurnWrite) error
	// CommitTry stores the claim of a try that is nothing new, and returns its revision.
	CommitTry(ctx context.Context, w fleet.TryWrite) (int64, error)
	// Unlocked names this moment for a turn that gives hosts back; ok is false while a
	// declaration is written that other servers are rendered from, whose end
	// AwaitUnlocked waits for.
	Unlocked(ctx context.Context) (at int64, ok bool, err error)
	AwaitUnlocked(ctx context.Context) error
	// Stored returns what memory has of a server; ok is false where it cannot be read. It
	// shows at least what was stored before the start.
	Stored(key fleet.ServerKey) (g fleet.Gathered, ok bool)
	// ServerKeys names all servers.
	ServerKeys() []fleet.ServerKey
	// Identify stores which namespace of a cluster was observed first, unless that is stored.
	Identify(ctx context.Context, v fleet.KubeIdentity) error
	// IsConflict tells that a commit was refused because a record changed meanwhile.
	IsConflict(err error) bool

	// Regions returns what memory has of the regions.
	Regions() []fleet.Region
	// Region reads a region; an error of fleet.CodeNotFound says that there is none.
	Region(ctx context.Context, name string) (fleet.Region, error)
	// Orphans returns the stored work on the orphans of a namespace.
	Orphans(ctx context.Context, cluster, namespace string) ([]fleet.Orphan, error)
	// CommitOrphan stores the work on an orphan, with events, in place of that of its
	// revision, and returns the new one; a conflict says that a server of its labels is
	// declared. Without a plan the record goes, whoever is declared.
	CommitOrphan(ctx context.Context, o fleet.Orphan, events ...fleet.Event) (int64, error)
}

// Runtime is a container endpoint.
type Runtime interface {
	// List returns every container; of those that do not run and are ours by their labels
	// or by an adopted id it also tells how they ended.
	List(ctx context.Context, adopted ...string) ([]fleet.Container, error)
	// Watch calls changed with the name of a container that may have changed, "" for
	// any, until ctx ends. It is a hint.
	Watch(ctx context.Context, changed func(name string)) error
	Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome
}

// Probes keeps the newest observation of endpoints, at the pace that their state asks
// for (R5).
type Probes interface {
	Set(key fleet.ServerKey, targets []fleet.ProbeTarget, pending bool)
	Latest(key fleet.ServerKey, url string) (fleet.ProbeObservation, bool)
	// Now probes the server's targets afresh and waits for the answers.
	Now(ctx context.Context, key fleet.ServerKey) error
	Memory(key fleet.ServerKey) (lastReady time.Time, failed int)
}

// Leadership is the right to act, where several kurads share a store (G2).
type Leadership interface {
	// Valid reports whether the right surely still holds, by this process's own clock.
	Valid() bool
	// Lost is closed when it does not.
	Lost() <-chan struct{}
}

// Config is what a Reconciler works with.
type Config struct {
	Environment fleet.Environment
	Store       Store
	Probes      Probes
	Hosts       Hosts                       // nil: no zones are known
	Tracks      []projection.Track          // that servers pursue beside what runs
	Observers   []Observer                  // of what else servers have
	Executors   map[fleet.Executor]Executor // of effects that are at no site
	Leadership  Leadership                  // nil: nobody else acts
	Runtimes    map[string]Runtime          // by container endpoint
	Clusters    map[string]Cluster          // Kubernetes clusters, by name
	ReadFailure func(error) fleet.ReadFailure
	Changed     func(fleet.ServerKey) // hears of what a turn changed and wrote nowhere (G12); nil: nobody does
	Log         hclog.Logger
	// NewPort chooses another host port for a server whose own somebody else has (C12); nil:
	// there is none.
	NewPort     func(context.Context, fleet.Gathered, fleet.PortMove) (int, error)
	Tick        time.Duration // between listings of an endpoint; 0: 10 s (C1)
	Resync      time.Duration // between turns without a cause; 0: 10 min
	Paused      bool          // the daemon is paused (S11)
	AliasPeriod time.Duration // that an old host is kept after a move; 0: 7 days (H8)
	// OrphanPeriod is how long an instance must have been an orphan without a break, in
	// reads that answered, before it is deleted where its region wants that (K5, L30); 0:
	// 24 hours. A deletion that failed waits as long. A fleet that is declared again after
	// its records were lost has that time.
	OrphanPeriod time.Duration
	Now          func() time.Time
}

const (
	workers       = 8
	effectsAtOnce = 16 // per room, where it says no other number
	// refreshesAtOnce bounds the reads of single instances of a cluster.
	refreshesAtOnce = 16
	refreshTimeout  = 15 * time.Second
	firstRefresh    = time.Second // before an instance is read again whose read failed
	listTimeout     = 15 * time.Second
	storeTimeout    = 10 * time.Second
	deafAfter       = 10 * time.Second // of a task's deadline
	shutdownGrace   = 5 * time.Second
	defaultTick     = 10 * time.Second
	defaultResync   = 10 * time.Minute
	defaultAlias    = 7 * 24 * time.Hour
	defaultOrphan   = 24 * time.Hour
	firstRetry      = 50 * time.Millisecond
	slowestRetry    = 30 * time.Second
	noSlotRetry     = 10 * time.Second // should the hint that a slot is free be lost
)

// Reconciler keeps the servers of one environment as they were declared.
type Reconciler struct {
	cfg       Config
	log       hclog.Logger
	queue     workqueue.TypedRateLimitingInterface[fleet.ServerKey]
	endpoints map[string]*endpoint
	clusters  map[string]*cluster
	others    []Observer // of what is at no site
	executors map[fleet.Executor]Executor
	tracks    []fleet.Track // all, the runtime first
	admission *admission

	mu      sync.Mutex
	rooms   map[room]*slots                     // where tasks have been run
	live    map[work]*effect                    // the task that runs in this process
	known   map[fleet.ServerKey]location        // of each server that had a turn
	names   map[targetName]fleet.ServerKey      // whose instance or container bears it
	adopted map[string]fleet.ServerKey          // by container id
	waiters map[fleet.ServerKey][]chan struct{} // for a turn that begins from now on
	giving  map[fleet.ServerKey]bool            // wait for a declaration's end to give hosts back
	memos   map[fleet.ServerKey]memo            // what is known beyond the store
	answers map[work]answer                     // that no turn has taken into account
	opened  map[work]time.Time                  // from when on the next try is due, for that of another one has succeeded

	running context.Context // of Run; nil: nothing may begin
	work    sync.WaitGroup  // what Run waits for, but tasks

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
	if cfg.AliasPeriod == 0 {
		cfg.AliasPeriod = defaultAlias
	}
	if cfg.OrphanPeriod == 0 {
		cfg.OrphanPeriod = defaultOrphan
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Changed == nil {
		cfg.Changed = func(fleet.ServerKey) {}
	}
	r := &Reconciler{
		cfg: cfg, log: cfg.Log,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[fleet.ServerKey](firstRetry, slowestRetry)),
		endpoints: map[string]*endpoint{},
		clusters:  map[string]*cluster{},
		others:    append([]Observer{endpoints{cfg.Probes}}, cfg.Observers...),
		admission: newAdmission(),
		rooms:     map[room]*slots{},
		live:      map[work]*effect{},
		known:     map[fleet.ServerKey]location{},
		names:     map[targetName]fleet.ServerKey{},
		adopted:   map[string]fleet.ServerKey{},
		waiters:   map[fleet.ServerKey][]chan struct{}{},
		giving:    map[fleet.ServerKey]bool{},
		memos:     map[fleet.ServerKey]memo{},
		answers:   map[work]answer{},
		opened:    map[work]time.Time{},
		tracks:    []fleet.Track{fleet.TrackRuntime},
	}
	r.executors = map[fleet.Executor]Executor{fleet.ExecutorImages: sites{r}, fleet.ExecutorEngine: sites{r}, fleet.ExecutorCluster: sites{r}}
	maps.Copy(r.executors, cfg.Executors)
	if cfg.Hosts != nil {
		r.others = append(r.others, hosts{cfg.Hosts, cfg.Environment.Name})
	}
	for _, track := range cfg.Tracks {
		r.tracks = append(r.tracks, track.Name())
	}
	for name, rt := range cfg.Runtimes {
		r.endpoints[name] = newEndpoint(name, rt, r)
	}
	for name, c := range cfg.Clusters {
		r.clusters[name] = newCluster(name, c, r)
	}
	return r
}

// Kick makes a turn of the server due: its intent changed, or something about it did.
func (r *Reconciler) Kick(key fleet.ServerKey) { r.queue.Add(key) }

// KickAll makes a turn of every server due: a region, an account or a template changed.
func (r *Reconciler) KickAll() { r.kick(r.cfg.Store.ServerKeys()) }

func (r *Reconciler) kick(keys []fleet.ServerKey) {
	for _, key := range keys {
		r.queue.Add(key)
	}
}

// Run takes turns until ctx ends, then lets running tasks end for a few seconds; or until
// the leadership is lost, which ends running tasks at once: another kurad may act by now.
// The places of servers that are being settled are taken up before the first turn.
func (r *Reconciler) Run(ctx context.Context) error {
	defer r.queue.ShutDown()
	r.taskStart, r.endTasks = context.WithCancel(context.WithoutCancel(ctx))
	defer r.endTasks()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if l := r.cfg.Leadership; l != nil {
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-l.Lost(): // while tasks are waited for, too
				r.endTasks()
				stop()
			case <-over:
			}
		}()
	}
	r.countHeld()
	r.setRunning(ctx)
	for _, e := range r.endpoints {
		r.beside(e.observe)
		r.beside(e.watch)
	}
	for range workers {
		r.beside(r.takeTurns)
	}
	r.beside(r.resync)
	r.beside(r.survey)
	<-ctx.Done()
	r.queue.ShutDown()
	r.setRunning(nil) //nolint:staticcheck // no context: nothing may begin
	r.work.Wait()
	r.drain()
	r.storeLast(ctx)
	return nil
}

// setRunning says until when beside may begin what.
func (r *Reconciler) setRunning(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = ctx
}

// beside runs what beside the turns until Run ends, which waits for it; false: Run has not
// begun or is about to end, and nothing is run.
func (r *Reconciler) beside(what func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return false
	}
	ctx := r.running
	r.work.Go(func() { what(ctx) })
	return true
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
func (r *Reconciler) resync(ctx context.Context) {
	for ctx.Err() == nil {
		r.KickAll()
		wait(ctx, r.cfg.Resync)
	}
}

func (r *Reconciler) takeTurns(ctx context.Context) {
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
	defer r.queue.Done(key)
	waiting := r.takeWaiters(key)
	err := safely(func() error { return r.turn(ctx, key) })
	if err == nil {
		r.queue.Forget(key)
		for _, w := range waiting {
			close(w)
		}
		return
	}
	r.await(key, waiting...) // for a turn that succeeds
	r.stopAllWaiting(key)    // it asks again, and keeps nobody waiting until then
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errLocked):
		r.log.Debug("a declaration is under way: again after it", "server", key.String())
		r.afterDeclaration(key)
	case r.cfg.Store.IsConflict(err):
		// Whoever wrote meanwhile got on: no reason to wait ever longer.
		r.log.Debug("a record changed during the turn: again", "server", key.String())
		r.queue.AddAfter(key, firstRetry)
	default:
		r.log.Error("turn failed", "server", key.String(), "error", err)
		r.kick(r.admission.withdraw(key)) // it does not keep the others waiting
		r.queue.AddRateLimited(key)
	}
}

// afterDeclaration makes the server's turn due when no declaration is under way that others
// are rendered from. One waits for all of them, so that it costs no worker (P19).
func (r *Reconciler) afterDeclaration(key fleet.ServerKey) {
	r.mu.Lock()
	first := len(r.giving) == 0
	r.giving[key] = true
	r.mu.Unlock()
	if !first {
		return
	}
	r.beside(func(ctx context.Context) {
		for ctx.Err() == nil && r.cfg.Store.AwaitUnlocked(ctx) != nil {
			wait(ctx, firstRetry)
		}
		r.mu.Lock()
		keys := slices.Collect(maps.Keys(r.giving))
		clear(r.giving)
		r.mu.Unlock()
		r.kick(keys)
	})
}

// safely turns a panic into an error, so that it stays with the server or the endpoint
// whose it is (P19).
func safely(what func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return what()
}

// wait waits for a time to pass or ctx to end.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
