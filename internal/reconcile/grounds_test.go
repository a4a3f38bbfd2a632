package reconcile_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// onEngine is a simulation on a container engine.
type onEngine struct{ w *world }

func (g onEngine) region(r *fleet.Region) {
	r.Containers.Services["helper"] = fleet.Service{Image: "localhost/helper:1", GracePeriod: fleet.Duration(time.Second)}
}

func (g onEngine) version(r *fleet.Region, n int) {
	helper := r.Containers.Services["helper"]
	helper.Env = map[string]string{"VERSION": fmt.Sprint(n)}
	r.Containers.Services["helper"] = helper
}

func (g onEngine) breathe(r *rand.Rand) {
	e := g.w.engine()
	e.with(func() { e.down = e.down && r.IntN(3) > 0 })
}

func (g onEngine) outage(*rand.Rand) { e := g.w.engine(); e.with(func() { e.down = true }) }

func (g onEngine) harm(account string, n int) {
	e := g.w.engine()
	e.with(func() {
		for _, id := range slices.Sorted(maps.Keys(e.boxes)) {
			if b := e.boxes[id]; b.Account != account {
				continue
			} else if n < 5 && b.State == fleet.ContainerRunning {
				e.exit(b, 1)
			} else if n >= 5 {
				e.drop(b)
			}
			return
		}
	})
}

func (g onEngine) refuse(account string) {
	e := g.w.engine()
	e.with(func() { e.refuse = failsToCreate(account, "v3") })
}

func (g onEngine) heal() { e := g.w.engine(); e.with(func() { e.refuse, e.down = nil, false }) }

func (g onEngine) missing(account, image string) string {
	want := 2
	if image == "" {
		want = 0
	}
	bs := g.w.engine().of(account)
	if len(bs) != want {
		return fmt.Sprintf("%d containers, want %d: %+v", len(bs), want, bs)
	}
	for _, b := range bs {
		if b.State != fleet.ContainerRunning || b.Name != "kura-"+account+"-eu-"+b.Service+"-staging" {
			return fmt.Sprintf("container %+v, want it running under its name", b)
		}
	}
	return ""
}

func (g onEngine) wrong() string {
	if twice := g.w.engine().twice; len(twice) > 0 {
		return fmt.Sprintf("containers of one service ran at once: %v", twice)
	}
	return ""
}

// onCluster is a simulation on a cluster, whose region deletes orphans: there are none.
type onCluster struct{ w *world }

func (g onCluster) region(r *fleet.Region) {
	r.Containers, r.Readiness = nil, fleet.Readiness{}
	r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Image: "localhost/kura:{image_tag}", DeleteOrphans: true}
}

func (g onCluster) version(r *fleet.Region, n int) {
	r.Kubernetes.Env = map[string]string{"VERSION": fmt.Sprint(n)}
}

func (g onCluster) breathe(r *rand.Rand) {
	s := g.w.cluster()
	if s.silence() != "" && r.IntN(3) == 0 {
		s.fallSilent("")
	}
	s.with(func() {
		if r.IntN(10) == 0 { // its watch and its controller are now fast, now slow
			s.lag = time.Duration(1+r.IntN(4000)) * time.Millisecond
			s.rollOut = time.Duration(1+r.IntN(60)) * time.Second
		}
	})
}

func (g onCluster) outage(r *rand.Rand) {
	why := []fleet.Reason{fleet.ReasonEndpointUnreachable, fleet.ReasonRuntimeRefused, fleet.ReasonRuntimeError, fleet.ReasonTypeNotServed}
	g.w.cluster().fallSilent(why[r.IntN(len(why))])
}

// harm takes an instance away, edits it, or puts another one of ours in its place.
func (g onCluster) harm(account string, n int) {
	s := g.w.cluster()
	o, there := s.of(account)
	switch {
	case !there:
	case n < 4:
		s.remove("kura", o.name)
	case n < 8:
		o.spec = maps.Clone(o.spec)
		o.spec["replicas"] = int64(7)
		delete(o.spec, "extraEnv")
		s.put(o)
	default:
		s.remove("kura", o.name)
		o.uid = ""
		s.put(o)
	}
}

func (g onCluster) refuse(account string) {
	s := g.w.cluster()
	s.with(func() {
		s.refuse = func(k fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) *fleet.Outcome {
			if k.Account == account && task.Kind == fleet.TaskApply && doc.Spec["image"] == "localhost/kura:v3" {
				return refused(fleet.ReasonInvalid)
			}
			return nil
		}
	})
}

func (g onCluster) heal() {
	s := g.w.cluster()
	s.fallSilent("")
	s.with(func() { s.refuse, s.lag, s.rollOut = nil, 10*time.Millisecond, time.Second })
}

func (g onCluster) missing(account, image string) string {
	o, there := g.w.cluster().of(account)
	switch {
	case image == "" && there:
		return fmt.Sprintf("%+v is left", o)
	case image == "":
		return ""
	case !there:
		return "there is no instance"
	case o.phase != phaseReady || o.observed != "localhost/kura:"+image || o.labels[fleet.KubeLabelAccount] != account:
		return fmt.Sprintf("instance %+v, want it on the image", o)
	}
	return ""
}

func (g onCluster) wrong() string {
	for i := range simServers {
		if n := g.w.events(fmt.Sprintf("s%04d", i), "OrphanDeleted"); n > 0 {
			return fmt.Sprintf("%d instances of declared servers were deleted as orphans", n)
		}
	}
	return ""
}
