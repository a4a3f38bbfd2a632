//go:build real

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
)

// What was applied has settled when the controller has rolled it out, by its own record,
// however late it notices: neither a verdict nor a deployment says so before (K8). In the
// middle of it kurad is killed.
func TestK8_nothingConvergesBeforeTheControllerHasRolledItOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	late := map[string]kubecontroller.Behaviour{
		"at-once": {Notice: 1}, "late-2": {Notice: 2 * time.Second}, "late-10": {Notice: 10 * time.Second},
		"late-60": {Notice: time.Minute}, "down": {Silent: true},
	}
	env, redeployed := s.region("kube-late-env"), s.region("kube-late-again")
	k := s.kurad()
	var accounts []string
	for account := range late {
		accounts = append(accounts, account)
	}
	k.introduce(env, accounts...)
	k.putRegion(redeployed)
	type awaited struct {
		fleet.ServerView
		generation int64
	}
	left := map[fleet.ServerKey]awaited{}
	for _, region := range []string{env.Name, redeployed.Name} {
		for _, account := range accounts {
			k.put(fleet.ServerKey{Account: account, Region: region}, "v1")
		}
		for _, account := range accounts {
			v := k.converged(fleet.ServerKey{Account: account, Region: region}, "v1")
			left[keyOf(v)] = awaited{v, s.object(v.Instance).GetGeneration()}
			b := late[account]
			b.RollOut = 2 * time.Second
			s.fares(v.Instance, b)
		}
	}
	env.Kubernetes.Env = map[string]string{"ALPHA": "2"}
	k.putRegion(env)
	begun := time.Now()
	for _, account := range accounts {
		if _, err := k.client.Redeploy(t.Context(), fleet.ServerKey{Account: account, Region: redeployed.Name}, "once"); err != nil {
			t.Fatal(err)
		}
	}
	silent := map[fleet.ServerKey]bool{}
	restarted := false
	eventually(t, "all have converged, and the silent ones are told", func() error {
		if !restarted && time.Since(begun) > 5*time.Second {
			k.kill()
			k.start()
			restarted = true
		}
		for key, was := range left {
			generation := s.object(was.Instance).GetGeneration()
			v, err := k.client.GetServer(t.Context(), key, api.GetOptions{})
			if err != nil {
				return err
			}
			heard := time.Now()
			rolled, at := s.controller.RolledOut(s.namespace, was.Instance)
			done := isConverged(v) && v.Deployment.Status == fleet.DeploymentSucceeded
			switch {
			case generation == was.generation: // not applied yet
			case late[key.Account].Silent && hasReason(v, fleet.ConditionProgressing, fleet.False, fleet.ReasonSilent):
				if v.Reason != fleet.ReasonSilent || heard.Sub(begun) < 90*time.Second {
					t.Errorf("%s after %s: %s", key, heard.Sub(begun), brief(v))
				}
				silent[key] = true
				delete(left, key)
			case done && (rolled < generation || at.After(heard)):
				t.Errorf("%s counts as done %s after it was declared, and generation %d of %d is rolled out: %s", key, heard.Sub(begun), rolled, generation, brief(v))
				delete(left, key)
			case !done && v.Deployment.Status == fleet.DeploymentSucceeded && v.Deployment.Seq > was.Deployment.Seq:
				t.Errorf("%s: deployment %d has succeeded, and it is %s", key, v.Deployment.Seq, brief(v))
				delete(left, key)
			case done:
				t.Logf("%s converged %s after it was declared, %s after the controller had rolled it out", key, heard.Sub(begun).Round(time.Millisecond), heard.Sub(at).Round(time.Millisecond))
				if took := heard.Sub(at); took > 20*time.Second {
					t.Errorf("%s: that was told %s late", key, took)
				}
				delete(left, key)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
	for key := range silent {
		name, err := fleet.InstanceName(key.Account, key.Region)
		if err != nil {
			t.Fatal(err)
		}
		s.release(name)
		k.converged(key, "v1")
	}
	if len(silent) != 2 {
		t.Errorf("%d controllers are told to be silent, want those of 2 servers", len(silent))
	}
}
