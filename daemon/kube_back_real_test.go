//go:build real

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// damage is something that a person does by hand to an instance, and that kurad undoes.
type damage struct {
	path  string // of the field that is edited; "": the instance is deleted
	patch string
}

func (d damage) String() string {
	if d.path == "" {
		return "a deletion"
	}
	return "an edit of " + d.path
}

// do damages an instance and waits until it is as before; how long that took is returned.
func (d damage) do(s *site, name string) (took time.Duration, back *unstructured.Unstructured) {
	s.t.Helper()
	want := s.object(name)
	mark, begun := s.mark(), time.Now()
	var damaged int64
	if d.path == "" {
		s.remove(name)
	} else {
		damaged = revisionOf(s.edit(name, d.patch))
	}
	c := s.await(mark, name, "is back after "+d.String(), func(c change) bool {
		if d.path == "" {
			return c.kind == watch.Added
		}
		return revisionOf(c.object) > damaged && cmp.Equal(at(want, d.path), at(c.object, d.path))
	})
	if diff := cmp.Diff(at(want, "spec"), at(c.object, "spec")); diff != "" {
		s.t.Errorf("%s after %s (-before +after):\n%s", name, d, diff)
	}
	return min(c.at.Sub(begun), real.stopwatch.Since(begun)), c.object
}

// damages are one of each kind; half of them are deletions.
func damages() []damage {
	var all []damage
	for _, edit := range []damage{
		{"spec.image", `{"spec":{"image":"registry.kura.test/kura/cache:v9"}}`},
		{"spec.replicas", `{"spec":{"replicas":7}}`},
		{"spec.storageSize", `{"spec":{"storageSize":null}}`},
		{"spec.nodeSelector.pool", `{"spec":{"nodeSelector":{"pool":"other"}}}`},
		{"spec.extraEnv", `{"spec":{"extraEnv":[]}}`},
		{"spec.publicHost", `{"spec":{"publicHost":"stolen-staging.kura.test"}}`},
		{"spec.tolerations", `{"spec":{"tolerations":null}}`},
		{"metadata.labels", `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`},
		{"metadata.annotations", `{"metadata":{"annotations":{"tuist.dev/kura-manifest-revision":"mine"}}}`},
		{"spec.ingressClassName", `{"spec":{"ingressClassName":"traefik"}}`},
	} {
		all = append(all, damage{}, edit)
	}
	return all
}

func TestK2_P14_whatIsDeletedOrEditedByHandIsBackWithinASecond(t *testing.T) {
	t.Parallel()
	const times, within = 100, time.Second
	s := newSite(t)
	accounts := make([]string, 10)
	for i := range accounts {
		accounts[i] = fmt.Sprintf("back-%d", i)
	}
	k, servers := s.serving(s.region("kube-back", func(r *fleet.Region) { r.MaxUnsettled = 2 * len(accounts) }), accounts, "--tick", "100ms")
	applied, history := map[string]int{}, map[string]int{}
	for _, v := range servers {
		applied[v.Instance] = s.applies(v.Instance)
		if applied[v.Instance] != 1 {
			t.Errorf("%s was applied %d times to be made, want once", v.Instance, applied[v.Instance])
		}
		history[v.Instance] = len(k.deployments(keyOf(v)))
	}
	all := damages()
	var took []time.Duration
	for i := range times {
		// Each server is damaged in every way in turn, and has settled before.
		v := servers[i%len(servers)]
		way := all[(i+i/len(all))%len(all)]
		k.converged(keyOf(v), "v1")
		if got := s.applies(v.Instance); got != applied[v.Instance] {
			t.Fatalf("%s was applied %d times, want %d: one for each damage", v.Instance, got, applied[v.Instance])
		}
		d, _ := way.do(s, v.Instance)
		took = append(took, d)
		applied[v.Instance]++
	}
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("%d instances deleted or edited were back after %s (median), %s (90 %%), %s (worst)", times, median, took[len(took)*9/10], took[len(took)-1])
	if median > within {
		t.Errorf("the median is %s, want at most %s", median, within)
	}
	for _, v := range servers {
		after := k.converged(keyOf(v), "v1")
		if got := s.applies(v.Instance); got != applied[v.Instance] {
			t.Errorf("%s was applied %d times, want %d: one for each damage", v.Instance, got, applied[v.Instance])
		}
		if got := len(k.deployments(keyOf(v))); got != history[v.Instance] || after.PublishedURL != v.PublishedURL {
			t.Errorf("%s has %d deployments, had %d; published %s, was %s", v.Instance, got, history[v.Instance], after.PublishedURL, v.PublishedURL)
		}
	}
	s.refusesNothing()
}

