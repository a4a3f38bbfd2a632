//go:build real

package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// poll asks the url without a pause until stop is called, which returns the versions
// that answered and the errors.
func poll(t *testing.T, url string) (stop func() (versions []string, errs []error)) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var versions []string
	var errs []error
	wg.Go(func() {
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for {
			version, err := up(t, url)
			if err != nil {
				errs = append(errs, err)
			}
			if !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() ([]string, []error) {
		cancel()
		wg.Wait()
		return versions, errs
	}
}

// heals rolls on to v3 and sees that it serves at the old address.
func heals(k *kurad, key fleet.ServerKey, before fleet.ServerView) {
	t := k.t
	t.Helper()
	k.put(key, "v3")
	v := k.converged(key, "v3")
	if d := cmp.Diff(before.Ports, v.Ports); d != "" || v.PublishedURL != before.PublishedURL {
		t.Errorf("healed by v3: url %s, want %s; ports (-before +after):\n%s", v.PublishedURL, before.PublishedURL, d)
	}
	if version, err := up(t, before.PublishedURL); err != nil || version != "v3" {
		t.Errorf("%s answers %q, %v; want v3", before.PublishedURL, version, err)
	}
	if b := theBox(t, key.Region); b.Image != image("v3") || b.State != "running" || b.name() != v.Containers[0].Name {
		t.Errorf("container %+v, want v3 under its name %s", b, v.Containers[0].Name)
	}
	// The verdict on v2 stays in the audit; the latest deployment speaks of v3.
	last := k.deployments(key)[0]
	if last.ImageTag != "v3" || last.Status != fleet.DeploymentSucceeded {
		t.Errorf("latest deployment %+v, want v3 succeeded", last)
	}
}

func TestC4_missingImageLeavesTheOldVersionServing(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-missing")
	box := theBox(t, key.Region)
	stop := poll(t, before.PublishedURL)
	k.put(key, "v2-lost")
	v := k.failed(key, fleet.ReasonImagePullFailed)
	k.ticks(key, 3)
	versions, errs := stop()
	if d := cmp.Diff([]string{"v1"}, versions); d != "" || len(errs) > 0 {
		t.Errorf("during the roll-out %s answered with (-want +got):\n%s\nerrors %v", before.PublishedURL, d, errs)
	}
	if d := cmp.Diff(box, theBox(t, key.Region)); d != "" {
		t.Errorf("the serving container changed (-before +after):\n%s", d)
	}
	if v.PublishedURL != before.PublishedURL || v.ServingImageTag != "v1" || v.ObservedImageTag != "v1" || !strings.Contains(v.Message, "v2-lost") {
		t.Errorf("the server is %s; want v1 published and observed, and a message that names the image", brief(v))
	}
	if d := v.Deployment; d.Status != fleet.DeploymentFailed || d.Reason != fleet.ReasonImagePullFailed {
		t.Errorf("deployment %+v, want failed with ImagePullFailed", d)
	}
	if v.NextAttempt == nil {
		t.Error("no next attempt is due: failed must not be sticky (P9)")
	}
	heals(k, key, before)
}

func TestC11_crashingImageIsCrashLoopAndAGoodOneHeals(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-crash")
	k.put(key, "v2-crash")
	v := k.failed(key, fleet.ReasonCrashLoop)
	if !strings.Contains(v.Message, "cache") {
		t.Errorf("message %q, want one that names the service", v.Message)
	}
	if v.PublishedURL != before.PublishedURL {
		t.Errorf("published url %q, want %q to stay", v.PublishedURL, before.PublishedURL)
	}
	if b := theBox(t, key.Region); b.Image != image("v2-crash") {
		t.Errorf("container %+v: want the new one alone, for nothing is reverted (C5)", b)
	}
	heals(k, key, before)
}

func TestP10_imageThatNeverAnswersStallsAndAGoodOneHeals(t *testing.T) {
	for _, tag := range []string{"v2-hang", "v2-fail"} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			k, key, before := serving(t, "eu-"+tag[3:], stallAfter(3*time.Second))
			k.put(key, tag)
			v := k.until(key, "stalls", func(v fleet.ServerView) bool { return v.Verdict == fleet.VerdictStalled })
			if v.Status != fleet.StatusFailed || !hasReason(v, fleet.ConditionProgressing, fleet.False, fleet.ReasonStalled) {
				t.Errorf("the server is %s; want failed, Progressing=False/Stalled", brief(v))
			}
			b := theBox(t, key.Region)
			k.ticks(key, 3)
			if d := cmp.Diff(b, theBox(t, key.Region)); d != "" {
				t.Errorf("a container that runs was touched (-before +after):\n%s", d)
			}
			reasons, messages := k.events(key)
			reasons = reasons[slices.Index(reasons, "Active")+1:] // a machine that stands still stalls v1, too
			if n := len(slices.DeleteFunc(reasons, func(r string) bool { return r != string(fleet.ReasonStalled) })); n != 1 {
				t.Errorf("%d Stalled events, want exactly one:\n%s", n, messages)
			}
			heals(k, key, before)
		})
	}
}

