package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// kubeInput is all that a KuraInstance is rendered from.
type kubeInput struct {
	env       Environment
	account   Account
	region    Region
	templates map[string]HostTemplate
	intent    Intent
	latest    Deployment
	status    *Status
}

// sampleKube declares one of everything that a Kubernetes region can declare.
func sampleKube(t testing.TB) kubeInput {
	t.Helper()
	in := kubeInput{env: staging(t), account: sampleAccount(), region: kubernetesRegion(), templates: sampleTemplates(), intent: sampleIntent()}
	in.region.ClusterID, in.region.Hosts.GRPC = "us-east-1", "grpc"
	in.region.Kubernetes.Tolerations = append(in.region.Kubernetes.Tolerations, Toleration{Key: "spot", Operator: "Equal"})
	in.intent.Region = "us"
	in.status = &Status{PublishedURL: "https://old.kura.example.dev", Aliases: []Alias{{Host: "older.kura.example.dev"}}}
	return in
}

// unchecked renders what may not be valid.
func (in kubeInput) unchecked(status *Status) (Desired, error) {
	return Render(in.env, Gathered{Account: &in.account, Region: &in.region, Templates: in.templates, Intent: in.intent, Latest: &in.latest, Status: status})
}

func (in kubeInput) render(t testing.TB) KubeDocument {
	t.Helper()
	if err := in.region.ValidateFor(in.env); err != nil {
		t.Fatal(err)
	}
	d, err := in.unchecked(in.status)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	if d.Kubernetes == nil || d.Containers != nil || len(d.Revision) != 64 || d.Kubernetes.Revision != d.Revision {
		t.Fatalf("rendered %+v", d)
	}
	return *d.Kubernetes
}

// throughJSON returns what a Kubernetes client reads where v was written.
func throughJSON(t testing.TB, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := utiljson.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// flat returns the leaves of JSON data by their path; a list is one leaf.
func flat(path string, value any) map[string]string {
	object, ok := value.(map[string]any)
	if !ok {
		return map[string]string{path: fmt.Sprintf("%T %v", value, value)}
	}
	out := map[string]string{}
	for key, v := range object {
		maps.Copy(out, flat(strings.TrimPrefix(path+"/"+key, "/"), v))
	}
	return out
}

// changedPaths returns where two manifests differ, sorted, the revision aside.
func changedPaths(before, after KubeDocument) []string {
	a, b := flat("", before.Manifest()), flat("", after.Manifest())
	changed := map[string]bool{}
	for path := range merge(a, b) {
		if a[path] != b[path] {
			changed[path] = true
		}
	}
	delete(changed, "metadata/annotations/"+KubeAnnotationRevision)
	return sortedKeys(changed)
}
