//go:build real

package provider

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var acmeEU = fleet.ServerKey{Account: "acme", Region: "eu"}

func TestAccCreate_refusedByTheRuntimeIsAnErrorThatSaysHowToKeepTheServer(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("1-broken")))
	c.refused([]string{
		"Create server acme/eu: version 1-broken failed (ImagePullFailed)", `image_tag = "1-broken"`, "No such image: localhost/cache:1-broken.",
		"Last events:", "ImagePullFailed: no such image", "kurad goes on trying", "`untaint` keeps it",
	}, "apply", "-no-color", "-auto-approve")
	if text, _ := c.plan(); !contains(text, "kura_server.acme is tainted, so it must be replaced") {
		t.Errorf("not tainted: %s", text)
	}
	if text, code := c.run("untaint", "-no-color", "kura_server.acme"); code != 0 {
		t.Fatal(text)
	}
	// A good version heals it in place.
	c.write(k.config(serverHCL("2")))
	if text, _ := c.plan(); !contains(text, `+ image_tag = "2"`, "0 to add, 1 to change, 0 to destroy") {
		t.Errorf("after untaint: %s", text)
	}
	c.apply()
	if text, changes := c.plan(); changes {
		t.Errorf("after the good version: %s", text)
	}
	if v := k.server("acme", "eu"); v.Deployment.Seq != 2 || v.Verdict != fleet.VerdictConverged {
		t.Errorf("the daemon's record: deployment %d, %s", v.Deployment.Seq, v.Verdict)
	}
}

func TestAccCreate_thatIsNotReadyInTimeIsAWarningAndNoTaint(t *testing.T) {
	for _, row := range []struct{ name, version, more, want string }{
		{"deadline", "1-slow", `timeouts = { create = "10ms" }`, "not ready yet"},
		{"stalled", "1-stalls", "", "does not get ready"},
		{"paused", "1-slow", "paused = true", "it is paused"},
		{"accepted", "1-slow", `wait_for = "accepted"`, "Apply complete"},
	} {
		t.Run(row.name, func(t *testing.T) {
			k, c := startKurad(t), newCLI(t)
			if row.name == "paused" {
				k.script[acmeEU] = verdict(fleet.VerdictHeld, fleet.ReasonPaused, "", "", fleet.Hold{Kind: fleet.HoldPaused, Message: "the server is paused"})
			}
			c.write(k.config(serverHCL(row.version, row.more)))
			if text := c.apply(); !contains(text, row.want, "Apply complete") {
				t.Errorf("%s", text)
			}
			k.stands(acmeEU, active)
			if text, changes := c.plan(); changes {
				t.Errorf("once it is ready, the plan has changes: %s", text)
			}
		})
	}
}

func TestAccCreate_ofAServerThatExistsNamesTheImportBlock(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config())
	c.apply()
	if _, err := k.api.PutServer(t.Context(), fleet.Server{Account: "acme", Region: "eu", ImageTag: "1"}, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	c.write(k.config(serverHCL("1")))
	c.refused([]string{"Create server acme/eu: it exists already", "import {", "to = kura_server.this", `id = "acme/eu"`}, "apply", "-no-color", "-auto-approve")
	// The block, pasted, works, and changes nothing.
	c.write(k.config(serverHCL("1"), "import {\n  to = kura_server.acme\n  id = \"acme/eu\"\n}\n"))
	if text, _ := c.plan(); !contains(text, "1 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("%s", text)
	}
	for _, form := range []string{`id = "kura-acme-eu"`, `identity = { account = "acme", region = "eu" }`} {
		c.write(k.config(serverHCL("1"), "import {\n  to = kura_server.acme\n  "+form+"\n}\n"))
		if text, _ := c.plan(); !contains(text, "1 to import, 0 to add, 0 to change, 0 to destroy") {
			t.Errorf("%s: %s", form, text)
		}
	}
	for id, want := range map[string]string{"acme/mars": "Cannot import non-existent remote object", "kura-nobody-eu": "no server's instance is called"} {
		c.write(k.config(serverHCL("1"), "import {\n  to = kura_server.acme\n  id = \""+id+"\"\n}\n"))
		c.refused([]string{want}, "plan", "-no-color")
	}
}

