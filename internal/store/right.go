package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// patience is how long a process waits for a write that runs alone and makes no progress,
// by its own clock, before it takes it for dead: its author was killed, or is cut off.
const patience = 2 * time.Second

// look is how often somebody who waits looks again.
const look = 20 * time.Millisecond

// Exclusion is the record that says whether a write runs alone.
type Exclusion struct {
	// Holder is the write that runs alone; "" when none does.
	Holder string `json:"holder,omitempty"`
}

// Right is what a write of declarations holds, so that what it has checked of other
// records is still so when it is stored, whichever replica stores the others: writes of
// one server run beside each other, a write of what many are rendered from runs alone.
//
// It is no lock that time could break: each transaction under a right compares the
// record, so one whose right was taken away changes nothing and reports a conflict.
type Right struct {
	records *Records
	at      Versioned[Exclusion]
	alone   bool
}

// Beside returns the right to write beside others, once no write runs alone.
func (r *Records) Beside(ctx context.Context) (*Right, error) {
	at, err := r.undisturbed(ctx)
	return &Right{records: r, at: at}, err
}

// Undisturbed names this moment for a turn that gives something back (fleet.TurnWrite); ok
// is false while a write runs alone.
func (r *Records) Undisturbed(ctx context.Context) (at int64, ok bool, err error) {
	e, err := fetch[Exclusion](ctx, r, exclusionKey)
	return e.Revision, e.Value.Holder == "", err
}

// AwaitUndisturbed waits until no write runs alone.
func (r *Records) AwaitUndisturbed(ctx context.Context) error {
	_, err := r.undisturbed(ctx)
	return err
}

// Alone returns the right to write alone, once nobody else has it. Writes that hold an
// older right report a conflict from then on. Release gives it back.
func (r *Records) Alone(ctx context.Context) (*Right, error) {
	for {
		at, err := r.undisturbed(ctx)
		if err != nil {
			return nil, err
		}
		right := &Right{records: r, at: at, alone: true}
		switch err := right.mark(ctx, rand.Text()); {
		case err == nil:
			return right, nil
		case !IsConflict(err):
			return nil, err
		}
	}
}

// silence is since when this process has seen an exclusion without a sign of life. All
// that wait share it: none of them may have the time to wait long enough by itself.
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

// undisturbed waits until no write runs alone, or the one that does gives no sign of life.
func (r *Records) undisturbed(ctx context.Context) (Versioned[Exclusion], error) {
	for {
		at, err := fetch[Exclusion](ctx, r, exclusionKey)
		if err != nil || at.Value.Holder == "" {
			return at, err
		}
		if r.silence.of(at.Revision, time.Now()) >= patience {
			dead := &Right{records: r, at: at}
			if err := dead.mark(ctx, ""); err != nil && !IsConflict(err) {
				return at, err
			}
			continue
		}
		timer := time.NewTimer(look)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return at, unavailable("wait for a write that runs alone", ctx.Err())
		}
	}
}

// mark writes who runs alone.
func (right *Right) mark(ctx context.Context, holder string) error {
	tx := right.records.Begin()
	put(tx, exclusionKey, right.at, Exclusion{Holder: holder})
	revision, err := tx.Commit(ctx)
	if err != nil {
		return err
	}
	right.at = Versioned[Exclusion]{Value: Exclusion{Holder: holder}, Revision: revision, Generation: right.at.Generation + 1, CreatedAt: right.at.CreatedAt}
	return nil
}

// Release lets others write again; what is not released is after a few seconds taken for
// dead. A right to write beside others needs no release.
func (right *Right) Release(ctx context.Context) error {
	if !right.alone {
		return nil
	}
	err := right.mark(ctx, "")
	right.at.Revision = -1 // holds nothing any more
	if err != nil && !IsConflict(err) {
		return fmt.Errorf("let others write again: %w", err)
	}
	return nil
}

// Under makes the transaction fail with a conflict if the right was lost. A transaction
// of a write that runs alone is a sign of life as well.
func (tx *Tx) Under(right *Right) {
	if !right.alone {
		tx.compare(Unchanged(exclusionKey, right.at.Revision))
		return
	}
	put(tx, exclusionKey, right.at, right.at.Value)
	tx.committed = func(revision int64) {
		right.at.Revision, right.at.Generation = revision, right.at.Generation+1
	}
}

// Unclaim forgets a write that ran alone when the only process that writes to this store
// was killed: at its next start nobody has to wait for it.
func (r *Records) Unclaim(ctx context.Context) error {
	at, err := fetch[Exclusion](ctx, r, exclusionKey)
	if err != nil || at.Value.Holder == "" {
		return err
	}
	return (&Right{records: r, at: at}).mark(ctx, "")
}
