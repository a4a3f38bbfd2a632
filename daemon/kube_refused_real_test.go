//go:build real

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

func TestP2_L2_aClusterThatRefusesUsInTheMiddleOfARollOutFailsNothing(t *testing.T) {
	t.Parallel()
	d := refusedFor(t)
	s := newSite(t)
	k, servers := s.serving(s.region("kube-401"), []string{"refused", "bystander"})
	key, bystander, name := keyOf(servers[0]), keyOf(servers[1]), servers[0].Instance

	mark := s.mark()
	s.hold(name) // the roll-out of v2 stands still
	k.put(key, "v2")
	s.await(mark, name, "is applied with v2", func(c change) bool { return at(c.object, "spec.image") == imageOf("v2") })
	s.proxy.Set(kubernetes.Fault{Status: 401})
	s.proxy.CutWatches()
	begun := time.Now()
	var counts []int
	for _, of := range []fleet.ServerKey{key, bystander} {
		v := k.until(of, "is unobserved", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictUnobserved })
		if v.Reason != fleet.ReasonRuntimeRefused || !hasReason(v, fleet.ConditionInstanceObserved, fleet.Unknown, fleet.ReasonRuntimeRefused) || v.FailedReads == 0 {
			t.Errorf("the server is %s with %d failed reads; want unobserved/RuntimeRefused with a count", brief(v), v.FailedReads)
		}
	}
	if text := k.cli("status", key.String()); !strings.Contains(text, string(fleet.ReasonRuntimeRefused)) {
		t.Errorf("kurad status prints\n%s", text)
	}
	applied, tried := s.applies(name), len(s.writes())
	s.release(name) // v2 is complete behind our back
	for time.Since(begun) < d {
		pause(t.Context(), min(time.Second, d))
		for _, of := range []fleet.ServerKey{key, bystander} {
			v := k.until(of, "can be read", func(fleet.ServerView) bool { return true })
			if v.Status != fleet.StatusActive || v.Verdict != fleet.VerdictUnobserved || v.PublishedURL == "" || v.Deployment.Status == fleet.DeploymentFailed {
				t.Fatalf("after %s the server is %s; want active, unobserved, published, and nothing failed", time.Since(begun), brief(v))
			}
			if of == key {
				counts = append(counts, v.FailedReads)
			}
		}
	}
	if len(counts) > 3 && counts[len(counts)-1] <= counts[0] {
		t.Errorf("the count of failed reads does not grow: %v", counts)
	}
	if n := len(s.writes()); n != tried {
		t.Errorf("%d changes were tried while the cluster refused us: nothing may be started then (P2)", n-tried)
	}
	s.proxy.Heal()
	back := time.Now()
	v := k.converged(key, "v2")
	t.Logf("refused for %s with %d failed reads in the end; converged %s after the rights were back", time.Since(begun)-time.Since(back), counts[len(counts)-1], time.Since(back))
	if v.Deployment.Seq != 2 || v.Deployment.Status != fleet.DeploymentSucceeded || v.FailedReads != 0 || s.applies(name) != applied {
		t.Errorf("the server is %s with %d applies; want the deployment of before succeeded, without another apply (%d)", brief(v), s.applies(name), applied)
	}
	k.converged(bystander, "v1")
	if n := s.applies(servers[1].Instance); n != 1 {
		t.Errorf("the bystander was applied %d times, want once", n)
	}
	if reasons, text := k.events(key); strings.Contains(strings.Join(reasons, " "), "Failed") {
		t.Errorf("something failed:\n%s", text)
	}
}

// A region's extra_spec is kurad's to pass on, and the definition's to judge: only the API
// server can say no.
func TestP1_anInvalidManifestFailsAtOnceWithItsFieldAndIsTriedAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	good := s.region("kube-422")
	k, servers := s.serving(good, []string{"invalid"})
	key, name := keyOf(servers[0]), servers[0].Instance
	begun := time.Now()
	k.putRegion(s.region(good.Name, kubernetesOf(func(r *fleet.Kubernetes) { r.ExtraSpec = `{"globalGrpcPublicHost":"` + strings.Repeat("a", 254) + `"}` })))
	k.put(key, "v2")
	v := k.failed(key, fleet.ReasonInvalid)
	t.Logf("refused %s after it was declared: %s", time.Since(begun), v.Message)
	if !strings.Contains(v.Message, "spec.globalGrpcPublicHost") {
		t.Errorf("the message does not name spec.globalGrpcPublicHost: %s", v.Message)
	}
	if v.Deployment.Status != fleet.DeploymentFailed || v.Deployment.Reason != fleet.ReasonInvalid || v.PublishedURL != servers[0].PublishedURL {
		t.Errorf("the server is %s; want deployment 2 failed/Invalid, and the old url published", brief(v))
	}
	if image := at(s.object(name), "spec.image"); image != imageOf("v1") {
		t.Errorf("the instance has image %v", image)
	}
	mended := time.Now()
	k.putRegion(good)
	k.converged(key, "v2")
	t.Logf("converged %s after the manifest was mended", time.Since(mended))
	if took := real.stopwatch.Since(mended); took > 10*time.Second {
		t.Errorf("it took %s: a changed manifest is to be tried at once", took)
	}
	if list := k.deployments(key); len(list) != 2 || list[0].Status != fleet.DeploymentFailed {
		t.Errorf("deployments %+v; want no more than before, and history as it was", list)
	}
}

func TestP9_anApplyThatIsForbiddenHealsWhenTheRightIsGranted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, servers := s.serving(s.region("kube-403"), []string{"forbidden"})
	key, name := keyOf(servers[0]), servers[0].Instance
	s.rights("get", "list", "watch")
	k.put(key, "v2")
	v := k.failed(key, fleet.ReasonForbidden)
	if v.Deployment.Status != fleet.DeploymentFailed || v.NextAttempt == nil || !strings.Contains(v.Message, "patch") {
		t.Errorf("the server is %s; want the deployment failed, the verb named, and another attempt due", brief(v))
	}
	if err := s.server.Grant(t.Context(), s.namespace); err != nil {
		t.Fatal(err)
	}
	granted := time.Now()
	v = k.converged(key, "v2")
	t.Logf("converged %s after the right was granted", time.Since(granted))
	if v.Deployment.Seq != 2 || v.Deployment.Status != fleet.DeploymentFailed {
		t.Errorf("the server is %s; want no other deployment, and history as it was (P5)", brief(v))
	}
	if n := s.applies(name); n != 2 {
		t.Errorf("%d applies were taken, want one for each image", n)
	}
}
