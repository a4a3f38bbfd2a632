package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// cluster is a Kubernetes cluster that is there, with a KuraInstance controller.
type cluster struct {
	context, namespace, zone, image, ingress, flags string

	environment string // that of the demo: no other kurad serves it on this cluster
	client      dynamic.ResourceInterface
	used        bool // the demo may have made something
}

func (g *cluster) introduce() string {
	return fmt.Sprintf("kurad for the environment %q on the cluster of context %s\n"+
		"       There, in namespace %s, it makes four KuraInstances with hosts in %s,\n"+
		"       deletes one of them, rolls them forward and destroys them. It touches nothing else:\n"+
		"       what it makes bears the label %s",
		g.environment, g.context, g.namespace, g.zone, g.label())
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
		return fmt.Errorf("namespace %s already has instances of environment %s: %s; run the demo again, for another name", g.namespace, g.environment, strings.Join(names(left), ", "))
	}
	g.used = true
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

// label is what the demo's instances bear, and no others.
func (g *cluster) label() string { return fleet.LabelEnvironment + "=" + g.environment }

// instances are those of the demo.
func (g *cluster) instances(ctx context.Context) ([]unstructured.Unstructured, error) {
	list, err := g.client.List(ctx, metav1.ListOptions{LabelSelector: g.label()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func names(instances []unstructured.Unstructured) []string {
	var list []string
	for _, o := range instances {
		list = append(list, o.GetName())
	}
	return list
}

func (g *cluster) close(ctx context.Context, failed bool) error {
	if !failed || !g.used {
		return nil
	}
	// A story that broke off has destroyed nothing.
	err := progress("removing what the demo made", func() error { return g.removeAll(ctx) })
	if err != nil {
		err = fmt.Errorf("the cluster may still hold what the demo made: %w; remove it by: kubectl --context %s --namespace %s delete kurainstances --selector %s",
			err, g.context, g.namespace, g.label())
	}
	return err
}

// removeAll deletes the demo's instances one by one, as kurad's own rights allow, and each
// only while it is the one that was listed.
func (g *cluster) removeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	left, err := g.instances(ctx)
	errs := []error{err}
	for _, o := range left {
		err := g.client.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.GetUID()))})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (g *cluster) serve() []string {
	return append([]string{"--environment", g.environment, "--env-suffix=-" + g.environment, "--cluster", "demo=" + g.context}, strings.Fields(g.flags)...)
}

func (g *cluster) variables() map[string]string {
	v := map[string]string{"zone": g.zone, "namespace": g.namespace, "image": g.image, "environment": g.environment, "stall_after": "3m"}
	if g.ingress != "" {
		v["ingress_class"] = g.ingress
	}
	return v
}

func (g *cluster) zoned() string { return g.zone }

func (g *cluster) cloudflare() *cloudflare.Emulator { return nil }

func (g *cluster) global(string) string { return "" }

func (g *cluster) thing() string { return "KuraInstance" }

func (g *cluster) remove(ctx context.Context, v server) (string, error) {
	err := g.client.Delete(ctx, v.Resource.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(v.Resource.UID)})
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
		err = errors.New("still there: " + strings.Join(names(left), ", "))
	}
	return fmt.Sprintf("kubectl --namespace %s get kurainstances --selector %s: nothing", g.namespace, g.label()), err
}

func (g *cluster) hint() string {
	return fmt.Sprintf("  kubectl --context %s --namespace %s get kurainstances --selector %s --watch\n", g.context, g.namespace, g.label())
}

func (g *cluster) target() string { return "demo-kubernetes" }

func (g *cluster) stays() bool { return true }
