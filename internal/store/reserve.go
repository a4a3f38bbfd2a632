package store

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	roomAsked = 5 * time.Second // between two looks at how full the store is
	roomWait  = time.Second     // that such a look may take
)

// room remembers whether the store is in its reserve: the last tenth of the quota is kept for
// what an operator needs then, pausing, revoking and deleting (G12).
type room struct {
	asked    atomic.Int64
	reserved atomic.Bool
	quota    atomic.Int64 // in bytes; 0: not known yet
}

// grow marks a transaction as one that may not use up the reserve: it makes something, or
// tells of a turn.
func (tx *Tx) grow(does bool) { tx.grows = tx.grows || does }

// fullness asks how full the store is, unless that was done just now.
func (r *Records) fullness(ctx context.Context) *room {
	now, asked := now().UnixNano(), r.room.asked.Load()
	if now-asked > int64(roomAsked) && r.room.asked.CompareAndSwap(asked, now) { // one asks, nobody waits for him
		ctx, cancel := context.WithTimeout(ctx, roomWait)
		if h, err := r.store.Health(ctx); err == nil {
			r.room.reserved.Store(h.Reserved)
			r.room.quota.Store(cmp.Or(h.Quota, quotaUnsaid))
		}
		cancel()
	}
	return r.room
}

// spare refuses a transaction that would use up the reserve.
func (r *Records) spare(ctx context.Context) error {
	if !r.fullness(ctx).reserved.Load() {
		return nil
	}
	return &fleet.Error{Code: fleet.CodeUnavailable, Err: kv.ErrReserved, Message: "the store is at nine tenths of its quota, and kurad keeps the rest for pausing, revoking and deleting; " +
		"make room: remove what is not needed, or give it a larger quota"}
}
