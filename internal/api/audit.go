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
	list, err := fetch[List[AuditAnchor]](ctx, c, get("list the anchors of audit logs", "audit-anchors"))
	return list.Items, err
}
