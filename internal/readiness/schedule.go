package readiness

import (
	"cmp"
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
	Concurrency     int           // under way at once, half of them for pending servers; 256, at least 2
}

func (p Pace) withDefaults() Pace {
	return Pace{
		Pending:         cmp.Or(p.Pending, time.Second),
		PendingPatience: cmp.Or(p.PendingPatience, 60),
		PendingMax:      cmp.Or(p.PendingMax, 10*time.Second),
		Converged:       cmp.Or(p.Converged, 30*time.Second),
		FailingMin:      cmp.Or(p.FailingMin, 2*time.Second),
		FailingMax:      cmp.Or(p.FailingMax, 30*time.Second),
		Concurrency:     cmp.Or(p.Concurrency, 256),
	}
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
	gone     bool  // removed or replaced: an answer under way is for nobody
	lane     *lane // the newest schedule's
	running  bool
	again    bool // due at once after the one under way
	answered bool
	failures int       // in a row
	good     time.Time // when the last one began that was answered well

	timer     *time.Timer // nil until it was scheduled
	schedules int         // how many there were: only the newest counts

	waiting []chan error // who waits for one that has not begun
	served  []chan error // who waits for the one under way
}

// lane is a queue with its own share of what is under way. What is pending and what has
// converged have one each, so that neither can hold up the other.
type lane struct {
	due     []dueEntry
	running int
	limit   int // 0 while Run does not run
}

// dueEntry is an entry whose time has come, by one of its schedules.
type dueEntry struct {
	*entry
	schedule int
}

// next takes the first entry out of the lane, nil where there is none or no room for it.
func (l *lane) next() *entry {
	for l.running < l.limit && len(l.due) > 0 {
		first := l.due[0]
		l.due[0] = dueEntry{} // for the garbage collector
		if l.due = l.due[1:]; first.schedule == first.schedules {
			return first.entry
		}
	}
	return nil
}

// unschedule takes e out of the schedule.
func (e *entry) unschedule() {
	e.schedules++
	if e.timer != nil {
		e.timer.Stop()
	}
}
