//go:build real

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// mutates has a policy of the cluster make these JSON patches, in CEL, of the instances of the
// site that somebody writes.
func (s *site) mutates(patches ...string) {
	t := s.t
	t.Helper()
	admin, err := s.server.Dynamic(kubernetes.Admin)
	if err != nil {
		t.Fatal(err)
	}
	var mutations []any
	for _, p := range patches {
		mutations = append(mutations, map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": p}})
	}
	for _, o := range []struct {
		kind string
		spec map[string]any
	}{
		{"MutatingAdmissionPolicy", map[string]any{
			"reinvocationPolicy": "Never", "mutations": mutations,
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{fleet.KubeGroup}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{fleet.KubeResource},
			}}},
		}},
		{"MutatingAdmissionPolicyBinding", map[string]any{
			"policyName":     s.namespace,
			"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.namespace}}},
		}},
	} {
		resource := strings.ToLower(strings.Replace(o.kind+"s", "Policys", "Policies", 1))
		group := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": o.kind, "metadata": map[string]any{"name": s.namespace}, "spec": o.spec,
		}}
		if _, err := admin.Resource(group).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the API server knows the policy", func() error {
		sent := s.instance("probe", nil, map[string]any{"accountHandle": "a", "tenantID": "a", "region": "r", "image": imageOf("v1")})
		made, err := s.api.Create(t.Context(), sent, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && at(made, "spec.image") == imageOf("v1") {
			err = fmt.Errorf("the image is %v", at(made, "spec.image"))
		}
		return err
	})
}

// A policy of the cluster takes images from a mirror and takes a field away. That is learned
// from the answer to the first apply, for all lives of the daemon.
func TestK10_whatAPolicyChangesCostsNoApplyAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mutates(
		`[JSONPatch{op: "replace", path: "/spec/image", value: object.spec.image.replace("registry.kura.test/", "mirror.kura.test/")}]`,
		`has(object.spec.nodeSelector) ? [JSONPatch{op: "remove", path: "/spec/nodeSelector"}] : []`)
	k, servers := s.serving(s.region("kube-admission"), []string{"altered"})
	key, name := keyOf(servers[0]), servers[0].Instance
	mirrored := strings.Replace(imageOf("v1"), "registry.", "mirror.", 1)
	quiet := func(when, image string, applies int) {
		t.Helper()
		v := k.until(key, when+": is converged, and says what is changed", func(v fleet.ServerView) bool {
			return isConverged(v) && hasReason(v, fleet.ConditionManifestConverged, fleet.True, fleet.ReasonFieldsAltered)
		})
		pause(t.Context(), 3*time.Second) // three ticks
		if n := s.applies(name); n != applies || len(v.Resource.Altered) != 2 || len(v.Resource.Differs)+len(v.Resource.Held)+len(v.Resource.Dropped) > 0 {
			t.Errorf("%s: %d applies, want %d: %+v", when, n, applies, v.Resource)
		}
		if got := at(s.object(name), "spec.image"); got != image {
			t.Errorf("%s: the image is %v, want %s", when, got, image)
		}
		reasons, text := k.events(key)
		if n := len(slices.DeleteFunc(reasons, func(r string) bool { return !strings.Contains(r, string(fleet.ReasonFieldsAltered)) })); n != 1 || strings.Contains(text, string(fleet.ReasonFieldConflict)) {
			t.Errorf("%s: %d events tell of it, want one, and none of a conflict:\n%s", when, n, text)
		}
	}
	quiet("created", mirrored, 1)
	restart := func() { k.kill(); k.start() }
	restart()
	quiet("killed and started again", mirrored, 1)
	s.edit(name, `{"spec":{"image":"other.kura.test/x:1"}}`)
	eventually(t, "the edit is put right", func() error {
		if n := s.applies(name); n != 2 {
			return fmt.Errorf("%d applies", n)
		}
		return nil
	})
	quiet("after an edit", mirrored, 2)
	k.put(key, "v2")
	k.converged(key, "v2")
	restart()
	quiet("after a change and a restart", strings.Replace(mirrored, "v1", "v2", 1), 3)
	s.refusesNothing()
}
