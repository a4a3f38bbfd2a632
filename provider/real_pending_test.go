//go:build real

package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// staysAt checks that the server runs a version for good: it is what the daemon wants, in
// the same container, and a new look at it by a daemon that has just started makes no work.
func (k *kurad) staysAt(tag, container string) {
	k.t.Helper()
	k.kill()
	k.again()
	k.stands(acmeEU, fleet.VerdictConverged)
	v, err := k.api.GetServer(k.t.Context(), acmeEU, api.GetOptions{ObserveNow: true})
	if err != nil {
		k.t.Fatal(err)
	}
	if v.Intent.ImageTag != tag || v.Deployment.ImageTag != tag || v.Verdict != fleet.VerdictConverged || v.Plan != nil || v.NextAttempt != nil || k.id(acmeEU) != container {
		k.t.Errorf("it is %s, wants %s, plan %+v, container %.12s; want %s for good in %.12s", standing(&v), v.Intent.ImageTag, v.Plan, k.id(acmeEU), tag, container)
	}
	if err := k.answers(acmeEU, tag); err != nil {
		k.t.Error(err)
	}
}

// givesUp is what a plan shows whose only change is that a version is given up.
func givesUp(version string) []string {
	return []string{fmt.Sprintf("- pending_image_tag = %q -> null", version), "0 to add, 1 to change, 0 to destroy"}
}

// Issue 9, A1: a version that failed, stalled or drifted is still what the daemon wants, and
// to go back to what serves is one change, which takes it back.
func TestAccPending_goingBackToWhatServesTakesTheFailedVersionBack(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2-fail")
	v1 := k.config(serverHCL("v1"))
	c.write(v1)
	c.apply()
	serving := k.id(acmeEU)

	// It is refused, and tried once more: nobody built it.
	c.write(k.config(serverHCL("v2-late")))
	for range 2 {
		c.refused([]string{"version v2-late failed (ImagePullFailed)", `set image_tag back to "v1" to stay with what serves`}, "apply", "-no-color", "-auto-approve")
	}
	c.shows(true, append(givesUp("v2-late"), `~ image_tag = "v1" -> "v2-late"`, `set image_tag back to "v1" to stay with what serves`), "must be replaced")
	c.write(v1)
	c.shows(true, append(givesUp("v2-late"), "version v2-late failed (ImagePullFailed)"), "must be replaced", "~ image_tag", "+ image_tag", "known after apply")
	if text, code := c.run("plan", "-no-color", "-detailed-exitcode", "-refresh=false"); code != 2 || !contains(text, givesUp("v2-late")...) {
		t.Errorf("what the apply left in state: %s", text)
	}
	c.apply()
	c.showsNothing()
	// Built after all: nobody wants it any more, and what served was not touched.
	k.image(t, "v2-late")
	t.Cleanup(func() { k.loseImage(t, "v2-late") })
	k.staysAt("v1", serving)
	c.showsNothing()

	// It stalls: it starts and never answers. Then version 1 has to be made anew.
	impatient := func(tag string) string { return k.configWith(`stall_after = "5s"`, serverHCL(tag)) }
	c.write(impatient("v2-fail"))
	c.refused([]string{"version v2-fail does not get ready", `set image_tag back to "v1" to stay with what serves`}, "apply", "-no-color", "-auto-approve")
	k.answers503("v2-fail", fleet.VerdictStalled)
	c.write(impatient("v1"))
	c.shows(true, givesUp("v2-fail"), "must be replaced", "~ image_tag", "+ image_tag")
	c.apply()
	c.showsNothing()
	k.staysAt("v1", k.id(acmeEU))
	c.destroy()
}

// In a region that only observes, what somebody put there instead becomes what is declared.
func TestAccPending_goingBackToWhatDriftedInARegionThatOnlyObserves(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	observe := func(tag string) string { return k.configWith(`remediation = "observe"`, serverHCL(tag)) }
	c.write(observe("v2"))
	c.apply()
	const name = "kura-acme-eu-cache-staging"
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
	c.write(observe("v1"))
	c.shows(true, givesUp("v2"), "must be replaced", "~ image_tag", "+ image_tag")
	c.apply()
	c.showsNothing()
	k.staysAt("v1", k.id(acmeEU))
	c.destroy()
}
