package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var gvr = apischema.GroupVersionResource{Group: fleet.KubeGroup, Version: fleet.KubeVersion, Resource: fleet.KubeResource}

// Cluster is a Kubernetes cluster that runs KuraInstances of one environment, among
// others'.
type Cluster struct {
	cfg    Config
	log    hclog.Logger
	rest   rest.Interface
	client dynamic.Interface
	hangUp func()
	owners ownerSets

	served        atomic.Pointer[servedSchema]
	readingSchema *semaphore.Weighted // held by who reads it: one at a time

	mu     sync.Mutex
	caches map[string]*namespaceCache // by namespace
}

// Open prepares a cluster. It talks to nobody: a cluster that is not there yet shows in
// Observe and heals by itself.
func Open(cfg Config) (*Cluster, error) {
	if cfg.REST == nil {
		return nil, fmt.Errorf("open cluster %q: no way to reach it is given", cfg.Name)
	}
	if cfg.Environment.Name == "" {
		return nil, fmt.Errorf("open cluster %q: no environment is given, so nothing on it could be told to be ours", cfg.Name)
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	log := cfg.Logger.With("cluster", cfg.Name)
	rc := dynamic.ConfigFor(cfg.REST)
	rc.QPS, rc.Burst = cmp.Or(cfg.QPS, defaultQPS), cmp.Or(cfg.Burst, defaultBurst)
	rc.UserAgent = cmp.Or(cfg.REST.UserAgent, fleet.KubeFieldManager)
	rc.WarningHandlerWithContext = warnings{log}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, fmt.Errorf("open cluster %q: %w", cfg.Name, err)
	}
	if base.Scheme != "https" && !isLoopback(base.Hostname()) {
		return nil, fmt.Errorf("open cluster %q: %s is not https, and who listens in between would act in our name; write https:// into the kubeconfig", cfg.Name, base.Redacted())
	}
	client, hangUp, err := newHTTPClient(rc)
	if err != nil {
		return nil, fmt.Errorf("open cluster %q: %w", cfg.Name, err)
	}
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(rc, client)
	if err != nil {
		return nil, fmt.Errorf("open cluster %q: %w", cfg.Name, err)
	}
	return &Cluster{
		cfg: cfg, log: log, rest: restClient, client: dynamic.New(restClient), hangUp: hangUp,
		readingSchema: semaphore.NewWeighted(1), caches: map[string]*namespaceCache{},
	}, nil
}

// Close ends all connections.
func (c *Cluster) Close() error {
	c.hangUp()
	return nil
}

// Observe returns what is known of the server's instance, compared with its document.
// Begun is zero until the namespace has been listed once, and now while its watch
// stands; while a write of ours goes on it is no later than that.
func (c *Cluster) Observe(key fleet.ServerKey, doc fleet.KubeDocument, known fleet.KubeKnown) fleet.InstanceObservation {
	cache := c.cache(doc.Namespace)
	cache.await(doc.Name, known.RollingOut)
	seen := cache.snapshotOf(doc.Name)
	o := fleet.InstanceObservation{Begun: seen.begun, Unreadable: seen.failure, Direct: seen.direct}
	if seen.object != nil {
		if !seen.answered {
			seen.altered = known.Altered
		}
		o.Resource = c.compared(seen.object, key, doc, known.Adopted, seen.altered)
		if doc.Revision != "" { // else it was not compared with what is desired
			cache.note(doc.Name, len(o.Resource.Dropped) > 0)
		}
	}
	return o
}

// Refresh asks the server itself about one instance; what it answers is what Observe
// shows from then on, with Direct set until something newer is known. An error has
// fleet.CodeUnavailable, and leaves what Observe shows.
func (c *Cluster) Refresh(ctx context.Context, namespace, name string) error {
	const tries = 3
	cache := c.cache(namespace)
	for range tries {
		begun, known := c.cfg.Now(), cache.snapshotOf(name).object
		o, err := c.look(ctx, namespace, name)
		if err != nil {
			return err
		}
		if cache.answered(name, o, known, begun) {
			return nil
		}
	}
	return fleet.Errorf(fleet.CodeUnavailable, "look at %s: it changes too fast to tell what is newest; try again", c.where(namespace, name))
}

// Read asks the server itself about the server's instance and compares the answer with
// the document; nil: there is none. An error has fleet.CodeUnavailable. What Observe
// shows stays.
func (c *Cluster) Read(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	if !c.cache(doc.Namespace).state().watching { // else it is up to date
		c.readSchema(ctx)
	}
	o, err := c.look(ctx, doc.Namespace, doc.Name)
	if err != nil || o == nil {
		return nil, err
	}
	return c.compared(o, key, doc, adopted, nil), nil
}

// look asks the server about one object of the expected namespace; nil: there is none. An
// error has fleet.CodeUnavailable.
func (c *Cluster) look(ctx context.Context, namespace, name string) (*object, error) {
	var failure *fleet.ReadFailure
	o, err := c.get(ctx, namespace, name)
	if err == nil {
		failure = c.checkIdentity(ctx, namespace)
	} else {
		f := c.readFailure(namespace, err)
		failure = &f
	}
	if failure != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "look at %s: %s", c.where(namespace, name), failure.Message)
	}
	return o, nil
}

// Listing returns what is known of a namespace.
func (c *Cluster) Listing(namespace string) fleet.KubeListing {
	objects, state := c.cache(namespace).list()
	l := fleet.KubeListing{Cluster: c.cfg.Name, Namespace: namespace, Begun: state.begun, Unreadable: state.failure}
	for _, o := range objects {
		i := o.shown
		if o.owner().Environment != c.cfg.Environment.Name || i.Account == "" || i.Region == "" {
			i = o.foreign()
		}
		l.Instances = append(l.Instances, i)
	}
	return l
}

// get asks the server about one object; nil: the answer says that this very object does
// not exist (P3).
func (c *Cluster) get(ctx context.Context, namespace, name string) (*object, error) {
	u, err := c.instances(namespace).Get(ctx, name, metav1.GetOptions{})
	if absent(err, name) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.owners.object(u), nil
}

// compared shows an object as it relates to the server's document. One that is not the
// server's is not compared.
func (c *Cluster) compared(o *object, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption, known []fleet.Alteration) *fleet.KubeInstance {
	ours, isAdopted := o.belongs(c.cfg.Environment.Name, key, cmp.Or(adopted, new(fleet.KubeAdoption)).UID)
	if !ours {
		i := o.foreign()
		return &i
	}
	i := o.shown
	i.Adopted = isAdopted
	d := compare(o, doc, c.schema(), known)
	i.Differs, i.Held, i.Altered, i.Dropped = boundedFields(d.differs), boundedFields(d.held), boundedFields(d.altered), boundedPaths(d.dropped)
	return &i
}

func (c *Cluster) instances(namespace string) dynamic.ResourceInterface {
	return c.client.Resource(gvr).Namespace(namespace)
}

// where names an object for a person.
func (c *Cluster) where(namespace, name string) string {
	return fmt.Sprintf("KuraInstance %s/%s on cluster %q", namespace, name, c.cfg.Name)
}

func (c *Cluster) cache(namespace string) *namespaceCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	cache := c.caches[namespace]
	if cache == nil {
		cache = newNamespaceCache(c.cfg.Now)
		c.caches[namespace] = cache
	}
	return cache
}

func (c *Cluster) allCaches() []*namespaceCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.caches))
}

// warnings logs what the server adds to its answers.
type warnings struct{ log hclog.Logger }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.log.Debug("warning of the API server", "text", text)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
