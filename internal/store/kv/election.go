package kv

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

// watchPause is the time before a watch that has ended is begun again.
const watchPause = 50 * time.Millisecond

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
	// GiveUp ends it and leaves the key: somebody has seen that another process leads.
	GiveUp()
	// Resign gives the leadership up, so that another process leads without waiting. It
	// is lost whatever Resign returns.
	Resign(ctx context.Context) error
}

// LeaderKey is the key that the leader holds.
func LeaderKey(prefix string) string { return prefix + "holder" }

// Held is a Leadership: a key that this process has written and that nobody has changed
// since.
type Held struct {
	store Store
	guard Compare
	lost  chan struct{}
	life  context.Context // ends when it is lost
	end   context.CancelFunc

	mu    sync.Mutex
	over  bool
	until time.Time // when the lease may run out; zero: there is none
}

// Hold returns the leadership of who has written guard's key, under a lease that certainly
// lasts until then; zero: there is no lease.
func Hold(s Store, guard Compare, until time.Time) *Held {
	h := &Held{store: s, guard: guard, lost: make(chan struct{}), until: until}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// HoldForLife writes the leader's key without a lease, for stores that nobody else uses: it
// is held until the process ends or resigns.
func HoldForLife(ctx context.Context, s Store, key string, value []byte) (*Held, error) {
	// A write whose outcome nobody waits for would leave a key that nobody holds.
	revision, err := s.Txn(context.WithoutCancel(ctx), Txn{If: []Compare{Absent(key)}, Then: []Op{Put(key, value)}})
	if err != nil {
		return nil, err
	}
	return Hold(s, Unchanged(key, revision), time.Time{}), nil
}

// Guard implements Leadership.
func (h *Held) Guard() Compare { return h.guard }

// Lost implements Leadership.
func (h *Held) Lost() <-chan struct{} { return h.lost }

// Life ends when the leadership is lost.
func (h *Held) Life() context.Context { return h.life }

// Valid implements Leadership. It compares times instead of relying on a timer, which
// fires late in a process that was stopped.
func (h *Held) Valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.valid()
}

func (h *Held) valid() bool {
	if !h.over && !h.until.IsZero() && !time.Now().Before(h.until) {
		h.lose()
	}
	return !h.over
}

// Extend moves the time until which the lease certainly lasts; one that was over meanwhile
// stays so.
func (h *Held) Extend(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.valid() && until.After(h.until) {
		h.until = until
	}
}

// Remaining is how long the lease certainly lasts.
func (h *Held) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// lose ends the leadership; the caller holds mu.
func (h *Held) lose() {
	if !h.over {
		h.over = true
		close(h.lost)
		h.end()
	}
}

// GiveUp implements Leadership.
func (h *Held) GiveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lose()
}

// Resign implements Leadership. Where there is a lease it runs out, for nobody renews it.
func (h *Held) Resign(ctx context.Context) error {
	h.GiveUp()
	_, err := h.store.Txn(ctx, Txn{If: []Compare{h.guard}, Then: []Op{Delete(h.guard.Key)}})
	if IsConflict(err) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// Watch loses the leadership when the key is not as it was written, and returns when it is
// lost.
func (h *Held) Watch() {
	for {
		err := await(h.life, h.store, h.guard.Key, func(revision int64) bool { return revision != h.guard.Revision })
		if err == nil || errors.Is(err, ErrClosed) {
			h.GiveUp()
		}
		if !Pause(h.life, campaignPause) {
			return
		}
	}
}

// Election is how a store lets one of many lead.
type Election struct {
	Store Store
	Log   hclog.Logger
	// Sweep removes the leader's key where it is certain that nobody holds it; nil: it
	// never is.
	Sweep func(ctx context.Context, key string) error
	// Take writes the leader's key where there is none.
	Take func(ctx context.Context, key string, value []byte) (*Held, error)
}

// Campaign waits until the leader's key can be taken. A store that does not answer is a
// reason to wait as well; only the end of ctx, or of the store, is an error.
func (e Election) Campaign(ctx context.Context, prefix string, value []byte) (*Held, error) {
	key := LeaderKey(prefix)
	for {
		var err error
		if e.Sweep != nil {
			err = e.Sweep(ctx, key)
		}
		if err == nil {
			err = await(ctx, e.Store, key, func(revision int64) bool { return revision == 0 })
		}
		if err == nil {
			var h *Held
			if h, err = e.Take(ctx, key, value); err == nil {
				if ctx.Err() == nil {
					return h, nil
				}
				return nil, errors.Join(ctx.Err(), h.Resign(context.WithoutCancel(ctx)))
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
		e.Log.Warn("cannot campaign, trying again", "error", err, "pause", campaignPause)
		if !Pause(ctx, campaignPause) {
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
				revision := e.Item.Revision
				if e.Deleted {
					revision = 0
				}
				if e.Key == key && ok(revision) {
					return nil
				}
			}
		}
		// Whatever ended the watch, a list says whether there is anything to wait for.
		if !Pause(ctx, watchPause) {
			return ctx.Err()
		}
	}
}

// Pause waits, and reports whether ctx goes on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
