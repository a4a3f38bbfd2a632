//go:build real

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// kubeCluster is the kube-apiserver with the controller's stand-in that all tests of
// Kubernetes regions share. The first one starts it.
type kubeCluster struct {
	once       sync.Once
	err        error
	without    []string // spec fields that its CRD lacks
	server     *kubernetes.Server
	controller *kubecontroller.Controller
	port       int // at which every host of every instance is served
	sites      atomic.Int32
}

func (c *kubeCluster) start(dir string, ca *world.CA) error {
	c.once.Do(func() { c.err = c.run(filepath.Join(dir, "kubernetes"), ca) })
	return c.err
}

func (c *kubeCluster) run(dir string, ca *world.CA) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if c.server, err = kubernetes.Open(context.Background(), kubernetes.Options{Dir: dir, Without: c.without}); err != nil {
		return err
	}
	// Hosts are in DNS by the wildcard, unless a test hides one.
	if c.controller, err = kubecontroller.Start(kubecontroller.Config{REST: c.server.REST(kubernetes.Controller), CA: ca}); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(c.controller.Address())
	if err != nil {
		return err
	}
	c.port, err = strconv.Atoi(port)
	return err
}

func (c *kubeCluster) close() error {
	var err error
	if c.controller != nil {
		err = c.controller.Close()
	}
	if c.server != nil {
		c.server.Close()
	}
	return err
}

// site is the namespace that one test has for itself on the shared cluster, and the proxy
// between it and the test's kurad.
type site struct {
	*changes
	*kubeCluster
	namespace string
	proxy     *kubernetes.Proxy
	api       dynamic.ResourceInterface // as a person with every right
}

// clusterName is what kurads call the cluster.
const clusterName = "world"

func newSite(t *testing.T) *site {
	t.Helper()
	if err := real.kube.start(real.dir, real.ca); err != nil {
		t.Fatal(err)
	}
	return newSiteOn(t, &real.kube)
}

