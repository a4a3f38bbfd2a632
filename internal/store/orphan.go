package store

import (
	"context"
	"errors"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Orphaned stores events of a server that is not declared, or none; where it is, it fails
// with a conflict and changes nothing. The server's events are kept as those of one that is
// gone.
func (r *Records) Orphaned(ctx context.Context, k fleet.ServerKey, events ...fleet.Event) error {
	for {
		tx := r.Begin()
		tx.compare(kv.Absent(intentKey(k)))
		if len(events) > 0 {
			if err := tx.appendEvents(ctx, events); err != nil {
				return err
			}
			if err := tx.depart(ctx, k); err != nil {
				return err
			}
		}
		if tx.err != nil {
			return tx.err
		}
		_, err := tx.run(ctx)
		conflict, ok := errors.AsType[*kv.ConflictError](err)
		if ok && conflict.Key != r.prefix+intentKey(k) {
			continue // what was read here has changed: read it again
		}
		return err
	}
}
