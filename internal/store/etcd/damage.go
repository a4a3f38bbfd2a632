package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// errDamaged says what cannot be helped by starting again.
var errDamaged = errors.New("its files are damaged: restore a snapshot into an empty data directory (kurad snapshot restore)")

// checkLog refuses a write-ahead log that ends before what the database holds. etcd cuts
// off a damaged end, as it must after a loss of power, and would then, for a minute or
// for ever, take new entries for such as it has applied already: acknowledged and
// without effect. A log that is damaged elsewhere it refuses by itself.
func checkLog(dir string) (err error) {
	defer func() { // the readers do not expect every damage
		if p := recover(); p != nil {
			err = fmt.Errorf("%v: %w", p, errDamaged)
		}
	}()
	log, database := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(database); errors.Is(err, os.ErrNotExist) {
		return nil // new, or never started to its end
	}
	applied, err := appliedIndex(database)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", database, err, errDamaged)
	}
	if applied == 0 {
		return nil
	}
	if !wal.Exist(log) {
		return fmt.Errorf("the write-ahead log in %s is gone: %w", log, errDamaged)
	}
	last, err := lastIndex(log)
	if err != nil {
		return fmt.Errorf("read the write-ahead log in %s: %w: %w", log, err, errDamaged)
	}
	if last < applied {
		return fmt.Errorf("the write-ahead log in %s ends at entry %d, before entry %d that the database holds: %w", log, last, applied, errDamaged)
	}
	return nil
}

// appliedIndex is the last entry that the database holds; 0: none.
func appliedIndex(database string) (index uint64, err error) {
	db, err := bbolt.Open(database, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return index, db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(schema.Meta.Name())
		if meta == nil {
			return nil
		}
		if v := meta.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
			index = binary.BigEndian.Uint64(v)
		}
		return nil
	})
}

// lastIndex is the last entry of the log that can be read.
func lastIndex(log string) (uint64, error) {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), log)
	if err != nil {
		return 0, err
	}
	if len(snapshots) == 0 {
		return 0, errors.New("it does not begin as a log does")
	}
	newest := snapshots[len(snapshots)-1]
	w, err := wal.OpenForRead(zap.NewNop(), log, newest)
	if err != nil {
		return 0, err
	}
	defer func() { _ = w.Close() }() // it would sync a file that was only read
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 {
		return newest.GetIndex(), nil
	}
	return entries[len(entries)-1].GetIndex(), nil
}
