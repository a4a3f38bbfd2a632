//go:build real

package provider

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// shows plans and checks the plan's text: whether there are changes, what it must say
// and what it must not.
func (c *cli) shows(changes bool, want []string, not ...string) {
	c.t.Helper()
	text, has := c.plan()
	if has != changes {
		c.t.Errorf("the plan has changes: %v, want %v", has, changes)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			c.t.Errorf("%q is missing in: %s", w, text)
		}
	}
	for _, n := range not {
		if strings.Contains(text, n) {
			c.t.Errorf("%q is in: %s", n, text)
		}
	}
}

func (c *cli) showsNothing() {
	c.t.Helper()
	c.shows(false, []string{"No changes"}, "Warning")
}

// id is the one container that the server runs. An apply returns when the new one serves; the
// old one is taken away a moment later, and is gone from what kurad tells with the first
// listing that began after that.
func (k *kurad) id(key fleet.ServerKey) string {
	k.t.Helper()
	v := k.until(key, "has one container, and nothing is under way", func(v *fleet.ServerView) bool {
		return v != nil && v.Plan == nil && len(v.Containers) == 1
	})
	return v.Containers[0].ID
}

// The table of what Read puts into image_tag, as a plan prints it, each row for real.
// First the rows of a version that does not make it: what serves goes on serving.
func TestAccVerdict_aVersionThatFailsStallsOrIsUnderWay(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2", "v3-fail")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	c.showsNothing()

	// failed: an image that nobody built.
	lost := k.config(serverHCL("v2-lost"))
	c.write(lost)
	serving := k.id(acmeEU)
	c.refused([]string{
		"Update server acme/eu: version v2-lost failed (ImagePullFailed)", `image_tag = "v2-lost"`, "localhost/kura-cache:v2-lost",
		"Version v1 is still published at https://acme-eu-staging.kura.test:2", "Last events:", "nothing has to be destroyed",
	}, "apply", "-no-color", "-auto-approve")
	truth := []string{`~ image_tag = "v1" -> "v2-lost"`, "Server acme/eu: version v2-lost failed (ImagePullFailed)", "Version v1 is still published", "0 to add, 1 to change, 0 to destroy"}
	c.shows(true, truth, "must be replaced")
	if text, code := c.run("plan", "-no-color", "-detailed-exitcode", "-refresh=false"); code != 2 || !contains(text, truth[0]) {
		t.Errorf("what the apply left in state: %s", text)
	}
	if got := k.id(acmeEU); got != serving {
		t.Errorf("container %.12s was replaced by %.12s for an image that does not exist", serving, got)
	}
	if err := k.answers(acmeEU, "v1"); err != nil {
		t.Error(err)
	}
	// The same apply again is another try, and one only.
	before := k.server("acme", "eu").Deployment
	c.refused([]string{"version v2-lost failed (ImagePullFailed)"}, "apply", "-no-color", "-auto-approve")
	if after := k.server("acme", "eu").Deployment; after.Seq != before.Seq+1 || after.Cause != fleet.DeploymentCauseRedeploy || after.ImageTag != "v2-lost" {
		t.Errorf("after deployment %d came %+v, want one redeploy of the same version", before.Seq, after)
	}
	// A good image heals it.
	c.write(k.config(serverHCL("v2")))
	c.shows(true, []string{`~ image_tag = "v1" -> "v2"`, "1 to change"}, "must be replaced")
	c.apply()
	c.showsNothing()
	if err := k.answers(acmeEU, "v2"); err != nil {
		t.Error(err)
	}

	// progressing: it has started and does not answer yet.
	c.write(k.config(serverHCL("v3-fail", `wait_for = "accepted"`)))
	c.apply()
	k.answers503("v3-fail", fleet.VerdictProgressing)
	c.showsNothing()

	// stalled: not within the region's time. Work goes on, so it heals by itself.
	impatient := k.configWith(`stall_after = "5s"`, serverHCL("v3-fail"))
	c.write(k.configWith(`stall_after = "5s"`, serverHCL("v3-fail", `wait_for = "accepted"`)))
	c.apply()
	k.answers503("v3-fail", fleet.VerdictStalled)
	c.shows(true, []string{`~ image_tag = "v2" -> "v3-fail"`, "Server acme/eu: version v3-fail does not get ready (EndpointNotReady)", "Not settled after 5s", "answered 503", "1 to change"}, "must be replaced")
	c.write(impatient)
	c.refused([]string{"Update server acme/eu: version v3-fail does not get ready (", "Not settled after 5s", "Version v2 is still published", "Last events:"}, "apply", "-no-color", "-auto-approve")
	k.answers503("v3-fail", fleet.VerdictStalled)
	deployment := k.server("acme", "eu").Deployment.Seq
	k.behave(acmeEU, "ok")
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.Deployment.Seq != deployment {
		t.Errorf("healing made deployment %d of %d", v.Deployment.Seq, deployment)
	}
	c.showsNothing()
	c.destroy()
}

