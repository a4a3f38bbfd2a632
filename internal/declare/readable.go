package declare

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// readFailure asks a region's runtime anything at all, for a dry run, and says why it does not answer.
func (d *Declarer) readFailure(ctx context.Context, r fleet.Region) *fleet.ReadFailure {
	var err error
	switch r = r.WithDefaults(); {
	case r.Containers != nil:
		var l fleet.Listing
		if l, err = d.listed(ctx, r, freshEnough, listWithin); err == nil {
			return l.Unreadable
		}
	case r.Kubernetes != nil:
		doc := fleet.KubeDocument{Cluster: r.Kubernetes.Cluster, Namespace: r.Kubernetes.Namespace, Name: "kura"}
		_, err = d.instance(ctx, fleet.ServerKey{Region: r.Name}, doc, nil, listWithin)
	}
	if err != nil {
		return &fleet.ReadFailure{Message: err.Error()}
	}
	return nil
}

// unreadable is the warning of a dry run that a region's runtime cannot be read now, so that
// whoever plans hears of it before anything is written; failed is what asking it said.
func (d *Declarer) unreadable(r fleet.Region, pointer string, failed *fleet.ReadFailure) []fleet.Warning {
	at := ""
	switch r = r.WithDefaults(); {
	case r.Containers != nil:
		at = fmt.Sprintf("container endpoint %q", r.Containers.Endpoint)
	case r.Kubernetes != nil:
		at = fmt.Sprintf("namespace %q of cluster %q", r.Kubernetes.Namespace, r.Kubernetes.Cluster)
		// The watch knows the reason, and may be refused where a single look is not.
		for _, l := range d.turns.KubeListings() {
			if l.Cluster == r.Kubernetes.Cluster && l.Namespace == r.Kubernetes.Namespace && l.Unreadable != nil {
				failed = l.Unreadable
			}
		}
	}
	if failed == nil {
		return nil
	}
	return []fleet.Warning{{
		Code: fleet.WarnUnreadable, Pointer: pointer, Reason: failed.Reason,
		Detail: fmt.Sprintf("%s cannot be read now: %s; what is declared is stored all the same, and nothing is changed there until kurad can read it", at, failed.Message),
	}}
}
