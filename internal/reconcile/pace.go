package reconcile

import (
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	sameAnswers = 5  // servers of a site that get one answer, before tries are paced together
	triesAtOnce = 16 // of what is paced, in one round
	firstRound  = time.Second
	slowestPace = time.Minute // between two rounds
	firstTry    = time.Second / 16
)

// pace spaces out the tries over a site whose answers are all the same (G12): one registry,
// engine or cluster is what fails, and asking it for every server is for nothing. What failed
// before is tried for a few servers in each round; the others wait, and write nothing. The
// first success ends that, and all are due at once. What has not failed yet is never paced.
type pace struct {
	now   func() time.Time
	later func(work, time.Duration) // makes a turn due

	mu      sync.Mutex
	streaks map[tried]map[fleet.Reason]*streak
	firsts  map[tried]*firsts
}

// firsts are the first tries of what fails for others, each with its time.
type firsts struct {
	at   map[work]time.Time
	next time.Time
}

// tried is what a task tries: a kind of step, and of images the registry that has them.
type tried struct {
	kind     fleet.TaskKind
	registry string
}

// streak is one answer that came again and again, without a success in between.
type streak struct {
	failing map[work]time.Time // that got it, and when last
	waiting []work             // in the order of their tries
	waits   map[work]bool      // of those in waiting; the others want no try now
	next    time.Time          // when the next round begins
	left    int                // tries of this round
	pause   time.Duration      // after this round
}

// subject is what a task tries.
func subject(task fleet.Task) tried {
	w := tried{kind: task.Kind}
	if ref, err := fleet.ParseImage(task.Image); err == nil {
		w.registry = ref.Registry
	}
	return w
}

// allows reports whether the server may try now what failed before with that reason, "" where it
// did not. Where it may not, its turn is due when it may.
func (p *pace) allows(key work, w tried, failed fleet.Reason) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if failed == "" {
		return p.mayFirst(key, w, now)
	}
	s := p.streaks[w][failed]
	if s == nil || len(s.failing) < sameAnswers {
		return true
	}
	if !now.Before(s.next) {
		s.pause = min(max(firstRound, 2*s.pause), slowestPace)
		s.next, s.left = now.Add(s.pause), triesAtOnce
	}
	if s.left > 0 {
		s.left--
		delete(s.waits, key)
		if s.left == 0 {
			s.wake(p.later, now)
		}
		return true
	}
	if !s.waits[key] {
		s.waits[key] = true
		s.waiting = append(s.waiting, key)
	}
	s.wake(p.later, now) // again, if it came early: what it was woken for is over
	return false
}

// mayFirst is may for what did not fail for the server before.
func (p *pace) mayFirst(key work, w tried, now time.Time) bool {
	if p.fails(w) == 0 {
		return true
	}
	f := p.firsts[w]
	if f == nil {
		f = &firsts{at: map[work]time.Time{}}
		if p.firsts == nil {
			p.firsts = map[tried]*firsts{}
		}
		p.firsts[w] = f
	}
	if f.at[key].IsZero() {
		f.at[key] = now
		if f.next.After(now) {
			f.at[key] = f.next
		}
		f.next = f.at[key].Add(firstTry)
	}
	if wait := f.at[key].Sub(now); wait > 0 {
		p.later(key, wait) // again, if it came early: what it was woken for is over
		return false
	}
	delete(f.at, key)
	return true
}

// fails says for how many servers a try fails whose answers are all the same; 0: there is none.
func (p *pace) fails(w tried) (n int) {
	for _, s := range p.streaks[w] {
		if len(s.failing) >= sameAnswers {
			n += len(s.failing)
		}
	}
	return n
}

// wake makes the turns due, for the next round, of those who waited longest.
func (s *streak) wake(later func(work, time.Duration), now time.Time) {
	n := 0
	kept := s.waiting[:0]
	for i, key := range s.waiting {
		if !s.waits[key] {
			continue
		}
		if kept = append(kept, key); n < triesAtOnce {
			later(key, s.next.Sub(now))
			n++
		} else {
			kept = append(kept, s.waiting[i+1:]...)
			break
		}
	}
	s.waiting = kept
}

// stopWaiting says that the server wants no try now: another one has its place.
func (p *pace) stopWaiting(key work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.streaks {
		for _, s := range of {
			if s.waits[key] {
				delete(s.waits, key)
				s.wake(p.later, p.now())
			}
		}
	}
	for _, f := range p.firsts {
		delete(f.at, key)
	}
}

// record takes an answer into account. It returns when the next try is due of the servers for
// all of which failed what has succeeded for one: at once, but once a minute at most, for where
// some fail and others succeed that comes all the time.
func (p *pace) record(key work, w tried, o fleet.Outcome) (due map[work]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.Class == fleet.ClassOK {
		due = map[work]time.Time{}
		for _, s := range p.streaks[w] {
			if len(s.failing) >= sameAnswers {
				for k, at := range s.failing {
					if at = at.Add(slowestPace); at.After(due[k]) {
						due[k] = at
					}
				}
			}
		}
		if f := p.firsts[w]; f != nil {
			for k := range f.at {
				p.later(k, 0)
			}
		}
		delete(p.streaks, w)
		delete(p.firsts, w)
		return due
	}
	if o.Reason == fleet.ReasonDrifted {
		return nil
	}
	if p.streaks == nil {
		p.streaks = map[tried]map[fleet.Reason]*streak{}
	}
	if p.streaks[w] == nil {
		p.streaks[w] = map[fleet.Reason]*streak{}
	}
	s := p.streaks[w][o.Reason]
	if s == nil {
		s = &streak{failing: map[work]time.Time{}, waits: map[work]bool{}}
		p.streaks[w][o.Reason] = s
	}
	s.failing[key] = p.now()
	return nil
}

// waiting says how many servers wait for the tries of others, or fail where it is not tried yet,
// where this one is one of those who wait.
func (p *pace) waiting(key work) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.streaks {
		for _, s := range of {
			if s.waits[key] {
				n = max(n, len(s.waits))
			}
		}
	}
	for w, f := range p.firsts {
		if !f.at[key].IsZero() {
			n = max(n, p.fails(w))
		}
	}
	return n
}
