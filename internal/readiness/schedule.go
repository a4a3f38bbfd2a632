package readiness

import (
	"container/heap"
	"context"
	"hash/fnv"
	"time"
)

// Pace is how often questions are asked (R5). Zero fields take the defaults.
type Pace struct {
	Pending         time.Duration // while its server is pending; 1 s
	PendingPatience int           // failures in a row before a pending one is asked less often; 60
	PendingMax      time.Duration // the slowest for a pending one; 10 s
	Converged       time.Duration // while it has converged, ± a fifth; 30 s
	FailingMin      time.Duration // after the first failure of a converged one; 2 s
	FailingMax      time.Duration // doubling up to here; 30 s
	Concurrency     int           // under way at once, half of them for pending servers; 256
}

func (p Pace) withDefaults() Pace {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&p.Pending, time.Second)
	set(&p.PendingMax, 10*time.Second)
	set(&p.Converged, 30*time.Second)
	set(&p.FailingMin, 2*time.Second)
	set(&p.FailingMax, 30*time.Second)
	if p.PendingPatience <= 0 {
		p.PendingPatience = 60
	}
	if p.Concurrency <= 1 {
		p.Concurrency = 256
	}
	return p
}

// pause returns how long e rests after an answer.
func (e *entry) pause(p Pace) time.Duration {
	switch {
	case e.pending:
		return backoff(p.Pending, p.PendingMax, e.failures-p.PendingPatience)
	case e.failures > 0:
		return min(e.spread(backoff(p.FailingMin, p.FailingMax, e.failures-1)), p.FailingMax)
	}
	return e.spread(p.Converged)
}

// backoff doubles from first, doublings times, up to most.
func backoff(first, most time.Duration, doublings int) time.Duration {
	for ; doublings > 0 && first < most; doublings-- {
		first *= 2
	}
	return min(first, most)
}

// spread moves d by up to a fifth either way, always the same for the same
// question, so that servers that began together do not stay together.
func (e *entry) spread(d time.Duration) time.Duration {
	hash := fnv.New32a()
	hash.Write([]byte(e.name))
	const steps = 1 << 10
	return d*4/5 + d*2/5*time.Duration(hash.Sum32()%steps)/steps
}

// entry is when one question of one key is asked. The watcher's lock guards it.
type entry struct {
	name     string // no other's
	ask      func(context.Context)
	pending  bool
	gone     bool // removed or replaced: an answer under way is for nobody
	running  bool
	again    bool // due at once after the one under way
	heard    bool
	failures int       // in a row
	good     time.Time // when the last one began that was answered well

	due   time.Time
	lane  *lane
	index int // in the lane's heap; -1: not in it

	waiting []chan error // who waits for one that has not begun
	served  []chan error // who waits for the one under way
}

// lane is a queue with its own share of what is under way. What is pending and what has
// converged have one each, so that neither can hold up the other.
type lane struct {
	queue   queue
	running int
	limit   int
}

// push puts e into the lane, taking it out of any other.
func (l *lane) push(e *entry, due time.Time) {
	e.remove()
	e.lane, e.due = l, due
	heap.Push(&l.queue, e)
}

// remove takes e out of its lane's queue.
func (e *entry) remove() {
	if e.index >= 0 {
		heap.Remove(&e.lane.queue, e.index)
	}
}

// next returns the first entry if it is due and the lane has room, else nil and
// how long until the first is due (0: wait for something else).
func (l *lane) next(now time.Time) (*entry, time.Duration) {
	if len(l.queue) == 0 || l.running >= l.limit {
		return nil, 0
	}
	if wait := l.queue[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	first := l.queue[0]
	heap.Remove(&l.queue, first.index)
	return first, 0
}

// queue is a heap of entries by due time.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *queue) Push(x any) {
	e, _ := x.(*entry) // nothing else is pushed
	e.index = len(*q)
	*q = append(*q, e)
}
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q, e.index = (*q)[:last], -1
	return e
}