// ownCluster starts a cluster for a test that changes what belongs to all tests.
func ownCluster(t *testing.T, without ...string) *kubeCluster {
	t.Helper()
	c := &kubeCluster{without: without}
	err := c.start(t.TempDir(), real.ca)
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newSiteOn(t *testing.T, c *kubeCluster) *site {
	t.Helper()
	s := &site{kubeCluster: c, namespace: fmt.Sprintf("site-%d", c.sites.Add(1))}
	ctx := t.Context()
	if err := errors.Join(s.server.CreateNamespace(ctx, s.namespace), s.server.Grant(ctx, s.namespace)); err != nil {
		t.Fatal(err)
	}
	client, err := s.server.Dynamic(kubernetes.Other)
	if err != nil {
		t.Fatal(err)
	}
	s.api = client.Resource(kubernetes.Instances).Namespace(s.namespace)
	t.Cleanup(func() { // the last: kurad, which would make them again, has ended
		if err := s.api.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	if s.proxy, err = s.server.StartProxy(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.Close)
	s.changes = follow(t, s.api)
	return s
}

// kurad starts a daemon for staging that reaches the cluster through the site's proxy, with
// the rights of examples/kubernetes.
func (s *site) kurad(flags ...string) *kurad { return s.kuradFor("staging", flags...) }

func (s *site) kuradFor(environment string, flags ...string) *kurad {
	s.t.Helper()
	config, err := s.proxy.Kubeconfig(kubernetes.Kurad)
	if err != nil {
		s.t.Fatal(err)
	}
	k := newBareKurad(s.t, environment, s.t.TempDir(), append([]string{"--kubeconfig", config, "--cluster", clusterName + "=" + kubernetes.Context}, flags...)...)
	k.start()
	return k
}

// region is a region of the site whose servers declare a bit of everything.
func (s *site) region(name string, change ...func(*fleet.Region)) fleet.Region {
	r := fleet.Region{
		Name: name, Hosts: fleet.RegionHosts{Public: "public"},
		Readiness: fleet.Readiness{Timeout: fleet.Duration(time.Second), Port: s.port},
		Kubernetes: &fleet.Kubernetes{
			Cluster: clusterName, Namespace: s.namespace, Image: "registry.kura.test/kura/cache:{image_tag}",
			Replicas: 2, Storage: &fleet.Storage{Class: "fast", Size: "10Gi"}, IngressClass: "nginx",
			NodeSelector: map[string]string{"pool": "cache"},
			Tolerations:  []fleet.Toleration{{Key: "dedicated", Operator: "Equal", Value: "cache", Effect: "NoSchedule"}},
			Env:          map[string]string{"ALPHA": "1", "OMEGA": "2"},
		},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// kubernetesOf changes the Kubernetes part of a region.
func kubernetesOf(change func(*fleet.Kubernetes)) func(*fleet.Region) {
	return func(r *fleet.Region) { change(r.Kubernetes) }
}

// serving starts a kurad with one region and a server of each account, which serve v1.
func (s *site) serving(r fleet.Region, accounts []string, flags ...string) (*kurad, []fleet.ServerView) {
	s.t.Helper()
	k := s.kurad(flags...)
	k.introduce(r, accounts...)
	var views []fleet.ServerView
	for _, a := range accounts {
		k.put(fleet.ServerKey{Account: a, Region: r.Name}, "v1")
	}
	for _, a := range accounts {
		views = append(views, k.converged(fleet.ServerKey{Account: a, Region: r.Name}, "v1"))
	}
	return k, views
}

func keyOf(v fleet.ServerView) fleet.ServerKey {
	return fleet.ServerKey{Account: v.Account, Region: v.Region}
}

// object is an instance as it is now; nil: there is none.
func (s *site) object(name string) *unstructured.Unstructured {
	s.t.Helper()
	o, err := s.api.Get(s.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// edit changes an instance by hand, as kubectl edit and kubectl patch do.
func (s *site) edit(name, patch string) *unstructured.Unstructured {
	s.t.Helper()
	o, err := s.api.Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// reconciled writes into the status that the controller is alive, and nothing else.
func (s *site) reconciled(name string) {
	s.t.Helper()
	now := fmt.Sprintf(`{"status":{"lastReconciledAt":%q}}`, time.Now().UTC().Format(time.RFC3339))
	if _, err := s.api.Patch(s.t.Context(), name, types.MergePatchType, []byte(now), metav1.PatchOptions{FieldManager: kubecontroller.FieldManager}, "status"); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes an instance by hand.
func (s *site) remove(name string) {
	s.t.Helper()
	if err := s.api.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// fares tells the controller how it goes with an instance, also one that is not there yet.
func (s *site) fares(name string, b kubecontroller.Behaviour) {
	s.t.Cleanup(func() { s.controller.Set(s.namespace, name, kubecontroller.Behaviour{}) })
	s.controller.Set(s.namespace, name, b)
}

// hold makes the roll-outs of an instance stand still until release.
func (s *site) hold(name string) { s.fares(name, kubecontroller.Behaviour{Stuck: true}) }

func (s *site) release(name string) { s.fares(name, kubecontroller.Behaviour{}) }

// stuck declares a server whose first roll-out stands still, and returns its instance.
func (s *site) stuck(k *kurad, key fleet.ServerKey, tag string) (name string) {
	s.t.Helper()
	name, err := fleet.InstanceName(key.Account, key.Region)
	if err != nil {
		s.t.Fatal(err)
	}
	s.hold(name)
	k.put(key, tag)
	k.until(key, "rolls out", func(v fleet.ServerView) bool {
		return v.Resource != nil && v.Plan == nil && v.Deployment.Status == fleet.DeploymentRunning
	})
	return name
}

// imageOf is the image of the site's regions with a tag.
func imageOf(tag string) string { return "registry.kura.test/kura/cache:" + tag }

// rights gives kurad exactly these verbs on the instances of the site, and waits until the
// API server judges by them.
func (s *site) rights(verbs ...string) {
	t := s.t
	t.Helper()
	admin, err := s.server.Dynamic(kubernetes.Admin)
	if err != nil {
		t.Fatal(err)
	}
	as, err := s.server.Dynamic(kubernetes.Kurad)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := json.Marshal(map[string]any{"rules": []any{
		map[string]any{"apiGroups": []string{fleet.KubeGroup}, "resources": []string{fleet.KubeResource}, "verbs": verbs},
		map[string]any{"apiGroups": []string{""}, "resources": []string{"namespaces"}, "verbs": []string{"get"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	if _, err := admin.Resource(roles).Namespace(s.namespace).Patch(t.Context(), "kurad", types.MergePatchType, rule, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	may := slices.Contains(verbs, "patch")
	eventually(t, "the API server knows the Role", func() error {
		_, err := as.Resource(kubernetes.Instances).Namespace(s.namespace).Patch(t.Context(), "nobody", types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) == may {
			return fmt.Errorf("a patch answers %w", err)
		}
		return nil
	})
}

// revisionOf is an object's resource version, which grows with every write of this server.
func revisionOf(o *unstructured.Unstructured) int64 {
	v, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return -1
	}
	return v
}

// applies counts the applies of an instance that came through the proxy and were not
// refused. What a person edited is applied without force first, which a conflict may
// answer (K1), and that changes nothing.
func (s *site) applies(name string) int {
	return s.proxy.Count(func(c kubernetes.Call) bool { return c.Brings() && c.Name == name && c.Status < 300 })
}

// writes are all calls that came through the proxy and would change something.
func (s *site) writes() []kubernetes.Call {
	return slices.DeleteFunc(s.proxy.Calls(), func(c kubernetes.Call) bool { return !c.Write() })
}

// at is the value at a path of an object such as spec.image; nil where there is none.
func at(o *unstructured.Unstructured, path string) any {
	if o == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	return v
}
