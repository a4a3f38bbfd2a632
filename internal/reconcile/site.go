package reconcile

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// site is where instances are: a container endpoint, or a namespace of a cluster.
type site interface {
	Observer
	fmt.Stringer // names it for people
	// room names what its tasks are run by: the endpoint, or the cluster.
	room() string
	execute(ctx context.Context, c Call) fleet.Outcome
}

// location is what is remembered of a server that had a turn: where it is, and what
// there is its own.
type location struct {
	site    site // nil: this kurad was given none that the region names
	target  string
	names   []string                  // of its instance or its containers, unique in the target
	adopted map[string]fleet.Adoption // containers without labels, by service
}

// targetName is a name within a target.
type targetName struct{ target, name string }

// site returns where the region's instances are, nil where this kurad was not given it.
// It begins to observe a namespace that it hears of for the first time.
func (r *Reconciler) site(region fleet.Region) site {
	switch {
	case region.Containers != nil:
		if e := r.endpoints[region.Containers.Endpoint]; e != nil {
			return e
		}
	case region.Kubernetes != nil:
		if c := r.clusters[region.Kubernetes.Cluster]; c != nil {
			return c.namespace(region.WithDefaults().Kubernetes.Namespace)
		}
	}
	return nil
}

// missingSite says what this kurad has to be started with.
func missingSite(region fleet.Region) *fleet.ReadFailure {
	kind, flag, name := "endpoint", "--container-endpoint", ""
	switch {
	case region.Kubernetes != nil:
		kind, flag, name = "cluster", "--cluster", region.Kubernetes.Cluster
	case region.Containers != nil:
		name = region.Containers.Endpoint
	}
	return &fleet.ReadFailure{
		Reason:  fleet.ReasonEndpointUnreachable,
		Message: fmt.Sprintf("this kurad was given no %s named %q: start it with %s %s=…", kind, name, flag, name),
	}
}
