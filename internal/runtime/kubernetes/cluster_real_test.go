//go:build real

package kubernetes_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/kubernetes"
	world "github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
	"github.com/kurafleet/terraform-provider-kura/internal/world/stopwatch"
)

// patience is how long a test waits for what must happen: far above what it takes.
const patience = 3 * time.Minute

// rig is a namespace of a real API server, watched by a Cluster through a proxy.
type rig struct {
	*testing.T
	server    *world.Server
	proxy     *world.Proxy
	cluster   *kubernetes.Cluster
	namespace string
	changes   *changes
	stopwatch *stopwatch.Stopwatch
	end       context.CancelFunc
}

// changes records what a watch told.
type changes struct {
	mu    sync.Mutex
	names []string
}

func (c *changes) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

// take returns what was told since the last take.
func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}

func open(t *testing.T, cfg *rest.Config, env string) *kubernetes.Cluster {
	t.Helper()
	c, err := kubernetes.Open(kubernetes.Config{Name: "test", REST: cfg, Environment: fleet.Environment{Name: env}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// start watches a namespace of its own.
func start(t *testing.T, s *world.Server, namespace string) *rig {
	t.Helper()
	must(t, s.CreateNamespace(t.Context(), namespace))
	must(t, s.Grant(t.Context(), namespace))
	r := startAs(t, s, namespace)
	r.readable()
	return r
}

// startAs watches a namespace with the rights that kurad has there.
func startAs(t *testing.T, s *world.Server, namespace string) *rig {
	t.Helper()
	p, err := s.StartProxy()
	must(t, err)
	t.Cleanup(p.Close)
	r := &rig{T: t, server: s, proxy: p, namespace: namespace, cluster: open(t, p.REST(world.Kurad), "test"), changes: &changes{}, stopwatch: stopwatch.Start(t)}
	r.watch()
	return r
}

func (r *rig) watch() {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.cluster.Watch(ctx, r.namespace, r.changes.note)
	}()
	r.end = func() { cancel(); <-ended }
	r.Cleanup(r.end)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var key = fleet.ServerKey{Account: "acme", Region: "eu"}

// doc is a document of server acme/eu; its revision is the number.
func (r *rig) doc(name string, revision int, spec map[string]any) fleet.KubeDocument {
	all := map[string]any{"accountHandle": "acme", "tenantID": "acme", "region": "eu", "image": "cache:v1", "replicas": int64(2)}
	for k, v := range spec {
		all[k] = v
	}
	return fleet.KubeDocument{
		Cluster: "test", Namespace: r.namespace, Name: name, Spec: all, Revision: fmt.Sprint("r", revision),
		Labels: map[string]string{
			fleet.KubeLabelName: "kura", fleet.KubeLabelInstance: name, fleet.LabelEnvironment: "test",
			fleet.KubeLabelAccount: key.Account, fleet.KubeLabelRegion: key.Region,
		},
	}
}

func (r *rig) execute(task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	return r.within(patience, task, doc)
}

func (r *rig) within(d time.Duration, task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	return r.cluster.Execute(ctx, key, task, doc)
}

// answered executes a task until it is answered, each try for as long as kurad gives it: an
// API server that takes a type away may begin an answer that it never ends.
func (r *rig) answered(task fleet.Task, doc fleet.KubeDocument) (o fleet.Outcome) {
	r.Helper()
	r.until("an answer", func() bool {
		o = r.within(task.Timeout(), task, doc)
		return o.Answered
	})
	return o
}

func (r *rig) apply(doc fleet.KubeDocument, uid string) fleet.Outcome {
	return r.execute(fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskApply, Name: doc.Name, UID: uid, Digest: doc.Revision}}, doc)
}

func (r *rig) delete(doc fleet.KubeDocument, uid string) fleet.Outcome {
	return r.execute(fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: doc.Name, UID: uid}}, doc)
}

// applied applies and returns what is seen then.
func (r *rig) applied(doc fleet.KubeDocument, uid string) *fleet.KubeInstance {
	r.Helper()
	r.ok(r.apply(doc, uid))
	seen := r.see(doc)
	if seen == nil {
		r.Fatalf("%s was applied and is not seen", doc.Name)
	}
	return seen
}

func (r *rig) ok(o fleet.Outcome) {
	r.Helper()
	if o.Class != fleet.ClassOK || !o.Answered {
		r.Fatalf("outcome %+v", o)
	}
}

// is compares the class, the reason and parts of the message of an outcome.
func (r *rig) is(o fleet.Outcome, class fleet.Class, reason fleet.Reason, answered bool, parts ...string) {
	r.Helper()
	if o.Class != class || o.Reason != reason || o.Answered != answered {
		r.Errorf("outcome %s/%s, answered %t: %s; want %s/%s, answered %t", o.Class, o.Reason, o.Answered, o.Message, class, reason, answered)
	}
	holds(r.T, o.Message, parts...)
}

func (r *rig) observe(doc fleet.KubeDocument) fleet.InstanceObservation {
	return r.cluster.Observe(key, doc, fleet.KubeKnown{})
}

func (r *rig) see(doc fleet.KubeDocument) *fleet.KubeInstance { return r.observe(doc).Resource }

// until waits for what the watch is to show.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			r.Fatalf("not seen in time: %s", what)
		}
	}
}

func (r *rig) readable() {
	r.Helper()
	r.until("the namespace is read", func() bool {
		l := r.cluster.Listing(r.namespace)
		return l.Unreadable == nil && !l.Begun.IsZero() && r.proxy.Watches() > 0
	})
}

// as returns another user's client.
func (r *rig) as(user string) dynamic.ResourceInterface {
	r.Helper()
	client, err := r.server.Dynamic(user)
	must(r.T, err)
	return client.Resource(world.Instances).Namespace(r.namespace)
}

// edit merges a patch into an instance as a person does, and returns what became of it.
func (r *rig) edit(name, manager, patch string, sub ...string) *unstructured.Unstructured {
	r.Helper()
	o, err := r.as(world.Other).Patch(r.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, sub...)
	must(r.T, err)
	return o
}

// foreign applies an instance as another tool does.
func (r *rig) foreign(name, manager string, labels, annotations map[string]string, spec map[string]any) *unstructured.Unstructured {
	r.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(fleet.KubeGroup + "/" + fleet.KubeVersion)
	o.SetKind(fleet.KubeKind)
	o.SetName(name)
	o.SetNamespace(r.namespace)
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	echo, err := r.as(world.Other).Apply(r.Context(), name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	must(r.T, err)
	return echo
}

func paths(diffs []fleet.FieldDifference) []string {
	var out []string
	for _, d := range diffs {
		out = append(out, d.Path)
	}
	return out
}

func count(names []string, name string) int {
	n := 0
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}

func writes(c world.Call) bool { return c.Write() }

func equalPaths(t *testing.T, what string, diffs []fleet.FieldDifference, want ...string) {
	t.Helper()
	if got := paths(diffs); !slices.Equal(got, want) {
		t.Errorf("%s: %+v, want %v", what, diffs, want)
	}
}
