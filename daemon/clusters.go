package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/kubernetes"
)

// cluster is a Kubernetes cluster: the leader watches it, and every kurad may ask it.
type cluster interface {
	reconcile.Cluster
	io.Closer
	// Expect says which namespace a name stands for (K9).
	Expect(namespace, uid string)
	NamespaceUID(ctx context.Context, namespace string) (string, error)
	Read(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error)
}

// openClusters opens the clusters that --cluster names, and talks to none of them.
func openClusters(kubeconfig string, flags []string, env fleet.Environment, log hclog.Logger) (map[string]cluster, error) {
	clusters := map[string]cluster{}
	configs, err := kubernetes.ParseClusters(kubeconfig, flags)
	if err != nil {
		return clusters, err
	}
	for _, cfg := range configs {
		cfg.Environment, cfg.Logger, cfg.Now = env, log.Named(cfg.Name), time.Now
		cfg.REST.UserAgent = "kurad/" + version
		c, err := kubernetes.Open(cfg)
		if err != nil {
			return clusters, fmt.Errorf("--cluster %s: %w", cfg.Name, err)
		}
		clusters[cfg.Name] = c
	}
	return clusters, nil
}

// Clusters implements server.Runtimes.
func (r *runtimes) Clusters() []string { return slices.Sorted(maps.Keys(r.clusters)) }

// Instance implements declare.Runtimes.
func (r *runtimes) Instance(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	c := r.clusters[doc.Cluster]
	if c == nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no cluster named %q", doc.Cluster)
	}
	return c.Read(ctx, key, doc, adopted)
}

// NamespaceUID implements server.Runtimes.
func (r *runtimes) NamespaceUID(ctx context.Context, name, namespace string) (string, error) {
	c := r.clusters[name]
	if c == nil {
		return "", fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no cluster named %q", name)
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

func (r *runtimes) clusterLoop() map[string]reconcile.Cluster {
	m := map[string]reconcile.Cluster{}
	for name, c := range r.clusters {
		m[name] = c
	}
	return m
}
