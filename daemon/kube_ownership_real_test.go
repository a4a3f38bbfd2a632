//go:build real

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// orphaned is how long an orphan is there at most: a minute as one, and until somebody
// looks.
const orphaned = 90 * time.Second

// instance is an object as another tool would apply it.
func (s *site) instance(name string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(fleet.KubeGroup + "/" + fleet.KubeVersion)
	o.SetKind(fleet.KubeKind)
	o.SetName(name)
	o.SetNamespace(s.namespace)
	o.SetLabels(labels)
	return o
}

// applyAs applies an object under the name of another field manager.
func (s *site) applyAs(manager string, o *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	echo, err := s.api.Apply(s.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return echo
}

// orphan makes an instance of staging whose server is not declared, and returns its name.
func (s *site) orphan(t *testing.T, account, region string) string {
	t.Helper()
	name, err := fleet.InstanceName(account, region)
	if err != nil {
		t.Fatal(err)
	}
	s.applyAs("kurad", s.instance(name, map[string]string{
		fleet.LabelEnvironment: "staging", fleet.KubeLabelAccount: account, fleet.KubeLabelRegion: region,
	}, map[string]any{"accountHandle": account, "tenantID": account, "region": region, "image": imageOf("v1")}))
	return name
}

// listsOrphans says whether kurad lists exactly these instances as orphans.
func (k *kurad) listsOrphans(names ...string) error {
	list, err := k.client.Orphans(k.t.Context())
	if err != nil {
		return err
	}
	var got []string
	for _, o := range list.Items {
		got = append(got, o.Name)
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(names, got) {
		return fmt.Errorf("orphans %v, want %v", got, names)
	}
	return nil
}

func TestK5_L30_orphansAreListedAndDeletedOnlyWhereTheRegionSaysSo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	kept, swept := s.region("kube-kept"), s.region("kube-swept", kubernetesOf(func(k *fleet.Kubernetes) { k.DeleteOrphans = true }))
	k, servers := s.serving(kept, []string{"owner"}, "--orphan-period", "1m")
	k.introduce(swept)
	stays := s.orphan(t, "lost", kept.Name)
	mark := s.mark()
	goes := s.orphan(t, "lost", swept.Name)
	// Of nobody: neither an orphan nor to be deleted.
	stranger := s.applyAs("somebody", s.instance("stranger", nil, map[string]any{"accountHandle": "x", "tenantID": "x", "region": swept.Name, "image": imageOf("v1")}))
	canary := s.applyAs("kurad", s.instance("kura-lost-canary", map[string]string{
		fleet.LabelEnvironment: "canary", fleet.KubeLabelAccount: "lost", fleet.KubeLabelRegion: swept.Name,
	}, map[string]any{"accountHandle": "x", "tenantID": "x", "region": swept.Name, "image": imageOf("v1")}))

	eventually(t, "both are listed", func() error { return k.listsOrphans(stays, goes) })
	gone := s.awaitFor(orphaned, mark, goes, "is deleted", func(c change) bool { return c.kind == watch.Deleted })
	made := s.since(mark, goes)[0]
	t.Logf("the orphan was deleted after %s", gone.at.Sub(made.at))
	if gone.at.Sub(made.at) < 45*time.Second { // the two watches are not equally fast
		t.Errorf("it was an orphan for %s only: who declares it in time is to find it", gone.at.Sub(made.at))
	}
	eventually(t, "the other one is still listed", func() error { return k.listsOrphans(stays) })
	if table := k.cli("orphans"); !strings.Contains(table, stays) || !strings.Contains(table, "lost/"+kept.Name) {
		t.Errorf("kurad orphans prints\n%s", table)
	}
	pause(t.Context(), 12*time.Second) // another look at the orphans
	for _, name := range []string{stays, stranger.GetName(), canary.GetName(), servers[0].Instance} {
		if s.object(name) == nil {
			t.Errorf("%s is gone", name)
		}
	}
	for _, c := range s.writes() {
		if c.Verb == "delete" && c.Name != goes {
			t.Errorf("kurad deleted %s", c.Name)
		}
	}
	k.converged(keyOf(servers[0]), "v1")

	// Declared again, the orphan is its server's, as it is.
	uid := s.object(stays).GetUID()
	k.putAccount(fleet.Account{ID: "lost"})
	key := fleet.ServerKey{Account: "lost", Region: kept.Name}
	k.put(key, "v1")
	k.converged(key, "v1")
	if now := s.object(stays).GetUID(); now != uid {
		t.Errorf("the instance is %s, was %s", now, uid)
	}
	if err := k.listsOrphans(); err != nil {
		t.Error(err)
	}
}

func TestK4_twoEnvironmentsOnOneClusterLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// Both may delete orphans, and both use one namespace.
	region := s.region("kube-shared", kubernetesOf(func(k *fleet.Kubernetes) { k.DeleteOrphans = true }))
	staging, servers := s.serving(region, []string{"mine"})
	production := s.kuradFor("production")
	production.introduce(region, "yours", "mine")
	yours := fleet.ServerKey{Account: "yours", Region: region.Name}
	production.put(yours, "v1")
	theirs := production.converged(yours, "v1")
	if strings.Contains(theirs.Hosts.Public, "staging") {
		t.Errorf("production serves at %s", theirs.Hosts.Public)
	}

	// The same server in both: the name is taken, and who has it is said.
	mine := keyOf(servers[0])
	before := s.object(servers[0].Instance)
	production.put(mine, "v2")
	v := production.failed(mine, fleet.ReasonForeignInstance)
	if !strings.Contains(v.Message, "staging") || !strings.Contains(v.Message, servers[0].Instance) {
		t.Errorf("message %q does not say whose %s is", v.Message, servers[0].Instance)
	}
	staging.put(mine, "v2")
	staging.converged(mine, "v2")
	pause(t.Context(), 3*time.Second) // three ticks of each
	if o := s.object(servers[0].Instance); o == nil || o.GetUID() != before.GetUID() || o.GetLabels()[fleet.LabelEnvironment] != "staging" {
		t.Errorf("staging's instance is %v", o)
	}
	if o := s.object(theirs.Instance); o == nil || string(o.GetUID()) != theirs.Resource.UID || o.GetGeneration() != 1 {
		t.Errorf("production's instance is %v", o)
	}
	for _, k := range []*kurad{staging, production} {
		if err := k.listsOrphans(); err != nil {
			t.Errorf("%s: %v", k.env, err)
		}
	}
	// A foreign object counts as absent: production's server goes without it (P18).
	production.delete(mine)
	production.gone(mine)
	staging.delete(mine)
	staging.gone(mine)
	if s.object(servers[0].Instance) != nil || s.object(theirs.Instance) == nil {
		t.Error("want staging's instance gone, and production's there")
	}
}

