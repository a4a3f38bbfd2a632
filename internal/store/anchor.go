package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// MaxAnchors bounds the anchors of audit logs that are kept: those of kurads that are no
// more are forgotten, the ones that were written longest ago first.
const MaxAnchors = 64

// Anchors are the anchors of all audit logs, by the name of the log.
func (r *Records) Anchors(ctx context.Context) (map[string]Versioned[fleet.AuditAnchor], error) {
	anchors, bad := map[string]Versioned[fleet.AuditAnchor]{}, error(nil)
	err := r.scan(ctx, anchorsFolder, new(int64), func(key string, item kv.Item) {
		v, err := decode[fleet.AuditAnchor](item)
		if err != nil && bad == nil {
			bad = malformed(key, err)
		}
		anchors[strings.TrimPrefix(key, anchorsFolder)] = v
	})
	if err == nil {
		err = bad
	}
	return anchors, err
}

// PutAnchor stores the anchor of an audit log in place of prev, and returns it as it is
// stored.
func (r *Records) PutAnchor(ctx context.Context, log string, prev Versioned[fleet.AuditAnchor], a fleet.AuditAnchor) (Versioned[fleet.AuditAnchor], error) {
	tx := r.Begin()
	put(tx, anchorsFolder+log, prev, a)
	if !prev.Exists() {
		if err := tx.forgetAnchors(ctx); err != nil {
			return prev, err
		}
	}
	revision, err := tx.Commit(ctx)
	if err != nil {
		return prev, err
	}
	return Versioned[fleet.AuditAnchor]{Value: a, Generation: prev.Generation + 1, Revision: revision, CreatedAt: prev.CreatedAt, UpdatedAt: tx.now}, nil
}

// forgetAnchors makes room for another one.
func (tx *Tx) forgetAnchors(ctx context.Context) error {
	anchors, err := tx.records.Anchors(ctx)
	if err != nil || len(anchors) < MaxAnchors {
		return err
	}
	logs := slices.SortedFunc(maps.Keys(anchors), func(a, b string) int { return cmp.Compare(anchors[a].Revision, anchors[b].Revision) })
	for _, log := range logs[:len(logs)-MaxAnchors+1] {
		tx.remove(anchorsFolder+log, anchors[log].Revision)
	}
	return nil
}
