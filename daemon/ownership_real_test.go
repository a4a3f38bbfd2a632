//go:build real

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestC7_foreignContainerIsLeftAloneUntilItGoes(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-foreign"}
	k.declare(region(key.Region), key.Account)
	name := "kura-acme-eu-foreign-cache-staging"
	t.Cleanup(func() {
		// Of another region, so the clean-up of this one does not find it.
		if err := discard("elsewhere"); err != nil {
			t.Error(err)
		}
	})
	id := podman(t, "run", "--detach", "--name", name, "--label", "dev.kura/environment=canary", "--label", "dev.kura/account=umbra",
		"--label", "dev.kura/region=elsewhere", "--label", "dev.kura/service=cache", image("v1"))
	k.put(key, "v1")
	v := k.failed(key, fleet.ReasonForeignInstance)
	for _, part := range []string{name, "canary", "umbra"} {
		if !strings.Contains(v.Message, part) {
			t.Errorf("message %q does not name %q", v.Message, part)
		}
	}
	k.ticks(key, 5)
	if got := podman(t, "inspect", "--format", "{{.Id}} {{.State.Status}}", name); got != id+" running" {
		t.Errorf("the foreign container is %s, want %s running", got, id)
	}
	if list := boxes(t, key.Region); len(list) != 0 {
		t.Errorf("containers were made beside the foreign one: %+v", list)
	}
	history := len(k.deployments(key))

	podman(t, "rm", "--force", "--time", "0", name)
	v = k.converged(key, "v1")
	if b := theBox(t, key.Region); b.name() != name || b.State != "running" {
		t.Errorf("container %+v, want ours under the name %s", b, name)
	}
	if list := k.deployments(key); len(list) != history {
		t.Errorf("%d deployments, want the %d of before: it heals by itself (P9)", len(list), history)
	}
	if version, err := up(t, v.PublishedURL); err != nil || version != "v1" {
		t.Errorf("%s answers %q, %v", v.PublishedURL, version, err)
	}
}

func TestC7_twoEnvironmentsOnOneEngineNeverTouchEachOther(t *testing.T) {
	t.Parallel()
	staging, production := startKurad(t), startKuradFor(t, "production")
	key := fleet.ServerKey{Account: "acme", Region: "eu-shared"}
	for _, k := range []*kurad{staging, production} {
		k.declare(region(key.Region), key.Account)
		k.put(key, "v1")
	}
	s, p := staging.converged(key, "v1"), production.converged(key, "v1")
	if s.PublishedURL == p.PublishedURL || s.Containers[0].Name == p.Containers[0].Name {
		t.Fatalf("both serve at %s as %s", s.PublishedURL, s.Containers[0].Name)
	}
	if strings.Contains(p.Hosts.Public, "staging") || !strings.Contains(s.Hosts.Public, "-staging.") {
		t.Errorf("hosts: production %s, staging %s", p.Hosts.Public, s.Hosts.Public)
	}
	ours := theBox(t, key.Region, "production")
	untouched := func(after string) {
		t.Helper()
		production.ticks(key, 3)
		if d := cmp.Diff(ours, theBox(t, key.Region, "production")); d != "" {
			t.Errorf("after staging's %s production's container changed (-before +after):\n%s", after, d)
		}
		production.converged(key, "v1")
	}
	staging.put(key, "v2")
	staging.converged(key, "v2")
	untouched("roll-out")
	staging.delete(key)
	staging.gone(key)
	if list := boxes(t, key.Region, "staging"); len(list) != 0 {
		t.Errorf("staging left %+v", list)
	}
	untouched("destruction")
}

func TestC13_volumesOutliveARollAndGoWithTheServerUnlessRetained(t *testing.T) {
	t.Parallel()
	retained := func(r *fleet.Region) {
		cache(func(s *fleet.Service) {
			s.Volumes = append(slices.Clone(s.Volumes), fleet.Volume{Name: "kept", Path: "/kept", Retain: true})
		})(r)
	}
	k, key, _ := serving(t, "eu-volume", retained)
	const data, kept = "kura-acme-eu-volume-data-staging", "kura-acme-eu-volume-kept-staging"
	t.Cleanup(func() { _, _ = real.engine.Podman(t.Context(), "volume", "rm", "--force", kept) }) // goes with the engine anyway
	write(t, data, "written under v1")
	write(t, kept, "written under v1")
	k.put(key, "v2")
	k.converged(key, "v2")
	for _, volume := range []string{data, kept} {
		if got := read(t, volume); got != "written under v1" {
			t.Errorf("after the roll volume %s holds %q", volume, got)
		}
	}
	k.delete(key)
	k.gone(key)
	volumes := podman(t, "volume", "ls", "--quiet", "--filter", "label=dev.kura/region="+key.Region)
	if d := cmp.Diff(kept, volumes); d != "" {
		t.Errorf("volumes after the destruction (-want +got):\n%s", d)
	}
	if got := read(t, kept); got != "written under v1" {
		t.Errorf("the retained volume holds %q", got)
	}
}
