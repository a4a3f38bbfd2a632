package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// FindingKind is what an audit found of a host in a zone (D6).
type FindingKind string

// Kinds of findings.
const (
	FindingOurs           FindingKind = "wanted-ours"                       // nothing is wrong
	FindingForeign        FindingKind = "wanted-foreign"                    // somebody else has what a server of ours leads clients to
	FindingAbsent         FindingKind = "wanted-absent"                     // nobody has published it
	FindingUnreadable     FindingKind = "wanted-unreadable"                 // its ownership record cannot be read
	FindingUnread         FindingKind = "wanted-unread"                     // no read of it has answered yet
	FindingStale          FindingKind = "unwanted-stale"                    // ours, and without this environment's suffix (H9)
	FindingUnwanted       FindingKind = "unwanted"                          // ours, and no server wants it
	FindingBareTXT        FindingKind = "txt-without-record"                // an ownership record of nothing
	FindingBareRecord     FindingKind = "record-without-txt-beside-foreign" // external-dns takes it for its own and never corrects it
	FindingTwoOwners      FindingKind = "two-owners"                        // nobody knows which one wins
	FindingSharedOwner    FindingKind = "owner-in-two-environments"         // each takes the other's records for its own
	FindingBalancerShadow FindingKind = "balancer-shadows-record"           // a load balancer answers before any record of its name
	FindingBalancer       FindingKind = "unwanted-balancer"                 // a load balancer of ours that no server wants
	FindingPool           FindingKind = "unwanted-pool"                     // a pool of ours that no server wants
)

// FindingKinds are all kinds, in the order in which they are counted.
func FindingKinds() []FindingKind {
	return []FindingKind{
		FindingOurs, FindingForeign, FindingAbsent, FindingUnreadable, FindingUnread, FindingStale, FindingUnwanted,
		FindingBareTXT, FindingBareRecord, FindingTwoOwners, FindingSharedOwner, FindingBalancerShadow, FindingBalancer, FindingPool,
	}
}

// Finding is what an audit says of one host of a zone.
type Finding struct {
	Zone   string      `json:"zone"` // its domain
	Host   string      `json:"host"` // of a pool: that of its load balancer, or of its origin, or its name
	Kind   FindingKind `json:"kind"`
	Owners []string    `json:"owners,omitempty"` // all that claim the host, sorted
	// Resource is what the ownership record says that the host is for.
	Resource string `json:"resource,omitempty"`
	// Environment is the one whose suffix the host carries, or whose name the resource does,
	// where that is another one.
	Environment string `json:"environment,omitempty"`
	// Account and Region are the server of ours that leads clients there, or that the record
	// was made for.
	Account string `json:"account,omitempty"`
	Region  string `json:"region,omitempty"`
	// Contents are what the host leads to, each as type and content.
	Contents []string `json:"contents,omitempty"`
	Why      string   `json:"why"` // in words
	// Prunable says that it is ours and may be deleted (kurad dns prune).
	Prunable bool `json:"prunable,omitempty"`
}

// Server is the server that the finding is about; zero: none is known.
func (f Finding) Server() ServerKey { return ServerKey{Account: f.Account, Region: f.Region} }

// Shown is the finding without characters that would change how a line is read: much of it is
// what others wrote (G11).
func (f Finding) Shown() Finding {
	f.Host, f.Resource, f.Environment, f.Why = Printable(f.Host), Printable(f.Resource), Printable(f.Environment), Printable(f.Why)
	f.Owners, f.Contents = printable(f.Owners), printable(f.Contents)
	return f
}

func printable(list []string) []string {
	list = slices.Clone(list)
	for i := range list {
		list[i] = Printable(list[i])
	}
	return list
}

// CompareFindings orders findings by zone, host and kind.
func CompareFindings(a, b Finding) int {
	return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Host, b.Host), strings.Compare(string(a.Kind), string(b.Kind)), slices.Compare(a.Owners, b.Owners))
}

// ZoneAudit is what an audit says of one zone.
type ZoneAudit struct {
	Zone     string       // its domain
	Listed   time.Time    // when the listing began that the findings are from; zero: there was none
	Failure  *ReadFailure // why the newest one did not answer, or none can be made; what was found before stays (D5)
	Findings []Finding
}

// PruneRequest names what is to be deleted of what is ours and wanted by nobody.
type PruneRequest struct {
	// Zone is a domain; empty: all that were given with a token.
	Zone string `json:"zone,omitempty"`
	// Hosts are those to delete; empty, of a dry run only: all.
	Hosts []string `json:"hosts,omitempty"`
}

// Pruned is what was deleted, or, of a dry run, what would be.
type Pruned struct {
	Items []Finding `json:"items"`
	// Kept are hosts that were asked for and are left alone, each with the reason.
	Kept []KeptHost `json:"kept,omitempty"`
	// Unreadable are zones that could not be listed: nothing was deleted there.
	Unreadable []AuditedZone `json:"unreadable,omitempty"`
}

// KeptHost is a host that a prune leaves alone.
type KeptHost struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// AuditedZone is a zone with how old what is known of it is.
type AuditedZone struct {
	Zone   string     `json:"zone"`
	Listed *time.Time `json:"listed_at,omitempty"` // when the listing began; none: there was none
	// Reason and Message say why the newest listing did not answer, since when; empty: it did.
	Reason  Reason     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// TakeRequest asks for a host to be moved from one owner to another on purpose.
type TakeRequest struct {
	Host string `json:"host"`
	From string `json:"from"` // the owner whose it is now
}

// Taken is a host that was moved, or, of a dry run, would be.
type Taken struct {
	Zone    string      `json:"zone"`
	Host    string      `json:"host"`
	From    string      `json:"from"`
	To      string      `json:"to"` // the owner id of the region of the server that wants it
	Account string      `json:"account"`
	Region  string      `json:"region"`
	Before  []DNSRecord `json:"before"` // all of the host, ownership records among them
	After   []DNSRecord `json:"after"`
	Changed bool        `json:"changed"` // false: it was the new owner's already
}
