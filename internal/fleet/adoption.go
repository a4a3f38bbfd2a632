package fleet

import "time"

// NotByKurad is what Foreign says of a container that carries no labels of any kurad:
// the only ones that can be adopted.
const NotByKurad = "not made by kurad"

// Adoption records that a container without labels is a server's service. It ends when
// the container is gone: what takes its place carries labels.
type Adoption struct {
	ID string `json:"id"`
	// Name is what the container was called when it was adopted.
	Name string `json:"name"`
	// Digest is of the document that was desired then, which the container stands for
	// from then on (C3).
	Digest string `json:"digest"`
}

// KubeAdoption records that a KuraInstance without our labels is a server's. It ends when
// the object is gone, or carries our labels.
type KubeAdoption struct {
	UID string `json:"uid"`
	// Generation is of the intent that took it over. Until a later one is declared, only
	// its metadata is changed.
	Generation int64 `json:"generation"`
}

// Ours returns the container as the server's own, if it is the one that was adopted.
func (a Adoption) Ours(key ServerKey, service string, c Container) (Container, bool) {
	if c.ID != a.ID || c.Foreign != NotByKurad {
		return c, false
	}
	c.Foreign, c.Account, c.Region = "", key.Account, key.Region
	c.Service, c.Digest, c.Adopted = service, a.Digest, true
	return c, true
}

// Listing is what is known of the containers of an endpoint.
type Listing struct {
	Endpoint string
	// Begun is when the newest listing that answered began; zero: none has.
	Begun time.Time
	// Unreadable is set while the newest listing did not answer; what the last good one
	// showed stays.
	Unreadable *ReadFailure
	// Containers are all of the endpoint's, foreign ones included, sorted by name.
	Containers []Container
	// Since is by id when a container was first seen by this process.
	Since map[string]time.Time
}
