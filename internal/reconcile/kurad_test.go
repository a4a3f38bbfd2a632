package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// kurad is one life of the daemon, from its start to its end.
type kurad struct {
	w       *world
	loop    *reconcile.Reconciler
	clients map[string]*client
	end     context.CancelFunc
	ended   sync.WaitGroup
	dead    atomic.Bool
	commits atomic.Int64
	tries   atomic.Int64
	gathers atomic.Int64
	tasks   atomic.Int64 // but pulls, which have no effect
	options options
}

// options are what a test does to a kurad.
type options struct {
	onGather   func(fleet.ServerKey) error
	onCommit   func(write fleet.TurnWrite, commit func() error) error
	onTry      func(write fleet.TryWrite, commit func() error) error
	onTask     func(fleet.ServerKey, fleet.Task, func() fleet.Outcome) fleet.Outcome
	onList     func(list func() ([]fleet.Container, error)) ([]fleet.Container, error)
	onRead     func(read func() error) error // of a cluster: lists and single reads
	onIdentify func() error                  // before it is stored which namespace was observed
	onOrphan   func(fleet.ServerKey)         // before the store has the last word on one
	tracks     []projection.Track
	observers  []reconcile.Observer
	hosts      func(*kurad) *dns.Watch
	executors  func(*kurad) map[fleet.Executor]reconcile.Executor
	newPort    func(context.Context, fleet.Gathered, fleet.PortMove) (int, error)
	log        hclog.Logger
	lead       reconcile.Leadership
	paused     bool
	deaf       bool // no hint of a change of a record reaches it
	alias      time.Duration
}

// start starts a kurad; stop or kill ends it.
func (w *world) start(o options) *kurad {
	k := &kurad{w: w, options: o}
	w.kurads = append(w.kurads, k)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context())) // the world outlives the test function: its clean-up ends it
	runtimes := map[string]reconcile.Runtime{}
	for name, e := range w.engines {
		runtimes[name] = daemonRuntime{e, k}
	}
	clusters := map[string]reconcile.Cluster{}
	k.clients = map[string]*client{}
	for name, c := range w.clusters {
		k.clients[name] = &client{server: c, k: k, namespaces: map[string]*cache{}}
		clusters[name] = k.clients[name]
	}
	var executors map[fleet.Executor]reconcile.Executor
	if o.executors != nil {
		executors = o.executors(k)
	}
	var hosts reconcile.Hosts
	if o.hosts != nil {
		watch := o.hosts(k)
		hosts = watch
		k.ended.Go(func() { watch.Run(ctx) })
	}
	watcher := readiness.NewWatcher(w.probe, func(key fleet.ServerKey) { k.loop.Kick(key) }, readiness.Pace{})
	log := o.log
	if log == nil {
		log = hclog.NewNullLogger()
	}
	k.loop = reconcile.New(reconcile.Config{
		Environment: w.env, Store: daemonStore{k}, Probes: watcher, Hosts: hosts, Tracks: o.tracks, Observers: o.observers, Executors: executors, Runtimes: runtimes, Clusters: clusters, Leadership: o.lead, Paused: o.paused, AliasPeriod: o.alias, NewPort: o.newPort, OrphanPeriod: time.Minute, Log: log,
		ReadFailure: func(err error) fleet.ReadFailure {
			return fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: err.Error()}
		},
	})
	unsubscribe := func() {}
	if !o.deaf {
		unsubscribe = w.view.Subscribe(k.heard)
	}
	if !w.really {
		synctest.Wait() // the view has taken everything in
	}
	k.end = func() { cancel(); unsubscribe() }
	k.ended.Go(func() { watcher.Run(ctx) })
	k.ended.Go(func() { w.must(k.loop.Run(ctx)) })
	return k
}

// stop ends the kurad in order.
func (k *kurad) stop() { k.end(); k.ended.Wait() }

// kill ends it at once: nothing that it does from now on reaches the store or an engine.
func (k *kurad) kill() { k.dead.Store(true); k.stop() }

func (k *kurad) heard(u store.Update) {
	switch u.Kind {
	case store.KindIntent:
		k.loop.Kick(u.Key)
	case store.KindRegion, store.KindAccount, store.KindTemplate, store.KindCluster:
		k.loop.KickAll()
	case store.KindSchema, store.KindStatus, store.KindTry, store.KindClaims, store.KindDeployment, store.KindEvent, store.KindToken, store.KindReservation, store.KindReference, store.KindLock, store.KindOrphan:
	}
}

var errDead = &fleet.Error{Code: fleet.CodeUnavailable, Message: "no answer"}

// daemonStore is the store as a kurad sees it.
type daemonStore struct{ k *kurad }

func (s daemonStore) Identify(ctx context.Context, v fleet.KubeIdentity) error {
	if s.k.dead.Load() {
		return errDead
	}
	if hook := s.k.options.onIdentify; hook != nil {
		if err := hook(); err != nil {
			return err
		}
	}
	return s.k.w.records.Identify(ctx, v)
}

