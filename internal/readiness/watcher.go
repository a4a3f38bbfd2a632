package readiness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Question is what is asked again and again. A key's questions are told apart by their
// names; one that has changed is another.
type Question interface {
	comparable
	Name() string
}

// Answer is what was heard. Whether it is good sets the pace; another state is news.
type Answer interface {
	State() (good bool, reason fleet.Reason)
}

// Endpoints is a watcher of endpoints.
type Endpoints[K comparable] = Watcher[K, Target, fleet.ProbeObservation]

// Watcher keeps the newest answer to every question of every key, and asks each at the
// pace of its state (R5). There is one goroutine for each question under way.
type Watcher[K comparable, Q Question, A Answer] struct {
	ask     func(context.Context, Q) A
	changed func(key K)
	pace    Pace
	stopped chan struct{} // closed when Run has ended
	asking  sync.WaitGroup

	mu      sync.Mutex
	ctx     context.Context               // Run's
	keys    map[K]map[string]*asked[Q, A] // by key, then name
	gate    lane                          // what is pending, and what Now asks for
	routine lane                          // what has converged
}

// asked is one question of one key, with the newest answer.
type asked[Q Question, A Answer] struct {
	entry
	question Q
	answer   A
}

// NewWatcher returns a watcher that asks by the schedule of pace. It calls changed,
// without a lock and from any goroutine, when there is news of a key: the state of an
// answer differs from before, or a pending key got a fresh good one, which its gate waits
// for. A message alone is no news.
func NewWatcher[K comparable, Q Question, A Answer](ask func(context.Context, Q) A, changed func(key K), pace Pace) *Watcher[K, Q, A] {
	return &Watcher[K, Q, A]{
		ask: ask, changed: changed, pace: pace.withDefaults(),
		stopped: make(chan struct{}),
		keys:    map[K]map[string]*asked[Q, A]{},
	}
}

// Run asks until ctx ends, and returns when the last question has. It runs once.
func (w *Watcher[K, Q, A]) Run(ctx context.Context) {
	defer close(w.stopped)
	w.limit(ctx, (w.pace.Concurrency+1)/2, w.pace.Concurrency/2)
	<-ctx.Done()
	w.limit(ctx, 0, 0)
	w.asking.Wait()
}

// limit says how many questions may be under way in each lane from now on.
func (w *Watcher[K, Q, A]) limit(ctx context.Context, gate, routine int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.gate.limit, w.routine.limit = ctx, gate, routine
	w.askDue(&w.gate)
	w.askDue(&w.routine)
}

// Set says what is asked for key and whether it is pending: waiting for good answers.
// Called again with the same it changes nothing; a new question and those of a key that
// becomes pending are asked at once.
func (w *Watcher[K, Q, A]) Set(key K, questions []Q, pending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.keys[key]
	now := make(map[string]*asked[Q, A], len(questions))
	for _, q := range questions {
		name := q.Name()
		if now[name] != nil {
			continue
		}
		e := before[name]
		if e == nil || e.question != q {
			e = w.begin(key, q, pending)
		} else if delete(before, name); e.pending != pending {
			e.pending, e.failures = pending, 0
			if good, _ := e.answer.State(); !good {
				e.failures = 1
			}
			w.reschedule(&e.entry)
		}
		now[name] = e
	}
	for _, e := range before {
		w.drop(&e.entry)
	}
	if w.keys[key] = now; len(now) == 0 {
		delete(w.keys, key)
	}
}

// begin makes a question due at once.
func (w *Watcher[K, Q, A]) begin(key K, q Q, pending bool) *asked[Q, A] {
	e := &asked[Q, A]{question: q}
	e.entry = entry{name: fmt.Sprint(key, " ", q.Name()), pending: pending}
	e.ask = func(ctx context.Context) {
		begun := time.Now()
		answer := w.ask(ctx, q)
		if w.record(e, begun, answer, ctx.Err() != nil) {
			w.changed(key)
		}
	}
	w.schedule(&e.entry, 0)
	return e
}

