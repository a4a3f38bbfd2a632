package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// Cluster is a Kubernetes cluster.
type Cluster interface {
	// Watch keeps what Observe shows of a namespace up to date until ctx ends. It calls
	// changed with the name of an instance of which something that Observe shows has
	// changed (of a status write that changes nothing we show, lastReconciledAt, only while the
	// last Observe of it said that it is being rolled out), and with "" when that may be so of all: the first list, and when reading begins or ceases
	// to fail, or fails for another reason.
	Watch(ctx context.Context, namespace string, changed func(name string))
	// Observe returns what is known of the server's instance, compared with its document.
	// Begun is zero until the namespace has been listed once.
	Observe(key fleet.ServerKey, doc fleet.KubeDocument, known fleet.KubeKnown) fleet.InstanceObservation
	// Refresh asks the server itself about one instance; what it answers is what Observe
	// shows from then on, with Direct set until something newer is known.
	Refresh(ctx context.Context, namespace, name string) error
	Execute(ctx context.Context, key fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) fleet.Outcome
	// Unidentified returns the UID of a namespace that is read and is to be stored before
	// anything is made of what it shows (K9); "": there is none.
	Unidentified(namespace string) (uid string)
	// Listing returns what is known of a namespace.
	Listing(namespace string) fleet.KubeListing
}

// cluster is a Kubernetes cluster, of which the namespaces are observed that regions name.
type cluster struct {
	name      string
	runtime   Cluster
	r         *Reconciler
	refreshes chan struct{} // takes as many as may be under way at once

	mu         sync.Mutex
	namespaces map[string]*namespace
}

func newCluster(name string, c Cluster, r *Reconciler) *cluster {
	return &cluster{
		name: name, runtime: c, r: r,
		refreshes: make(chan struct{}, refreshesAtOnce), namespaces: map[string]*namespace{},
	}
}

// namespace returns a namespace of the cluster. The first who asks for it begins its watch,
// which lasts as long as the turns do: there are as many as regions ever named.
func (c *cluster) namespace(name string) *namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespaces[name]
	if n == nil {
		n = &namespace{
			cluster: c, name: name, refreshing: map[fleet.ServerKey]bool{}, orphans: map[string]time.Time{}, gone: map[string]bool{}, since: map[string]time.Time{},
			pace: workqueue.NewTypedItemExponentialFailureRateLimiter[fleet.ServerKey](firstRefresh, slowestRetry),
		}
		c.namespaces[name] = n
	}
	if !n.watched { // before and after Run nothing is
		n.watched = c.r.beside(n.watch) && c.r.beside(n.sweep)
	}
	return n
}

// known returns the namespaces that were asked for, by name.
func (c *cluster) known() []*namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*namespace, 0, len(c.namespaces))
	for _, name := range slices.Sorted(maps.Keys(c.namespaces)) {
		list = append(list, c.namespaces[name])
	}
	return list
}

// namespace observes the KuraInstances of one namespace: a watch makes them known (K2), and
// one of them is read by itself where only the server's own word will do.
type namespace struct {
	cluster *cluster
	name    string
	watched bool // under cluster.mu
	pace    workqueue.TypedRateLimiter[fleet.ServerKey]

	mu         sync.Mutex
	refreshing map[fleet.ServerKey]bool
	gone       map[string]bool      // by uid: those that were deleted as orphans, as long as the watch shows them
	orphans    map[string]time.Time // by uid: since when it has been seen as one without a break
	since      map[string]time.Time // by uid: when it was first seen
}

func (n *namespace) String() string {
	return fmt.Sprintf("namespace %s of cluster %s", n.name, n.cluster.name)
}

// target is that of the regions whose instances are here.
func (n *namespace) target() string {
	return fleet.Region{Kubernetes: &fleet.Kubernetes{Cluster: n.cluster.name, Namespace: n.name}}.Target()
}

// watch takes what the cluster makes known until ctx ends. A watch that ends before is a
// fault of our own, and begins again.
func (n *namespace) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := safely(func() error { n.cluster.runtime.Watch(ctx, n.name, n.changed); return nil })
		if ctx.Err() != nil {
			return
		}
		n.cluster.r.log.Error("the watch ended; it begins again", "cluster", n.cluster.name, "namespace", n.name, "error", err)
		wait(ctx, n.cluster.r.cfg.Tick)
	}
}

// changed makes the turns due of the servers whose instance has the name, of all for "".
func (n *namespace) changed(name string) {
	if name == "" {
		n.identify()
		n.cluster.r.kick(n.cluster.r.serversAt(n.target()))
	} else if key, ok := n.cluster.r.serverAt(targetName{n.target(), name}); ok {
		n.cluster.r.Kick(key)
	}
}

