//go:build real

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
)

func TestS10_anObservedKubernetesRegionShowsDriftAndCorrectsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, servers := s.serving(s.region("kube-observe", func(r *fleet.Region) { r.Remediation = fleet.RemediationObserve }), []string{"seen"}) // what was declared ran
	key, name := keyOf(servers[0]), servers[0].Instance
	s.edit(name, `{"spec":{"replicas":9}}`)
	v := k.until(key, "drifted", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictDrifted && v.IntendedPlan != nil })
	if v.Plan != nil || v.Status != fleet.StatusActive || !slices.ContainsFunc(v.Resource.Differs, func(d fleet.FieldDifference) bool {
		return d.Path == "spec.replicas" && d.Have == "9" && d.Want == "2" && d.Manager == "kubectl-edit"
	}) {
		t.Errorf("the server is %s with %+v; want active and drifted, with the field, both values and who set it", brief(v), v.Resource)
	}
	if len(v.IntendedPlan.Tasks) != 1 || v.IntendedPlan.Tasks[0].Kind != fleet.TaskApply {
		t.Errorf("the intended plan is %+v, want one apply", v.IntendedPlan)
	}
	s.remove(name)
	k.until(key, "is absent", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictAbsent && v.IntendedPlan != nil })
	pause(t.Context(), 3*time.Second) // three ticks
	if s.object(name) != nil || s.applies(name) != 1 {
		t.Errorf("an observing kurad made %d applies, want the one of the creation", s.applies(name))
	}
	// What a user asks for runs.
	if _, err := k.client.Redeploy(t.Context(), key, "please"); err != nil {
		t.Fatal(err)
	}
	k.until(key, "is redeployed", func(v fleet.ServerView) bool { return isConverged(v) && v.Deployment.Seq == 2 })
}

func TestS11_L38_aPausedKubernetesRegionIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	region := s.region("kube-paused")
	k, servers := s.serving(region, []string{"paused-a", "paused-b"})
	edited, going := servers[0], servers[1]
	region.Paused = true
	k.putRegion(region)
	for _, v := range servers {
		k.until(keyOf(v), "is held", func(v fleet.ServerView) bool { return len(v.Holds) > 0 && v.Holds[0].Kind == fleet.HoldPaused })
	}
	s.proxy.Forget()
	s.edit(edited.Instance, `{"spec":{"replicas":9}}`)
	k.put(keyOf(edited), "v2")
	k.delete(keyOf(going))
	v := k.until(keyOf(edited), "shows its intended plan", func(v fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictHeld && v.Reason == fleet.ReasonPaused && v.IntendedPlan != nil && v.Resource != nil && len(v.Resource.Differs) > 1
	})
	if v.Plan != nil {
		t.Errorf("the server is %s; want no stored plan", brief(v))
	}
	pause(t.Context(), 3*time.Second) // three ticks
	if writes := s.writes(); len(writes) > 0 {
		t.Errorf("a paused kurad tried %+v", writes)
	}
	if n := at(s.object(edited.Instance), "spec.replicas"); n != int64(9) || s.object(going.Instance) == nil {
		t.Errorf("replicas are %v, want those of the edit; the other instance is %v", n, s.object(going.Instance))
	}
	region.Paused = false
	k.putRegion(region)
	k.converged(keyOf(edited), "v2")
	k.gone(keyOf(going))
	if n := at(s.object(edited.Instance), "spec.replicas"); n != int64(2) || s.applies(edited.Instance) != 1 {
		t.Errorf("replicas are %v after %d applies; want ours after one", n, s.applies(edited.Instance))
	}
}

// The controller calls it Ready: that decides nothing (R3).
func TestL14_R3_aCertificateThatIsNotIssuedYetIsAReasonOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k := s.kurad()
	region := s.region("kube-tls")
	key := fleet.ServerKey{Account: "tls", Region: region.Name}
	k.introduce(region, key.Account)
	name, err := fleet.InstanceName(key.Account, key.Region)
	if err != nil {
		t.Fatal(err)
	}
	s.fares(name, kubecontroller.Behaviour{SelfSigned: true})
	k.put(key, "v1")
	v := k.until(key, "waits for its certificate", func(v fleet.ServerView) bool {
		return hasReason(v, fleet.ConditionEndpointReady, fleet.False, fleet.ReasonTLSNotReady) && v.Resource != nil && v.Resource.Phase == "Ready"
	})
	if v.Status != fleet.StatusProvisioning || v.PublishedURL != "" || v.Deployment.Status != fleet.DeploymentRunning {
		t.Errorf("the server is %s; want provisioning, with nothing published and its deployment open", brief(v))
	}
	s.release(name)
	k.converged(key, "v1")
	if n := s.applies(name); n != 1 {
		t.Errorf("%d applies, want one", n)
	}
}

func TestL13_P10_aStalledRollOutIsToldOnceAndHeals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k := s.kurad()
	region := s.region("kube-stall", stallAfter(3*time.Second))
	key := fleet.ServerKey{Account: "stall", Region: region.Name}
	k.introduce(region, key.Account)
	name := s.stuck(k, key, "v1")
	stalled := func(v fleet.ServerView) bool { // and the world around it has come to rest
		return v.Status == fleet.StatusFailed && v.Verdict == fleet.VerdictStalled && hasReason(v, fleet.ConditionEndpointReady, fleet.False, fleet.ReasonHTTPNotReady)
	}
	v := k.until(key, "stalls", stalled)
	if v.Deployment.Status != fleet.DeploymentRunning || !hasReason(v, fleet.ConditionProgressing, fleet.False, fleet.ReasonStalled) {
		t.Errorf("the server is %s; want failed/Stalled with its deployment open", brief(v))
	}
	pause(t.Context(), 3*time.Second) // three ticks
	still := k.until(key, "stalls still", stalled)
	v.LastObservedAt, still.LastObservedAt = nil, nil
	if d := cmp.Diff(v, still); d != "" {
		t.Errorf("what stalls went on changing (-then +now):\n%s", d)
	}
	s.release(name)
	v = k.converged(key, "v1")
	if v.Deployment.Seq != 1 || v.Deployment.Status != fleet.DeploymentSucceeded || s.applies(name) != 1 {
		t.Errorf("the server is %s after %d applies; want deployment 1 succeeded, and one apply", brief(v), s.applies(name))
	}

	// One that has served stays active, and says that it stalls.
	s.hold(name)
	k.put(key, "v2")
	v = k.until(key, "stalls on v2", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictStalled })
	if v.ServingImageTag != "v1" || v.PublishedURL == "" {
		t.Errorf("the server is %s; want v1 served and published", brief(v))
	}
	if version, err := up(t, v.PublishedURL); err != nil || version != "v1" {
		t.Errorf("%s answers %q, %v; want v1", v.PublishedURL, version, err)
	}
	s.release(name)
	k.converged(key, "v2")
	reasons, text := k.events(key)
	if n := len(slices.DeleteFunc(slices.Clone(reasons), func(r string) bool { return !strings.Contains(r, string(fleet.ReasonStalled)) })); n != 2 {
		t.Errorf("%d events tell of stalls, want one for each:\n%s", n, text)
	}
}
