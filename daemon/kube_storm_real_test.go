//go:build real

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// crowd counts all the time how many servers of each region are worked on, as the API
// tells it.
type crowd struct {
	mu      sync.Mutex
	busy    map[string]map[string]bool // accounts, by region: work has begun and has not ended
	active  map[string]map[string]bool
	most    map[string]int
	answers int
	stop    func()
}

func (k *kurad) watchCrowd(regions []string) *crowd {
	ctx, cancel := context.WithCancel(k.t.Context())
	c := &crowd{busy: map[string]map[string]bool{}, active: map[string]map[string]bool{}, most: map[string]int{}}
	var group sync.WaitGroup
	for _, region := range regions {
		c.busy[region], c.active[region] = map[string]bool{}, map[string]bool{}
		group.Go(func() {
			for cursor := ""; ctx.Err() == nil; {
				changes, err := k.client.WaitServers(ctx, region, cursor, time.Second)
				if err != nil {
					continue
				}
				cursor = changes.Cursor
				c.take(region, changes.Items)
			}
		})
	}
	c.stop = sync.OnceFunc(func() { cancel(); group.Wait() })
	k.t.Cleanup(c.stop)
	return c
}

func (c *crowd) take(region string, items []fleet.ServerView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers++
	for _, v := range items {
		// What waits for admission has neither a plan nor an instance.
		// One that is settled and misses a probe stays settled (P8).
		if v.Verdict == fleet.VerdictConverged {
			delete(c.busy[region], v.Account)
			c.active[region][v.Account] = true
		} else if v.Plan != nil || v.Resource != nil {
			c.busy[region][v.Account] = true
		}
	}
	c.most[region] = max(c.most[region], len(c.busy[region]))
}

func (c *crowd) settled() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.active {
		n += len(of)
	}
	return n
}

// unready goes through what the API server told and returns how many instances of a region
// were there at most at any moment without a complete roll-out.
func unready(list []change) map[string]int {
	now, most := map[string]map[string]bool{}, map[string]int{}
	for _, c := range list {
		region, name := c.object.GetLabels()[fleet.KubeLabelRegion], c.object.GetName()
		if now[region] == nil {
			now[region] = map[string]bool{}
		}
		if image := at(c.object, "status.observedImage"); c.kind == watch.Deleted || image != nil && image == at(c.object, "spec.image") {
			delete(now[region], name)
		} else {
			now[region][name] = true
		}
		most[region] = max(most[region], len(now[region]))
	}
	return most
}

func TestG4_L26_aThousandServersDeclaredAtOnceAreAdmittedInSteps(t *testing.T) {
	t.Parallel()
	const perRegion, limit = 250, fleet.DefaultMaxUnsettled
	s := newSite(t)
	k := s.kurad("--log-level", "info")
	regions := []string{"storm-a", "storm-b", "storm-c", "storm-d"}
	var accounts []string
	for i := range perRegion {
		accounts = append(accounts, fmt.Sprintf("st-%03d", i))
	}
	for _, name := range regions {
		k.introduce(s.region(name))
	}
	for _, a := range accounts {
		k.putAccount(fleet.Account{ID: a})
	}
	c := k.watchCrowd(regions)
	begun := time.Now()
	var puts sync.WaitGroup
	for _, name := range regions {
		puts.Go(func() {
			for _, a := range accounts {
				if _, err := k.client.PutServer(t.Context(), fleet.Server{Account: a, Region: name, ImageTag: "v1"}, api.PutOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	puts.Wait()
	declared := time.Since(begun)
	// All in all it takes longer than patience: what counts is that it goes on.
	for done := -1; done < len(regions)*perRegion; {
		before := done
		eventually(t, "more servers are active", func() error {
			if done = c.settled(); done == before {
				return fmt.Errorf("%d are", done)
			}
			return nil
		})
	}
	took := time.Since(begun)
	c.stop()
	s.mu.Lock()
	most := unready(s.all)
	s.mu.Unlock()
	t.Logf("%d servers in %d regions: declared after %s, all active after %s (%.0f a second); at most %v unsettled by %d answers of the API, %v without a complete roll-out by the API server's events",
		len(regions)*perRegion, len(regions), declared, took, float64(len(regions)*perRegion)/took.Seconds(), c.most, c.answers, most)
	for region, n := range c.most {
		if n > limit {
			t.Errorf("region %s: %d servers were unsettled at once by the API, want at most %d", region, n, limit)
		}
	}
	if d := slices.Sorted(maps.Keys(most)); !slices.Equal(d, regions) {
		t.Errorf("instances of regions %v were seen, want %v", d, regions)
	}
	for region, n := range most {
		if n > limit {
			t.Errorf("region %s: %d instances were unready at once by the API server's events, want at most %d", region, n, limit)
		}
	}
	// Each got exactly one apply, and one deployment that succeeded.
	applies := map[string]int{}
	for _, call := range s.proxy.Calls() {
		if call.Brings() {
			applies[call.Name]++
		} else if call.Write() {
			t.Errorf("%s %s (%d)", call.Verb, call.Path, call.Status)
		}
	}
	list, err := k.client.ListServers(t.Context(), api.ServerFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if !isConverged(v) { // a probe that the machine let wait
			v = k.converged(keyOf(v), "v1")
		}
		if applies[v.Instance] != 1 || v.Deployment.Seq != 1 || v.Deployment.Status != fleet.DeploymentSucceeded {
			t.Errorf("%d applies; the server is %s", applies[v.Instance], brief(v))
		}
	}
	if len(list) != len(regions)*perRegion || len(applies) != len(list) {
		t.Errorf("%d servers, %d instances applied; want %d", len(list), len(applies), len(regions)*perRegion)
	}
	if n := s.proxy.Count(kubernetes.Call.Watch); n != 1 {
		t.Errorf("%d watches were opened, want one for the namespace", n)
	}
}
