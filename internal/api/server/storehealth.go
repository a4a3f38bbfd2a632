package server

import (
	"context"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// healthTimeout bounds how long a report waits for the store.
const healthTimeout = 2 * time.Second

// storeHealth says how the store is doing, and what that means (G7).
func (s *Server) storeHealth(ctx context.Context) (*api.StoreHealth, api.DaemonCondition) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	c := api.DaemonCondition{Type: api.ConditionStoreHealthy, Status: fleet.True, Reason: api.ReasonHealthy, Message: "the store answers and has room"}
	h, err := s.Records.Store().Health(ctx)
	if err != nil {
		c.Status, c.Reason, c.Message = fleet.Unknown, api.ReasonStoreUnreachable, "the store does not say how it is: "+err.Error()
		return nil, c
	}
	switch {
	case h.Refusing:
		c.Status, c.Reason = fleet.False, api.ReasonQuotaExceeded
		c.Message = fmt.Sprintf("the store has reached its quota (%d of %d bytes) and refuses writes; it reads on. The embedded one makes room by itself within minutes; an external etcd needs compaction, defragmentation and \"etcdctl alarm disarm\"", h.Size, h.Quota)
	case h.Reserved:
		c.Status, c.Reason = fleet.False, api.ReasonNearQuota
		c.Message = fmt.Sprintf("the store is at nine tenths of its quota (%d of %d bytes, %d in use): kurad changes nothing but what is destroyed, and takes nothing new; pausing, revoking and deleting go on. Make room: remove what is not needed, or give it a larger quota", h.Size, h.Quota, h.InUse)
	case h.Full:
		c.Status, c.Reason = fleet.False, api.ReasonNearQuota
		c.Message = fmt.Sprintf("the store is near its quota (%d of %d bytes, %d in use); from nine tenths of it on kurad takes nothing new, and changes nothing but what is destroyed", h.Size, h.Quota, h.InUse)
	}
	return &api.StoreHealth{Size: h.Size, InUse: h.InUse, Quota: h.Quota, Full: h.Full, Refusing: h.Refusing}, c
}
