package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// turnStore is the store as turns see it.
type turnStore struct {
	*store.Records
	view *store.View
	lost func() // called when the store says that this kurad leads no more
}

// CommitTurn implements reconcile.Store.
func (s turnStore) CommitTurn(ctx context.Context, w fleet.TurnWrite) error {
	err := s.Records.CommitTurn(ctx, w)
	if errors.Is(err, kv.ErrNotLeader) {
		s.lost()
	}
	return err
}

// CommitTry implements reconcile.Store.
func (s turnStore) CommitTry(ctx context.Context, w fleet.TryWrite) (int64, error) {
	revision, err := s.Records.CommitTry(ctx, w)
	if errors.Is(err, kv.ErrNotLeader) {
		s.lost()
	}
	return revision, err
}

func (s turnStore) Stored(k fleet.ServerKey) (fleet.Gathered, bool) {
	return s.view.Server(k)
}
func (s turnStore) ServerKeys() []fleet.ServerKey { return s.view.ServerKeys() }
func (s turnStore) IsConflict(err error) bool     { return kv.IsConflict(err) }

func (s turnStore) Regions() []fleet.Region {
	var list []fleet.Region
	for _, r := range s.view.Regions() {
		list = append(list, r.Value)
	}
	return list
}

func (s turnStore) Region(ctx context.Context, name string) (fleet.Region, error) {
	r, err := s.Records.Region(ctx, name)
	return r.Value, err
}

// Identify implements reconcile.Store.
func (s turnStore) Identify(ctx context.Context, v fleet.KubeIdentity) error {
	err := s.Records.Identify(ctx, v)
	if errors.Is(err, kv.ErrNotLeader) {
		s.lost()
	}
	return err
}

// CommitOrphan implements reconcile.Store.
func (s turnStore) CommitOrphan(ctx context.Context, o fleet.Orphan, events ...fleet.Event) (int64, error) {
	revision, err := s.Records.CommitOrphan(ctx, o, events...)
	if errors.Is(err, kv.ErrNotLeader) {
		s.lost()
	}
	return revision, err
}

// runtimes are the endpoints and clusters that this daemon was given.
type runtimes struct {
	containers map[string]*containers.Endpoint
	listers    map[string]*lister
	clusters   map[string]cluster
}

// openRuntimes opens what the flags name, and talks to none of it.
func openRuntimes(o options, sets map[string]map[string]string, env fleet.Environment, log hclog.Logger) (_ *runtimes, err error) {
	r := &runtimes{containers: map[string]*containers.Endpoint{}, listers: map[string]*lister{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.clusters, err = openClusters(o.kubeconfig, o.clusters, env, log); err != nil {
		return nil, err
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

// readEnvSets reads the variable sets that the flags name.
func readEnvSets(paths map[string]string) (map[string]map[string]string, error) {
	sets := map[string]map[string]string{}
	for name, path := range paths {
		set, err := readEnvSet(path)
		if err != nil {
			return nil, fmt.Errorf("--env-set %s: %w", name, err)
		}
		sets[name] = set
	}
	return sets, nil
}

// variableNames are the names of each set's variables, without a value.
func variableNames(sets map[string]map[string]string) map[string][]string {
	names := make(map[string][]string, len(sets))
	for set, variables := range sets {
		names[set] = slices.Sorted(maps.Keys(variables))
	}
	return names
}

// readEnvSet reads NAME=value lines; empty ones and those that begin with # are passed over.
func readEnvSet(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s line %d is not NAME=value", path, n)
		}
		set[name] = value
	}
	return set, lines.Err()
}

// Region implements declare.Runtimes: it says at which field a region asks for what this
// daemon does not have.
func (r *runtimes) Region(region fleet.Region) error {
	var v fleet.Invalid
	switch {
	case region.Kubernetes != nil:
		if name := region.Kubernetes.Cluster; r.clusters[name] == nil {
			v.Add("/kubernetes/cluster", "this kurad was given no cluster named %q (it has: %s); start it with --cluster %s=<context of the kubeconfig>", name, known(r.Clusters()), name)
		}
	case region.Containers != nil:
		e := r.containers[region.Containers.Endpoint]
		if e == nil {
			v.Add("/containers/endpoint", "this kurad was given no container endpoint named %q (it has: %s); start it with --container-endpoint %s=unix:///…", region.Containers.Endpoint, known(r.ContainerEndpoints()), region.Containers.Endpoint)
			break
		}
		return e.AllowsRegion(region)
	}
	return v.Err("region " + region.Name)
}

func known(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

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

func (r *runtimes) loop() map[string]reconcile.Runtime {
	m := map[string]reconcile.Runtime{}
	for name, e := range r.containers {
		m[name] = e
	}
	return m
}

func (r *runtimes) readFailure(err error) fleet.ReadFailure { return containers.ReadFailure(err) }

func (r *runtimes) close() {
	var errs []error
	for _, e := range r.containers {
		errs = append(errs, e.Close())
	}
	for _, c := range r.clusters {
		errs = append(errs, c.Close())
	}
	_ = errors.Join(errs...) // idle connections: nothing to do about it
}