// reschedule puts e elsewhere in the schedule after it became pending or ceased to be.
func (w *Watcher[K, Q, A]) reschedule(e *entry) {
	switch {
	case e.running:
		e.again = e.again || e.pending // the question under way began before anyone waited
	case len(e.waiting) > 0:
		// due already
	case e.pending || !e.answered:
		w.schedule(e, 0)
	default:
		w.schedule(e, e.pause(w.pace))
	}
}

// Latest returns the newest answer to a question of key.
func (w *Watcher[K, Q, A]) Latest(key K, name string) (answer A, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.keys[key][name]; e != nil {
		return e.answer, e.answered
	}
	return answer, false
}

// Memory returns when the newest question was asked that was answered well, and the most
// that any of key's failed in a row.
func (w *Watcher[K, Q, A]) Memory(key K) (lastGood time.Time, failed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.keys[key] {
		failed = max(failed, e.failures)
		if e.good.After(lastGood) {
			lastGood = e.good
		}
	}
	return lastGood, failed
}

// Now asks all questions of key at once and waits: afterwards Latest returns answers to
// what was asked after the call.
func (w *Watcher[K, Q, A]) Now(ctx context.Context, key K) error {
	w.mu.Lock()
	entries := w.keys[key]
	if len(entries) == 0 {
		w.mu.Unlock()
		return fmt.Errorf("probe %v: it has no endpoint to probe", key)
	}
	var answers []chan error
	for _, e := range entries {
		answer := make(chan error, 1)
		answers = append(answers, answer)
		e.waiting = append(e.waiting, answer)
		if !e.running {
			w.schedule(&e.entry, 0)
		}
	}
	w.mu.Unlock()

	for _, answer := range answers {
		select {
		case err := <-answer:
			if err != nil {
				return fmt.Errorf("probe %v: %w", key, err)
			}
		case <-w.stopped:
			return fmt.Errorf("probe %v: %w", key, errStopped)
		case <-ctx.Done():
			return fmt.Errorf("probe %v: no answer yet: %w", key, ctx.Err())
		}
	}
	return nil
}

var (
	errStopped = errors.New("probes have stopped, because kurad is stopping")
	errChanged = errors.New("its endpoints changed meanwhile: ask again")
)

// schedule makes e due after pause, in the lane of its state, and no longer when it was.
func (w *Watcher[K, Q, A]) schedule(e *entry, pause time.Duration) {
	e.unschedule()
	e.lane = &w.routine
	if e.pending || len(e.waiting) > 0 {
		e.lane = &w.gate
	}
	due, lane := dueEntry{e, e.schedules}, e.lane
	e.timer = time.AfterFunc(pause, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		lane.due = append(lane.due, due)
		w.askDue(lane)
	})
}

// askDue asks what is due in a lane, as far as there is room.
func (w *Watcher[K, Q, A]) askDue(l *lane) {
	for e := l.next(); e != nil; e = l.next() {
		l.running++
		e.running, e.again = true, false
		e.served, e.waiting = e.waiting, nil
		ctx := w.ctx
		w.asking.Go(func() { e.ask(ctx) })
	}
}

// drop takes e out and tells those who wait for it.
func (w *Watcher[K, Q, A]) drop(e *entry) {
	e.unschedule()
	e.gone = true
	notify(append(e.waiting, e.served...), errChanged)
	e.waiting, e.served = nil, nil
}

// notify answers those who wait; each channel has room for its one answer.
func notify(answers []chan error, err error) {
	for _, answer := range answers {
		answer <- err
	}
}

// record stores the answer, makes the next question due and reports whether there is news.
func (w *Watcher[K, Q, A]) record(e *asked[Q, A], begun time.Time, answer A, stopping bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.lane.running--
	e.running = false
	defer w.askDue(e.lane) // there is room in it
	if e.gone || stopping {
		return false // an answer that was cut short says nothing
	}
	notify(e.served, nil)
	e.served = nil
	wasGood, wasReason := e.answer.State()
	good, reason := answer.State()
	news := !e.answered || good != wasGood || reason != wasReason || e.pending && good
	e.answer, e.answered = answer, true
	if good {
		e.failures, e.good = 0, begun
	} else {
		e.failures++
	}
	if e.again || len(e.waiting) > 0 {
		w.schedule(&e.entry, 0)
	} else {
		w.schedule(&e.entry, e.pause(w.pace))
	}
	return news
}
