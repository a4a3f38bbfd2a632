package dns

import (
	"context"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Zone is a DNS zone that the daemon was given (--zone).
type Zone struct {
	Domain     string // kura.example.dev: lower case, without the dot at the end
	Name       string // what messages call it; the domain by default
	Token      string // where its Cloudflare token is: a file, or env:NAME; "": the zone is read by queries
	Account    string // the Cloudflare account of its pools; "": the zone's own
	API        string // the base of another API than Cloudflare's: by https, or by http on the loopback
	Server     string // host:port of a server of its own; "": those of its NS records
	TXT        Naming
	BatchLimit int // operations in one batch: 200 of the free plan, 3,500 of the others
}

// Naming is where external-dns of this zone writes its ownership records (--txt-prefix,
// --txt-suffix); at most one is set. They may hold %{record_type}. Wildcard stands for the * of
// wildcard hosts (--txt-wildcard-replacement).
type Naming struct{ Prefix, Suffix, Wildcard string }

// Listing is all there is of a zone, as its API listed it.
type Listing struct {
	Begun     time.Time
	Records   []fleet.DNSRecord // A, AAAA, CNAME, TXT and NS
	Balancers []Balancer
	Pools     []Pool // of the zone's account
}

// Balancer is a load balancer of a zone: it answers for the host Name, before any record.
type Balancer struct {
	ID          string
	Name        string
	Description string   // whose it is (BalancerOf)
	Pools       []string // ids, in order
	Fallback    string   // id
	TTL         int      // seconds
	Steering    string
	Proxied     bool
	Enabled     bool
}

// Pool is one region's part of a balancer.
type Pool struct {
	ID                  string
	Name                string
	Description         string // whose it is (PoolOf)
	Origins             []Origin
	Latitude, Longitude float64 // degrees
	Enabled             bool
}

// Origin is where a pool leads to.
type Origin struct {
	Address string
	Host    string // the Host header
	Enabled bool
}

// Batch are changes of a zone's records that are made together or not at all, in this order.
// A record without an id is a new one.
type Batch struct{ Deletes, Puts, Posts []fleet.DNSRecord }

// Len is the number of operations in it.
func (b Batch) Len() int { return len(b.Deletes) + len(b.Puts) + len(b.Posts) }

// API is the provider of a zone. Its errors are of the type Error.
type API interface {
	// List reads the whole zone, or fails: half a listing is none (D5). One that lists less than there
	// was is believed only if what it lacks is gone when it is asked for by its id.
	List(ctx context.Context, parts Parts) (Listing, error)
	Apply(ctx context.Context, b Batch) error
	PutBalancer(ctx context.Context, b Balancer) (Balancer, error) // creates it where it has no id
	DeleteBalancer(ctx context.Context, id string) error
	PutPool(ctx context.Context, p Pool) (Pool, error) // creates it where it has no id
	DeletePool(ctx context.Context, id string) error
	// Permissions names what the token may not of what the daemon needs; "" of what it may.
	Permissions(ctx context.Context) (missing []string, err error)
}

// Parts are what of a zone is listed.
type Parts struct{ Records, Balancers bool }

// Error is what a zone's provider said, or that it said nothing.
type Error struct {
	Class  fleet.Class
	Reason fleet.Reason // RateLimited, QuotaExceeded, NotSubscribed, ZoneForbidden, ZoneUnreachable, Invalid, ForeignOwner …
	// Message is for people: what was attempted on what, and the provider's own text.
	Message string
	// After is how long to wait before the next call; 0: unknown.
	After time.Duration
	// NotFound: what was to be changed or read is not there. Conflict: something is in the way, such
	// as a record of that name, or a load balancer that has the pool. A caller reads again.
	NotFound, Conflict bool
	// Answered: nothing of the call can take effect any more (fleet.Outcome).
	Answered bool
}

func (e *Error) Error() string { return e.Message }