func (s daemonStore) ServerKeys() []fleet.ServerKey { return s.k.w.view.ServerKeys() }
func (s daemonStore) Stored(k fleet.ServerKey) (fleet.Gathered, bool) {
	return s.k.w.view.Server(k)
}
func (s daemonStore) IsConflict(err error) bool { return kv.IsConflict(err) }

func (s daemonStore) Regions() (list []fleet.Region) {
	for _, r := range s.k.w.view.Regions() {
		list = append(list, r.Value)
	}
	return list
}

func (s daemonStore) Region(ctx context.Context, name string) (fleet.Region, error) {
	if s.k.dead.Load() {
		return fleet.Region{}, errDead
	}
	r, err := s.k.w.records.Region(ctx, name)
	return r.Value, err
}

func (s daemonStore) Orphans(ctx context.Context, cluster, namespace string) ([]fleet.Orphan, error) {
	if s.k.dead.Load() {
		return nil, errDead
	}
	return s.k.w.records.Orphans(ctx, cluster, namespace)
}

func (s daemonStore) CommitOrphan(ctx context.Context, o fleet.Orphan, events ...fleet.Event) (int64, error) {
	if s.k.dead.Load() {
		return 0, errDead
	}
	if hook := s.k.options.onOrphan; hook != nil {
		hook(o.Server)
	}
	return s.k.w.records.CommitOrphan(ctx, o, events...)
}

func (s daemonStore) Unlocked(ctx context.Context) (int64, bool, error) {
	if s.k.dead.Load() {
		return 0, false, errDead
	}
	return s.k.w.records.Unlocked(ctx)
}

func (s daemonStore) AwaitUnlocked(ctx context.Context) error {
	if s.k.dead.Load() {
		return errDead
	}
	return s.k.w.records.AwaitUnlocked(ctx)
}

func (s daemonStore) Gather(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, error) {
	if s.k.dead.Load() {
		return fleet.Gathered{}, errDead
	}
	s.k.gathers.Add(1)
	if hook := s.k.options.onGather; hook != nil {
		if err := hook(key); err != nil {
			return fleet.Gathered{}, err
		}
	}
	return s.k.w.records.Gather(ctx, key)
}

func (s daemonStore) CommitTurn(ctx context.Context, write fleet.TurnWrite) error {
	commit := func() error {
		if s.k.dead.Load() {
			return errDead
		}
		return s.k.w.commitTurn(ctx, write)
	}
	s.k.commits.Add(1)
	if hook := s.k.options.onCommit; hook != nil {
		return hook(write, commit)
	}
	return commit()
}

func (s daemonStore) CommitTry(ctx context.Context, write fleet.TryWrite) (revision int64, err error) {
	commit := func() error {
		if s.k.dead.Load() {
			return errDead
		}
		revision, err = s.k.w.records.CommitTry(ctx, write)
		return err
	}
	s.k.tries.Add(1)
	if hook := s.k.options.onTry; hook != nil {
		err = hook(write, commit)
	} else {
		err = commit()
	}
	return revision, err
}

// commitTurn stores a turn and notes who is unsettled and who converged from then on.
func (w *world) commitTurn(ctx context.Context, write fleet.TurnWrite) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.records.CommitTurn(ctx, write); err != nil {
		return err
	}
	region := write.Key.Region
	if w.unsettled[region] == nil {
		w.unsettled[region] = map[fleet.ServerKey]bool{}
	}
	if projection.Unsettled(write.Status) && !write.Remove {
		w.unsettled[region][write.Key] = true
	} else {
		delete(w.unsettled[region], write.Key)
	}
	delete(w.running, write.Key)
	if write.Status.Verdict == fleet.VerdictConverged && !write.Remove {
		w.running[write.Key] = write.Status.ServingImageTag
	}
	w.most[region] = max(w.most[region], len(w.unsettled[region]))
	return nil
}

// daemonRuntime is an engine as a kurad sees it.
type daemonRuntime struct {
	*engine
	k *kurad
}

func (r daemonRuntime) List(ctx context.Context, _ ...string) ([]fleet.Container, error) {
	if r.k.dead.Load() {
		return nil, errDown
	}
	list := func() ([]fleet.Container, error) { return r.engine.List(ctx) }
	if hook := r.k.options.onList; hook != nil {
		return hook(list)
	}
	return list()
}

func (r daemonRuntime) Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	execute := func() fleet.Outcome {
		if r.k.dead.Load() {
			return unanswered(errors.New("killed"))
		}
		return r.engine.Execute(ctx, key, instance, task, doc)
	}
	if !task.Cancellable() {
		r.k.tasks.Add(1)
	}
	if hook := r.k.options.onTask; hook != nil {
		return hook(key, task, execute)
	}
	return execute()
}
