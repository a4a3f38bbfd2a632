//go:build real

package kubernetes_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// instance is the smallest KuraInstance, and the fields given.
func instance(name string, spec map[string]any) *unstructured.Unstructured {
	all := map[string]any{"accountHandle": "acme", "tenantID": "acme", "region": "eu", "image": "cache:v1"}
	for k, v := range spec {
		all[k] = v
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleet.KubeGroup + "/" + fleet.KubeVersion, "kind": fleet.KubeKind,
		"metadata": map[string]any{"name": name, "namespace": kubernetes.Namespace}, "spec": all,
	}}
}

func instances(t *testing.T, s *kubernetes.Server, user string) dynamic.ResourceInterface {
	t.Helper()
	client, err := s.Dynamic(user)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(kubernetes.Instances).Namespace(kubernetes.Namespace)
}

// done fails the test where a step of its set-up did.
func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestServer_servesInstancesAndChangesOnCommand(t *testing.T) {
	s, ctx := kubernetes.Start(t, kubernetes.Options{}), t.Context()
	as := metav1.ApplyOptions{FieldManager: "test", Force: true}
	full := instance("acme", map[string]any{"clientHostAliases": []any{"old.kura.test"}, "replicas": int64(2), "storageSize": "10Gi"})
	apply := func(user string) error {
		_, err := instances(t, s, user).Apply(ctx, "acme", full, as)
		return err
	}
	done(t, apply(kubernetes.Kurad))

	// Rights.
	if err := apply(kubernetes.Nobody); !apierrors.IsForbidden(err) {
		t.Errorf("nobody applies: %v, want forbidden", err)
	}
	done(t, s.Revoke(ctx, kubernetes.Namespace))
	if err := apply(kubernetes.Kurad); !apierrors.IsForbidden(err) {
		t.Errorf("kurad applies without its role: %v, want forbidden", err)
	}
	done(t, s.Grant(ctx, kubernetes.Namespace))
	done(t, apply(kubernetes.Kurad))

	// Variants of the CRD, in place: the instance stays.
	done(t, s.InstallCRD(ctx, kubernetes.NewerFields...))
	if err := apply(kubernetes.Kurad); err == nil {
		t.Error("a CRD without clientHostAliases takes them")
	}
	done(t, s.InstallCRD(ctx))
	done(t, apply(kubernetes.Kurad))
	done(t, s.RemoveCRD(ctx))
	if err := apply(kubernetes.Kurad); !apierrors.IsNotFound(err) {
		t.Errorf("an apply without the CRD: %v, want not found", err)
	}
	done(t, s.InstallCRD(ctx))
	if _, err := instances(t, s, kubernetes.Admin).Get(ctx, "acme", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the instance outlives its CRD: %v", err)
	}
	done(t, apply(kubernetes.Kurad))

	// The program.
	path, err := s.Kubeconfig(kubernetes.Kurad)
	done(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	done(t, err)
	config.Timeout = 200 * time.Millisecond
	client, err := dynamic.NewForConfig(config)
	done(t, err)
	get := func() error {
		_, err := client.Resource(kubernetes.Instances).Namespace(kubernetes.Namespace).Get(ctx, "acme", metav1.GetOptions{})
		return err
	}
	done(t, s.Stop())
	if get() == nil {
		t.Error("a stopped apiserver answers")
	}
	done(t, s.Continue())
	done(t, s.WaitReady(ctx))
	done(t, get())
	s.Kill()
	if get() == nil {
		t.Error("a killed apiserver answers")
	}
	done(t, s.Restart(ctx))
	done(t, get())
}
