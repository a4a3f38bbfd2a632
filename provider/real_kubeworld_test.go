//go:build real

package provider

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// kubeRig is a cluster of one test: a real kube-apiserver, and what stands for the
// controller.
type kubeRig struct {
	t          *testing.T
	server     *kubernetes.Server
	between    *kubernetes.Proxy // through which the daemon reaches it
	controller *kubecontroller.Controller
	instances  dynamic.ResourceInterface // of the namespace kura, as somebody else
	port       string                    // at which all hosts answer
}

// startKubeKurad starts a cluster and a daemon of it. The daemon calls it prod and has the
// rights of examples/kubernetes.
func startKubeKurad(t *testing.T, o kubernetes.Options) *kurad {
	t.Helper()
	requireCLI(t)
	k := &kurad{outside: theGround(t), t: t, data: t.TempDir()}
	c := &kubeRig{t: t, server: kubernetes.Start(t, o)}
	client, err := c.server.Dynamic(kubernetes.Other)
	if err != nil {
		t.Fatal(err)
	}
	c.instances = client.Resource(kubernetes.Instances).Namespace(kubernetes.Namespace)
	c.controller, err = kubecontroller.Start(kubecontroller.Config{REST: c.server.REST(kubernetes.Controller), Namespace: kubernetes.Namespace, CA: k.ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.controller.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, c.port, err = net.SplitHostPort(c.controller.Address()); err != nil {
		t.Fatal(err)
	}
	if c.between, err = c.server.StartProxy(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.between.Close)
	config, err := c.between.Kubeconfig(kubernetes.Kurad)
	if err != nil {
		t.Fatal(err)
	}
	k.kube, k.runtime = c, []string{"--kubeconfig", config, "--cluster", "prod=" + kubernetes.Context}
	return k.begin()
}

// applies counts what the daemon applied to an instance; what the API server refused, because
// the controller had written meanwhile, was not applied.
func (c *kubeRig) applies(name string) int {
	return c.between.Count(func(call kubernetes.Call) bool {
		return call.Brings() && call.Name == name && call.Status != http.StatusConflict
	})
}

// left names the instances that are there.
func (c *kubeRig) left() string {
	list, err := c.instances.List(context.WithoutCancel(c.t.Context()), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, i := range list.Items {
		names = append(names, i.GetName())
	}
	return strings.Join(names, " ")
}

// get returns an instance; nil: there is none of the name.
func (c *kubeRig) get(name string) *unstructured.Unstructured {
	c.t.Helper()
	o, err := c.instances.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		if strings.Contains(err.Error(), "not found") {
			return nil
		}
		c.t.Fatal(err)
	}
	return o
}

// otherTool is the field manager of the tool that made the instances which are taken over.
const otherTool = "tuist-server"

// made applies an instance of a server of the region eu as another tool does, with what
// differs from the region in over, and waits until it runs.
func (c *kubeRig) made(k *kurad, account, tag string, over map[string]any) *unstructured.Unstructured {
	c.t.Helper()
	name := "kura-" + account + "-eu"
	spec := map[string]any{
		"accountHandle": account, "tenantID": account, "region": "eu", "image": "registry.test/kura/cache:" + tag, "replicas": int64(1),
		"publicHost": account + "-eu-staging.kura.test", "storageSize": "50Gi", "storageClassName": "fast",
		"extraEnv": []any{map[string]any{"name": "CACHE_GB", "value": "40"}},
	}
	for field, value := range over {
		spec[field] = value
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleet.KubeGroup + "/" + fleet.KubeVersion, "kind": fleet.KubeKind,
		"metadata": map[string]any{
			"name": name, "namespace": kubernetes.Namespace,
			"labels": map[string]any{
				fleet.KubeLabelName: "kura", fleet.KubeLabelInstance: name, fleet.KubeLabelAccount: account, fleet.KubeLabelRegion: "eu",
			},
			"annotations": map[string]any{fleet.KubeAnnotationRevision: "of-another-tool"},
		},
		"spec": spec,
	}}
	if _, err := c.instances.Apply(c.t.Context(), name, o, metav1.ApplyOptions{FieldManager: otherTool, Force: true}); err != nil {
		c.t.Fatal(err)
	}
	image, _, _ := unstructured.NestedString(o.Object, "spec", "image")
	var live *unstructured.Unstructured
	k.eventually(name+" runs "+image, func() (bool, string) {
		live = c.get(name)
		seen, _, _ := unstructured.NestedString(live.Object, "status", "observedImage")
		return seen == image, seen
	})
	return live
}

// kubeRegion is the region eu of the cluster prod, with further attributes of its own and of
// its kubernetes block.
func (k *kurad) kubeRegion(region, kubernetes string) string {
	return fmt.Sprintf(`
resource "kura_region" "eu" {
  name      = "eu"
  hosts     = { public = kura_host_template.public.name }
  readiness = { timeout = "2s", port = %s }
  %s
  kubernetes = {
    cluster  = "prod"
    image    = "registry.test/kura/cache:{image_tag}"
    replicas = 1
    storage  = { class = "fast", size = "50Gi" }
    env      = { CACHE_GB = "40" }
    %s
  }
}
`, k.kube.port, region, kubernetes)
}

// kubeConfig is a whole configuration of a Kubernetes region and what the test adds.
func (k *kurad) kubeConfig(region, kubernetes string, more ...string) string {
	return k.provider("staging") + neighbours + k.kubeRegion(region, kubernetes) + strings.Join(more, "\n")
}

// update writes an instance as somebody does with an editor.
func (c *kubeRig) update(o *unstructured.Unstructured) {
	c.t.Helper()
	if _, err := c.instances.Update(c.t.Context(), o, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		c.t.Fatal(err)
	}
}
