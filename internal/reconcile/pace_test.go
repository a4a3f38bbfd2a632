package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A turn that comes early takes the place of the one that a wait has made due: the queue keeps
// the earlier of two. So each refusal makes one due.
func TestG12_whoAsksTooEarlyIsCalledAgain(t *testing.T) {
	now, called := time.Now(), map[work]int{}
	p := pace{now: func() time.Time { return now }, later: func(k work, _ time.Duration) { called[k]++ }}
	w := tried{kind: fleet.TaskPull, registry: "registry.example.com"}
	name := func(i int) work {
		return work{ServerKey: fleet.ServerKey{Account: fmt.Sprintf("s%02d", i), Region: "eu"}}
	}
	for i := range triesAtOnce + 1 {
		p.record(name(i), w, fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed})
	}
	for i := range triesAtOnce {
		if !p.allows(name(i), w, fleet.ReasonImagePullFailed) {
			t.Fatalf("no try for %d", i)
		}
	}
	for i := range 2 {
		if last := name(triesAtOnce); p.allows(last, w, fleet.ReasonImagePullFailed) || called[last] != i+1 {
			t.Errorf("asked %d times, it was called %d times", i+1, called[last])
		}
	}
}

// First tries of what fails for others follow each other, in the order in which they asked; with
// a success all of them may begin, and who gives up delays nobody.
func TestG12_firstTriesFollowEachOtherUntilOneSucceeds(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p := pace{now: func() time.Time { return now }, later: func(k work, d time.Duration) { called[k] = d }}
	w, other := tried{kind: fleet.TaskPull, registry: "registry.example.com"}, tried{kind: fleet.TaskPull, registry: "other.example.com"}
	name := func(i int) work {
		return work{ServerKey: fleet.ServerKey{Account: fmt.Sprintf("s%02d", i), Region: "eu"}}
	}
	failed := fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed}
	for i := range sameAnswers {
		if !p.allows(name(i), w, "") {
			t.Fatal("a first try waits where too few have failed")
		}
		p.record(name(i), w, failed)
	}
	if !p.allows(name(20), w, "") || !p.allows(name(21), other, "") {
		t.Error("the first of them waits, or that of another registry")
	}
	for i := range 3 {
		for range 2 { // whoever asks once more has its place already
			if k := name(30 + i); p.allows(k, w, "") || p.waiting(k) != sameAnswers {
				t.Errorf("%s does not wait for its first try", k)
			}
		}
	}
	p.stopWaiting(name(31))
	for _, i := range []int{30, 32} {
		if called[name(i)] != firstTry || p.allows(name(62-i), w, "") {
			t.Errorf("the next is called after %s, and one tries before its time", called[name(i)])
		}
		now = now.Add(firstTry)
		if !p.allows(name(i), w, "") || p.waiting(name(i)) != 0 {
			t.Error("its time has come, and it waits")
		}
	}
	if p.allows(name(33), w, "") || p.allows(name(34), w, "") {
		t.Error("nobody waits")
	}
	clear(called)
	p.record(name(30), w, fleet.Outcome{Class: fleet.ClassOK})
	if d, ok := called[name(33)]; !ok || d != 0 || !p.allows(name(33), w, "") || !p.allows(name(34), w, "") {
		t.Error("one has succeeded, and others wait")
	}
}

func newPace(now *time.Time, called map[work]time.Duration) (*pace, tried, func(int) work) {
	p := &pace{now: func() time.Time { return *now }, later: func(k work, d time.Duration) { called[k] = d }}
	return p, tried{kind: fleet.TaskPull, registry: "registry.example.com"}, func(i int) work {
		return work{ServerKey: fleet.ServerKey{Account: fmt.Sprintf("s%04d", i), Region: "eu"}}
	}
}

var failedPull = fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed}

// exhaust has enough fail alike, and takes the tries of the first round.
func (p *pace) exhaust(w tried, name func(int) work) {
	for i := range sameAnswers {
		p.record(name(i), w, failedPull)
	}
	for i := range triesAtOnce {
		p.allows(name(i%sameAnswers), w, failedPull.Reason)
	}
}

