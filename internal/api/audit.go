package api

import (
	"context"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// AuditAnchor is what the store knows of an audit log.
type AuditAnchor struct {
	Log string `json:"log"`
	fleet.AuditAnchor
	WrittenAt time.Time `json:"written_at"`
}

// AuditAnchors lists the anchors of the audit logs of all kurads of the store.
func (c *Client) AuditAnchors(ctx context.Context) ([]AuditAnchor, error) {
	var out List[AuditAnchor]
	err := c.do(ctx, get("list the anchors of audit logs", "v1", "audit-anchors"), &out)
	return out.Items, err
}
