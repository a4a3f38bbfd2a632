package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// restoringKey marks records that are being restored: there is no schema record until all
// of them are there, and nobody but the restore that wrote the mark writes any.
const restoringKey = "restoring"

const (
	restoreOps   = kv.MaxOps - 8
	restoreBytes = kv.MaxBytes / 2
)

// Restore writes the records of a snapshot into a store that has none of that
// environment. It reads the whole snapshot first, so one that is damaged changes
// nothing. The records get a store id of their own: cursors of the old one are foreign to
// them. One that was broken off is begun anew by another.
func Restore(ctx context.Context, s kv.Store, environment string, from io.ReadSeeker) (Snapshot, error) {
	snapshot, err := Verify(from)
	if err != nil {
		return Snapshot{}, err
	}
	if snapshot.Environment != environment {
		return Snapshot{}, fmt.Errorf("%w: it holds environment %q and not %q: hosts of one environment are none of another", ErrSnapshot, snapshot.Environment, environment)
	}
	if snapshot.Schema > fleet.SchemaVersion {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrSnapshot, newerSchema(snapshot.Schema))
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return Snapshot{}, fmt.Errorf("read the snapshot again: %w", err)
	}
	w := &restore{records: NewRecords(s, environment)}
	if err := w.begin(ctx); err != nil {
		return Snapshot{}, fmt.Errorf("restore environment %q: %w", environment, err)
	}
	if _, err := readSnapshot(from, func(key string, value []byte) error { return w.put(ctx, key, value) }); err != nil {
		return Snapshot{}, fmt.Errorf("restore environment %q, which is not complete now; restore again: %w", environment, err)
	}
	if err := w.finish(ctx); err != nil {
		return Snapshot{}, fmt.Errorf("restore environment %q, which is not complete now; restore again: %w", environment, err)
	}
	return snapshot, nil
}

// restore writes records in transactions that each compare its mark.
type restore struct {
	records *Records
	mark    kv.Compare
	ops     []kv.Op
	size    int
}

// begin sets the mark and removes what a restore that was broken off has left.
func (w *restore) begin(ctx context.Context) error {
	r := w.records
	page, err := r.store.List(ctx, r.prefix, kv.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	mark, err := r.store.Get(ctx, r.prefix+restoringKey)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if len(page.Items) > 0 && mark.Revision == 0 {
		return errors.New("the store holds records of it already: restore into an empty data directory or etcd, or remove them first")
	}
	value, err := encode(struct{}{}, 1, now(), now())
	if err != nil {
		return err
	}
	ifs := []kv.Compare{kv.Absent(r.prefix + schemaKey), kv.Unchanged(r.prefix+restoringKey, mark.Revision)}
	if mark.Revision == 0 {
		ifs = []kv.Compare{kv.NoneUnder(r.prefix)}
	}
	revision, err := r.store.Txn(ctx, kv.Txn{If: ifs, Then: []kv.Op{kv.Put(r.prefix+restoringKey, value)}})
	if err != nil {
		return w.interrupted(err)
	}
	w.mark = kv.Unchanged(r.prefix+restoringKey, revision)
	var left []kv.Op
	if err := r.scan(ctx, "", &revision, func(_ string, item kv.Item) {
		if item.Key != w.mark.Key {
			left = append(left, kv.Delete(item.Key))
		}
	}); err != nil {
		return err
	}
	for w.ops = range slices.Chunk(left, restoreOps) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *restore) put(ctx context.Context, key string, value []byte) error {
	if strings.HasPrefix(key, sharesFolder) {
		return nil
	}
	key = w.records.prefix + key
	if size := len(key) + len(value); len(w.ops) == restoreOps || len(w.ops) > 0 && w.size+size > restoreBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.ops = append(w.ops, kv.Put(key, value))
	w.size += len(key) + len(value)
	return nil
}

func (w *restore) flush(ctx context.Context) error {
	if len(w.ops) == 0 {
		return nil
	}
	_, err := w.records.store.Txn(ctx, kv.Txn{If: []kv.Compare{w.mark}, Then: w.ops})
	w.ops, w.size = nil, 0
	return w.interrupted(err)
}

// finish writes the schema record, which makes the records usable, in place of the mark.
func (w *restore) finish(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	value, err := encode(Schema{Version: fleet.SchemaVersion, Store: rand.Text()}, 1, now(), now())
	if err != nil {
		return err
	}
	_, err = w.records.store.Txn(ctx, kv.Txn{
		If:   []kv.Compare{w.mark, kv.Absent(w.records.prefix + schemaKey)},
		Then: []kv.Op{kv.Put(w.records.prefix+schemaKey, value), kv.Delete(w.mark.Key)},
	})
	return w.interrupted(err)
}

func (w *restore) interrupted(err error) error {
	if kv.IsConflict(err) {
		return fmt.Errorf("somebody else writes to it, another restore perhaps: %w", err)
	}
	return err
}