func TestL62_containerThatIgnoresSIGTERMIsKilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-term"}
	k.declare(region(key.Region), key.Account)
	k.put(key, "v2-ignoreterm")
	before := k.converged(key, "v2-ignoreterm")
	if reasons, messages := k.events(key); slices.Contains(reasons, "GraceExceeded") {
		t.Fatalf("GraceExceeded before anything was stopped:\n%s", messages)
	}
	begun := time.Now()
	k.put(key, "v3")
	stopping := k.until(key, "stops the old container", func(v fleet.ServerView) bool {
		i := v.Plan.Current()
		return i >= 0 && v.Plan.Tasks[i].Kind == fleet.TaskStop && v.Plan.Tasks[i].State == fleet.TaskRunning
	})
	if !hasReason(stopping, fleet.ConditionProgressing, fleet.True, fleet.ReasonReplacing) {
		t.Errorf("while it is replaced the server is %s; want Progressing=True/Replacing", brief(stopping))
	}
	k.until(key, "has stopped it", func(v fleet.ServerView) bool {
		i := v.Plan.Current()
		return i < 0 || v.Plan.Tasks[i].Kind != fleet.TaskStop
	})
	took := time.Since(begun)
	t.Logf("stopped %.1f s after v3 was declared, with a grace of 2 s", took.Seconds())
	if took < 2*time.Second || real.stopwatch.Since(begun) > 15*time.Second {
		t.Errorf("it was stopped after %s, want its grace of 2 s and a little", took)
	}
	heals(k, key, before)
	if reasons, messages := k.events(key); !slices.Contains(reasons, "GraceExceeded") {
		t.Errorf("no event GraceExceeded:\n%s", messages)
	}
}

func TestP9_missingImageHealsByItselfOnceItIsThere(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-later")
	k.put(key, "v2-later")
	k.failed(key, fleet.ReasonImagePullFailed)
	history := k.deployments(key)
	if err := real.engine.CacheImage(t.Context(), image("v2-later")); err != nil {
		t.Fatal(err)
	}
	built := time.Now()
	v := k.converged(key, "v2-later")
	t.Logf("healed %.1f s after the image was there", time.Since(built).Seconds())
	if d := cmp.Diff(history, k.deployments(key)); d != "" {
		t.Errorf("the deployments changed, and history is not edited (-before +after):\n%s", d)
	}
	if v.PublishedURL != before.PublishedURL || v.Deployment.Status != fleet.DeploymentFailed {
		t.Errorf("the server is %s; want the url of before, and the deployment still failed (P5)", brief(v))
	}
	if version, err := up(t, v.PublishedURL); err != nil || version != "v2-later" {
		t.Errorf("%s answers %q, %v", v.PublishedURL, version, err)
	}
}

func hasReason(v fleet.ServerView, c fleet.ConditionType, s fleet.ConditionStatus, r fleet.Reason) bool {
	return slices.ContainsFunc(v.Conditions, func(got fleet.Condition) bool { return got.Type == c && got.Status == s && got.Reason == r })
}