func TestP4_K4_aForeignInstanceOfTheNameIsLeftAloneUntilItGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k := s.kurad()
	region := s.region("kube-foreign")
	whose := map[string]struct {
		labels map[string]string
		words  []string
	}{
		"canarys":  {map[string]string{fleet.LabelEnvironment: "canary", fleet.KubeLabelAccount: "umbra", fleet.KubeLabelRegion: "elsewhere"}, []string{"canary", "umbra", "elsewhere"}},
		"anothers": {map[string]string{fleet.LabelEnvironment: "staging", fleet.KubeLabelAccount: "umbra", fleet.KubeLabelRegion: region.Name}, []string{"umbra", region.Name}},
		"nobodys":  {nil, []string{fleet.NotByKurad, "import"}},
	}
	accounts := slices.Sorted(maps.Keys(whose))
	k.introduce(region, accounts...)
	foreign := map[string]*unstructured.Unstructured{}
	for account, of := range whose {
		name, err := fleet.InstanceName(account, region.Name)
		if err != nil {
			t.Fatal(err)
		}
		foreign[account] = s.applyAs("tuist-server", s.instance(name, of.labels, map[string]any{
			"accountHandle": "umbra", "tenantID": "umbra", "region": "elsewhere", "image": imageOf("v0"),
		}))
		k.put(fleet.ServerKey{Account: account, Region: region.Name}, "v1")
	}
	for account, of := range whose {
		v := k.failed(fleet.ServerKey{Account: account, Region: region.Name}, fleet.ReasonForeignInstance)
		for _, word := range append(of.words, v.Instance) {
			if !strings.Contains(v.Message, word) {
				t.Errorf("message %q does not name %q", v.Message, word)
			}
		}
	}
	pause(t.Context(), 3*time.Second) // three ticks
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("kurad tried %+v", writes)
	}
	for account, before := range foreign {
		key, name := fleet.ServerKey{Account: account, Region: region.Name}, before.GetName()
		if d := cmp.Diff(at(before, "spec"), at(s.object(name), "spec")); d != "" || s.object(name).GetUID() != before.GetUID() {
			t.Errorf("the foreign instance (-before +after):\n%s", d)
		}
		history := len(k.deployments(key))
		s.remove(name)
		k.converged(key, "v1")
		if n := len(k.deployments(key)); n != history {
			t.Errorf("%d deployments, want the %d of before: it heals by itself (P9)", n, history)
		}
	}
}