// A server that never served: its create is an error that says how to keep it, and its
// plan says that nothing of it serves.
func TestAccVerdict_aFirstVersionThatFailsIsAnErrorThatSaysHowToKeepTheServer(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("v1-lost")))
	c.refused([]string{
		"Create server acme/eu: version v1-lost failed (ImagePullFailed)", `image_tag = "v1-lost"`, "localhost/kura-cache:v1-lost",
		"Last events:", "ImagePullFailed", "kurad goes on trying", "`untaint` keeps it",
	}, "apply", "-no-color", "-auto-approve")
	// OpenTofu says "so it must be replaced", Terraform "so must be replaced".
	c.shows(true, []string{"kura_server.acme is tainted, so ", "must be replaced", "1 to add, 0 to change, 1 to destroy"})
	if text, code := c.run("untaint", "-no-color", "kura_server.acme"); code != 0 {
		t.Fatal(text)
	}
	c.shows(true, []string{`+ image_tag = "v1-lost"`, "version v1-lost failed (ImagePullFailed)", "No version of it has served yet", "0 to add, 1 to change, 0 to destroy"}, "must be replaced")
	if text, code := c.run("plan", "-no-color", "-out=saved"); code != 0 {
		t.Fatal(text)
	}
	// Built after all: it becomes active by itself, without a new deployment.
	k.image(t, "v1-lost")
	t.Cleanup(func() { k.loseImage(t, "v1-lost") })
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.Deployment.Seq != 1 {
		t.Errorf("it healed with deployment %d", v.Deployment.Seq)
	}
	// The plan from before has nothing left to do, and stops nothing that serves.
	healthy := k.id(acmeEU)
	if text, code := c.run("apply", "-no-color", "saved"); code != 0 {
		t.Error(text)
	}
	if v := k.server("acme", "eu"); v.Verdict != fleet.VerdictConverged || v.Deployment.Seq != 1 || k.id(acmeEU) != healthy {
		t.Errorf("after the saved plan it is %s, deployment %d, container %s instead of %s", standing(v), v.Deployment.Seq, k.id(acmeEU), healthy)
	}
	c.showsNothing()
	c.destroy()
}

// What is held is said once per region, and plans nothing.
func TestAccVerdict_heldIsOneWarningPerRegion(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	c.write(k.config(serverHCL("v1"), bravo("v1")))
	c.apply()
	c.write(k.configWith("paused = true", serverHCL("v2"), bravo("v2")))
	// Nobody waits for the end of a pause.
	if text := c.apply(); !contains(text, "Update server acme/eu: it is paused", "Update server bravo/eu: it is paused", "Apply complete") {
		t.Errorf("%s", text)
	}
	text, changes := c.plan()
	if n := strings.Count(text, `Region "eu": changes are held (Paused)`); changes || n != 1 {
		t.Errorf("changes %v, %d warnings, want one: %s", changes, n, text)
	}
	if v := k.server("acme", "eu"); v.ServingImageTag != "v1" || v.Verdict != fleet.VerdictHeld {
		t.Errorf("under the pause it is %s", standing(v))
	}
	c.write(k.config(serverHCL("v2"), bravo("v2")))
	c.apply()
	k.stands(acmeEU, fleet.VerdictConverged)
	k.stands(bravoEU, fleet.VerdictConverged)
	c.showsNothing()
	// A server alone.
	c.write(k.config(serverHCL("v1", "paused = true"), bravo("v2")))
	c.apply()
	c.shows(false, []string{"No changes", "changes are held (Paused)", "acme/eu"})
	c.write(k.config(serverHCL("v1"), bravo("v2")))
	c.apply()
	k.stands(acmeEU, fleet.VerdictConverged)
	c.destroy()
}

