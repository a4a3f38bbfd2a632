package server_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// cluster is a Kubernetes cluster by the name of prod.
type cluster struct {
	mu    sync.Mutex
	held  map[string]instance // by namespace/name
	err   error               // it does not answer
	lacks []string            // fields of the spec that its schema does not have
	reads int
	limit time.Duration // that the last read was given
}

// instance is a KuraInstance of a cluster.
type instance struct {
	fleet.KubeInstance
	spec map[string]any
}

func (c *cluster) read(ctx context.Context, _ fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if by, ok := ctx.Deadline(); ok {
		c.limit = time.Until(by)
	}
	if c.err != nil {
		return nil, c.err
	}
	live, ok := c.held[doc.Namespace+"/"+doc.Name]
	if !ok {
		return nil, nil
	}
	inst := live.KubeInstance
	inst.Namespace, inst.Name = doc.Namespace, doc.Name
	if inst.Foreign == fleet.NotByKurad && adopted != nil && adopted.UID == inst.UID {
		inst.Foreign, inst.Adopted = "", true
	}
	for _, field := range []string{"clientHostAliases", "image", "storageSize"} {
		switch want, have := doc.Spec[field], live.spec[field]; {
		case want == nil:
		case slices.Contains(c.lacks, field):
			inst.Dropped = append(inst.Dropped, "spec."+field)
		case !cmp.Equal(want, have):
			inst.Differs = append(inst.Differs, fleet.FieldDifference{Path: "spec." + field, Have: fmt.Sprintf("%q", have), Want: fmt.Sprintf("%q", want)})
		}
	}
	return &inst, nil
}

// holds puts the instance of a name into the namespace kura.
func (c *cluster) holds(name string, i instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.spec == nil {
		i.spec = map[string]any{"image": i.SpecImage, "storageSize": "50Gi"}
	}
	c.held["kura/"+name] = i
}

// made is an instance that another tool made of an image.
func made(uid, image string) instance {
	return instance{KubeInstance: fleet.KubeInstance{UID: uid, SpecImage: image, ObservedImage: image, Foreign: fleet.NotByKurad}}
}

// kubeRegion is a region of the cluster prod.
func kubeRegion(name string) fleet.Region {
	return fleet.Region{
		Name: name, Hosts: fleet.RegionHosts{Public: "public"},
		Kubernetes: &fleet.Kubernetes{Cluster: "prod", Image: "registry.test/cache:{image_tag}", Storage: &fleet.Storage{Size: "50Gi"}},
	}
}

// newKubeWorld is a world with a cluster, a region of it named eu, and accounts.
func newKubeWorld(t *testing.T, accounts ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.runtimes.kube = &cluster{held: map[string]instance{}}
	w.seed(nil, accounts...)
	w.must(w.client.PutRegion(t.Context(), kubeRegion("eu"), api.PutOptions{}))
	return w
}
