package store

import (
	"context"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Orphans are those of a namespace whose end is stored work.
func (r *Records) Orphans(ctx context.Context, cluster, namespace string) ([]fleet.Orphan, error) {
	l, err := list[fleet.Orphan](ctx, r, orphanFolder(cluster, namespace), PageOptions{})
	orphans := Values(l.Items)
	for i := range orphans {
		orphans[i].Revision = l.Items[i].Revision
	}
	return orphans, err
}

// CommitOrphan stores the work on an orphan in place of that of its revision, with events that
// are kept as those of a server that is gone, and returns the new revision. Where its server
// is declared it fails with a conflict and changes nothing. Without a plan the record goes,
// whoever is declared.
func (r *Records) CommitOrphan(ctx context.Context, o fleet.Orphan, events ...fleet.Event) (int64, error) {
	key := orphanFolder(o.Cluster, o.Namespace) + o.UID
	prev, err := expect[fleet.Orphan](ctx, r, key, o.Revision)
	if err != nil {
		return 0, err
	}
	tx := r.Begin()
	if o.Plan == nil {
		tx.remove(key, prev.Revision)
	} else {
		tx.compare(kv.Absent(intentKey(o.Server)))
		put(tx, key, prev, o)
	}
	if len(events) > 0 {
		tx.AddEvent(events...)
		tx.departs = &o.Server
	}
	return tx.Commit(ctx)
}

// Note adds an event that no turn stores. That of a server that is not declared is kept as those
// of one that is gone.
func (r *Records) Note(ctx context.Context, e fleet.Event) error {
	key := fleet.ServerKey{Account: e.Account, Region: e.Region}
	for {
		intent, err := fetch[fleet.Intent](ctx, r, intentKey(key))
		if err != nil {
			return err
		}
		tx := r.Begin()
		tx.AddEvent(e)
		if !intent.Exists() {
			tx.compare(kv.Absent(intentKey(key)))
			tx.departs = &key
		}
		if _, err = tx.Commit(ctx); !kv.IsConflict(err) {
			return err
		}
	}
}