// refusesNothing checks that nothing that kurad asked for was refused, but for the first try
// at fields that were edited.
func (s *site) refusesNothing() {
	s.t.Helper()
	for _, c := range s.proxy.Calls() {
		if c.Status >= 400 && c.Status != 404 && !(c.Verb == "patch" && c.Status == 409) {
			s.t.Errorf("the API server answered %d to %s %s", c.Status, c.Verb, c.Path)
		}
	}
}

func TestP14_P16_L47_anEditOfAForeignFieldStaysAndQuietTicksCostNothing(t *testing.T) {
	t.Parallel()
	const tick, ticks = 100 * time.Millisecond, 200
	s := newSite(t)
	k, servers := s.serving(s.region("kube-quiet"), []string{"quiet-a", "quiet-b"}, "--tick", tick.String())
	name := servers[0].Instance
	s.proxy.Forget()
	edits := map[string]string{
		"metadata.annotations.note":  `{"metadata":{"annotations":{"note":"by another controller"}}}`,
		"metadata.labels.team":       `{"metadata":{"labels":{"team":"blue"}}}`,
		"spec.podAnnotations.scrape": `{"spec":{"podAnnotations":{"scrape":"yes"}}}`,
		"spec.private":               `{"spec":{"private":true}}`,
		"spec.nodeSelector.disk":     `{"spec":{"nodeSelector":{"disk":"nvme"}}}`, // beside a key of ours
	}
	for _, patch := range edits {
		s.edit(name, patch)
	}
	edited := s.object(name)
	events, _ := k.events(keyOf(servers[0]))
	for range 10 { // the controller says all the time that it is alive
		s.reconciled(name)
		pause(t.Context(), ticks*tick/10)
	}
	after := s.object(name)
	for path := range edits {
		if want, got := at(edited, path), at(after, path); want == nil || !cmp.Equal(want, got) {
			t.Errorf("%s was edited to %v and is %v after %d ticks", path, want, got, ticks)
		}
	}
	for _, v := range servers {
		k.converged(keyOf(v), "v1")
	}
	for _, c := range s.proxy.Calls() {
		if c.Resource == fleet.KubeResource && c.Verb != "watch" {
			t.Errorf("%d quiet ticks cost %s %s (%d)", ticks, c.Verb, c.Path, c.Status)
		}
	}
	if n := s.proxy.Count(kubernetes.Call.Watch); n > 1 {
		t.Errorf("%d quiet ticks opened %d watches", ticks, n)
	}
	t.Logf("%d ticks with %d edits of foreign fields cost %d calls: %v", ticks, len(edits), len(s.proxy.Calls()), s.proxy.Calls())
	if now, text := k.events(keyOf(servers[0])); len(now) != len(events) {
		t.Errorf("the edits made events:\n%s", text)
	}
}

// An object of ours that somebody replaced, by a backup of it for example, is applied to
// once and then left alone.
func TestL52_aSwappedInstanceIsAppliedOnce(t *testing.T) {
	t.Parallel()
	const tick, ticks = 100 * time.Millisecond, 5
	s := newSite(t)
	k, servers := s.serving(s.region("kube-swap"), []string{"swap"}, "--tick", tick.String())
	key, name := keyOf(servers[0]), servers[0].Instance
	history := k.deployments(key)
	s.proxy.Set(kubernetes.Fault{Hold: true}) // what happens now is seen when it is over
	s.proxy.CutWatches()
	old := s.object(name)
	s.remove(name)
	restored := s.instance(name, old.GetLabels(), map[string]any{
		"accountHandle": "swap", "tenantID": "swap", "region": key.Region, "image": imageOf("v0"), "replicas": int64(1),
	})
	restored.SetAnnotations(old.GetAnnotations())
	restored, err := s.api.Create(t.Context(), restored, metav1.CreateOptions{FieldManager: "backup"})
	if err != nil {
		t.Fatal(err)
	}
	s.proxy.Forget()
	mark := s.mark()
	s.proxy.Heal()
	s.await(mark, name, "is as declared again", func(c change) bool {
		return c.object.GetUID() == restored.GetUID() && cmp.Equal(at(old, "spec"), at(c.object, "spec"))
	})
	k.until(key, "has settled", func(v fleet.ServerView) bool {
		return isConverged(v) && v.Resource.UID == string(restored.GetUID()) && v.ObservedImageTag == "v1"
	})
	pause(t.Context(), ticks*tick)
	if s.applies(name) != 1 || s.object(name).GetUID() != restored.GetUID() {
		t.Errorf("the swapped instance was applied %d times and is %s, want once and %s", s.applies(name), s.object(name).GetUID(), restored.GetUID())
	}
	if d := cmp.Diff(history, k.deployments(key)); d != "" {
		t.Errorf("deployments (-before +after):\n%s", d)
	}
}
