//go:build real

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestL59_envAndVolumesAreNotRecreatedOver20Ticks(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-calm")
	box := theBox(t, key.Region)
	k.ticks(key, 20)
	after := k.converged(key, "v1")
	if d := cmp.Diff(box, theBox(t, key.Region)); d != "" {
		t.Errorf("the container changed over 20 ticks (-before +after):\n%s", d)
	}
	before.LastObservedAt, after.LastObservedAt = nil, nil
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the server changed over 20 ticks (-before +after):\n%s", d)
	}
}

func TestC3_reorderedEnvKeysChangeNothing(t *testing.T) {
	t.Parallel()
	k, key, _ := serving(t, "eu-order")
	box := theBox(t, key.Region)
	events, _ := k.events(key)
	text, err := json.Marshal(region(key.Region))
	if err != nil {
		t.Fatal(err)
	}
	reordered := strings.Replace(string(text), `"env":{"ALPHA":"1",`, `"env":{`, 1)
	reordered = strings.Replace(reordered, `"ZONE":"kura.test"}`, `"ZONE" : "kura.test",  "ALPHA":"1"}`, 1)
	if reordered == string(text) || len(reordered) < len(text) {
		t.Fatalf("the keys of %s were not reordered", text)
	}
	status, answer := k.raw("PUT", "/v1/regions/"+key.Region, reordered)
	var put api.Written[api.Region]
	if err := json.Unmarshal([]byte(answer), &put); err != nil || status != 200 || put.Changed {
		t.Errorf("PUT of the region with reordered keys answered %d %s, want 200 and nothing changed", status, answer)
	}
	// The order of volumes is written down, and means nothing.
	swapped := region(key.Region, cache(func(s *fleet.Service) { slices.Reverse(s.Volumes) }))
	if w := k.putRegion(swapped); !w.Changed || len(w.Warnings) > 0 {
		t.Errorf("PUT of the region with swapped volumes: changed %v, warnings %v; want a change that warns of nothing", w.Changed, w.Warnings)
	}
	k.ticks(key, 3)
	k.converged(key, "v1")
	if d := cmp.Diff(box, theBox(t, key.Region)); d != "" {
		t.Errorf("the container changed (-before +after):\n%s", d)
	}
	if after, messages := k.events(key); len(after) != len(events) {
		t.Errorf("there are %d events, there were %d:\n%s", len(after), len(events), messages)
	}
}

func TestC3_restartedKuradRestartsNoContainer(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-restart")
	box := theBox(t, key.Region)
	for _, end := range []struct {
		name string
		how  func()
	}{{"SIGTERM", k.stop}, {"SIGKILL", k.kill}} {
		end.how()
		if version, err := up(t, before.PublishedURL); err != nil || version != "v1" {
			t.Errorf("while kurad is down, %s answers %q, %v", before.PublishedURL, version, err)
		}
		k.start()
		k.ticks(key, 3)
		after := k.converged(key, "v1")
		if d := cmp.Diff(box, theBox(t, key.Region)); d != "" {
			t.Errorf("%s: the container changed (-before +after):\n%s", end.name, d)
		}
		before.LastObservedAt, after.LastObservedAt = nil, nil
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%s: the server changed (-before +after):\n%s", end.name, d)
		}
	}
}

func TestC12_assignedPortAndURLSurviveEveryRoll(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-port")
	seen := map[string]bool{theBox(t, key.Region).ID: true}
	if before.Ports["cache/https"] == 0 || before.PublishedURL == "" {
		t.Fatalf("ports %v, url %q: want both assigned", before.Ports, before.PublishedURL)
	}
	for _, tag := range []string{"v2", "v3", "v1", "v2"} {
		k.put(key, tag)
		v := k.converged(key, tag)
		if d := cmp.Diff(before.Ports, v.Ports); d != "" || v.PublishedURL != before.PublishedURL {
			t.Errorf("%s: url %s, want %s; ports (-before +after):\n%s", tag, v.PublishedURL, before.PublishedURL, d)
		}
		if version, err := up(t, before.PublishedURL); err != nil || version != tag {
			t.Errorf("%s answers %q, %v; want %s", before.PublishedURL, version, err, tag)
		}
		b := theBox(t, key.Region)
		if seen[b.ID] || b.Image != image(tag) || b.State != "running" {
			t.Errorf("%s: container %+v, want a new one", tag, b)
		}
		seen[b.ID] = true
	}
	statuses := []fleet.DeploymentStatus{}
	for _, d := range k.deployments(key) {
		statuses = append(statuses, d.Status)
	}
	if d := cmp.Diff(slices.Repeat([]fleet.DeploymentStatus{fleet.DeploymentSucceeded}, 5), statuses); d != "" {
		t.Errorf("deployments (-want +got):\n%s", d)
	}
}
