package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/kubernetes"
)

// runtimes are the endpoints and clusters that this daemon was given.
type runtimes struct {
	containers map[string]*containers.Endpoint
	listers    map[string]*lister
	clusters   map[string]*kubernetes.Cluster
}

// openRuntimes opens what the flags name, and talks to none of it.
func openRuntimes(o options, sets map[string]map[string]string, env fleet.Environment, log hclog.Logger) (_ *runtimes, err error) {
	r := &runtimes{containers: map[string]*containers.Endpoint{}, listers: map[string]*lister{}, clusters: map[string]*kubernetes.Cluster{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	configs, err := kubernetes.ParseClusters(o.kubeconfig, o.clusters)
	if err != nil {
		return nil, err
	}
	for _, cfg := range configs {
		cfg.Environment, cfg.Logger, cfg.Now = env, log.Named(cfg.Name), time.Now
		cfg.REST.UserAgent = "kurad/" + version
		c, err := kubernetes.Open(cfg)
		if err != nil {
			return nil, fmt.Errorf("--cluster %s: %w", cfg.Name, err)
		}
		r.clusters[cfg.Name] = c
	}
	for _, text := range o.endpoints {
		cfg, err := containers.ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		if _, ok := r.containers[cfg.Name]; ok {
			return nil, fmt.Errorf("container endpoint %q is given twice: choose another name for one of them", cfg.Name)
		}
		cfg.EnvSets = sets
		e, err := containers.Open(cfg, env, log.Named(cfg.Name))
		if err != nil {
			return nil, err
		}
		r.containers[cfg.Name] = e
		r.listers[cfg.Name] = &lister{name: cfg.Name, list: func(ctx context.Context) ([]fleet.Container, error) { return e.List(ctx) }}
	}
	return r, nil
}

// readEnvSets reads the variable sets that the flags name, and returns the names of each
// one's variables as well.
func readEnvSets(paths map[string]string) (sets map[string]map[string]string, names map[string][]string, err error) {
	sets, names = map[string]map[string]string{}, map[string][]string{}
	for set, path := range paths {
		if sets[set], err = readEnvSet(path); err != nil {
			return nil, nil, fmt.Errorf("--env-set %s: %w", set, err)
		}
		names[set] = slices.Sorted(maps.Keys(sets[set]))
	}
	return sets, names, nil
}

// readEnvSet reads NAME=value lines; empty ones and those that begin with # are passed over.
func readEnvSet(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s line %d is not NAME=value", path, i+1)
		}
		set[name] = value
	}
	return set, nil
}

