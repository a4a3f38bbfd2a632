//go:build real

package kubernetes_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// The manifests are for a person who copies them: a field that does not exist, or that the
// server would refuse, is found here and not by that person.
func TestExamples_theServerTakesTheManifestsAsTheyAre(t *testing.T) {
	s, ctx := kubernetes.Start(t, kubernetes.Options{Bare: true}), t.Context()
	for _, file := range []string{"namespace.yaml", "rbac.yaml", "kurad.yaml", "crd.yaml"} {
		objects, err := kubernetes.Manifests(file)
		done(t, err)
		for _, o := range objects {
			if _, err := s.Apply(ctx, o, metav1.ApplyOptions{FieldManager: "kubectl"}); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
