package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// patience is how long a process waits for a writer that makes no progress, by its own
// clock, before it takes it for dead: it was killed, or is cut off.
const patience = 2 * time.Second

// lockPause is between two looks of somebody who waits for a writer.
const lockPause = 20 * time.Millisecond

// writer is the record of the lock.
type writer struct {
	// Holder is the one writer; "" while there is none.
	Holder string `json:"holder,omitempty"`
}

// Lock is the environment's reader/writer lock, which every replica takes before it writes
// a declaration, so that what it has checked of other records is still so when it is
// stored. Writes of one server are the readers, side by side; a write of what many are
// rendered from is the writer, alone.
//
// A writer waits for no reader: it ends their locks. And no lock could be broken by time:
// each transaction under it compares the record, so one whose lock was taken away changes
// nothing and reports a conflict.
type Lock struct {
	records *Records
	at      Versioned[writer]
	writes  bool
}

// RLock locks for reading, once there is no writer.
func (r *Records) RLock(ctx context.Context) (*Lock, error) {
	at, err := r.unlocked(ctx)
	return &Lock{records: r, at: at}, err
}

// Unlocked names this moment for a turn that gives something back (fleet.TurnWrite); ok
// is false while there is a writer.
func (r *Records) Unlocked(ctx context.Context) (at int64, ok bool, err error) {
	e, err := fetch[writer](ctx, r, lockKey)
	return e.Revision, e.Value.Holder == "", err
}

// AwaitUnlocked waits until there is no writer.
func (r *Records) AwaitUnlocked(ctx context.Context) error {
	_, err := r.unlocked(ctx)
	return err
}

// Lock locks for writing, once there is no other writer. Transactions under an older lock
// report a conflict from then on.
func (r *Records) Lock(ctx context.Context) (*Lock, error) {
	for {
		at, err := r.unlocked(ctx)
		if err != nil {
			return nil, err
		}
		lock := &Lock{records: r, at: at, writes: true}
		switch err := lock.mark(ctx, rand.Text()); {
		case err == nil:
			return lock, nil
		case !kv.IsConflict(err):
			return nil, err
		}
	}
}

// silence is since when this process has seen a writer without a sign of life. All that
// wait share it: none of them may have the time to wait long enough by itself.
type silence struct {
	mu       sync.Mutex
	revision int64
	since    time.Time
}

func (s *silence) of(revision int64, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision != revision {
		s.revision, s.since = revision, now
	}
	return now.Sub(s.since)
}

// unlocked waits until there is no writer, or the one there is gives no sign of life.
func (r *Records) unlocked(ctx context.Context) (Versioned[writer], error) {
	for {
		at, err := fetch[writer](ctx, r, lockKey)
		if err != nil || at.Value.Holder == "" {
			return at, err
		}
		if r.silence.of(at.Revision, time.Now()) >= patience {
			dead := &Lock{records: r, at: at}
			if err := dead.mark(ctx, ""); err != nil && !kv.IsConflict(err) {
				return at, err
			}
			continue
		}
		if !kv.Pause(ctx, lockPause) {
			return at, unavailable("wait for a write that runs alone", ctx.Err())
		}
	}
}

// Alone reports whether nobody else writes a declaration.
func (l *Lock) Alone() bool { return l.writes }

// mark stores who the writer is.
func (l *Lock) mark(ctx context.Context, holder string) error {
	tx := l.records.Begin()
	put(tx, lockKey, l.at, writer{Holder: holder})
	revision, err := tx.Commit(ctx)
	if err != nil {
		return err
	}
	l.at = Versioned[writer]{Value: writer{Holder: holder}, Revision: revision, Generation: l.at.Generation + 1, CreatedAt: l.at.CreatedAt}
	return nil
}

// Unlock lets others write again; a writer that does not is after a few seconds taken for
// dead. A reader has nothing to unlock.
func (l *Lock) Unlock(ctx context.Context) error {
	if !l.writes {
		return nil
	}
	err := l.mark(ctx, "")
	l.at.Revision = -1 // holds nothing any more
	if err != nil && !kv.IsConflict(err) {
		return fmt.Errorf("let others write again: %w", err)
	}
	return nil
}

// Under makes the transaction fail with a conflict if the lock was lost. A transaction of
// a writer is a sign of life as well.
func (tx *Tx) Under(l *Lock) {
	if !l.writes {
		tx.compare(kv.Unchanged(lockKey, l.at.Revision))
		return
	}
	put(tx, lockKey, l.at, l.at.Value)
	tx.committed = func(revision int64) {
		l.at.Revision, l.at.Generation = revision, l.at.Generation+1
	}
}

// BreakLock ends a writer's lock that was left when the only process that writes to this
// store was killed: at its next start nobody has to wait for it.
func (r *Records) BreakLock(ctx context.Context) error {
	at, err := fetch[writer](ctx, r, lockKey)
	if err != nil || at.Value.Holder == "" {
		return err
	}
	return (&Lock{records: r, at: at}).mark(ctx, "")
}
