package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	sameAnswers = 5  // servers of a site that get one answer, before tries are paced together
	triesAtOnce = 16 // of what failed before, in one round
	firstRound  = time.Second
	slowestPace = time.Minute // between two rounds
	firstTry    = time.Second / 16
)

// pace spaces out the tries over a site whose answers are all the same (G12): one registry,
// engine or cluster is what fails, and asking it for every server is for nothing. What failed
// before is tried for a few servers in each round, what has not failed yet one by one; the
// others wait, and write nothing. The first success ends that, and all are due at once.
type pace struct {
	now   func() time.Time
	later func(work, time.Duration) // makes a turn due

	mu    sync.Mutex
	lines map[tried]map[fleet.Reason]*line // by the answer; "": of first tries
}

// tried is what a task tries: a kind of step, and of images the registry that has them.
type tried struct {
	kind     fleet.TaskKind
	registry string
}

// line is one answer that came again and again, without a success in between, and those who
// wait to try once more.
type line struct {
	failing map[work]time.Time // that got it, and when last
	waiting []work             // in order
	waits   map[work]bool      // the same
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

// allows reports whether the track may try now what failed before with that reason, "" where it
// did not. Where it may not, its turn is due when it may.
func (p *pace) allows(k work, w tried, failed fleet.Reason) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed == "" {
		p.forgetFailure(k, w, "")
	}
	if !p.paced(w, failed) {
		if l := p.lines[w][failed]; l != nil {
			l.leave(k)
		}
		return true
	}
	l, size, now := p.line(w, failed), triesAtOnce, p.now()
	if failed == "" {
		size = 1
	}
	if !now.Before(l.next) {
		l.pause = min(max(firstRound, 2*l.pause), slowestPace)
		if failed == "" {
			l.pause = firstTry
		}
		l.next, l.left = now.Add(l.pause), size
	}
	if l.left > 0 {
		l.left--
		l.leave(k)
		if l.left == 0 {
			p.wake(l, size)
		}
		return true
	}
	if !l.waits[k] {
		l.waits[k] = true
		l.waiting = append(l.waiting, k)
	}
	p.wake(l, size) // again, if it came early: what it was woken for is over
	return false
}

// line returns that of an answer.
func (p *pace) line(w tried, answer fleet.Reason) *line {
	if p.lines == nil {
		p.lines = map[tried]map[fleet.Reason]*line{}
	}
	if p.lines[w] == nil {
		p.lines[w] = map[fleet.Reason]*line{}
	}
	if p.lines[w][answer] == nil {
		p.lines[w][answer] = &line{failing: map[work]time.Time{}, waits: map[work]bool{}}
	}
	return p.lines[w][answer]
}

// paced reports whether enough get the same answer that the others wait.
func (p *pace) paced(w tried, answer fleet.Reason) bool {
	if answer == "" {
		return p.fails(w) > 0
	}
	l := p.lines[w][answer]
	return l != nil && len(l.failing) >= sameAnswers
}

// fails says for how many servers a try fails whose answers are all the same; 0: there is none.
func (p *pace) fails(w tried) (n int) {
	for _, l := range p.lines[w] {
		if len(l.failing) >= sameAnswers {
			n += len(l.failing)
		}
	}
	return n
}

// wake makes the turns due of the first who wait, for the next rounds: a turn takes its time.
func (p *pace) wake(l *line, size int) {
	for i, k := range l.waiting[:min(len(l.waiting), triesAtOnce)] {
		p.later(k, l.next.Sub(p.now())+time.Duration(i/size)*l.pause)
	}
}

// leave takes one from those who wait, and reports whether it was there.
func (l *line) leave(k work) bool {
	if !l.waits[k] {
		return false
	}
	delete(l.waits, k)
	l.waiting = slices.DeleteFunc(l.waiting, func(o work) bool { return o == k })
	return true
}

// stopWaiting says that the track wants no try now: another one has its place.
func (p *pace) stopWaiting(k work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.lines {
		for answer, l := range of {
			if l.leave(k) {
				size := triesAtOnce
				if answer == "" {
					size = 1
				}
				p.wake(l, size)
			}
		}
	}
}

// forget says that the track is no more.
func (p *pace) forget(k work) {
	p.stopWaiting(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, of := range p.lines {
		p.forgetFailure(k, w, "")
		maps.DeleteFunc(of, func(_ fleet.Reason, l *line) bool {
			return len(l.failing)+len(l.waiting) == 0 && !l.next.After(p.now())
		})
		if len(of) == 0 { // whoever declares servers names registries
			delete(p.lines, w)
		}
	}
}

// forgetFailure says that the track's answer was to something else, but for the one that it
// got now. Where too few get it then that the others wait, all of those are due.
func (p *pace) forgetFailure(k work, w tried, but fleet.Reason) {
	for answer, l := range p.lines[w] {
		if answer != but {
			delete(l.failing, k)
		}
	}
	for answer, l := range p.lines[w] {
		if !p.paced(w, answer) {
			p.release(l)
		}
	}
}

// release makes the turns due of all who wait.
func (p *pace) release(l *line) {
	for _, k := range l.waiting {
		p.later(k, 0)
	}
	l.waiting, l.waits = nil, map[work]bool{}
}

// record takes an answer into account. It returns when the next try is due of those for all of
// which failed what has succeeded for one: at once, but once a minute at most, for where some
// fail and others succeed that comes all the time.
func (p *pace) record(k work, w tried, o fleet.Outcome) (due map[work]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case o.Class == fleet.ClassOK:
		due = map[work]time.Time{}
		for answer, l := range p.lines[w] {
			if answer == "" {
				p.release(l)
				continue
			} else if !p.paced(w, answer) {
				continue
			}
			for _, k := range l.waiting {
				due[k] = p.now()
			}
			for k, at := range l.failing {
				if at = at.Add(slowestPace); at.After(due[k]) {
					due[k] = at
				}
			}
		}
		delete(p.lines, w)
		return due
	case o.Reason == fleet.ReasonDrifted:
		return nil
	}
	p.line(w, o.Reason).failing[k] = p.now()
	p.forgetFailure(k, w, o.Reason)
	return nil
}

// waiting says how many get the same answer, where this one waits for the tries of others.
func (p *pace) waiting(k work) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, of := range p.lines {
		for answer, l := range of {
			switch {
			case !l.waits[k]:
			case answer == "":
				n = max(n, p.fails(w))
			default:
				n = max(n, len(l.waits))
			}
		}
	}
	return n
}
