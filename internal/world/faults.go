package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// ErrInjected is in the chain of every error that Faults makes up.
var ErrInjected = errors.New("injected fault")

// Rates say how often each fault happens, from 0 (never) to 1 (always).
type Rates struct {
	Fail      float64       // the call fails and nothing happened
	Ambiguous float64       // a change happens, and the answer is lost
	Stale     float64       // a read gets an older answer to the same question
	Slow      float64       // the call takes Delay longer
	Delay     time.Duration // for Slow
}

// Faults draws faults from a seed. Calls that come one after the other get the
// same faults in every run.
type Faults struct {
	mu      sync.Mutex
	rand    *rand.Rand
	rates   Rates
	answers map[string]any // the last answer to each question
	counts  map[string]int // what happened, by the name of the fault
}

// NewFaults returns faults for a seed.
func NewFaults(seed uint64, rates Rates) *Faults {
	return &Faults{rand: rand.New(rand.NewPCG(seed, seed)), rates: rates, answers: map[string]any{}, counts: map[string]int{}}
}

// SetRates changes how often faults happen; zero rates heal everything.
func (f *Faults) SetRates(rates Rates) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rates = rates
}

// Counts returns how often each fault happened: fail, ambiguous, stale, slow.
func (f *Faults) Counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[string]int, len(f.counts))
	for name, n := range f.counts {
		counts[name] = n
	}
	return counts
}

// drawn is what happens to one call.
type drawn struct {
	fail, ambiguous, stale bool
	delay                  time.Duration
}

// draw decides about one call. It always takes as many numbers, so that one rate
// does not move the faults of another.
func (f *Faults) draw() drawn {
	f.mu.Lock()
	defer f.mu.Unlock()
	hits := func(rate float64) bool { return f.rand.Float64() < rate }
	d := drawn{fail: hits(f.rates.Fail), ambiguous: hits(f.rates.Ambiguous), stale: hits(f.rates.Stale)}
	if hits(f.rates.Slow) {
		d.delay = f.rates.Delay
	}
	return d
}

func (f *Faults) count(fault string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[fault]++
}

// slow waits as drawn; it fails where ctx ends first.
func (f *Faults) slow(ctx context.Context, d drawn) error {
	if d.delay <= 0 {
		return nil
	}
	f.count("slow")
	timer := time.NewTimer(d.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Change makes a change that may fail before it happens, or happen and lose its
// answer: the caller cannot tell which. It wraps methods such as a store's Txn, whose
// types this package does not know:
//
//	func (s faultyStore) Txn(ctx context.Context, t kv.Txn) (int64, error) {
//		return world.Change(ctx, s.faults, func() (int64, error) { return s.Store.Txn(ctx, t) })
//	}
func Change[T any](ctx context.Context, f *Faults, effect func() (T, error)) (T, error) {
	var none T
	d := f.draw()
	if err := f.slow(ctx, d); err != nil {
		return none, err
	}
	if d.fail {
		f.count("fail")
		return none, fmt.Errorf("no answer: %w", ErrInjected)
	}
	result, err := effect()
	if err == nil && d.ambiguous {
		f.count("ambiguous")
		return none, fmt.Errorf("no answer: %w", ErrInjected)
	}
	return result, err
}

// Read makes a read that may fail, or get the answer of before to the same
// question (a key, a prefix).
func Read[T any](ctx context.Context, f *Faults, question string, effect func() (T, error)) (T, error) {
	var none T
	d := f.draw()
	if err := f.slow(ctx, d); err != nil {
		return none, err
	}
	if d.fail {
		f.count("fail")
		return none, fmt.Errorf("no answer: %w", ErrInjected)
	}
	result, err := effect()
	if err != nil {
		return result, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, ok := f.answers[question].(T); ok && d.stale {
		f.counts["stale"]++
		return before, nil
	}
	f.answers[question] = result
	return result, nil
}

// Runtime is what a runtime can do, as reconcile uses it.
type Runtime interface {
	List(ctx context.Context, adopted ...string) ([]fleet.Container, error)
	Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome
}

// FaultyRuntime is a runtime whose answers get lost, come late or are old.
type FaultyRuntime struct {
	Runtime Runtime
	Faults  *Faults
}

// List implements Runtime.
func (r FaultyRuntime) List(ctx context.Context, adopted ...string) ([]fleet.Container, error) {
	return Read(ctx, r.Faults, "list", func() ([]fleet.Container, error) { return r.Runtime.List(ctx, adopted...) })
}

// Execute implements Runtime. A lost answer is an outcome that was not answered,
// whether the task had its effect or not.
func (r FaultyRuntime) Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	outcome, err := Change(ctx, r.Faults, func() (fleet.Outcome, error) { return r.Runtime.Execute(ctx, key, instance, task, doc), nil })
	if err != nil {
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonEndpointUnreachable, Message: err.Error(), At: time.Now()}
	}
	return outcome
}
