package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Ownership is what the records of a host say of whose it is (D3, D4).
type Ownership string

// Ownerships.
const (
	OwnershipNotChecked Ownership = ""           // dns.mode = "none": stated, not checked
	OwnershipUnknown    Ownership = "unknown"    // no read has answered
	OwnershipOurs       Ownership = "ours"       // by an ownership record of the region's owner id
	OwnershipForeign    Ownership = "foreign"    // by another's, by several, or a record that nobody claims
	OwnershipUnreadable Ownership = "unreadable" // there is an ownership record that cannot be read: an encrypted one
	OwnershipAbsent     Ownership = "absent"     // there is nothing of that name
)

// HostRead is the newest read of what a zone has of one host.
type HostRead struct {
	Host      string
	Ownership Ownership
	Owners    []string // the others, sorted; more than one: nobody knows which wins
	// Resource is what the ownership record of ours says that the host is for (ResourceOf).
	Resource string
	Detail   string      // why, in words
	Records  []DNSRecord // those of the name that lead clients somewhere: A, AAAA, CNAME
	// Begun is when the last read that answered began; zero: none has. Failure is set while the
	// newest one did not answer: what was read before stays (D5).
	Begun   time.Time
	Failure *ReadFailure
}

// State is what of the read is news when it differs.
func (r HostRead) State() (ours bool, reason Reason) {
	if r.Failure != nil {
		return false, r.Failure.Reason
	}
	return r.Ownership == OwnershipOurs, Reason(r.Ownership)
}

// HostsWish is what is to be read in zones of a server; zero: nothing.
type HostsWish struct {
	Owner    string   // the region's owner id
	Resource string   // the server (ResourceOf)
	Hosts    []string // that it leads clients to, or will
	Global   string   // the host of the load balancer that its pool is in; "": none
	Pending  bool     // its gate waits for them
	Fresh    bool     // an effect is over, and no read began since
}

// HostsRead is what was read of them: every host of the wish, and every other whose ownership
// record names the server.
type HostsRead struct {
	Hosts map[string]HostRead
	Pool  PoolRead
}

// DNSRecord is a record of a zone.
type DNSRecord struct {
	ID      string `json:"id,omitempty"`  // of the provider's API; "": it was read by a DNS query
	Name    string `json:"name"`          // lower case, without the dot at the end
	Type    string `json:"type"`          // A, AAAA, CNAME, TXT
	Content string `json:"content"`       // of a TXT: its strings joined, without quotes
	TTL     int    `json:"ttl,omitempty"` // seconds; 1: the provider's choice
	Proxied bool   `json:"proxied,omitempty"`
	// Comment is what people read beside it: a note of kurad's, which decides nothing.
	Comment string `json:"comment,omitempty"`
}

// ResourceOf names a server in the ownership records that kurad writes:
// external-dns/resource=kura-<environment>/<region>/<account>.
func ResourceOf(environment string, key ServerKey) string {
	return "kura-" + environment + "/" + key.Region + "/" + key.Account
}

// maxPoolName is ours: the API's documentation names the characters of a pool's name (letters,
// digits, - and _), not how many there may be.
const maxPoolName = 63

// PoolName is the name of a server's pool. A pool belongs to the provider's account, so the
// environment is part of it. Labels hold no _, so no two servers have one name; one that is too
// long ends in its hash.
func PoolName(environment string, key ServerKey) string {
	name := "kura_" + environment + "_" + key.Account + "_" + key.Region
	if len(name) <= maxPoolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxPoolName-33] + "_" + hex.EncodeToString(sum[:16])
}

// DNSChange is what a task does in a zone to the host Effect.Name.
type DNSChange struct {
	Owner    string `json:"owner,omitempty"`    // the region's owner id
	Resource string `json:"resource,omitempty"` // the server (ResourceOf)
	// Of a record to publish.
	Type    string `json:"type,omitempty"` // A, AAAA or CNAME
	Content string `json:"content,omitempty"`
	// Of a pool in the load balancer of that host: the regional host that it leads to, and where.
	Pool      string  `json:"pool,omitempty"`
	Origin    string  `json:"origin,omitempty"`
	Latitude  float64 `json:"latitude,omitempty"`  // degrees
	Longitude float64 `json:"longitude,omitempty"` // degrees
}

// TTLs of what is ours, in seconds: of load balancers D1's, of records the least that Cloudflare takes on every plan (only
// an enterprise zone has less, 30: its API's documentation of ttl).
const (
	BalancerTTL = 30
	RecordTTL   = 60
)

// PoolRead is the newest read of a server's pool in the load balancer of its global host.
type PoolRead struct {
	Host    string     // "": none is declared
	Joined  bool       // the balancer is ours and has the pool, as read back (R2)
	Is      *DNSChange // the pool as it is; nil: there is none of ours
	Foreign string     // whose the balancer, the pool or a record of the host is; "": nobody else's
	// Elsewhere are other hosts whose load balancer of the account has the pool, too, sorted: its
	// global host was another.
	Elsewhere []string
	Drift     string // what of the balancer is not as declared, in words; "": nothing
	Begun     time.Time
	Failure   *ReadFailure
}
