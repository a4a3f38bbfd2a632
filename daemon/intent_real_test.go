//go:build real

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestS11_aPausedRegionShowsTheIntendedPlanAndResumeRunsIt(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-paused")
	box := theBox(t, key.Region)
	paused := region(key.Region, func(r *fleet.Region) { r.Paused = true })
	k.putRegion(paused)
	k.until(key, "is held", func(v fleet.ServerView) bool { return len(v.Holds) > 0 && v.Holds[0].Kind == fleet.HoldPaused })
	k.put(key, "v2")
	v := k.until(key, "shows its intended plan", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictHeld && v.IntendedPlan != nil })
	if v.Reason != fleet.ReasonPaused || v.Plan != nil || v.IntendedPlan.Kind != fleet.PlanReplace || len(v.IntendedPlan.Tasks) != 7 {
		t.Errorf("the server is %s; want held/Paused, no stored plan, and a replace intended", brief(v))
	}
	k.ticks(key, 3)
	if d := cmp.Diff(box, theBox(t, key.Region)); d != "" {
		t.Errorf("a paused region was touched (-before +after):\n%s", d)
	}
	k.putRegion(region(key.Region))
	after := k.converged(key, "v2")
	if after.PublishedURL != before.PublishedURL || after.IntendedPlan != nil || len(after.Holds) > 0 {
		t.Errorf("resumed, the server is %s", brief(after))
	}
}

func TestS10_anObservedRegionShowsDriftAndDoesNothingUntilItIsAsked(t *testing.T) {
	t.Parallel()
	observe := func(r *fleet.Region) { r.Remediation = fleet.RemediationObserve }
	k, key, before := serving(t, "eu-observe", observe) // what was declared ran
	box := theBox(t, key.Region)
	podman(t, "kill", before.Containers[0].Name)
	v := k.until(key, "drifted", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictDrifted && v.IntendedPlan != nil })
	if v.Plan != nil || v.Status != fleet.StatusActive {
		t.Errorf("the server is %s; want active and drifted, and nothing under way", brief(v))
	}
	podman(t, "rm", before.Containers[0].Name)
	v = k.until(key, "is absent", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictAbsent })
	k.ticks(key, 3)
	if list := boxes(t, key.Region); len(list) != 0 || v.Plan != nil {
		t.Errorf("an observing kurad made %+v; the server is %s", list, brief(v))
	}
	if _, err := k.client.Redeploy(t.Context(), key, "please"); err != nil {
		t.Fatal(err)
	}
	v = k.until(key, "is redeployed", func(v fleet.ServerView) bool { return isConverged(v) && v.Deployment.Seq == 2 })
	if b := theBox(t, key.Region); b.ID == box.ID || v.PublishedURL != before.PublishedURL {
		t.Errorf("container %+v, the server is %s", b, brief(v))
	}
}

func TestP12_redeployIsIdempotentByItsKey(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-again")
	was := theBox(t, key.Region)
	first, err := k.client.Redeploy(t.Context(), key, "monday")
	if err != nil {
		t.Fatal(err)
	}
	again, err := k.client.Redeploy(t.Context(), key, "monday")
	if err != nil || again.Seq != first.Seq || first.Cause != fleet.DeploymentCauseRedeploy || first.Seq != 2 {
		t.Errorf("redeployed with one key: %+v, then %+v, %v; want one deployment, the second one", first, again, err)
	}
	redeployed := func(seq int64) box {
		v := k.until(key, "is redeployed", func(v fleet.ServerView) bool { return isConverged(v) && v.Deployment.Seq == seq })
		if v.PublishedURL != before.PublishedURL {
			t.Errorf("redeployed, the server is %s", brief(v))
		}
		return theBox(t, key.Region)
	}
	b := redeployed(2)
	if b.ID == was.ID || b.Image != image("v1") {
		t.Errorf("container %+v, want a new one of the same image", b)
	}
	// The key still answers with its deployment once that has ended.
	if d, err := k.client.Redeploy(t.Context(), key, "monday"); err != nil || d.Seq != 2 {
		t.Errorf("the key of an ended deployment: %+v, %v", d, err)
	}
	if _, err := k.client.Redeploy(t.Context(), key, "tuesday"); err != nil {
		t.Fatal(err)
	}
	if c := redeployed(3); c.ID == b.ID {
		t.Error("another key made no new container")
	}
	if n := len(k.deployments(key)); n != 3 {
		t.Errorf("%d deployments, want 3", n)
	}
}

