//go:build real

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Between any two tasks of a replace: when a task is seen to be due kurad is killed, and
// after that at random moments of the roll-out.
func TestS5_killedBetweenAnyTwoTasksOfAReplaceThereIsOneContainerTheNewOne(t *testing.T) {
	t.Parallel()
	const (
		tasks  = 7 // pull, create, stop, rename, rename, start, remove
		atRand = 8
	)
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-killed"}
	grace := cache(func(s *fleet.Service) { s.GracePeriod = fleet.Duration(time.Second) })
	k.declare(region(key.Region, grace), key.Account)
	// Both ignore SIGTERM: the stop takes its grace, which is a window to kill in.
	tags := []string{"v1-ignoreterm", "v2-ignoreterm"}
	k.put(key, tags[0])
	before := k.converged(key, tags[0])
	reached := map[int]int{} // task → kills

	roll := func(round int, when string, wait func()) {
		t.Helper()
		old, tag := theBox(t, key.Region), tags[(round+1)%2]
		k.put(key, tag)
		wait()
		k.kill()
		left := boxes(t, key.Region)
		k.start()
		v := k.converged(key, tag)
		b := theBox(t, key.Region)
		if b.name() != before.Containers[0].Name || b.Image != image(tag) || b.State != "running" || b.ID == old.ID || v.Containers[0].ID != b.ID {
			t.Errorf("killed %s, leaving %+v: there is %+v; want the new %s alone under the name %s", when, left, b, tag, before.Containers[0].Name)
		}
		if v.PublishedURL != before.PublishedURL || v.Deployment.Status != fleet.DeploymentSucceeded {
			t.Errorf("killed %s: the server is %s", when, brief(v))
		}
		if version, err := up(t, v.PublishedURL); err != nil || version != tag {
			t.Errorf("killed %s: %s answers %q, %v; want %s", when, v.PublishedURL, version, err, tag)
		}
	}
	round := 0
	for task := range tasks {
		roll(round, fmt.Sprintf("at task %d", task+1), func() {
			// Faster than `until`: some tasks take a few milliseconds.
			for end := time.Now().Add(patience); time.Now().Before(end); {
				v, err := k.client.GetServer(t.Context(), key, api.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if i := v.Plan.Current(); i >= task || isConverged(v) {
					reached[i]++
					return
				}
			}
			t.Fatalf("task %d was not reached", task+1)
		})
		round++
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range atRand {
		// A roll-out takes a grace of 1 s and about as much for the rest.
		moment := time.Duration(random.Int64N(int64(2 * time.Second)))
		roll(round, fmt.Sprintf("after %s (seed %d)", moment, seed), func() {
			select {
			case <-time.After(moment):
			case <-t.Context().Done():
			}
		})
		round++
	}
	t.Logf("%d kills; at the tasks (counted from 0, -1: just after the last one) %v, then at random with seed %d", round, reached, seed)
	if len(reached) < 4 {
		t.Errorf("the kills hit only the tasks %v", reached)
	}
}