func TestAccUpdate_thatFailsLeavesTheTruthInState(t *testing.T) {
	for _, row := range []struct {
		version string
		want    []string
	}{
		{"2-broken", []string{"Update server acme/eu: version 2-broken failed (ImagePullFailed)", `image_tag = "2-broken"`, "Version 1 is still published", "Last events:"}},
		{"2-stalls", []string{"Update server acme/eu: version 2-stalls failed (HTTPNotReady)", "GET /up answers 503"}},
	} {
		t.Run(row.version, func(t *testing.T) {
			k, c := startKurad(t), newCLI(t)
			c.write(k.config(serverHCL("1")))
			c.apply()
			c.write(k.config(serverHCL(row.version)))
			c.refused(row.want, "apply", "-no-color", "-auto-approve")
			for _, refresh := range []string{"-refresh=true", "-refresh=false"} {
				text, code := c.run("plan", "-no-color", "-detailed-exitcode", refresh)
				if code != 2 || !contains(text, `~ image_tag = "1" -> "`+row.version+`"`, "0 to add, 1 to change, 0 to destroy") {
					t.Errorf("%s: %s", refresh, text)
				}
			}
			// Applied again, the same version is another try, and one only.
			before := k.server("acme", "eu").Deployment
			k.mu.Lock()
			k.script[acmeEU] = active
			k.mu.Unlock()
			c.apply()
			after := k.server("acme", "eu").Deployment
			if after.Seq != before.Seq+1 || after.Cause != fleet.DeploymentCauseRedeploy || after.ImageTag != row.version {
				t.Errorf("after deployment %d came %+v, want one redeploy of the same version", before.Seq, after)
			}
			if text, changes := c.plan(); changes {
				t.Errorf("after the redeploy: %s", text)
			}
		})
	}
}

// An apply of a plan that was made before somebody else's write is refused.
func TestAccUpdate_ofAPlanThatIsOutOfDateIsRefused(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("1")))
	c.apply()
	c.write(k.config(serverHCL("2")))
	if text, code := c.run("plan", "-no-color", "-out", "tfplan"); code != 0 {
		t.Fatal(text)
	}
	if _, err := k.api.PutServer(t.Context(), fleet.Server{Account: "acme", Region: "eu", ImageTag: "3"}, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	c.refused([]string{"Update server acme/eu", "generation", "Plan again"}, "apply", "-no-color", "tfplan")
	if v := k.server("acme", "eu"); v.Intent.ImageTag != "3" {
		t.Errorf("the other one's version was overwritten by %s", v.Intent.ImageTag)
	}
	// The daemon's own work is no write: a plan outlives it.
	c.write(k.config(serverHCL("4")))
	if text, code := c.run("plan", "-no-color", "-out", "tfplan"); code != 0 {
		t.Fatal(text)
	}
	k.stands(acmeEU, progressing)
	k.stands(acmeEU, nil)
	if text, code := c.run("apply", "-no-color", "tfplan"); code != 0 {
		t.Errorf("%s", text)
	}
}

func TestAccDestroy_protectedIsRefusedInThePlan(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("1", "deletion_protection = true")))
	c.apply()
	c.refused([]string{"Server acme/eu is protected from deletion", "first apply `deletion_protection = false`"}, "plan", "-no-color", "-destroy")
	c.write(k.config())
	c.refused([]string{"Server acme/eu is protected from deletion"}, "plan", "-no-color")
	if k.server("acme", "eu").Intent.Deleting != nil {
		t.Error("planning asked for its destruction")
	}
	c.write(k.config(serverHCL("1")))
	c.apply()
	c.write(k.config())
	c.apply()
	if k.server("acme", "eu") != nil {
		t.Error("it is still there")
	}
}