// identify stores which namespace this is, where that is not known yet (K9).
func (n *namespace) identify() {
	r := n.cluster.r
	if n.cluster.runtime.Unidentified(n.name) == "" {
		return
	}
	r.beside(func(ctx context.Context) {
		for ctx.Err() == nil {
			uid := n.cluster.runtime.Unidentified(n.name)
			if uid == "" || !r.leads() {
				return
			}
			within, cancel := context.WithTimeout(ctx, storeTimeout)
			err := r.cfg.Store.Identify(within, fleet.KubeIdentity{Cluster: n.cluster.name, Namespace: n.name, UID: uid, Since: r.now()})
			cancel()
			if err == nil {
				return // it is heard of as everything that is stored
			}
			r.log.Warn("which namespace this is could not be stored", "cluster", n.cluster.name, "namespace", n.name, "error", err)
			wait(ctx, time.Second)
		}
	})
}

// Observe adds the server's instance.
func (n *namespace) Observe(in *projection.Input) {
	if in.Desired.Kubernetes == nil || n.cluster.runtime.Unidentified(n.name) != "" {
		return
	}
	var known fleet.KubeKnown
	if in.Prev != nil {
		known = in.Prev.KubeKnown()
	}
	in.Seen.Instance = n.cluster.runtime.Observe(in.Intent.Key(), *in.Desired.Kubernetes, known)
}

// Memory implements Observer: one watch is of all servers.
func (n *namespace) Memory(fleet.ServerKey) (time.Time, int) {
	// Of no instance: only how the reading goes is asked for.
	o := n.cluster.runtime.Observe(fleet.ServerKey{}, n.bare(""), fleet.KubeKnown{})
	if o.Unreadable != nil {
		return o.Begun, o.Unreadable.Count
	}
	return o.Begun, 0
}

// bare names an instance and asks for nothing of it.
func (n *namespace) bare(instance string) fleet.KubeDocument {
	return fleet.KubeDocument{Cluster: n.cluster.name, Namespace: n.name, Name: instance}
}

// Fresh implements Observer.
func (n *namespace) Fresh(ctx context.Context, g fleet.Gathered) error {
	instance, err := g.Region.Instance(g.Intent.Account)
	if err != nil {
		return nil // the turn will say why it sees nothing
	}
	if err := n.refresh(ctx, instance); err != nil {
		return fmt.Errorf("read %s: %w", n, err)
	}
	return nil
}

// refresh asks the server itself about an instance.
func (n *namespace) refresh(ctx context.Context, instance string) error {
	select {
	case n.cluster.refreshes <- struct{}{}:
		defer func() { <-n.cluster.refreshes }()
	case <-ctx.Done():
		return ctx.Err()
	}
	within, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return safely(func() error { return n.cluster.runtime.Refresh(within, n.name, instance) })
}

// Follow reads the instance where that is needed, unless a read is under way, and makes the
// server's turn due, which says whether another read is needed; after a read that failed so
// late that a cluster which does not answer is asked ever less often.
func (n *namespace) Follow(in projection.Input, out projection.Output) {
	key, instance := in.Intent.Key(), in.Desired.Instance
	if !lookNow(in, out) || !n.reads(key, true) {
		return
	}
	r := n.cluster.r
	begun := r.beside(func(ctx context.Context) {
		err := n.refresh(ctx, instance)
		if err == nil || !r.isKnown(key) {
			n.pace.Forget(key)
		} else if ctx.Err() == nil {
			pause := n.pace.When(key)
			r.log.Debug("an instance cannot be read", "server", key.String(), "instance", instance, "error", err, "again_in", pause)
			wait(ctx, pause)
		}
		n.reads(key, false)
		r.Kick(key)
	})
	if !begun {
		n.reads(key, false)
	}
}

// reads notes that a read of the server's instance is under way or over; false: it was
// noted already.
func (n *namespace) reads(key fleet.ServerKey, underWay bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refreshing[key] == underWay {
		return false
	}
	if underWay {
		n.refreshing[key] = true
	} else {
		delete(n.refreshing, key)
	}
	return true
}

func (n *namespace) room() string { return n.cluster.name }

func (n *namespace) execute(ctx context.Context, c Call) fleet.Outcome {
	if c.Desired.Kubernetes == nil {
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Answered: true, Message: "there is no document of the instance"}
	}
	return n.cluster.runtime.Execute(ctx, c.Key, c.Task, *c.Desired.Kubernetes)
}
