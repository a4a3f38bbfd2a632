package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// AdoptRequest asks for containers without labels to become a server's own.
type AdoptRequest struct {
	// ImageTag is the tag that their image carries, and the one that is declared.
	ImageTag string `json:"image_tag"`
	// Containers names them, by service: a name, an id, or at least 12 characters of one.
	Containers map[string]string `json:"containers"`
}

// Orphan is a container of this environment whose server is not declared.
type Orphan struct {
	Endpoint string               `json:"endpoint"`
	Name     string               `json:"name"`
	ID       string               `json:"id"`
	Image    string               `json:"image"`
	State    fleet.ContainerState `json:"state"`
	Account  string               `json:"account"`
	Region   string               `json:"region"`
	Service  string               `json:"service"`
	// Since is when this kurad first saw the container.
	Since *time.Time `json:"since,omitempty"`
}

// UnreadableEndpoint is a container endpoint whose last listing did not answer: what it
// holds now is not known.
type UnreadableEndpoint struct {
	Endpoint string       `json:"endpoint"`
	Reason   fleet.Reason `json:"reason"`
	Message  string       `json:"message"`
	Since    *time.Time   `json:"since,omitempty"`
}

// Orphans are all containers of this environment whose server is not declared. Of an
// unreadable endpoint they are those of the last good listing.
type Orphans struct {
	Items      []Orphan             `json:"items"`
	Unreadable []UnreadableEndpoint `json:"unreadable_endpoints,omitempty"`
}

// Adopt declares a server and takes running containers without labels over as its own,
// without touching them. Repeating it with the same containers changes nothing.
func (c *Client) Adopt(ctx context.Context, key fleet.ServerKey, r AdoptRequest) (Written[fleet.ServerView], error) {
	var out Written[fleet.ServerView]
	err := c.do(ctx, call{
		what: fmt.Sprintf("adopt server %s", key), method: http.MethodPost,
		path: []string{"v1", "servers", key.Account, key.Region + ":adopt"}, body: r, repeat: always,
	}, &out)
	return out, err
}

// Orphans lists the containers of this environment whose server is not declared.
func (c *Client) Orphans(ctx context.Context) (Orphans, error) {
	var out Orphans
	err := c.do(ctx, get("list orphans", "v1", "orphans"), &out)
	return out, err
}
