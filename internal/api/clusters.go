package api

import (
	"context"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Namespace is a namespace of a cluster that regions name or that was observed, and which one
// it was and is (K9).
type Namespace struct {
	Cluster   string       `json:"cluster"`
	Namespace string       `json:"namespace"`
	UID       string       `json:"uid,omitempty" doc:"UID of the namespace that is observed; none: nothing was observed yet, or kurad may not read it."`
	Since     *time.Time   `json:"since,omitempty" doc:"When it was first observed, or accepted."`
	Seen      string       `json:"seen_uid,omitempty" doc:"UID of the namespace that is there now; none: there is none, or it cannot be read."`
	Reason    fleet.Reason `json:"reason,omitempty" doc:"Why nothing is known, or done, there now."`
	Message   string       `json:"message,omitempty"`
	Servers   int          `json:"servers" doc:"How many servers are in its regions."`
}

// Changed reports whether nothing is done there until it is accepted.
func (n Namespace) Changed() bool {
	return n.Reason == fleet.ReasonClusterChanged || n.Reason == fleet.ReasonNamespaceGone
}

// AcceptRequest says which namespace is accepted.
type AcceptRequest struct {
	UID string `json:"uid" doc:"UID that was shown: of the namespace that is there now; empty where there is none."`
}

// Namespaces lists the namespaces of all clusters, as they are now.
func (c *Client) Namespaces(ctx context.Context) ([]Namespace, error) {
	return collect[Namespace](ctx, c, get("list the namespaces of clusters", "clusters"))
}

// AcceptNamespace makes the namespace with the UID the one that is observed.
func (c *Client) AcceptNamespace(ctx context.Context, cluster, namespace, uid string) error {
	what := fmt.Sprintf("accept namespace %s of cluster %s", namespace, cluster)
	return c.do(ctx, post(what, AcceptRequest{UID: uid}, "clusters", cluster, namespace+":accept"), nil)
}
