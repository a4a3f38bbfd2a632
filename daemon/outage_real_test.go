//go:build real

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// It is not parallel: it takes the engine away from everybody.
func TestP2_anEngineThatStopsDuringARollOutFailsNothing(t *testing.T) {
	k, key, before := serving(t, "eu-outage")
	k.put(key, "v1-ignoreterm") // its end takes the grace of 2 s: a window to stop the engine in
	k.converged(key, "v1-ignoreterm")
	k.put(key, "v3")
	k.until(key, "is in the middle of the roll-out", func(v fleet.ServerView) bool { return v.Plan.Current() >= 1 })
	if err := real.engine.StopService(); err != nil {
		t.Fatal(err)
	}
	away := true
	t.Cleanup(func() {
		if away {
			if err := real.engine.StartService(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	v := k.until(key, "is unobserved for three reads", func(v fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictUnobserved && v.FailedReads >= 3
	})
	if v.Reason != fleet.ReasonEndpointUnreachable || !hasReason(v, fleet.ConditionInstanceObserved, fleet.Unknown, fleet.ReasonEndpointUnreachable) {
		t.Errorf("the server is %s; want unobserved, RuntimeUnreachable", brief(v))
	}
	if v.Status != fleet.StatusActive || !v.Deployment.Status.Open() || v.PublishedURL != before.PublishedURL || v.LastObservedAt == nil {
		t.Errorf("the server is %s; want all as it was, and the deployment open", brief(v))
	}
	if err := real.engine.StartService(t.Context()); err != nil {
		t.Fatal(err)
	}
	away = false
	back := time.Now()
	v = k.converged(key, "v3")
	t.Logf("converged %.1f s after the engine was back", time.Since(back).Seconds())
	if v.Deployment.Status != fleet.DeploymentSucceeded || v.FailedReads != 0 {
		t.Errorf("the server is %s; want the deployment of before the outage succeeded", brief(v))
	}
	if b := theBox(t, key.Region); b.Image != image("v3") || b.State != "running" {
		t.Errorf("container %+v, want v3", b)
	}
}

func TestC1_aContainerThatEndsBehindItsBackIsBack(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-back")
	name := before.Containers[0].Name
	for _, way := range []struct {
		name string
		args []string
		same bool // the container is started again, not made anew (C2)
	}{
		{"killed", []string{"kill", name}, true},
		{"removed", []string{"rm", "--force", "--time", "0", name}, false},
		{"stopped", []string{"stop", "--time", "1", name}, true},
	} {
		was := theBox(t, key.Region)
		podman(t, way.args...)
		begun := time.Now()
		eventually(t, way.name+": it answers again", func() error { _, err := up(t, before.PublishedURL); return err })
		took := real.stopwatch.Since(begun)
		v := k.converged(key, "v1")
		t.Logf("%s: it answered again after %.1f s", way.name, took.Seconds())
		if took > 10*time.Second {
			t.Errorf("%s: it was back after %s, want at most 10 s", way.name, took)
		}
		now := theBox(t, key.Region)
		if same := now.ID == was.ID; same != way.same || now.Started == was.Started {
			t.Errorf("%s: container %+v, was %+v; want the same one: %v", way.name, now, was, way.same)
		}
		if d := cmp.Diff(before.Ports, v.Ports); d != "" || v.PublishedURL != before.PublishedURL {
			t.Errorf("%s: url %s, want %s; ports (-before +after):\n%s", way.name, v.PublishedURL, before.PublishedURL, d)
		}
		if n := len(k.deployments(key)); n != 1 {
			t.Errorf("%s: %d deployments, want the one of before", way.name, n)
		}
	}
}
