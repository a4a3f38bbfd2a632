//go:build real

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// The image that is observed says nothing of a roll-out that does not change it: one server
// after the other is applied when the controller has rolled the one before out (P5, G4, L27).
func TestP5_G4_aDocumentIsRolledOutOneServerAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	region := s.region("kube-rollout", func(r *fleet.Region) { r.MaxUnsettled = 1 })
	k, servers := s.serving(region, []string{"roll-a", "roll-b"})
	for _, v := range servers {
		s.hold(v.Instance)
	}
	region.Kubernetes.Env = map[string]string{"ALPHA": "broken", "OMEGA": "2"}
	mark := s.mark()
	k.putRegion(region)
	applied := func() (first, second fleet.ServerView) {
		eventually(t, "one of the two is applied", func() error {
			a, b := s.applies(servers[0].Instance), s.applies(servers[1].Instance)
			switch {
			case a == 2 && b == 1:
				first, second = servers[0], servers[1]
			case a == 1 && b == 2:
				first, second = servers[1], servers[0]
			default:
				return fmt.Errorf("%d and %d applies", a, b)
			}
			return nil
		})
		return first, second
	}
	first, second := applied()
	k.until(keyOf(first), "rolls out", func(v fleet.ServerView) bool {
		return v.Status == fleet.StatusActive && v.Verdict == fleet.VerdictProgressing && hasReason(v, fleet.ConditionProgressing, fleet.True, fleet.ReasonWaiting)
	})
	released := time.Now()
	s.release(first.Instance)
	k.converged(keyOf(first), "v1")
	next := s.await(mark, second.Instance, "is applied, too", func(c change) bool { return c.object.GetGeneration() > 1 })
	if next.at.Before(released) {
		t.Errorf("%s was applied %s before %s had been rolled out", second.Instance, released.Sub(next.at), first.Instance)
	}
	s.release(second.Instance)
	for _, v := range servers {
		after := k.converged(keyOf(v), "v1")
		if n := s.applies(v.Instance); n != 2 || after.Deployment.Seq != 1 || after.PublishedURL != v.PublishedURL {
			t.Errorf("%d applies; %s", n, brief(after))
		}
	}
}
