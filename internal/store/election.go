package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// ErrNotLeader says that a write was refused because this process does not lead any more.
var ErrNotLeader = errors.New("another process leads now, or none does")

// campaignPause is the time before a campaign goes on after the store gave no answer.
const campaignPause = 500 * time.Millisecond

// Leadership is the proof that this process leads, until it is lost. Two things hold: no
// two processes find Valid true at the same time, as long as their clocks run equally
// fast; and, whatever clocks do, no write that compares Guard is stored once somebody
// else leads.
type Leadership interface {
	// Guard holds in the store exactly while this process leads.
	Guard() Compare
	// Valid reports, by this process's own clock, that nobody else can lead yet. It is
	// false at once in a process that was stopped for too long, and stays false.
	Valid() bool
	// Lost is closed when Valid has become false, or the leader's key is gone.
	Lost() <-chan struct{}
	// Resign gives the leadership up, so that another process leads without waiting. It
	// is lost whatever Resign returns.
	Resign(ctx context.Context) error
}

// leaderKey is the key that the leader holds.
func leaderKey(prefix string) string { return prefix + "holder" }

// leadership is a key that this process has written and that nobody has changed since.
type leadership struct {
	store Store
	guard Compare
	lost  chan struct{}
	life  context.Context // ends when it is lost
	end   context.CancelFunc

	mu    sync.Mutex
	over  bool
	until time.Time // when the lease may run out; zero: there is none
}

func newLeadership(s Store, guard Compare, until time.Time) *leadership {
	l := &leadership{store: s, guard: guard, lost: make(chan struct{}), until: until}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// Guard implements Leadership.
func (l *leadership) Guard() Compare { return l.guard }

// Lost implements Leadership.
func (l *leadership) Lost() <-chan struct{} { return l.lost }

// Valid implements Leadership. It compares times instead of relying on a timer, which
// fires late in a process that was stopped.
func (l *leadership) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid()
}

func (l *leadership) valid() bool {
	if !l.over && !l.until.IsZero() && !time.Now().Before(l.until) {
		l.lose()
	}
	return !l.over
}

// extend moves the time until which the lease certainly lasts, and says what it is; one
// that was over meanwhile stays so.
func (l *leadership) extend(until time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid() && until.After(l.until) {
		l.until = until
	}
	return !l.over
}

// remaining is how long the lease certainly lasts.
func (l *leadership) remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until)
}

// lose ends the leadership; the caller holds mu.
func (l *leadership) lose() {
	if !l.over {
		l.over = true
		close(l.lost)
		l.end()
	}
}

func (l *leadership) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose()
}

// Resign implements Leadership. Where there is a lease it runs out, for nobody renews it.
func (l *leadership) Resign(ctx context.Context) error {
	l.giveUp()
	_, err := l.store.Txn(ctx, Txn{If: []Compare{l.guard}, Then: []Op{Delete(l.guard.Key)}})
	if IsConflict(err) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// guardKey loses the leadership when the key is not as it was written.
func (l *leadership) guardKey() {
	for {
		err := await(l.life, l.store, l.guard.Key, func(revision int64) bool { return revision != l.guard.Revision })
		if err == nil || errors.Is(err, ErrClosed) {
			l.giveUp()
		}
		if !pause(l.life, campaignPause) {
			return
		}
	}
}

// take writes the leader's key where there is none.
type take func(ctx context.Context, key string, value []byte) (*leadership, error)

// sweep removes the leader's key where it is certain that nobody holds it.
type sweep func(ctx context.Context, key string) error

// takeForLife takes the key without a lease, for stores that nobody else uses: it is held
// until the process ends or resigns.
func takeForLife(s Store) take {
	return func(ctx context.Context, key string, value []byte) (*leadership, error) {
		// A write whose outcome nobody waits for would leave a key that nobody holds.
		revision, err := s.Txn(context.WithoutCancel(ctx), Txn{If: []Compare{Absent(key)}, Then: []Op{Put(key, value)}})
		if err != nil {
			return nil, err
		}
		return newLeadership(s, Unchanged(key, revision), time.Time{}), nil
	}
}

// campaign waits until the leader's key can be taken. A store that does not answer is a
// reason to wait as well; only the end of ctx, or of the store, is an error.
func campaign(ctx context.Context, s Store, prefix string, value []byte, log hclog.Logger, sweep sweep, take take) (*leadership, error) {
	key := leaderKey(prefix)
	for {
		var err error
		if sweep != nil {
			err = sweep(ctx, key)
		}
		if err == nil {
			err = await(ctx, s, key, func(revision int64) bool { return revision == 0 })
		}
		if err == nil {
			var l *leadership
			if l, err = take(ctx, key, value); err == nil {
				if ctx.Err() == nil {
					return l, nil
				}
				return nil, errors.Join(ctx.Err(), l.Resign(context.WithoutCancel(ctx)))
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrClosed):
			return nil, err
		case IsConflict(err):
			continue
		}
		log.Warn("cannot campaign, trying again", "error", err, "pause", campaignPause)
		if !pause(ctx, campaignPause) {
			return nil, ctx.Err()
		}
	}
}

// await waits until the revision of the last change of key is as ok wants it; 0 is that
// of a key that is not there.
func await(ctx context.Context, s Store, key string, ok func(revision int64) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		page, err := s.List(ctx, key, ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		var revision int64
		if len(page.Items) > 0 && page.Items[0].Key == key {
			revision = page.Items[0].Revision
		}
		if ok(revision) {
			return nil
		}
		batches, err := s.Watch(ctx, key, page.Revision+1)
		if err != nil {
			return err
		}
		for b := range batches {
			for _, e := range b.Events {
				revision := e.KV.Revision
				if e.Deleted {
					revision = 0
				}
				if e.Key == key && ok(revision) {
					return nil
				}
			}
		}
		// Whatever ended the watch, a list says whether there is anything to wait for.
		if !pause(ctx, progressPause) {
			return ctx.Err()
		}
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
