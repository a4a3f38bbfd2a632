package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A call waits until for calm nothing came that it would carry as well, gathering at most.
const (
	calm      = 100 * time.Millisecond
	gathering = 2 * time.Second
)

// Coalesce returns an Execute that makes one call of the tasks of many servers: of those that
// come together, or came while the call before it was under way, up to most. The call answers
// each in its place, and has the time of the one that waited longest. A room whose calls are
// to carry more than 16 has to have as many slots.
func Coalesce(most int, call func(context.Context, []Call) []fleet.Outcome) func(context.Context, Call) fleet.Outcome {
	c := &coalescer{most: most, call: call}
	return c.execute
}

type coalescer struct {
	most int
	call func(context.Context, []Call) []fleet.Outcome

	mu     sync.Mutex
	busy   bool
	queued []*queued
}

// queued is a task that waits for a call or for its answer.
type queued struct {
	ctx    context.Context
	task   Call
	sent   bool // under the coalescer's lock
	answer chan fleet.Outcome
}

func (c *coalescer) execute(ctx context.Context, task Call) fleet.Outcome {
	q := &queued{ctx: ctx, task: task, answer: make(chan fleet.Outcome, 1)}
	c.mu.Lock()
	c.queued = append(c.queued, q)
	idle := !c.busy
	c.busy = true
	c.mu.Unlock()
	if idle {
		go c.drain()
	}
	select {
	case o := <-q.answer:
		return o
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fleet.Outcome{
			Class: fleet.ClassTransient, Reason: fleet.ReasonEndpointUnreachable, Answered: !q.sent,
			Message: fmt.Sprintf("%s: no end within %s", task.Task.Describe(), task.Task.Timeout()),
		}
	}
}

// gather waits for those who come together, where there is one.
func (c *coalescer) gather() {
	for until, seen := time.Now().Add(gathering), 0; time.Now().Before(until); <-time.After(calm) {
		c.mu.Lock()
		n := len(c.queued)
		c.mu.Unlock()
		if n <= seen || n >= c.most {
			return
		}
		seen = n
	}
}

// drain makes calls until nothing is queued.
func (c *coalescer) drain() {
	for batch := c.next(); len(batch) > 0; batch = c.next() {
		tasks := make([]Call, len(batch))
		for i, q := range batch {
			tasks[i] = q.task
		}
		var answers []fleet.Outcome
		err := safely(func() error { answers = c.call(batch[0].ctx, tasks); return nil })
		for i, q := range batch {
			if err != nil || i >= len(answers) {
				q.answer <- faulty()
			} else {
				q.answer <- answers[i]
			}
		}
	}
}

// next takes the tasks of the next call, none where all that is queued was given up.
func (c *coalescer) next() []*queued {
	c.gather()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued = slices.DeleteFunc(c.queued, func(q *queued) bool { return q.ctx.Err() != nil })
	batch := slices.Clone(c.queued[:min(len(c.queued), c.most)])
	c.queued = slices.Delete(c.queued, 0, len(batch))
	for _, q := range batch {
		q.sent = true
	}
	c.busy = len(batch) > 0
	return batch
}
