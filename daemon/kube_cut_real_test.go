//go:build real

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// While reading is broken nothing is started (P2); what changed meanwhile is seen when the
// watch is back, and acted upon once.
func TestK2_P2_whatChangesWhileTheWatchIsCutIsSeenAfterwardsAndActedUponOnce(t *testing.T) {
	t.Parallel()
	d := cutFor(t)
	s := newSite(t)
	accounts := []string{"cut-deleted", "cut-edited", "cut-both", "cut-foreign", "cut-still", "cut-declared"}
	k, servers := s.serving(s.region("kube-cut"), accounts)
	by := map[string]fleet.ServerView{}
	events := map[string][]string{}
	for _, v := range servers {
		by[v.Account] = v
		events[v.Account], _ = k.events(keyOf(v))
	}
	s.proxy.Forget()
	s.proxy.Set(kubernetes.Fault{When: func(c kubernetes.Call) bool { return c.Verb == "watch" || c.Verb == "list" }})
	if n := s.proxy.CutWatches(); n != 1 {
		t.Errorf("%d watches were open, want one for the namespace", n)
	}
	begun := time.Now()
	for _, v := range servers {
		k.until(keyOf(v), "is unobserved", func(v fleet.ServerView) bool {
			return v.Verdict == fleet.VerdictUnobserved && v.Reason == fleet.ReasonEndpointUnreachable
		})
	}
	s.remove(by["cut-deleted"].Instance)
	s.edit(by["cut-edited"].Instance, `{"spec":{"replicas":9}}`)
	s.edit(by["cut-both"].Instance, `{"spec":{"replicas":9}}`)
	s.edit(by["cut-both"].Instance, `{"spec":{"ingressClassName":"traefik"}}`)
	s.remove(by["cut-both"].Instance)
	s.edit(by["cut-foreign"].Instance, `{"metadata":{"annotations":{"note":"while nobody looked"}}}`)
	k.put(keyOf(by["cut-declared"]), "v2")
	for time.Since(begun) < d {
		pause(t.Context(), min(time.Second, d))
		if writes := s.writes(); len(writes) > 0 {
			t.Fatalf("after %s, while the watch is cut: %+v", time.Since(begun), writes)
		}
	}
	mark := s.mark()
	s.proxy.Heal()
	back := time.Now()
	s.await(mark, by["cut-deleted"].Instance, "is made again", func(c change) bool { return c.kind == watch.Added })
	s.await(mark, by["cut-edited"].Instance, "is mended", func(c change) bool { return at(c.object, "spec.replicas") == int64(2) })
	s.await(mark, by["cut-both"].Instance, "is made again", func(c change) bool { return c.kind == watch.Added })
	s.await(mark, by["cut-declared"].Instance, "is rolled out", func(c change) bool { return at(c.object, "spec.image") == imageOf("v2") })
	t.Logf("cut for %s; all of it was seen and acted upon %s after", back.Sub(begun), time.Since(back))
	want := map[string]int{"cut-deleted": 1, "cut-edited": 1, "cut-both": 1, "cut-declared": 1}
	for _, v := range servers {
		tag := "v1"
		if v.Account == "cut-declared" {
			tag = "v2"
		}
		k.converged(keyOf(v), tag)
	}
	pause(t.Context(), 3*time.Second) // three ticks
	for _, v := range servers {
		if n := s.applies(v.Instance); n != want[v.Account] {
			t.Errorf("%s was applied %d times, want %d", v.Instance, n, want[v.Account])
		}
		reasons, text := k.events(keyOf(v))
		added := reasons[len(events[v.Account]):]
		for _, r := range added {
			if n := len(slices.DeleteFunc(slices.Clone(added), func(s string) bool { return s != r })); n > 1 {
				t.Errorf("%s: event %s came %d times:\n%s", v.Instance, r, n, text)
			}
		}
		if v.Account == "cut-still" && strings.Contains(fmt.Sprint(added), "Drift") {
			t.Errorf("%s was left alone and has events %v", v.Instance, added)
		}
		if n := len(k.deployments(keyOf(v))); v.Account != "cut-declared" && n != 1 {
			t.Errorf("%s has %d deployments, want one", v.Instance, n)
		}
	}
	if note := at(s.object(by["cut-foreign"].Instance), "metadata.annotations.note"); !cmp.Equal(note, any("while nobody looked")) {
		t.Errorf("the foreign annotation is %v", note)
	}
	if n := s.proxy.Count(func(c kubernetes.Call) bool { return c.Watch() && c.Status == 200 }); n != 1 {
		t.Errorf("%d watches were opened afterwards, want one", n)
	}
	s.refusesNothing()
}
