//go:build real

package main

import (
	"net"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// deaf listens, accepts and never answers, as a registry does that hangs.
func deaf(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			defer c.Close()
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-over
	})
	return l.Addr().String()
}

func TestS6_aRegistryThatNeverAnswersHoldsUpNeitherTheFixNorTheDestroy(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-deaf")
	hangs := region(key.Region, cache(func(s *fleet.Service) { s.Image = deaf(t) + "/kura-cache:{image_tag}" }))
	pulls := func(serves string) {
		t.Helper()
		k.putRegion(hangs)
		k.until(key, "pulls", func(v fleet.ServerView) bool {
			i := v.Plan.Current()
			return i >= 0 && v.Plan.Tasks[i].Kind == fleet.TaskPull && v.Plan.Tasks[i].State == fleet.TaskRunning
		})
		if version, err := up(t, before.PublishedURL); err != nil || version != serves {
			t.Errorf("while it is pulled %s answers %q, %v; want %s", before.PublishedURL, version, err, serves)
		}
	}
	const soon = 2 * time.Minute // of the ten minutes that a pull may take: on a machine whose processors are taken a roll-out takes half a minute
	pulls("v1")
	begun := time.Now()
	k.putRegion(region(key.Region))
	k.put(key, "v2")
	v := k.converged(key, "v2")
	if took := real.stopwatch.Since(begun); took > soon || v.Deployment.Status != fleet.DeploymentSucceeded {
		t.Errorf("after %s the server is %s", took, brief(v))
	} else {
		t.Logf("v2 served %.1f s after the change", took.Seconds())
	}
	if b := theBox(t, key.Region); b.Image != image("v2") || b.State != "running" {
		t.Errorf("container %+v, want v2", b)
	}
	pulls("v2")
	begun = time.Now()
	if _, err := k.client.DeleteServer(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	k.gone(key)
	if took := real.stopwatch.Since(begun); took > soon {
		t.Errorf("it was gone after %s", took)
	} else {
		t.Logf("gone %.1f s after the destroy", took.Seconds())
	}
	if list := boxes(t, key.Region); len(list) != 0 {
		t.Errorf("containers %+v are left", list)
	}
}
