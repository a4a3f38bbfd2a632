package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// namespaceWithin bounds the look at one namespace: all are looked at at once.
const namespaceWithin = 5 * time.Second

// listNamespaces shows which namespaces of clusters are observed, and which are there now.
func (s *Server) listNamespaces(ctx context.Context, in *NewestInput) (out api.List[api.Namespace], err error) {
	if err := s.catchUp(ctx); err != nil {
		return out, err
	}
	all := s.namespaces()
	var looks sync.WaitGroup
	for i := range all {
		looks.Go(func() { s.lookAtNamespace(ctx, &all[i]) })
	}
	looks.Wait()
	return api.List[api.Namespace]{Items: all[:min(len(all), in.Limit)]}, nil
}

// namespaces are those that were observed, and those that regions name, by cluster and name.
func (s *Server) namespaces() []api.Namespace {
	all := []api.Namespace{}
	at := func(cluster, namespace string) *api.Namespace {
		i := slices.IndexFunc(all, func(n api.Namespace) bool { return n.Cluster == cluster && n.Namespace == namespace })
		if i < 0 {
			i, all = len(all), append(all, api.Namespace{Cluster: cluster, Namespace: namespace})
		}
		return &all[i]
	}
	for _, id := range s.View.Identities() {
		n := at(id.Cluster, id.Namespace)
		n.UID, n.Since = id.UID, timeOf(id.Since)
	}
	for _, r := range s.View.Regions() {
		if k := r.Value.WithDefaults().Kubernetes; k != nil {
			at(k.Cluster, k.Namespace).Servers += len(s.View.ServersOfRegion(r.Value.Name))
		}
	}
	slices.SortFunc(all, func(a, b api.Namespace) int {
		return slices.Compare([]string{a.Cluster, a.Namespace}, []string{b.Cluster, b.Namespace})
	})
	return all
}

func (s *Server) lookAtNamespace(ctx context.Context, n *api.Namespace) {
	ctx, cancel := context.WithTimeout(ctx, namespaceWithin)
	defer cancel()
	seen, err := s.Runtimes.NamespaceUID(ctx, n.Cluster, n.Namespace)
	n.Seen = seen
	switch {
	case err != nil:
		n.Reason, n.Message = fleet.ReasonRuntimeError, err.Error()
	case seen == n.UID || n.UID == "" && seen != "":
	case seen == "":
		n.Reason, n.Message = fleet.ReasonNamespaceGone, "it is not there"
	default:
		n.Reason, n.Message = fleet.ReasonClusterChanged, "it is another one: in another cluster, or made anew"
	}
}

type acceptNamespaceInput struct {
	Cluster   string `path:"cluster"`
	Namespace string `path:"namespace"`
	Body[api.AcceptRequest]
}

func (s *Server) acceptNamespace(ctx context.Context, in *acceptNamespaceInput) (*struct{}, error) {
	r, err := in.value()
	if err != nil {
		return nil, err
	}
	return nil, s.Declare.AcceptNamespace(ctx, fleet.KubeIdentity{Cluster: in.Cluster, Namespace: in.Namespace, UID: r.UID})
}
