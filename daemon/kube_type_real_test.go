//go:build real

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// What was there is deleted with the type. The cluster is silent meanwhile: of an object that
// it names as absent, it would be true that it is gone (P3).
func TestP2_P18_whileTheTypeIsNotServedNothingFailsAndNothingIsGone(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, ownCluster(t))
	k, servers := s.serving(s.region("kube-crd"), []string{"present", "going"})
	present, going := keyOf(servers[0]), keyOf(servers[1])
	s.proxy.Set(kubernetes.Fault{Status: 503}) // nothing that we ask for is answered while it is taken away
	s.proxy.CutWatches()
	k.until(present, "is unobserved", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictUnobserved })
	k.delete(going)
	if err := s.server.RemoveCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.proxy.Heal()
	v := k.until(present, "is not served", func(v fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictUnobserved && v.Reason == fleet.ReasonTypeNotServed
	})
	since := v.FailedReads
	v = k.until(present, "was read three times more", func(v fleet.ServerView) bool { return v.FailedReads >= since+3 })
	if v.Status != fleet.StatusActive || v.PublishedURL == "" || v.Deployment.Status != fleet.DeploymentSucceeded {
		t.Errorf("the server is %s; want active as before", brief(v))
	}
	v = k.until(going, "can be read", func(fleet.ServerView) bool { return true })
	if v.Status != fleet.StatusDestroying || v.Verdict != fleet.VerdictDestroying {
		t.Errorf("the server is %s; want destroying: nobody has seen that it is gone", brief(v))
	}
	if writes := s.writes(); len(writes) > 2 {
		for _, c := range writes[2:] {
			t.Errorf("%s %s (%d) was tried while the type was not served", c.Verb, c.Path, c.Status)
		}
	}
	mark := s.mark()
	if err := s.server.InstallCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.await(mark, servers[0].Instance, "is made again", func(c change) bool { return c.kind == watch.Added })
	k.converged(present, "v1")
	k.gone(going)
	if n := len(k.deployments(present)); n != 1 {
		t.Errorf("%d deployments, want the one of before", n)
	}
	if d := cmp.Diff(servers[0].PublishedURL, k.converged(present, "v1").PublishedURL); d != "" {
		t.Error(d)
	}
}

// A definition that somebody deletes takes its objects along, refuses new ones while it goes,
// and then the type is not served: no deployment fails for that.
func TestP2_aTypeThatIsTakenAwayInTheMiddleOfARollOutFailsNothing(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, ownCluster(t))
	k, servers := s.serving(s.region("kube-crd-live"), []string{"here", "rolling"})
	here, rolling := keyOf(servers[0]), keyOf(servers[1])
	name := s.stuck(k, rolling, "v2")
	if err := s.server.RemoveCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []fleet.ServerKey{here, rolling} {
		v := k.until(key, "is not served", func(v fleet.ServerView) bool {
			return v.Verdict == fleet.VerdictUnobserved && v.Reason == fleet.ReasonTypeNotServed
		})
		if v.Status == fleet.StatusFailed || v.Deployment.Status == fleet.DeploymentFailed {
			t.Errorf("%s is %s, its deployment %s; want that nothing failed", key, brief(v), v.Deployment.Status)
		}
	}
	s.release(name)
	if err := s.server.InstallCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.converged(here, "v1")
	v := k.converged(rolling, "v2")
	if v.Deployment.Seq != 2 || v.Deployment.Status != fleet.DeploymentSucceeded {
		t.Errorf("deployment %d is %s, want the second, succeeded", v.Deployment.Seq, v.Deployment.Status)
	}
	for _, key := range []fleet.ServerKey{here, rolling} {
		if _, text := k.events(key); strings.Contains(text, "Failed") {
			t.Errorf("events of %s tell of a failure:\n%s", key, text)
		}
	}
}

func TestK3_fieldsThatTheSchemaLacksAreReportedOnceAndAppliedWhenItHasThem(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, ownCluster(t, kubernetes.NewerFields...))
	region := s.region("kube-old", kubernetesOf(func(k *fleet.Kubernetes) { k.ExtraSpec = `{"podAnnotations":{"scrape":"yes"}}` }))
	k, servers := s.serving(region, []string{"old"})
	key, name := keyOf(servers[0]), servers[0].Instance
	v := k.until(key, "says what is dropped", func(v fleet.ServerView) bool {
		return hasReason(v, fleet.ConditionManifestConverged, fleet.True, fleet.ReasonSchemaTooOld)
	})
	if d := cmp.Diff([]string{"spec.podAnnotations"}, v.Resource.Dropped); d != "" || v.Status != fleet.StatusActive {
		t.Errorf("the server is %s; dropped (-want +got):\n%s", brief(v), d)
	}
	pause(t.Context(), 3*time.Second) // three ticks
	if n := s.applies(name); n != 1 {
		t.Errorf("%d applies, want one: what is dropped is no drift", n)
	}
	reasons, text := k.events(key)
	if n := len(slices.DeleteFunc(slices.Clone(reasons), func(r string) bool { return !strings.Contains(r, string(fleet.ReasonSchemaTooOld)) })); n != 1 {
		t.Errorf("%d events tell of it, want one:\n%s", n, text)
	}
	if err := s.server.InstallCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	installed := time.Now()
	eventually(t, "the field is applied", func() error {
		if got := at(s.object(name), "spec.podAnnotations.scrape"); got != "yes" {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
	t.Logf("applied %s after the CRD had the field", time.Since(installed))
	v = k.converged(key, "v1")
	if len(v.Resource.Dropped) > 0 || s.applies(name) != 2 || !hasReason(v, fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged) {
		t.Errorf("after %d applies the server is %s", s.applies(name), brief(v))
	}
	s.refusesNothing()
}
