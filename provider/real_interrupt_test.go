//go:build real

package provider

import (
	"os"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Ctrl-C ends the wait at once; what was declared stays and goes on, and nothing is
// tainted.
func TestAccInterrupt_endsTheWaitAndKeepsWhatWasDeclared(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1-fail", "v2-fail")
	for _, row := range []struct{ verb, version string }{{"Create", "v1-fail"}, {"Update", "v2-fail"}} {
		c.write(k.config(serverHCL(row.version)))
		apply, text := c.start("apply", "-no-color", "-auto-approve")
		k.answers503(row.version, fleet.VerdictProgressing)
		if err := apply.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if got := text(); !contains(got, row.verb+" server acme/eu: the wait was interrupted", "What was declared is stored, and kurad goes on.") {
			t.Errorf("%s", got)
		}
		c.showsNothing()
		k.behave(acmeEU, "ok")
		if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != row.version {
			t.Errorf("it serves %s", v.ServingImageTag)
		}
		c.showsNothing()
	}
	c.destroy()
}

// An apply survives a daemon that dies while it waits: the declaration was
// acknowledged, so it is there when the daemon comes back (G1).
func TestAccInterrupt_anApplySurvivesADaemonThatDies(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2-fail")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	c.write(k.config(serverHCL("v2-fail")))
	apply, text := c.start("apply", "-no-color", "-auto-approve")
	k.answers503("v2-fail", fleet.VerdictProgressing)
	id := k.id(acmeEU)
	k.kill()
	k.again()
	k.behave(acmeEU, "ok")
	if got := text(); apply.ProcessState.ExitCode() != 0 || !contains(got, "Apply complete") {
		t.Errorf("%s", got)
	}
	if v := k.server("acme", "eu"); v.Verdict != fleet.VerdictConverged || v.Deployment.Seq != 2 || k.id(acmeEU) != id {
		t.Errorf("after the restart it is %s, deployment %d, container %.12s, was %.12s", standing(v), v.Deployment.Seq, k.id(acmeEU), id)
	}
	c.showsNothing()

	// One that does not come back in time is not an error either: the write was stored.
	c.write(k.config(serverHCL("v1", `timeouts = { update = "5s" }`)))
	c.apply()
	c.write(k.config(serverHCL("v2-fail", `timeouts = { update = "5s" }`)))
	apply, text = c.start("apply", "-no-color", "-auto-approve")
	k.answers503("v2-fail", fleet.VerdictProgressing)
	k.kill()
	if got := text(); apply.ProcessState.ExitCode() != 0 || !contains(got, "Update server acme/eu: not ready yet") {
		t.Errorf("%s", got)
	}
	c.refused([]string{"does not answer", "is it running"}, "plan", "-no-color")
	k.again()
	k.answers503("v2-fail", fleet.VerdictProgressing) // and is no longer unobserved
	c.showsNothing()
	k.behave(acmeEU, "ok")
	k.stands(acmeEU, fleet.VerdictConverged)
	c.showsNothing()
	c.destroy()
}
