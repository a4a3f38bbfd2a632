//go:build real

package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// granted are the rights of examples/kubernetes/rbac.yaml, as "verb group/resource".
func granted(t *testing.T) []string {
	t.Helper()
	objects, err := kubernetes.Manifests("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for _, o := range objects {
		if strings.HasPrefix(o.GetKind(), "Cluster") {
			t.Errorf("there is a %s: the rights are to end at the namespace", o.GetKind())
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			list := func(field string) []string { l, _, _ := unstructured.NestedStringSlice(rule, field); return l }
			for _, group := range list("apiGroups") {
				for _, resource := range list("resources") {
					for _, verb := range list("verbs") {
						rights[verb+" "+group+"/"+resource] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(rights))
}

// used are the rights that the calls of a site needed.
func (s *site) used() []string {
	rights := map[string]bool{}
	for _, c := range s.proxy.Calls() {
		if c.Verb == "" {
			// The schema: every authenticated account may read that (system:discovery).
			if !strings.HasPrefix(c.Path, "/openapi/v3") {
				s.t.Errorf("a call of %s (%d) is of no resource, and is not of the schema", c.Path, c.Status)
			}
			continue
		}
		if c.Status >= 400 && c.Status != http.StatusNotFound && !(c.Verb == "patch" && c.Status == http.StatusConflict) {
			s.t.Errorf("%s %s was answered %d", c.Verb, c.Path, c.Status)
		}
		own := c.Resource == "namespaces" && c.Name == s.namespace // which a Role in it may grant
		if c.Namespace != s.namespace && !own || c.Subresource != "" {
			s.t.Errorf("%s %s is of another namespace or of a subresource", c.Verb, c.Path)
		}
		of := c.Group + "/" + c.Resource
		rights[c.Verb+" "+of] = true
	}
	return slices.Sorted(maps.Keys(rights))
}

// byAnotherTool makes an instance as the tool did that made most of the existing ones, with
// the document of a server that is there.
func (s *site) byAnotherTool(t *testing.T, like fleet.ServerView, key fleet.ServerKey) *unstructured.Unstructured {
	t.Helper()
	name, err := fleet.InstanceName(key.Account, key.Region)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := s.object(like.Instance).DeepCopy().Object["spec"].(map[string]any)
	for field, value := range spec {
		if text, ok := value.(string); ok && field != "image" {
			spec[field] = strings.Replace(text, like.Account, key.Account, 1)
		}
	}
	return s.applyAs("tuist-server", s.instance(name, map[string]string{
		fleet.KubeLabelName: "kura", fleet.KubeLabelInstance: name, fleet.KubeLabelAccount: key.Account, fleet.KubeLabelRegion: key.Region,
	}, spec))
}

func TestK4_theRoleHoldsExactlyTheVerbsThatKuradUses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	region := s.region("kube-role")
	k, servers := s.serving(region, []string{"given"}, "--orphan-period", "1m")
	v := servers[0]
	mark := s.mark()
	orphan := s.orphan(t, "lost", region.Name)

	k.put(keyOf(v), "v2")
	k.converged(keyOf(v), "v2")
	damage{}.do(s, v.Instance)
	k.converged(keyOf(v), "v2")

	adopted := fleet.ServerKey{Account: "taken", Region: region.Name}
	k.putAccount(fleet.Account{ID: adopted.Account})
	before := s.byAnotherTool(t, v, adopted)
	if _, err := k.client.Adopt(t.Context(), adopted, api.AdoptRequest{}); err != nil {
		t.Fatal(err)
	}
	// Taken over as it is, by one apply that touches metadata only (K6).
	k.converged(adopted, "v2")
	after := s.object(before.GetName())
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() || s.applies(before.GetName()) > 1 {
		t.Errorf("after %d applies the instance is %s, generation %d; was %s, %d", s.applies(before.GetName()), after.GetUID(), after.GetGeneration(), before.GetUID(), before.GetGeneration())
	}

	eventually(t, "the orphan is listed", func() error { return k.listsOrphans(orphan) })
	region.Kubernetes.DeleteOrphans = true
	k.putRegion(region)
	s.awaitFor(orphaned, mark, orphan, "is deleted", func(c change) bool { return c.kind == watch.Deleted })

	for _, key := range []fleet.ServerKey{keyOf(v), adopted} {
		k.delete(key)
		k.gone(key)
	}
	if list, err := s.api.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d instances are left, %v", len(list.Items), err)
	}
	if d := cmp.Diff(granted(t), s.used()); d != "" {
		t.Errorf("what the Role grants and what was used (-granted +used):\n%s", d)
	}
}