// Region implements declare.Runtimes: it says at which field a region asks for what this
// daemon does not have.
func (r *runtimes) Region(region fleet.Region) error {
	var v fleet.Invalid
	switch {
	case region.Kubernetes != nil:
		if name := region.Kubernetes.Cluster; r.clusters[name] == nil {
			v.Add("/kubernetes/cluster", "this kurad was given no cluster named %q (it has: %s); start it with --cluster %s=<context of the kubeconfig>", name, orNone(r.Clusters()), name)
		}
	case region.Containers != nil:
		e := r.containers[region.Containers.Endpoint]
		if e == nil {
			v.Add("/containers/endpoint", "this kurad was given no container endpoint named %q (it has: %s); start it with --container-endpoint %s=unix:///…", region.Containers.Endpoint, orNone(r.ContainerEndpoints()), region.Containers.Endpoint)
			break
		}
		return e.AllowsRegion(region)
	}
	return v.Err("region " + region.Name)
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// PortRange implements declare.Runtimes.
func (r *runtimes) PortRange(region fleet.Region) (first, last int, ok bool) {
	if region.Containers == nil {
		return 0, 0, false
	}
	e := r.containers[region.Containers.Endpoint]
	if e == nil || e.Ports() == (containers.PortRange{}) {
		return 0, 0, false
	}
	return e.Ports().First, e.Ports().Last, true
}

// ContainerEndpoints implements server.Runtimes.
func (r *runtimes) ContainerEndpoints() []string {
	return slices.Sorted(maps.Keys(r.containers))
}

// observed are those that turns look at, by name.
func (r *runtimes) observed() (map[string]reconcile.Runtime, map[string]reconcile.Cluster) {
	engines, clusters := map[string]reconcile.Runtime{}, map[string]reconcile.Cluster{}
	for name, e := range r.containers {
		engines[name] = e
	}
	for name, c := range r.clusters {
		clusters[name] = c
	}
	return engines, clusters
}

func (r *runtimes) close() {
	for _, e := range r.containers {
		_ = e.Close() // idle connections: nothing to do about it
	}
	for _, c := range r.clusters {
		_ = c.Close() // as above
	}
}

// Containers implements declare.Runtimes.
func (r *runtimes) Containers(ctx context.Context, endpoint string, maxAge time.Duration) fleet.Listing {
	l := r.listers[endpoint]
	if l == nil {
		return fleet.Listing{Endpoint: endpoint, Unreadable: &fleet.ReadFailure{
			Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("this kurad was given no endpoint named %q", endpoint),
		}}
	}
	return l.listing(ctx, maxAge)
}

// Adoptable implements declare.Runtimes.
func (r *runtimes) Adoptable(ctx context.Context, endpoint, id string) error {
	e := r.containers[endpoint]
	if e == nil {
		return fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no endpoint named %q", endpoint)
	}
	return e.Adoptable(ctx, id)
}

// Clusters implements server.Runtimes.
func (r *runtimes) Clusters() []string { return slices.Sorted(maps.Keys(r.clusters)) }

func (r *runtimes) cluster(name string) (*kubernetes.Cluster, error) {
	if c := r.clusters[name]; c != nil {
		return c, nil
	}
	return nil, fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no cluster named %q", name)
}

// Instance implements declare.Runtimes.
func (r *runtimes) Instance(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	c, err := r.cluster(doc.Cluster)
	if err != nil {
		return nil, err
	}
	return c.Read(ctx, key, doc, adopted)
}

// NamespaceUID implements server.Runtimes.
func (r *runtimes) NamespaceUID(ctx context.Context, name, namespace string) (string, error) {
	c, err := r.cluster(name)
	if err != nil {
		return "", err
	}
	uid, err := c.NamespaceUID(ctx, namespace)
	if err != nil {
		return "", &fleet.Error{Code: fleet.CodeUnavailable, Message: fmt.Sprintf("namespace %s of cluster %s", namespace, name), Err: err}
	}
	return uid, nil
}

// expect tells the clusters which namespaces are theirs: all that are stored.
func (r *runtimes) expect(list []fleet.KubeIdentity) {
	for _, id := range list {
		if c := r.clusters[id.Cluster]; c != nil {
			c.Expect(id.Namespace, id.UID)
		}
	}
}

const (
	// listingWithin bounds a listing, whoever waits for it and for how long.
	listingWithin = 10 * time.Second
	// keepFailure is how long an endpoint that did not answer is not asked again for a
	// declaration, and slowListing after how long it is no longer waited for, so that an
	// engine that hangs holds up one of them and not each.
	keepFailure = 10 * time.Second
	slowListing = 3 * time.Second
)

// lister lists an endpoint for the API, once for all that ask at the same time. It is not
// the reconciler's: a kurad that does not lead answers the API, too. Nobody waits longer than
// he wants to, whatever the engine does (G9).
type lister struct {
	name string
	list func(context.Context) ([]fleet.Container, error)

	mu    sync.Mutex // no engine is asked under it
	last  fleet.Listing
	ended time.Time // of last
	under *underWay // nil: nobody lists now
}

// underWay is a listing that goes on.
type underWay struct {
	begun time.Time
	ended chan struct{}
}

// listing returns a listing that began no longer than maxAge before the call.
func (l *lister) listing(ctx context.Context, maxAge time.Duration) fleet.Listing {
	asked := time.Now()
	for {
		last, now := l.begin(asked, maxAge)
		if now == nil {
			return last
		}
		if maxAge > 0 && asked.Sub(now.begun) > slowListing {
			return l.unanswered(now.begun, context.DeadlineExceeded)
		}
		select {
		case <-now.ended:
		case <-ctx.Done():
			return l.unanswered(now.begun, ctx.Err())
		}
	}
}

// begin returns the last listing if it will do, else one that is under way.
func (l *lister) begin(asked time.Time, maxAge time.Duration) (fleet.Listing, *underWay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age := asked.Sub(l.last.Begun) // of one that began since it is negative
	if !l.last.Begun.IsZero() && (age < maxAge || age <= 0 || maxAge > 0 && l.last.Unreadable != nil && asked.Sub(l.ended) < keepFailure) {
		return l.last, nil
	}
	if l.under == nil {
		l.under = &underWay{begun: time.Now(), ended: make(chan struct{})}
		go l.run(l.under)
	}
	return fleet.Listing{}, l.under
}

// run lists for all who wait, also for those who come when the first has given up.
func (l *lister) run(now *underWay) {
	ctx, cancel := context.WithTimeout(context.Background(), listingWithin)
	defer cancel()
	cs, err := l.list(ctx)
	out := fleet.Listing{Endpoint: l.name, Begun: now.begun, Containers: cs}
	if err != nil {
		out = l.unanswered(now.begun, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.ended, l.under = out, time.Now(), nil
	close(now.ended)
}

func (l *lister) unanswered(begun time.Time, err error) fleet.Listing {
	f := containers.ReadFailure(fmt.Errorf("list containers of endpoint %q: %w", l.name, err))
	f.Since, f.Count = begun, 1
	return fleet.Listing{Endpoint: l.name, Begun: begun, Unreadable: &f}
}
