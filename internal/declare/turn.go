package declare

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// turn is whose turn it is to write within this process: one write alone, or any number of
// others beside each other. Who waits for it gives up with his own context.
type turn struct {
	now    func() time.Time
	places *semaphore.Weighted

	mu    sync.Mutex
	held  int64
	moved time.Time // when somebody got it or gave it back last
}

const (
	turnBeside int64 = 1
	turnAlone  int64 = 1 << 30
)

func newTurn(now func() time.Time) *turn {
	return &turn{now: now, places: semaphore.NewWeighted(turnAlone)}
}

// take waits for a turn, until leave gives it back.
func (t *turn) take(ctx context.Context, places int64) (leave func(), err error) {
	if err := t.places.Acquire(ctx, places); err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "other writes took too long; nothing was changed, try again")
	}
	t.note(places)
	return func() {
		t.note(-places)
		t.places.Release(places)
	}, nil
}

func (t *turn) note(places int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.moved = t.held+places, t.now()
}

// stalled returns for how long no write has begun or ended although one has its turn, where
// that is longer than any may take.
func (t *turn) stalled() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.now().Sub(t.moved)
	return d, t.held > 0 && d > 2*writeTimeout
}

// No runtime is asked by a write that has its turn: others wait for that (G9). A write that
// needs an answer which it does not have ends with the question; that is asked without a
// turn, and the write begins again. What it decides is compared at its commit, and in the
// preconditions of what its turns do, with what has become of it since.

// answers are what runtimes have said to a write so far, by question.
type answers map[string]any

type answersKey struct{}

// question is the error of a write that lacks an answer.
type question struct {
	about string
	ask   func(context.Context) any
}

func (q *question) Error() string { return q.about + " has to be asked for" }

// asked returns the question that an error is.
func asked(err error) (*question, bool) { return errors.AsType[*question](err) }

// maxQuestions bounds how often a write begins again for an answer: each names another object.
const maxQuestions = 32

// answering runs a write until it has the answers that it needs.
func answering(ctx context.Context, write func(context.Context) error) error {
	known := answers{}
	for range maxQuestions {
		err := write(context.WithValue(ctx, answersKey{}, known))
		q, ok := asked(err)
		if !ok {
			return err
		}
		known[q.about] = q.ask(ctx)
	}
	return fleet.Errorf(fleet.CodeUnavailable, "what runs changed again and again meanwhile; try again")
}

// ask returns what a runtime says within the limit. A write that may have its turn gets what
// was said to it before; whoever holds up nobody, as a dry run, asks at once. The error is the
// runtime's, or a question.
func ask[T any](ctx context.Context, about string, limit time.Duration, how func(context.Context) (T, error)) (T, error) {
	type said struct {
		answer T
		err    error
	}
	within := func(ctx context.Context) said {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		answer, err := how(ctx)
		return said{answer, err}
	}
	known, ok := ctx.Value(answersKey{}).(answers)
	if !ok {
		s := within(ctx)
		return s.answer, s.err
	}
	s, ok := known[about].(said)
	if !ok {
		s.err = &question{about, func(ctx context.Context) any { return within(ctx) }}
	}
	return s.answer, s.err
}