// Nobody could use a server that was never active yet: it may always go.
func TestAccDestroy_protectionDoesNotBindAServerThatWasNeverActive(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("1-stalls", "deletion_protection = true")))
	c.apply()
	if text, code := c.run("destroy", "-no-color", "-auto-approve"); code != 0 {
		t.Errorf("%s", text)
	}
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

func TestAccDestroy_waitsUntilTheServerIsGone(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.lingers[acmeEU] = true
	c.write(k.config(serverHCL("1", `timeouts = { delete = "50ms" }`)))
	c.apply()
	c.refused([]string{"Destroy server acme/eu: it is not gone yet", "The timeout passed", "apply again to wait for it"}, "destroy", "-no-color", "-auto-approve")
	if text, _ := c.run("state", "list"); !contains(text, "kura_server.acme") {
		t.Errorf("the state lost a server that is still there: %s", text)
	}
	k.mu.Lock()
	k.lingers[acmeEU] = false
	k.mu.Unlock()
	if err := k.turn(t.Context(), acmeEU); err != nil {
		t.Fatal(err)
	}
	// Gone already is success.
	if text, code := c.run("destroy", "-no-color", "-auto-approve"); code != 0 {
		t.Errorf("%s", text)
	}
}

// Ctrl-C ends the wait at once; what was declared stays, and nothing is tainted.
func TestAccCreate_interruptedKeepsTheServer(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config(serverHCL("1-slow")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, "apply", "-no-color", "-auto-approve")
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for cursor, created := "", false; !created; {
		change, err := k.api.WaitServer(ctx, acmeEU, cursor, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		cursor, created = change.Cursor, change.Server != nil && change.Server.Deployment.Status == fleet.DeploymentRunning
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // interrupted, so that it may well end with an error
	if text := flat(out.String()); !contains(text, "the wait was interrupted") {
		t.Errorf("%s", text)
	}
	k.stands(acmeEU, active)
	if text, changes := c.plan(); changes {
		t.Errorf("after it became ready by itself: %s", text)
	}
}

func TestAccData_showsServersAndTheFunctionTheirHosts(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	outputs := `
data "kura_server" "acme" {
  account    = "acme"
  region     = "eu"
  fresh      = true
  depends_on = [kura_server.acme]
}

data "kura_servers" "all" {
  region     = "eu"
  verdict    = "converged"
  depends_on = [kura_server.acme]
}

output "told" {
  value = join(" ", [
    data.kura_server.acme.status, data.kura_server.acme.verdict, tostring(data.kura_server.acme.active), data.kura_server.acme.serving_image_tag,
    data.kura_server.acme.published_url, data.kura_server.acme.deployments[0].status, tostring(length(data.kura_servers.all.servers)), data.kura_servers.all.servers[0].host,
  ])
}

output "host" {
  value = provider::kura::host(kura_host_template.public.pattern, { account_handle = kura_account.acme.id, cluster_id = kura_region.eu.name, environment = "staging" })
}
`
	c.write(k.config(serverHCL("1"), outputs))
	if text, _ := c.plan(); !contains(text, `+ host = "acme-eu-staging.kura.test"`) {
		t.Errorf("the first plan does not name the host: %s", text)
	}
	if text := c.apply(); !contains(text, `told = "active converged true 1 http://published.kura.test succeeded 1 acme-eu-staging.kura.test"`) {
		t.Errorf("%s", text)
	}
	if got := k.server("acme", "eu").Hosts.Public; got != "acme-eu-staging.kura.test" {
		t.Errorf("the daemon renders %s", got)
	}
	if text, changes := c.plan(); changes {
		t.Errorf("%s", text)
	}
	c.write(k.config("data \"kura_server\" \"x\" {\n  account = \"nobody\"\n  region = \"eu\"\n}\n"))
	c.refused([]string{"Read server nobody/eu", "does not exist"}, "plan", "-no-color")
}
