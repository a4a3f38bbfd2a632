package readiness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Watcher keeps the newest observation of every target of every key, and probes
// each at the pace of its state (R5). One goroutine keeps the schedule; there is
// one more for each probe under way.
type Watcher struct {
	probe   func(context.Context, Target) fleet.ProbeObservation
	changed func(key string)
	pace    Pace
	wake    chan struct{} // something may be due earlier than the schedule thinks
	stopped chan struct{} // closed when Run has ended

	mu      sync.Mutex
	keys    map[string]map[string]*entry // by key, then url
	gate    lane                         // pending servers, and those that Now asks for
	routine lane                         // converged servers
}

// NewWatcher returns a watcher that runs probe by the schedule of pace. It calls
// changed, without a lock and from any goroutine, when there is news of a key:
// Ready or Reason of a target differ from before, or a pending key got a fresh
// ready answer, which its gate waits for. A message alone is no news.
func NewWatcher(probe func(context.Context, Target) fleet.ProbeObservation, changed func(key string), pace Pace) *Watcher {
	pace = pace.withDefaults()
	return &Watcher{
		probe: probe, changed: changed, pace: pace,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		keys:    map[string]map[string]*entry{},
		gate:    lane{limit: (pace.Concurrency + 1) / 2},
		routine: lane{limit: pace.Concurrency / 2},
	}
}

// Run probes until ctx ends, and returns when the last probe has. It runs once.
func (w *Watcher) Run(ctx context.Context) {
	defer close(w.stopped)
	var probes sync.WaitGroup
	defer probes.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
		due, wait := w.take(time.Now())
		for _, e := range due {
			probes.Go(func() { w.run(ctx, e) })
		}
		timer.Stop()
		if wait > 0 {
			timer.Reset(wait)
		}
	}
}

// Set says what key's targets are and whether it is pending: waiting for them to
// become ready. Called again with the same it changes nothing; a new target and a
// key that becomes pending are probed at once.
func (w *Watcher) Set(key string, targets []Target, pending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.keys[key]
	now := make(map[string]*entry, len(targets))
	for _, target := range targets {
		if now[target.URL] != nil {
			continue
		}
		e := before[target.URL]
		if e == nil || e.target != target {
			e = &entry{key: key, target: target, pending: pending, index: -1}
			w.schedule(e, 0)
		} else if delete(before, target.URL); e.pending != pending {
			e.pending, e.failures = pending, 0
			if !e.seen.Ready {
				e.failures = 1
			}
			w.turn(e)
		}
		now[target.URL] = e
	}
	for _, e := range before {
		w.drop(e)
	}
	if w.keys[key] = now; len(now) == 0 {
		delete(w.keys, key)
	}
}

// turn reschedules e after it became pending or ceased to be.
func (w *Watcher) turn(e *entry) {
	switch {
	case e.running:
		e.again = e.again || e.pending // the probe under way began before anyone waited
	case len(e.waiting) > 0:
		// due already
	case e.pending || e.seen.Begun.IsZero():
		w.schedule(e, 0)
	default:
		w.schedule(e, w.pace.pause(e))
	}
}

// Remove forgets key.
func (w *Watcher) Remove(key string) { w.Set(key, nil, false) }

// Latest returns the newest observation of a target of key.
func (w *Watcher) Latest(key, url string) (fleet.ProbeObservation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.keys[key][url]; e != nil && !e.seen.Begun.IsZero() {
		return e.seen, true
	}
	return fleet.ProbeObservation{}, false
}

// Now probes all targets of key at once and waits: afterwards Latest returns
// observations that began after the call.
func (w *Watcher) Now(ctx context.Context, key string) error {
	w.mu.Lock()
	entries := w.keys[key]
	if len(entries) == 0 {
		w.mu.Unlock()
		return fmt.Errorf("probe %s: it has no endpoint to probe", key)
	}
	var answers []chan error
	for _, e := range entries {
		answer := make(chan error, 1)
		answers = append(answers, answer)
		e.waiting = append(e.waiting, answer)
		if !e.running {
			w.schedule(e, 0)
		}
	}
	w.mu.Unlock()

	for _, answer := range answers {
		select {
		case err := <-answer:
			if err != nil {
				return fmt.Errorf("probe %s: %w", key, err)
			}
		case <-w.stopped:
			return fmt.Errorf("probe %s: %w", key, errStopped)
		case <-ctx.Done():
			return fmt.Errorf("probe %s: no answer yet: %w", key, ctx.Err())
		}
	}
	return nil
}

var (
	errStopped = errors.New("probes have stopped, because kurad is stopping")
	errChanged = errors.New("its endpoints changed meanwhile: ask again")
)

// schedule makes e due after pause, in the lane of its state.
func (w *Watcher) schedule(e *entry, pause time.Duration) {
	to := &w.routine
	if e.pending || len(e.waiting) > 0 {
		to = &w.gate
	}
	to.push(e, time.Now().Add(pause))
	w.rouse()
}

// rouse lets Run look at the schedule again.
func (w *Watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drop takes e out and tells those who wait for it.
func (w *Watcher) drop(e *entry) {
	e.remove()
	e.gone = true
	tell(append(e.waiting, e.served...), errChanged)
	e.waiting, e.served = nil, nil
}

// tell answers those who wait; each channel has room for its one answer.
func tell(answers []chan error, err error) {
	for _, answer := range answers {
		answer <- err
	}
}

// take returns what is to be probed now, and how long until something else is
// due (0: nothing is, or every slot is in use).
func (w *Watcher) take(now time.Time) (due []*entry, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range []*lane{&w.gate, &w.routine} {
		for {
			e, later := l.next(now)
			if e == nil {
				if later > 0 && (wait == 0 || later < wait) {
					wait = later
				}
				break
			}
			l.running++
			e.running, e.again = true, false
			e.served, e.waiting = e.waiting, nil
			due = append(due, e)
		}
	}
	return due, wait
}

// run makes one probe of e and keeps its answer.
func (w *Watcher) run(ctx context.Context, e *entry) {
	seen := w.probe(ctx, e.target)
	if w.keep(e, seen, ctx.Err() != nil) {
		w.changed(e.key)
	}
}

// keep stores the answer, makes the next probe due and reports whether there is news.
func (w *Watcher) keep(e *entry, seen fleet.ProbeObservation, stopping bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.lane.running--
	e.running = false
	w.rouse() // there is room in the lane
	if e.gone || stopping {
		return false // an answer that was cut short says nothing
	}
	tell(e.served, nil)
	e.served = nil
	before := e.seen
	e.seen = seen
	if seen.Ready {
		e.failures = 0
	} else {
		e.failures++
	}
	if e.again || len(e.waiting) > 0 {
		w.schedule(e, 0)
	} else {
		w.schedule(e, w.pace.pause(e))
	}
	first := before.Begun.IsZero()
	return first || before.Ready != seen.Ready || before.Reason != seen.Reason || (e.pending && seen.Ready && seen.Begun.After(before.Begun))
}
