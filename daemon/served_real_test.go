//go:build real

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// While the declared image cannot be had, what serves is killed, paused and renamed by hand,
// and comes back each time: the same container, under its name, within the time of one start.
func TestC14_C15_whatServesComesBackWhileItsSuccessorCannotBeHad(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-alive")
	k.put(key, "v2-lost")
	k.failed(key, fleet.ReasonImagePullFailed)
	b := theBox(t, key.Region)
	for i, c := range []struct {
		what string
		do   []string
	}{
		{"killed", []string{"kill", "--signal", "KILL", b.ID}},
		{"killed again", []string{"kill", "--signal", "KILL", b.ID}},
		{"paused", []string{"pause", b.ID}},
		{"renamed", []string{"rename", b.ID, "by-hand"}},
		{"killed at last", []string{"kill", "--signal", "KILL", b.ID}},
	} {
		if i == 1 {
			k.ticks(key, 3) // the next attempt for v2 waits longer by now
		}
		podman(t, c.do...)
		began := time.Now()
		eventually(t, c.what+": it is back under its name", func() error {
			version, err := up(t, before.PublishedURL)
			now := theBox(t, key.Region)
			if err != nil || version != "v1" || now.ID != b.ID || now.name() != b.name() || now.State != "running" {
				return fmt.Errorf("%s answers %q, %v; container %+v", before.PublishedURL, version, err, now)
			}
			return nil
		})
		took := real.stopwatch.Since(began)
		t.Logf("%s: back after %.2f s", c.what, took.Seconds())
		if took > 15*time.Second {
			t.Errorf("%s: it was back after %s, want about the time of one start", c.what, took)
		}
	}
	v := k.failed(key, fleet.ReasonImagePullFailed)
	if v.ServingImageTag != "v1" || v.PublishedURL != before.PublishedURL {
		t.Errorf("the server is %s; want v1 published", brief(v))
	}
	heals(k, key, before)
}
