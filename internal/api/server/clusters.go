package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// namespaceWithin bounds the look at one namespace: all are looked at at once.
const namespaceWithin = 5 * time.Second

// listNamespaces shows which namespaces of clusters are observed, and which are there now.
func (s *Server) listNamespaces(ctx context.Context, in *NewestInput) (*listOutput[api.Namespace], error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	all := s.namespaces()
	var looks sync.WaitGroup
	for i := range all {
		looks.Go(func() { s.lookAtNamespace(ctx, &all[i]) })
	}
	looks.Wait()
	return &listOutput[api.Namespace]{api.List[api.Namespace]{Items: all[:min(len(all), in.Limit)]}}, nil
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
	for _, id := range s.view.Identities() {
		n := at(id.Cluster, id.Namespace)
		n.UID, n.Since = id.UID, timeOf(id.Since)
	}
	for _, r := range s.view.Regions() {
		if k := r.Value.WithDefaults().Kubernetes; k != nil {
			at(k.Cluster, k.Namespace).Servers += len(s.view.ServersOfRegion(r.Value.Name))
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
	seen, err := s.runtimes.NamespaceUID(ctx, n.Cluster, n.Namespace)
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
	Body      body[api.AcceptRequest]
}

// acceptNamespace makes what is there now the one that is observed (K9): the very one that
// its author was shown.
func (s *Server) acceptNamespace(ctx context.Context, in *acceptNamespaceInput) (*struct{}, error) {
	r, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	what := fmt.Sprintf("namespace %s of cluster %s", in.Namespace, in.Cluster)
	look, done := context.WithTimeout(ctx, namespaceWithin)
	defer done()
	seen, err := s.runtimes.NamespaceUID(look, in.Cluster, in.Namespace)
	if err != nil {
		return nil, err
	}
	if seen != r.UID {
		return nil, fleet.Errorf(fleet.CodeConflict, "%s has the UID %q now, and not %q; look at it again (kurad cluster list)", what, seen, r.UID)
	}
	return nil, retry(func() error {
		prev, err := present(s.records.Identity(ctx, in.Cluster, in.Namespace))
		switch {
		case err != nil:
			return err
		case !prev.Exists():
			return fleet.Errorf(fleet.CodeNotFound, "%s was not observed yet, so there is nothing to accept", what)
		case prev.Value.UID == seen:
			return nil
		}
		tx := s.records.Begin()
		if seen == "" {
			tx.DeleteIdentity(prev)
		} else {
			tx.PutIdentity(prev, fleet.KubeIdentity{Cluster: in.Cluster, Namespace: in.Namespace, UID: seen, Since: s.now().UTC()})
		}
		_, err = tx.Commit(ctx)
		return err
	})
}
