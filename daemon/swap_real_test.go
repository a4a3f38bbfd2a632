//go:build real

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// back waits until v1 answers at the url from the container, under its name, and says how
// long after the disturbance that was.
func back(t *testing.T, what, url string, was box, disturb func()) {
	t.Helper()
	disturb()
	began := time.Now()
	eventually(t, what+": it is back under its name", func() error {
		version, err := up(t, url)
		if err != nil || version != "v1" {
			return fmt.Errorf("%s answers %q, %v", url, version, err)
		}
		for _, b := range boxes(t, "eu-swap") {
			if b.ID == was.ID && (b.name() == was.name() && b.State == "running" || b.State == "stopping") { // for the next attempt at a swap
				return nil
			}
		}
		return fmt.Errorf("containers %+v", boxes(t, "eu-swap"))
	})
	took := real.stopwatch.Since(began)
	t.Logf("%s: back after %.2f s", what, took.Seconds())
	if took > 15*time.Second {
		t.Errorf("%s: it was back after %s, want about the time of one start", what, took)
	}
}

// What serves is killed while the pull of its successor hangs and while its successor cannot
// be started, and kurad is paused in the middle of the swap: v1 is back after the time of one
// start, the same container.
func TestC14_whatServesComesBackFromAPullThatHangsAStartThatFailsAndAPauseInTheSwap(t *testing.T) {
	t.Parallel()
	stubborn := func(s *fleet.Service) { s.Env["KURA_MODE"] = "ignore-term" } // so that a stop takes its grace
	k, key, before := serving(t, "eu-swap", cache(stubborn))
	was, url := theBox(t, key.Region), before.PublishedURL
	kill := func() {
		t.Helper()
		eventually(t, "it is killed while it runs, and not stopped for another attempt", func() error {
			_, err := real.engine.Podman(t.Context(), "kill", "--signal", "KILL", was.ID)
			return err
		})
	}
	down := func() {
		t.Helper()
		eventually(t, "v1 is stopped", func() error {
			if version, err := up(t, url); err == nil {
				return fmt.Errorf("%s answers", version)
			}
			return nil
		})
	}
	does := func(what string, kind fleet.TaskKind) {
		t.Helper()
		k.until(key, what, func(v fleet.ServerView) bool {
			i := v.Plan.Current()
			return i >= 0 && v.Plan.Tasks[i].Kind == kind && v.Plan.Tasks[i].State == fleet.TaskRunning
		})
	}

	k.putRegion(region(key.Region, cache(stubborn), cache(func(s *fleet.Service) { s.Image = deaf(t) + "/kura-cache:{image_tag}" })))
	does("pulls", fleet.TaskPull)
	back(t, "killed while the pull hangs", url, was, kill)
	does("pulls again", fleet.TaskPull)

	k.putRegion(region(key.Region, cache(stubborn), cache(func(s *fleet.Service) { s.User = "nobody-there" })))
	back(t, "its successor does not start", url, was, down)
	k.failed(key, fleet.ReasonStartFailed)
	for range 2 {
		back(t, "killed while its successor does not start", url, was, kill)
	}

	k.putRegion(region(key.Region, cache(stubborn)))
	k.converged(key, "v1")
	k.put(key, "v2")
	does("is stopped for v2", fleet.TaskStop)
	back(t, "paused while it is stopped", url, was, func() {
		k.putServer(fleet.Server{Account: key.Account, Region: key.Region, ImageTag: "v2", Paused: true})
		down() // SIGTERM is ignored for two seconds
	})
	k.until(key, "is held", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictHeld && v.Plan == nil })
	kill()
	began := time.Now()
	k.until(key, "is said not to answer", func(v fleet.ServerView) bool {
		for _, c := range v.Conditions {
			if c.Type == fleet.ConditionEndpointReady {
				return c.Status == fleet.False
			}
		}
		return false
	})
	if took := real.stopwatch.Since(began); took > 5*time.Second {
		t.Errorf("a paused server that was killed was said to answer for %s", took)
	} else {
		t.Logf("a paused server that was killed was said to answer for %.2f s", took.Seconds())
	}
	k.putRegion(region(key.Region))
	k.put(key, "v3")
	heals(k, key, before)
}

// The containers of two servers, exchanged by hand, get their names back and run on.
func TestC15_twoServersContainersExchangedByHandGetTheirNamesBack(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	k.declare(region("eu-names"), "acme", "beta")
	var keys []fleet.ServerKey
	for _, a := range []string{"acme", "beta"} {
		key := fleet.ServerKey{Account: a, Region: "eu-names"}
		keys = append(keys, key)
		k.put(key, "v1")
	}
	var was []fleet.Container
	for _, key := range keys {
		was = append(was, k.converged(key, "v1").Containers...)
	}
	if len(was) != 2 {
		t.Fatalf("containers %+v, want two", was)
	}
	k.stop()
	podman(t, "rename", was[0].ID, "kura-by-hand")
	podman(t, "rename", was[1].ID, was[0].Name)
	podman(t, "rename", was[0].ID, was[1].Name)
	k.start()
	began := time.Now()
	for _, b := range was {
		eventually(t, "it has its name back and runs", func() error {
			for _, is := range boxes(t, "eu-names") {
				if is.ID == b.ID && is.name() == b.Name && is.State == "running" {
					return nil
				}
			}
			return fmt.Errorf("%+v, want %s as %s", boxes(t, "eu-names"), b.ID, b.Name)
		})
	}
	t.Logf("both have their names back after %.2f s", real.stopwatch.Since(began).Seconds())
	for i, key := range keys {
		k.until(key, "is converged with its own", func(v fleet.ServerView) bool {
			return isConverged(v) && v.Plan == nil && len(v.Containers) == 1 && v.Containers[0].ID == was[i].ID && v.Containers[0].Name == was[i].Name
		})
	}
	if n := len(boxes(t, "eu-names")); n != 2 {
		t.Errorf("%d containers, want two", n)
	}
}
