//go:build real

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// reach gives kurad, at its next start, the kubeconfig of a site.
func (k *kurad) reach(s *site) {
	k.t.Helper()
	config, err := s.proxy.Kubeconfig(kubernetes.Kurad)
	if err != nil {
		k.t.Fatal(err)
	}
	k.flags[slices.Index(k.flags, "--kubeconfig")+1] = config
}

// looks is how often kurad has asked which namespace it is.
func (s *site) looks() (n int) {
	for _, c := range s.proxy.Calls() {
		if c.Resource == "namespaces" {
			n++
		}
	}
	return n
}

func TestK9_anotherClusterUnderTheSameNameIsLeftAloneUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, servers := s.serving(s.region("kube-swap"), []string{"stays", "goes"})
	stays, goes := servers[0], servers[1]
	uid := s.object(stays.Instance).GetUID()
	s.edit(goes.Instance, `{"metadata":{"finalizers":["kura.test/held"]}}`)
	k.delete(keyOf(goes))
	k.until(keyOf(goes), "is being deleted", func(v fleet.ServerView) bool { return v.Resource != nil && v.Resource.Deleting })
	applied := s.applies(stays.Instance)
	k.kill()

	c := ownCluster(t)
	var nth int32
	if _, err := fmt.Sscanf(s.namespace, "site-%d", &nth); err != nil {
		t.Fatal(err)
	}
	c.sites.Store(nth - 1)
	other := newSiteOn(t, c)
	k.reach(other)
	k.start()
	for _, v := range servers {
		k.until(keyOf(v), "is in another cluster", func(v fleet.ServerView) bool {
			return slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool {
				return c.Type == fleet.ConditionInstanceObserved && c.Status == fleet.Unknown && c.Reason == fleet.ReasonClusterChanged
			})
		})
	}
	looks := other.looks()
	eventually(t, "it was looked at again and again", func() error {
		if n := other.looks() - looks; n < 3 {
			return fmt.Errorf("%d more looks", n)
		}
		return nil
	})
	if list, err := other.api.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 || len(other.writes()) > 0 {
		t.Errorf("%d instances were made in the other cluster by %v, %v", len(list.Items), other.writes(), err)
	}
	if got := k.command("cluster", "list", "--data-dir", k.dir); !strings.Contains(got, "ClusterChanged") || !strings.Contains(got, s.namespace) {
		t.Errorf("the list does not say so:\n%s", got)
	}
	if got := k.refused("cluster", "accept", clusterName, "--data-dir", k.dir); !strings.Contains(got, "--yes") {
		t.Errorf("it does not say how it is meant: %s", got)
	}

	// Back in its cluster everything goes on.
	k.stop()
	k.reach(s)
	k.start()
	k.converged(keyOf(stays), "v1")
	s.edit(goes.Instance, `{"metadata":{"finalizers":null}}`)
	k.gone(keyOf(goes))
	if o := s.object(stays.Instance); o.GetUID() != uid || s.applies(stays.Instance) != applied {
		t.Errorf("the one that stays is %s after %d applies, was %s after %d", o.GetUID(), s.applies(stays.Instance), uid, applied)
	}

	// Where it is meant, it is accepted.
	k.stop()
	k.reach(other)
	k.start()
	k.until(keyOf(stays), "is in another cluster", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictUnobserved })
	if got := k.command("cluster", "accept", clusterName, "--yes", "--data-dir", k.dir); !strings.Contains(got, "accepted") {
		t.Errorf("%s", got)
	}
	k.until(keyOf(stays), "is made anew", func(fleet.ServerView) bool { return other.object(stays.Instance) != nil })
	k.converged(keyOf(stays), "v1")
}
