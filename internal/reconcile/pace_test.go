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
	now, called := time.Now(), map[fleet.ServerKey]int{}
	p := pace{now: func() time.Time { return now }, later: func(k fleet.ServerKey, _ time.Duration) { called[k]++ }}
	w := what{kind: fleet.TaskPull, registry: "registry.example.com"}
	name := func(i int) fleet.ServerKey { return fleet.ServerKey{Account: fmt.Sprintf("s%02d", i), Region: "eu"} }
	for i := range triesAtOnce + 1 {
		p.heard(name(i), w, fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed})
	}
	for i := range triesAtOnce {
		if !p.may(name(i), w, fleet.ReasonImagePullFailed) {
			t.Fatalf("no try for %d", i)
		}
	}
	for i := range 2 {
		if last := name(triesAtOnce); p.may(last, w, fleet.ReasonImagePullFailed) || called[last] != i+1 {
			t.Errorf("asked %d times, it was called %d times", i+1, called[last])
		}
	}
}