// Who waits is called with the first success, whether or not it failed in this kurad's life.
func TestG12_whoWaitsIsCalledWithTheFirstSuccess(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p, w, name := newPace(&now, called)
	p.exhaust(w, name)
	const waiting = 3 * triesAtOnce
	for i := range waiting { // that failed before kurad was started again
		if p.allows(name(100+i), w, failedPull.Reason) {
			t.Fatal("it does not wait")
		}
	}
	due := p.record(name(0), w, fleet.Outcome{Class: fleet.ClassOK})
	for i := range waiting {
		if _, ok := due[name(100+i)]; !ok {
			if _, ok := called[name(100+i)]; !ok {
				t.Fatalf("nobody ever calls %s, the %d. of those who wait", name(100+i), i+1)
			}
		}
	}
}

// Who waits, gives up and waits again has one place.
func TestG12_whoGivesUpLeavesNothingBehind(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p, w, name := newPace(&now, called)
	p.exhaust(w, name)
	for i := range 2 * triesAtOnce {
		p.allows(name(100+i), w, failedPull.Reason)
	}
	for range 1000 { // its endpoint cannot be read now and then
		p.allows(name(200), w, failedPull.Reason)
		p.stopWaiting(name(200))
	}
	if n := len(p.lines[w][failedPull.Reason].waiting); n > 10*triesAtOnce {
		t.Errorf("%d places are kept for %d who wait", n, 2*triesAtOnce)
	}
}

// The times of those who gave up are nobody's wait: a first try waits for seconds, not hours.
func TestG12_theTimesOfThoseWhoGaveUpDelayNobody(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p, w, name := newPace(&now, called)
	for i := range sameAnswers {
		p.record(name(i), w, failedPull)
	}
	for range 20 { // an endpoint that cannot be read every half a minute
		for i := range 2000 {
			p.allows(name(100+i), w, "")
		}
		for i := range 2000 {
			p.stopWaiting(name(100 + i))
		}
		now = now.Add(30 * time.Second)
	}
	if p.allows(name(9999), w, "") {
		return
	}
	if wait := called[name(9999)]; wait > time.Minute {
		t.Errorf("a first try waits %s, and nobody is before it", wait)
	}
}

// Servers that are gone fail no more: five of them pace nobody, and nothing is kept of them.
func TestG12_whoIsGoneFailsNoMore(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p, w, name := newPace(&now, called)
	for i := range 1000 {
		p.record(name(i), w, failedPull)
		p.forget(name(i))
	}
	if n := p.fails(w); n != 0 || len(p.lines) != 0 {
		t.Errorf("%d servers that are gone fail, and %d lines are kept", n, len(p.lines))
	}
}

// Where what failed alike fails otherwise now, who waits for the old answer is called: nobody
// else's try ends its wait.
func TestG12_whoWaitsForAnAnswerThatNobodyGetsAnyMoreIsCalled(t *testing.T) {
	now, called := time.Now(), map[work]time.Duration{}
	p, w, name := newPace(&now, called)
	for i := range sameAnswers {
		p.record(name(i), w, failedPull)
	}
	const all = sameAnswers + 4*triesAtOnce
	var tries []int
	for i := range all { // most failed before kurad was started again
		if p.allows(name(i), w, failedPull.Reason) {
			tries = append(tries, i)
		}
	}
	tried := map[int]bool{}
	for len(tries) > 0 {
		for _, i := range tries {
			tried[i] = true
			p.record(name(i), w, fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonForbidden})
		}
		tries = nil
		now = now.Add(slowestPace)
		for i := range all {
			if _, ok := called[name(i)]; ok && !tried[i] && p.allows(name(i), w, failedPull.Reason) {
				tries = append(tries, i)
			}
		}
	}
	if len(tried) != all {
		t.Errorf("%d of %d tried again, nobody calls the others", len(tried), all)
	}
}
