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

// First tries of what fails for others have a time each, in the order in which they asked; with
// a success all of them may begin, and who gives up takes nobody's.
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
		if k := name(30 + i); p.allows(k, w, "") || called[k] != time.Duration(i+1)*firstTry || p.allows(k, w, "") || p.waiting(k) != sameAnswers {
			t.Errorf("%s waits %s for its first try", k, called[k])
		}
	}
	p.stopWaiting(name(31))
	now = now.Add(3 * firstTry)
	if !p.allows(name(30), w, "") || !p.allows(name(32), w, "") || p.waiting(name(32)) != 0 {
		t.Error("its time has come, and it waits")
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