func TestK1_aFieldThatAnotherManagerAppliesIsShownAndTakenOnlyByForce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	region := s.region("kube-held")
	k, servers := s.serving(region, []string{"held"})
	key, name := keyOf(servers[0]), servers[0].Instance
	autoscaler := func(spec map[string]any) { s.applyAs("autoscaler", s.instance(name, nil, spec)) }
	autoscaler(map[string]any{"accountHandle": "held", "replicas": int64(9)})
	v := k.until(key, "shows who holds the field", func(v fleet.ServerView) bool {
		return hasReason(v, fleet.ConditionManifestConverged, fleet.True, fleet.ReasonFieldConflict)
	})
	if v.Status != fleet.StatusActive || len(v.Resource.Held) != 1 || v.Resource.Held[0].Path != "spec.replicas" || v.Resource.Held[0].Manager != "autoscaler" {
		t.Errorf("the server is %s with %+v", brief(v), v.Resource)
	}
	pause(t.Context(), 3*time.Second) // three ticks
	if n := at(s.object(name), "spec.replicas"); n != int64(9) || s.applies(name) != 1 {
		t.Errorf("replicas are %v after %d applies, want 9 and the one of the creation", n, s.applies(name))
	}
	// It holds up nothing else: a new version is rolled out, and an edit of another field undone.
	k.put(key, "v2")
	k.converged(key, "v2")
	s.edit(name, `{"spec":{"storageSize":"7Gi"}}`)
	k.until(key, "has undone the edit", func(v fleet.ServerView) bool {
		return isConverged(v) && s.applies(name) == 3 && at(s.object(name), "spec.storageSize") != "7Gi"
	})
	told := func() (n int) {
		reasons, _ := k.events(key)
		for _, r := range reasons {
			if r == string(fleet.ReasonFieldConflict) {
				n++
			}
		}
		return n
	}
	if n := at(s.object(name), "spec.replicas"); n != int64(9) || told() != 1 {
		t.Errorf("replicas are %v, and it was told %d times; want 9 and once", n, told())
	}
	// It lets go, and ours is applied again.
	autoscaler(map[string]any{"accountHandle": "held"})
	k.until(key, "has its field again", func(v fleet.ServerView) bool {
		return isConverged(v) && hasReason(v, fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged) && at(s.object(name), "spec.replicas") == int64(2)
	})
	autoscaler(map[string]any{"accountHandle": "held", "replicas": int64(9)})
	k.until(key, "shows who holds the field again", func(v fleet.ServerView) bool { return len(v.Resource.Held) == 1 })
	applies := s.applies(name)
	region.Kubernetes.ForceConflicts = true
	k.putRegion(region)
	k.until(key, "has taken the field", func(v fleet.ServerView) bool {
		return isConverged(v) && len(v.Resource.Held) == 0 && at(s.object(name), "spec.replicas") == int64(2)
	})
	if n := s.applies(name) - applies; n != 1 {
		t.Errorf("%d applies, want one more", n)
	}
}
