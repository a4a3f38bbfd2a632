package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Pauses before the view lists or watches again after the store gave no answer.
const (
	viewPauseMin = 50 * time.Millisecond
	viewPauseMax = 5 * time.Second
	// progressPause is the time between two questions how far the watch is.
	progressPause = 50 * time.Millisecond
)

// Update is one change that a view has taken in.
type Update struct {
	Kind     Kind
	Key      fleet.ServerKey // of an intent, a status, a deployment or an event
	Name     string          // of an account, a template, a region or a token; account/key of a cache endpoint
	Revision int64
	Deleted  bool
}

// View is the newest state of an environment's records in memory: built by a list at
// one revision, then kept by a watch, and built again when the watch cannot go on. What
// it shows is some revision of the store, never a mixture of two. Reservations, old
// deployments and the events themselves are not in it.
//
// What it returns is for reading only; Server returns a status, a plan and a deployment
// of the caller's own, because turns work on those.
type View struct {
	records *Records
	log     hclog.Logger

	mu       sync.RWMutex
	state    *state
	revision int64
	moved    chan struct{} // closed and replaced when revision moves

	subMu sync.Mutex
	subs  []*subscription
}

type subscription struct{ call func(Update) }

// NewView returns a view of the records, empty until Run has listed them.
func NewView(records *Records, log hclog.Logger) *View {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	return &View{records: records, log: log, state: newState(), moved: make(chan struct{})}
}

// Run keeps the view until ctx ends, then returns nil; it returns an error when the
// store has stopped. What goes wrong in between costs time only: Run lists again.
func (v *View) Run(ctx context.Context) error {
	pause := viewPauseMin
	for {
		start := v.Revision()
		err := v.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, kv.ErrClosed) {
			return fmt.Errorf("the view of the records ended: %w", err)
		}
		if errors.Is(err, kv.ErrCompacted) || v.Revision() != start {
			pause = viewPauseMin
		}
		if errors.Is(err, kv.ErrCompacted) {
			continue
		}
		v.log.Warn("the view of the records lost its watch and lists again", "error", err, "pause", pause)
		if !kv.Pause(ctx, pause) {
			return nil
		}
		pause = min(2*pause, viewPauseMax)
	}
}

// follow lists everything and then applies what the watch brings until it ends.
func (v *View) follow(ctx context.Context) error {
	next, revision, err := load(ctx, v.records)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, err := v.records.store.Watch(ctx, v.records.prefix, revision+1)
	if err != nil {
		return err
	}
	v.replace(next, revision)
	for b := range batches {
		if b.Err != nil {
			return b.Err
		}
		v.apply(b)
	}
	if err := v.records.store.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrClosed, err)
	}
	// A watch also ends where the store was closed: ask it.
	if _, err := v.records.Revision(ctx); err != nil {
		return err
	}
	return errors.New("the watch ended")
}

// replace takes in a newly listed state and reports what differs from the one before.
func (v *View) replace(next *state, revision int64) {
	v.mu.Lock()
	updates := differences(v.state, next, revision)
	fresh := newProblems(v.state, next)
	v.state = next
	v.move(revision)
	v.mu.Unlock()
	v.report(fresh)
	v.publish(updates)
}

// apply takes in all changes of one revision.
func (v *View) apply(b kv.Batch) {
	var updates []Update
	var fresh []Problem
	v.mu.Lock()
	for _, e := range b.Events {
		key := e.Key[len(v.records.prefix):]
		update, ok := v.state.apply(key, e, v.records.prefix)
		if ok {
			update.Revision = b.Revision
			updates = append(updates, update)
		}
		if p, bad := v.state.problems[key]; bad && !e.Deleted {
			fresh = append(fresh, p)
		}
	}
	v.move(max(v.revision, b.Revision))
	v.mu.Unlock()
	v.report(fresh)
	v.publish(updates)
}

func (v *View) move(revision int64) {
	v.revision = revision
	close(v.moved)
	v.moved = make(chan struct{})
}

func (v *View) report(problems []Problem) {
	for _, p := range problems {
		v.log.Error("a stored record cannot be read and is left out", "record", p.What, "key", p.Key, "error", p.Err)
	}
}

func (v *View) publish(updates []Update) {
	v.subMu.Lock()
	subs := slices.Clone(v.subs)
	v.subMu.Unlock()
	for _, u := range updates {
		for _, s := range subs {
			s.call(u)
		}
	}
}

// Subscribe calls f for every change that the view takes in from now on, after it did,
// in order and from one goroutine; f must not block. Whoever subscribes before Run
// hears of every record once. cancel ends it; a call that is under way may still end.
func (v *View) Subscribe(f func(Update)) (cancel func()) {
	s := &subscription{call: f}
	v.subMu.Lock()
	defer v.subMu.Unlock()
	v.subs = append(v.subs, s)
	return func() {
		v.subMu.Lock()
		defer v.subMu.Unlock()
		v.subs = slices.DeleteFunc(slices.Clone(v.subs), func(o *subscription) bool { return o == s })
	}
}

// Revision returns the revision that the view shows; 0 before the first list.
func (v *View) Revision() int64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.revision
}

// shows returns the revision that the view shows, and what is closed when that changes.
func (v *View) shows() (at int64, moved <-chan struct{}) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.revision, v.moved
}

// CatchUp waits until the view shows every write that was acknowledged before the call,
// whoever made it and to whatever records.
func (v *View) CatchUp(ctx context.Context) error {
	revision, err := v.records.Revision(ctx)
	if err != nil {
		return err
	}
	ask := time.NewTimer(0)
	defer ask.Stop()
	for {
		at, moved := v.shows()
		if at >= revision {
			return nil
		}
		select {
		case <-moved:
		case <-ask.C:
			// The last write may be none that this view watches. A watch that does not know
			// yet how far it is does not answer, so ask again.
			if err := v.records.store.Progress(ctx); err != nil {
				return unavailable("ask the store how far the view is", err)
			}
			ask.Reset(progressPause)
		case <-ctx.Done():
			return &fleet.Error{Code: fleet.CodeUnavailable, Message: "kurad lags behind its store; try again",
				Err: fmt.Errorf("the view shows revision %d of %d: %w", at, revision, ctx.Err())}
		}
	}
}

// WaitFor waits until the view shows revision, that of a write to these records, or a
// later one; WaitFor(ctx, 1) waits for the first list.
func (v *View) WaitFor(ctx context.Context, revision int64) error {
	for {
		at, moved := v.shows()
		if at >= revision {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d, the view shows %d: %w", revision, at, ctx.Err())
		}
	}
}

// Problems returns the stored records that cannot be read, by key.
func (v *View) Problems() []Problem {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedProblems(v.state.problems)
}
