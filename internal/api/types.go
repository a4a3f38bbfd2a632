package api

import (
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// APIVersion is the version of the routes.
const APIVersion = "v1"

// Bounds that the server enforces and the client relies on.
const (
	MaxWait    = 60 * time.Second // of a long poll
	MaxObserve = 10 * time.Second // of ?observe=now
	MaxBody    = 1 << 20          // of a request
	MaxPage    = 1000             // items of a list's page
)

// Headers of the API besides the standard ones.
const (
	HeaderRequestID = "X-Request-Id"
	// HeaderEnvironment names the environment that a client was made for; a kurad of
	// another one refuses the request, whatever the address resolved to.
	HeaderEnvironment = "Kura-Environment"
	HeaderIdempotency = "Idempotency-Key"
)

// VersionInfo is what a daemon says of itself.
type VersionInfo struct {
	Environment  string            `json:"environment"`
	Suffix       string            `json:"suffix"`
	Suffixes     map[string]string `json:"suffixes"` // every environment that shares the zone, with its suffix
	Version      string            `json:"version"`
	APIVersion   string            `json:"api_version"`
	Capabilities Capabilities      `json:"capabilities"`
}

// Capabilities are what a daemon can do: a client warns of what is missing.
type Capabilities struct {
	Runtimes           []fleet.RuntimeKind `json:"runtimes"`
	ContainerEndpoints []string            `json:"container_endpoints"`
	DNSModes           []fleet.DNSMode     `json:"dns_modes"`
}

// Account is an account as the API shows it.
type Account struct {
	Generation int64 `json:"generation"`
	fleet.Account
}

// HostTemplate is a host template with what follows from its pattern in the
// daemon's environment.
type HostTemplate struct {
	Generation int64 `json:"generation"`
	fleet.HostTemplate
	EnvSuffix string `json:"env_suffix"`
	Zone      string `json:"zone"`    // all behind the first label
	Example   string `json:"example"` // the host of account "acme" in cluster "eu-central"
}

// Region is a region as it was declared: defaults are not filled in.
type Region struct {
	Generation int64 `json:"generation"`
	fleet.Region
}

// WarningCode is the kind of a warning.
type WarningCode string

// Warnings of writes and dry runs.
const (
	WarnHostsMove        WarningCode = "hosts_move"        // published hosts will change
	WarnReplace          WarningCode = "replace"           // servers will be replaced or re-applied
	WarnNeighbourUnknown WarningCode = "neighbour_unknown" // dry run only: an account, region or template that is not declared yet
	WarnNoAlias          WarningCode = "no_alias"          // the runtime cannot keep an old host routed (H8)
)

// Warning is what a write will mean, said before it is done (dry run) and with it.
type Warning struct {
	Code    WarningCode `json:"code"`
	Pointer string      `json:"pointer,omitempty"`
	Detail  string      `json:"detail"`
}

// Written is the answer to a PUT. Of a dry run, Object is what would be stored.
type Written[T any] struct {
	Object   T         `json:"object"`
	Created  bool      `json:"created"`
	Changed  bool      `json:"changed"` // false: the declaration was equal and nothing was written
	Warnings []Warning `json:"warnings,omitempty"`
}

// List is one page of a collection, all pages of which are of one revision.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // cursor of the next page; empty on the last
	// Cursor is where a long poll goes on from.
	Cursor string `json:"cursor,omitempty"`
}

// ServerChanges is the answer to a long poll of a region.
type ServerChanges struct {
	// Full says that Items are all servers of the region: the first answer, and the one
	// to a cursor of another store or from too long ago. One that is not among them does
	// not exist, or its record cannot be read: reading it by itself tells.
	Full   bool               `json:"full"`
	Items  []fleet.ServerView `json:"items"` // changed since the cursor
	Gone   []fleet.ServerKey  `json:"gone,omitempty"`
	Cursor string             `json:"cursor"`
}

// ServerChange is the answer to a long poll of one server. Of one that does not
// exist only Cursor is set.
type ServerChange struct {
	Changed bool              `json:"changed"`
	Server  *fleet.ServerView `json:"server,omitempty"` // nil: it does not exist
	Cursor  string            `json:"cursor"`
}

// ServerFilter chooses servers of a list; empty fields choose all.
type ServerFilter struct {
	Account string
	Region  string
	Verdict fleet.Verdict
}

// EventFilter chooses events; empty fields choose all.
type EventFilter struct {
	Account string
	Region  string
	Limit   int // newest ones; 0: the daemon's default
}

// TechnologyKura is the technology of the endpoints that the daemon derives.
const TechnologyKura = "kura"

// Endpoint is a URL that clients of an account may use.
type Endpoint struct {
	URL        string `json:"url"`
	Technology string `json:"technology"`
	Region     string `json:"region,omitempty"`
	Ready      bool   `json:"ready"`
}

// TokenInfo is a token without its secret.
type TokenInfo struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"`
	Scope     fleet.Scope `json:"scope"`
	CreatedAt time.Time   `json:"created_at"`
	CreatedBy string      `json:"created_by,omitempty"`
	ExpiresAt *time.Time  `json:"expires_at,omitempty"`
	RevokedAt *time.Time  `json:"revoked_at,omitempty"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name      string         `json:"name"`
	Scope     fleet.Scope    `json:"scope"`
	ExpiresIn fleet.Duration `json:"expires_in,omitempty"` // 0: until revoked
}

// CreatedToken is a new token; its secret is shown this once.
type CreatedToken struct {
	TokenInfo
	Token Secret `json:"token"`
}