// What cannot be seen is said once per region with its age, and plans nothing.
func TestAccVerdict_unobservedIsOneWarningPerRegionWithItsAge(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	c.write(k.config(serverHCL("v1"), bravo("v1")))
	c.apply()
	if err := k.engine.StopService(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.engine.StartService(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	k.stands(acmeEU, fleet.VerdictUnobserved)
	k.stands(bravoEU, fleet.VerdictUnobserved)
	text, changes := c.plan()
	if n := strings.Count(text, `Region "eu" cannot be seen (`); changes || n != 1 || !regexp.MustCompile(`What is known is \d+s old \(from 20`).MatchString(text) {
		t.Errorf("changes %v, %d warnings, want one with an age: %s", changes, n, text)
	}
	// A change that is declared meanwhile is stored, and happens when it can.
	c.write(k.config(serverHCL("v2", `timeouts = { update = "1s" }`), bravo("v1")))
	if text := c.apply(); !contains(text, "Update server acme/eu: not ready yet", "It is unobserved now (") {
		t.Errorf("%s", text)
	}
	c.shows(false, []string{"No changes", "cannot be seen"})
	if err := k.engine.StartService(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != "v2" {
		t.Errorf("it serves %s", v.ServingImageTag)
	}
	k.stands(bravoEU, fleet.VerdictConverged)
	c.showsNothing()
	c.destroy()
}

// In a region that only observes, what somebody did to the containers is a diff, and
// an apply puts it right.
func TestAccVerdict_driftedAndAbsentInARegionThatOnlyObserves(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	c.write(k.configWith(`remediation = "observe"`, serverHCL("v2")))
	c.apply()
	c.showsNothing()
	const name = "kura-acme-eu-cache-staging"

	k.podman(t, "rm", "--force", "--time", "0", name)
	k.stands(acmeEU, fleet.VerdictAbsent)
	c.shows(true, []string{`+ image_tag = "v2"`, "0 to add, 1 to change, 0 to destroy"}, "Warning")
	c.apply()
	c.showsNothing()
	if err := k.answers(acmeEU, "v2"); err != nil {
		t.Error(err)
	}

	// Replaced by one of another version, which bears the same name and labels.
	labels := strings.TrimSpace(k.podman(t, "inspect", "--format", `{{range $k, $v := .Config.Labels}}{{$k}}={{$v}}{{"\n"}}{{end}}`, name))
	k.podman(t, "rm", "--force", "--time", "0", name)
	file := k.data + "/labels"
	if err := os.WriteFile(file, []byte(labels+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.podman(t, "run", "--detach", "--name", name, "--label-file", file, "localhost/kura-cache:v1")
	k.until(acmeEU, "drifted to v1", func(v *fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictDrifted && v.ObservedImageTag == "v1"
	})
	c.shows(true, []string{`~ image_tag = "v1" -> "v2"`, "0 to add, 1 to change, 0 to destroy"}, "Warning")
	c.apply()
	c.showsNothing()
	if err := k.answers(acmeEU, "v2"); err != nil {
		t.Error(err)
	}
	c.destroy()
}

func TestAccVerdict_changedOrDestroyedBySomebodyElse(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	config := k.config(serverHCL("v1"))
	c.write(config)
	c.apply()
	k.write(acmeEU, "v2")
	k.stands(acmeEU, fleet.VerdictConverged)
	c.shows(true, []string{`~ image_tag = "v2" -> "v1"`, "1 to change"}, "Warning")
	c.apply()
	c.showsNothing()
	if v := k.server("acme", "eu"); v.Intent.ImageTag != "v1" || v.Verdict != fleet.VerdictConverged {
		t.Errorf("the daemon's record is %s, %s", v.Intent.ImageTag, standing(v))
	}

	// Destroying waits while the region is paused, so that it can be looked at.
	paused := k.configWith("paused = true", serverHCL("v1"))
	c.write(paused)
	c.apply()
	if _, err := k.api.DeleteServer(t.Context(), acmeEU); err != nil {
		t.Fatal(err)
	}
	c.shows(false, []string{"No changes", "Server acme/eu is being destroyed"})
	c.write(k.configWith("paused = true", serverHCL("v2")))
	c.refused([]string{"Update server acme/eu", "destroy"}, "apply", "-no-color", "-auto-approve")
	c.write(paused)
	r, err := k.api.GetRegion(t.Context(), "eu")
	if err != nil {
		t.Fatal(err)
	}
	r.Paused = false
	if _, err := k.api.PutRegion(t.Context(), r.Region, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	k.gone(acmeEU)
	c.write(config)
	c.shows(true, []string{"kura_server.acme will be created"})
	c.apply()
	c.showsNothing()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(fmt.Errorf("after the destroy: %w", err))
	}
}
