package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// environment is the demo's on Kubernetes: not one that a kurad of yours may serve on the
// same cluster.
const environment = "demo"

// cluster is a Kubernetes cluster that is there, with a KuraInstance controller.
type cluster struct {
	context, namespace, zone, image, ingress, flags string

	client dynamic.ResourceInterface
	empty  bool // it had nothing of a demo, so what it has now is this one's
}

func (g *cluster) introduce() string {
	return fmt.Sprintf("kurad for the environment %q on the cluster of context %s\n"+
		"       There, in namespace %s, it makes four KuraInstances with hosts in %s,\n"+
		"       deletes one of them, rolls them forward and destroys them. It touches nothing else.",
		environment, g.context, g.namespace, g.zone)
}

func (g *cluster) open(ctx context.Context, _ string) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: g.context}).ClientConfig()
	if err != nil {
		return fmt.Errorf("context %s of KUBECONFIG: %w", g.context, err)
	}
	if err := g.connect(config); err != nil {
		return err
	}
	left, err := g.instances(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster of context %s does not know KuraInstances: install the Kura controller there first, its CRD comes with it", g.context)
	case err != nil:
		return fmt.Errorf("list KuraInstances in namespace %s of context %s: %w", g.namespace, g.context, err)
	case len(left) > 0:
		return fmt.Errorf("namespace %s still has instances of a demo: %s; end that demo, or delete them, first", g.namespace, strings.Join(left, ", "))
	}
	g.empty = true
	return nil
}

// connect makes the client.
func (g *cluster) connect(config *rest.Config) error {
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: fleet.KubeGroup, Version: fleet.KubeVersion, Resource: fleet.KubeResource}
	g.client = all.Resource(resource).Namespace(g.namespace)
	return nil
}

// instances are the names of the demo's.
func (g *cluster) instances(ctx context.Context) ([]string, error) {
	list, err := g.client.List(ctx, metav1.ListOptions{LabelSelector: fleet.LabelEnvironment + "=" + environment})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names, nil
}

func (g *cluster) close(ctx context.Context, failed bool) error {
	if !failed || !g.empty {
		return nil
	}
	// A story that broke off has destroyed nothing.
	return progress("removing what the demo made", func() error {
		return g.client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: fleet.LabelEnvironment + "=" + environment})
	})
}

func (g *cluster) serve() []string {
	return append([]string{"--environment", environment, "--env-suffix", "-" + environment, "--cluster", "demo=" + g.context}, strings.Fields(g.flags)...)
}

func (g *cluster) variables() map[string]string {
	v := map[string]string{"zone": g.zone, "namespace": g.namespace, "image": g.image, "stall_after": "3m"}
	if g.ingress != "" {
		v["ingress_class"] = g.ingress
	}
	return v
}

func (g *cluster) curl(string) []string { return nil }

func (g *cluster) thing() string { return "KuraInstance" }

func (g *cluster) remove(ctx context.Context, v server) (string, error) {
	err := g.client.Delete(ctx, v.Resource.Name, metav1.DeleteOptions{})
	return fmt.Sprintf("kubectl --namespace %s delete kurainstance %s", v.Resource.Namespace, v.Resource.Name), err
}

func (g *cluster) rolling() string {
	return "one apply for each instance, which its controller rolls out"
}

func (g *cluster) rolled(before, after server) (string, error) {
	if after.id() != before.id() {
		return "", fmt.Errorf("%s/%s was made again: %+v", after.Account, after.Region, after)
	}
	return fmt.Sprintf("%s (%.8s): %s → %s", after.Resource.Name, after.id(), before.ServingImageTag, after.ServingImageTag), nil
}

func (g *cluster) failure() string { return string(fleet.ReasonStalled) }

func (g *cluster) nothingLeft(ctx context.Context) (string, error) {
	left, err := g.instances(ctx)
	if err == nil && len(left) > 0 {
		err = errors.New("still there: " + strings.Join(left, ", "))
	}
	return fmt.Sprintf("kubectl --namespace %s get kurainstances: nothing", g.namespace), err
}

func (g *cluster) hint() string {
	return fmt.Sprintf("  kubectl --context %s --namespace %s get kurainstances --watch\n", g.context, g.namespace)
}

func (g *cluster) target() string { return "demo-kubernetes" }
