//go:build real

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Every server keeps its old url, which goes on answering, until its new one does; then it
// switches in one write. Nothing else of it changes (L33).
func TestH8_P15_L5_L33_aChangedPatternMovesEveryInstanceOnceItsNewHostAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, servers := s.serving(s.region("kube-move"), []string{"move-a", "move-b", "move-c"})
	const pattern = "m-{account_handle}-{cluster_id}{env_suffix}.kura.test"
	type watching struct {
		before fleet.ServerView
		host   string
		urls   func() []string
		poll   func() ([]string, []error)
	}
	var all []*watching
	for _, v := range servers {
		w := &watching{before: v, host: "m-" + v.Hosts.Public, urls: k.published(keyOf(v)), poll: poll(t, v.PublishedURL)}
		real.dns.Hide(w.host)
		t.Cleanup(func() { real.dns.Remove(w.host) })
		all = append(all, w)
	}
	for _, dry := range []bool{true, false} {
		warnings := k.putTemplate("public", pattern, api.PutOptions{DryRun: dry}).Warnings
		if !slices.ContainsFunc(warnings, func(w fleet.Warning) bool { return w.Code == fleet.WarnHostsMove }) {
			t.Errorf("dry run %v: no warning says that hosts move: %+v", dry, warnings)
		}
		// Instances route aliases (K7).
		if slices.ContainsFunc(warnings, func(w fleet.Warning) bool { return w.Code == fleet.WarnNoAlias }) {
			t.Errorf("dry run %v: a warning says that old hosts are not routed: %+v", dry, warnings)
		}
	}
	for _, w := range all {
		key := keyOf(w.before)
		v := k.until(key, "waits for its new host", func(v fleet.ServerView) bool {
			return at(s.object(v.Instance), "spec.publicHost") == w.host && slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool {
				return c.Type == fleet.ConditionURLConverged && c.Status == fleet.False && strings.Contains(c.Message, string(fleet.ReasonNotResolvable))
			})
		})
		if v.PublishedURL != w.before.PublishedURL || v.Hosts.Public != w.host || v.Status != fleet.StatusActive {
			t.Errorf("%s while it waits: %s", key, brief(v))
		}
		o := s.object(v.Instance)
		if at(o, "spec.publicHost") != w.host || !cmp.Equal(at(o, "spec.clientHostAliases"), any([]any{w.before.Hosts.Public})) {
			t.Errorf("%s: publicHost %v, aliases %v; want the new host, and the old one routed", key, at(o, "spec.publicHost"), at(o, "spec.clientHostAliases"))
		}
	}
	// One by one: each moves by itself, when its own host answers.
	for i, w := range all {
		real.dns.Remove(w.host)
		key := keyOf(w.before)
		v := k.until(key, "moves", func(v fleet.ServerView) bool { return isConverged(v) && strings.Contains(v.PublishedURL, w.host+":") })
		if len(v.Aliases) != 1 || v.Aliases[0].Host != w.before.Hosts.Public || v.Aliases[0].Until == nil {
			t.Errorf("%s: aliases %+v, want %s with its time", key, v.Aliases, w.before.Hosts.Public)
		}
		if _, err := up(t, v.PublishedURL); err != nil {
			t.Errorf("%s: the new url: %v", key, err)
		}
		for _, later := range all[i+1:] {
			if v := k.until(keyOf(later.before), "can be read", func(fleet.ServerView) bool { return true }); v.PublishedURL != later.before.PublishedURL {
				t.Errorf("%s moved with %s, though its host does not answer: %s", keyOf(later.before), key, brief(v))
			}
		}
	}
	for _, w := range all {
		key := keyOf(w.before)
		v := k.converged(key, "v1")
		if d := cmp.Diff([]string{w.before.PublishedURL, v.PublishedURL}, w.urls()); d != "" {
			t.Errorf("%s: what was published (-want +got):\n%s", key, d)
		}
		if versions, errs := w.poll(); len(errs) > 0 || !cmp.Equal(versions, []string{"v1"}) {
			t.Errorf("%s: the old url was asked all the time and answered %v; errors: %v", key, versions, errs)
		}
		if o := s.object(v.Instance); v.Instance != w.before.Instance || string(o.GetUID()) != w.before.Resource.UID {
			t.Errorf("%s: instance %s %s, was %s %s", key, v.Instance, o.GetUID(), w.before.Instance, w.before.Resource.UID)
		}
		if n := s.applies(v.Instance); n != 2 {
			t.Errorf("%s was applied %d times, want once to be made and once to move", key, n)
		}
		if n := len(k.deployments(key)); n != 1 {
			t.Errorf("%s has %d deployments, want one", key, n)
		}
	}
}

// The alias leaves the instance when its time is over, by one apply.
func TestH8_K7_anAliasThatEndsLeavesTheInstance(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	k, servers := s.serving(s.region("kube-alias"), []string{"alias"}, "--alias-period", "3s")
	before := servers[0]
	k.putAccount(fleet.Account{ID: before.Account, Handle: "renamed-alias"})
	v := k.until(keyOf(before), "moves", func(v fleet.ServerView) bool { return isConverged(v) && v.PublishedURL != before.PublishedURL })
	if _, err := up(t, before.PublishedURL); err != nil {
		t.Errorf("the old url does not answer within the period: %v", err)
	}
	k.until(keyOf(before), "gives the old host up", func(v fleet.ServerView) bool {
		return isConverged(v) && len(v.Aliases) == 0 && at(s.object(v.Instance), "spec.clientHostAliases") == nil
	})
	if n := s.applies(v.Instance); n != 3 {
		t.Errorf("%d applies, want three: made, moved, alias ended", n)
	}
	eventually(t, "the old url answers no more", func() error {
		if version, err := up(t, before.PublishedURL); err == nil {
			return fmt.Errorf("it answers %s", version)
		}
		return nil
	})
}
