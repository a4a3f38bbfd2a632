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
	Leader       Leader            `json:"leader"`
	// Store is missing where the store does not say how it is.
	Store      *StoreHealth      `json:"store,omitempty"`
	Conditions []DaemonCondition `json:"conditions"` // of the daemon as a whole
}

// StoreHealth says how much room the daemon's store has; what is not known is zero.
type StoreHealth struct {
	Size     int64 `json:"size"`     // in bytes, of the file that the quota limits
	InUse    int64 `json:"in_use"`   // in bytes, of size
	Quota    int64 `json:"quota"`    // in bytes
	Full     bool  `json:"full"`     // from 80 % of the quota on
	Refusing bool  `json:"refusing"` // writes are refused until there is room
}

// DaemonCondition is an aspect of the daemon as a whole.
type DaemonCondition struct {
	Type    string                `json:"type"`
	Status  fleet.ConditionStatus `json:"status"`
	Reason  fleet.Reason          `json:"reason"`
	Message string                `json:"message"`
}

// ConditionStoreHealthy says whether the store has room; its reasons follow.
const ConditionStoreHealthy = "StoreHealthy"

// ConditionZonesUsable says whether the DNS zones that have a token can be listed, and what their
// tokens lack; the reason is the first zone's. The kurad that leads has it, where it was given zones.
const ConditionZonesUsable = "ZonesUsable"

// Reasons of StoreHealthy, the first also of ZonesUsable.
const (
	ReasonHealthy          fleet.Reason = "Healthy"
	ReasonNearQuota        fleet.Reason = "NearQuota"
	ReasonQuotaExceeded    fleet.Reason = "QuotaExceeded"
	ReasonStoreUnreachable fleet.Reason = "StoreUnreachable"
)

// Leader says which of several kurads on one store leads.
type Leader struct {
	Self bool `json:"self"` // the one that answers does
	// URL is where the leader's API answers; "" while nobody leads, and where no other
	// kurad could.
	URL string `json:"url,omitempty"`
}

// Capabilities are what a daemon can do: a client warns of what is missing.
type Capabilities struct {
	Runtimes           []fleet.RuntimeKind `json:"runtimes"`
	ContainerEndpoints []string            `json:"container_endpoints"`
	Clusters           []string            `json:"clusters"`
	DNSModes           []fleet.DNSMode     `json:"dns_modes"`
	Zones              []string            `json:"zones"` // by their domains
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

// Written is the answer to a PUT. Of a dry run, Object is what would be stored.
type Written[T any] struct {
	Object   T               `json:"object"`
	Created  bool            `json:"created"`
	Changed  bool            `json:"changed"` // false: the declaration was equal and nothing was written
	Warnings []fleet.Warning `json:"warnings,omitempty"`
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

// EventChanges is the answer to a long poll of events.
type EventChanges struct {
	// Full says that Items are the newest events, whatever was before: the first answer,
	// and the one to a cursor of another store or from too long ago: a server
	// keeps so many events, and some that came after the cursor may be among those it lost.
	Full   bool          `json:"full"`
	Items  []fleet.Event `json:"items"` // the oldest first
	Cursor string        `json:"cursor"`
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

// CacheEndpoint is a declared endpoint as the API shows it.
type CacheEndpoint struct {
	Generation int64  `json:"generation"`
	Key        string `json:"key"` // fleet.CacheEndpoint.Key
	fleet.CacheEndpoint
}

// CacheEndpointFilter chooses declared endpoints; empty fields choose all.
type CacheEndpointFilter struct {
	Account    string
	Technology string
}

// Endpoint is a URL that clients of an account may use.
type Endpoint struct {
	URL        string `json:"url"`
	Technology string `json:"technology"`
	Region     string `json:"region,omitempty"`
	Ready      bool   `json:"ready"`
}

// TokenInfo is a token without its secret.
type TokenInfo struct {
	ID    string      `json:"id"`
	Name  string      `json:"name"`
	Scope fleet.Scope `json:"scope"`
	// AccountPrefix is what the ids of the accounts begin with that the token is limited
	// to; empty: it is not limited.
	AccountPrefix string     `json:"account_prefix,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	CreatedBy     string     `json:"created_by,omitempty"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	RevokedAt     *time.Time `json:"revoked_at,omitempty"`
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Name  string      `json:"name"`
	Scope fleet.Scope `json:"scope"`
	// AccountPrefix limits the token to the accounts whose id begins with it; empty: all.
	AccountPrefix string         `json:"account_prefix,omitempty"`
	ExpiresIn     fleet.Duration `json:"expires_in,omitempty"` // 0: until revoked
}

// CreatedToken is a new token; its secret is shown this once.
type CreatedToken struct {
	TokenInfo
	Token Secret `json:"token"`
}
