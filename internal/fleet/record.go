package fleet

import (
	"strings"
	"time"
)

// SchemaVersion is written into every stored record; a record of a newer one is
// refused (G7), one of an older one is read as of this one. 2: a server's work is by track. 3: a global
// host is one reservation of its account; a kurad of schema 2 would take it for nobody's.
const SchemaVersion = 3

// Intent is the stored declaration of a server. Generation counts the writes to it;
// the daemon's own work never moves it.
type Intent struct {
	Server
	Generation int64     `json:"generation"`
	CreatedAt  time.Time `json:"created_at"`
	// Deleting is when destruction was asked for; nil while the server is wanted (P18).
	Deleting *time.Time `json:"deleting,omitempty"`
	// Deployment is the sequence number of the latest deployment, whose image is
	// always ImageTag.
	Deployment int64 `json:"deployment"`
	// Ports are the assigned host ports by "<service>/<port name>" (C12).
	Ports map[string]int `json:"ports,omitempty"`
	// Offered are host ports for a change of the region that is not accepted yet: a port
	// is the server's own once the region needs it, and given back if it never does.
	Offered map[string]int `json:"offered,omitempty"`
}

// DeploymentStatus is the state of a deployment.
type DeploymentStatus string

// Deployment states: pending → running → succeeded | failed | cancelled | superseded.
const (
	DeploymentPending    DeploymentStatus = "pending"
	DeploymentRunning    DeploymentStatus = "running"
	DeploymentSucceeded  DeploymentStatus = "succeeded"
	DeploymentFailed     DeploymentStatus = "failed"
	DeploymentCancelled  DeploymentStatus = "cancelled"
	DeploymentSuperseded DeploymentStatus = "superseded"
)

// Open reports whether the deployment is pending or running.
func (s DeploymentStatus) Open() bool { return s == DeploymentPending || s == DeploymentRunning }

// What made a deployment.
const (
	DeploymentCauseCreate   = "create"
	DeploymentCauseImage    = "image"
	DeploymentCauseRedeploy = "redeploy"
)

// Deployment is one attempt to bring a server to an image: the audit trail. It
// never gates convergence (P9).
type Deployment struct {
	Account          string           `json:"account"`
	Region           string           `json:"region"`
	Seq              int64            `json:"seq"` // from 1, per server
	Cause            string           `json:"cause"`
	ImageTag         string           `json:"image_tag"`
	Generation       int64            `json:"generation"` // of the intent that asked for it
	ManifestRevision string           `json:"manifest_revision,omitempty"`
	RestartMark      string           `json:"restart_mark,omitempty"`    // changes the manifest of a redeploy (P12); carried on by later deployments
	IdempotencyKey   string           `json:"idempotency_key,omitempty"` // of the redeploy
	Status           DeploymentStatus `json:"status"`
	Reason           Reason           `json:"reason,omitempty"`
	Message          string           `json:"message,omitempty"`
	CreatedAt        time.Time        `json:"created_at"`
	StartedAt        *time.Time       `json:"started_at,omitempty"`
	FinishedAt       *time.Time       `json:"finished_at,omitempty"`
}

// Scope is what a token may do.
type Scope string

// Scopes, each including the ones before it.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
	ScopeAdmin Scope = "admin"
)

// Covers reports whether a token of scope s may do what needs scope need.
func (s Scope) Covers(need Scope) bool {
	rank := map[Scope]int{ScopeRead: 1, ScopeWrite: 2, ScopeAdmin: 3}
	return rank[s] > 0 && rank[need] > 0 && rank[s] >= rank[need]
}

// Token is a stored bearer token; the secret itself is never stored.
type Token struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Scope Scope  `json:"scope"`
	// AccountPrefix limits the token to the accounts whose id begins with it; empty: all.
	AccountPrefix string     `json:"account_prefix,omitempty"`
	Hash          string     `json:"hash"` // hex SHA-256 of the secret
	CreatedAt     time.Time  `json:"created_at"`
	CreatedBy     string     `json:"created_by,omitempty"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	RevokedAt     *time.Time `json:"revoked_at,omitempty"`
}

// Limited reports whether the token is limited to some accounts.
func (t Token) Limited() bool { return t.AccountPrefix != "" }

// Sees reports whether the token may know of an account and of what is its own.
func (t Token) Sees(account string) bool { return strings.HasPrefix(account, t.AccountPrefix) }

// EventType says whether an event is news or a warning.
type EventType string

// Event types.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Event is one thing that happened to a server.
type Event struct {
	Account string    `json:"account"`
	Region  string    `json:"region"`
	At      time.Time `json:"at"`
	Type    EventType `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}
