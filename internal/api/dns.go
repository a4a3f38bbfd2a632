package api

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// DNSAudit is a page of what an audit of the zones found.
type DNSAudit struct {
	// Zones are all that the daemon was given: of one that cannot be listed the findings are
	// those of its last listing.
	Zones []fleet.AuditedZone `json:"zones"`
	// Counts says how many findings of each kind there are, those on other pages and of kinds
	// that were not asked for included.
	Counts map[fleet.FindingKind]int `json:"counts"`
	Items  []fleet.Finding           `json:"items"` // by zone, host and kind
	Next   string                    `json:"next,omitempty"`
}

// Clean reports whether every zone could be listed and every host in it is as it should be.
func (a DNSAudit) Clean() bool {
	for _, z := range a.Zones {
		if z.Reason != "" {
			return false
		}
	}
	for kind, n := range a.Counts {
		if kind != fleet.FindingOurs && n > 0 {
			return false
		}
	}
	return true
}

// DNSFilter chooses findings; empty fields choose all, but of kinds those of which something
// is wrong.
type DNSFilter struct {
	Zone string
	Kind fleet.FindingKind
}

// DNSAudit says what of the zones is not as the servers want it.
func (c *Client) DNSAudit(ctx context.Context, f DNSFilter) (all DNSAudit, err error) {
	err = pages(get("audit DNS zones", "dns", "audit").with("zone", f.Zone, "kind", string(f.Kind)), func(k call, first bool) (string, error) {
		page, err := fetch[DNSAudit](ctx, c, k)
		next := page.Next
		if page.Next = ""; !first {
			page.Items = append(all.Items, page.Items...)
		}
		all = page
		return next, err
	})
	return all, err
}

// PruneDNS deletes hosts that are ours and wanted by nobody, or says which would be. The hosts
// of one call are MaxPage at most.
func (c *Client) PruneDNS(ctx context.Context, r fleet.PruneRequest, dry bool) (fleet.Pruned, error) {
	return fetch[fleet.Pruned](ctx, c, dnsWrite("prune DNS zones", r, dry, "prune"))
}

// TakeHost moves a host from another owner to the one of the server that wants it, or says
// what that would change.
func (c *Client) TakeHost(ctx context.Context, r fleet.TakeRequest, dry bool) (fleet.Taken, error) {
	return fetch[fleet.Taken](ctx, c, dnsWrite(fmt.Sprintf("take host %q", r.Host), r, dry, "take"))
}

// dnsWrite is a call that waits for what a zone's provider answers.
func dnsWrite(what string, body any, dry bool, verb string) call {
	k := post(what, body, "dns", verb)
	k.waits = true
	if dry {
		k.query.Set("dry_run", "true")
	}
	return k
}