func TestL59_overridesChangeOnlyTheirServer(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	one, other := fleet.ServerKey{Account: "acme", Region: "eu-over"}, fleet.ServerKey{Account: "umbra", Region: "eu-over"}
	k.declare(region(one.Region), one.Account, other.Account)
	k.put(one, "v1")
	k.put(other, "v1")
	before, others := k.converged(one, "v1"), k.converged(other, "v1")
	k.putServer(fleet.Server{Account: one.Account, Region: one.Region, ImageTag: "v1", Overrides: &fleet.Overrides{
		Containers: &fleet.ContainerOverrides{Services: map[string]fleet.ServiceOverride{"cache": {Env: map[string]string{"ALPHA": "9"}, Memory: "64Mi"}}},
	}})
	v := k.until(one, "has its overrides", func(v fleet.ServerView) bool {
		return isConverged(v) && v.Containers[0].ID != before.Containers[0].ID
	})
	env := podman(t, "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}", v.Containers[0].Name)
	if !strings.Contains(env, "ALPHA=9\n") || !strings.Contains(env, "OMEGA=2\n") {
		t.Errorf("variables of %s:\n%s\nwant ALPHA=9 beside those of the region", one, env)
	}
	if len(k.deployments(one)) != 1 {
		t.Errorf("deployments %+v: a change of the document is no new image", k.deployments(one))
	}
	k.ticks(other, 2)
	after := k.converged(other, "v1")
	if d := cmp.Diff(others.Containers, after.Containers); d != "" || after.Generation != others.Generation {
		t.Errorf("the other server's containers changed (-before +after):\n%s", d)
	}
}

func TestG4_twoServersRolledAtOnceRespectMaxUnsettledOne(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	a, b := fleet.ServerKey{Account: "acme", Region: "eu-steps"}, fleet.ServerKey{Account: "umbra", Region: "eu-steps"}
	slow := cache(func(s *fleet.Service) { s.GracePeriod = fleet.Duration(time.Second) })
	k.declare(region(a.Region, slow, func(r *fleet.Region) { r.MaxUnsettled = 1 }), a.Account, b.Account)
	k.put(a, "v1-ignoreterm")
	k.put(b, "v1-ignoreterm")
	k.converged(a, "v1-ignoreterm")
	k.converged(b, "v1-ignoreterm")

	k.put(a, "v2")
	k.put(b, "v2")
	held := false
	eventually(t, "both are rolled", func() error {
		list, err := k.client.ListServers(t.Context(), api.ServerFilter{Region: a.Region})
		if err != nil {
			return err
		}
		working, done := 0, 0
		for _, v := range list {
			if v.Plan != nil {
				working++
			}
			if isConverged(v) && v.ServingImageTag == "v2" {
				done++
			}
			held = held || v.Verdict == fleet.VerdictHeld && v.Reason == fleet.ReasonAdmission && len(v.Holds) > 0
		}
		if working > 1 {
			t.Fatalf("both servers are worked on at once, with max_unsettled = 1:\n%s\n%s", brief(list[0]), brief(list[1]))
		}
		if done < 2 {
			return &fleet.Error{Message: brief(list[0]) + "\n" + brief(list[1])}
		}
		return nil
	})
	if !held {
		t.Error("nobody was ever seen to be held by the limit (G3)")
	}
}
