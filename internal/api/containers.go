package api

import (
	"context"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// AdoptRequest asks for what runs already to become a server's own: in a container region
// containers without labels, in a Kubernetes region the KuraInstance of its name.
type AdoptRequest struct {
	// ImageTag is the tag that their image carries, and the one that is declared. In a
	// Kubernetes region "" stands for the tag of the instance.
	ImageTag string `json:"image_tag,omitempty"`
	// Containers names them, by service: a name, an id, or at least 12 characters of one. In
	// a Kubernetes region there are none.
	Containers map[string]string `json:"containers,omitempty"`
	// DryRun says what would become the server's own and how it differs, and writes nothing.
	DryRun bool `json:"-"`
}

// Orphan is a container or a KuraInstance of this environment that belongs to no declared
// server.
type Orphan struct {
	// Endpoint is where a container is; Cluster and Namespace are where a KuraInstance is.
	Endpoint  string `json:"endpoint,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	ID        string `json:"id"` // of a KuraInstance its uid
	Image     string `json:"image"`
	// State is of a container, Phase what the controller says of a KuraInstance.
	State   fleet.ContainerState `json:"state,omitempty"`
	Phase   string               `json:"phase,omitempty"`
	Account string               `json:"account"`
	Region  string               `json:"region"`
	Service string               `json:"service,omitempty"`
	// Since is when this kurad first saw it.
	Since *time.Time `json:"since,omitempty"`
	// Deletes says that its region deletes such KuraInstances (delete_orphans).
	Deletes bool `json:"deletes,omitempty"`
}

// UnreadableEndpoint is a container endpoint, or a namespace of a cluster, of which the last
// read did not answer: what it holds now is not known.
type UnreadableEndpoint struct {
	Endpoint  string       `json:"endpoint,omitempty"`
	Cluster   string       `json:"cluster,omitempty"`
	Namespace string       `json:"namespace,omitempty"`
	Reason    fleet.Reason `json:"reason"`
	Message   string       `json:"message"`
	Since     *time.Time   `json:"since,omitempty"`
}

// Orphans are all containers and KuraInstances of this environment that belong to no declared
// server. Of what cannot be read they are those of the last good read.
type Orphans struct {
	Items      []Orphan             `json:"items"`
	Unreadable []UnreadableEndpoint `json:"unreadable_endpoints,omitempty"`
}

// Adopt declares a server and takes what runs already over as its own, without touching
// it. Repeating it with the same changes nothing.
func (c *Client) Adopt(ctx context.Context, key fleet.ServerKey, r AdoptRequest) (Written[fleet.ServerView], error) {
	k := post(fmt.Sprintf("adopt server %s", key), r, "servers", key.Account, key.Region+":adopt")
	if r.DryRun {
		k.query.Set("dry_run", "true")
	}
	return fetch[Written[fleet.ServerView]](ctx, c, k)
}

// Orphans lists the containers and KuraInstances of this environment that belong to no
// declared server.
func (c *Client) Orphans(ctx context.Context) (Orphans, error) {
	return fetch[Orphans](ctx, c, get("list orphans", "orphans"))
}
