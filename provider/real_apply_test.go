//go:build real

package provider

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A create that does not end in time is a warning: a taint would destroy what the daemon
// is still bringing up. Here the first version starts and does not answer, until it does.
func TestAccCreate_thatIsNotReadyInTimeIsAWarningAndNoTaint(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1-fail")
	for _, row := range []struct{ name, region, server, want string }{
		{"deadline", "", `timeouts = { create = "2s" }`, "Create server acme/eu: not ready yet"},
		{"stalled", `stall_after = "1s"`, "", "Create server acme/eu: it does not get ready"},
		{"paused", "", "paused = true", "Create server acme/eu: it is paused"},
		{"accepted", "", `wait_for = "accepted"`, "Apply complete"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(k.configWith(row.region, serverHCL("v1-fail", row.server)))
			if text := c.apply(); !contains(text, row.want, "Apply complete") {
				t.Errorf("%q is missing in: %s", row.want, text)
			}
			if row.name == "paused" {
				c.write(k.config(serverHCL("v1-fail", `wait_for = "accepted"`)))
				c.apply()
			}
			k.behave(acmeEU, "ok")
			if v := k.stands(acmeEU, fleet.VerdictConverged); v.Deployment.Seq != 1 {
				t.Errorf("it became ready with deployment %d", v.Deployment.Seq)
			}
			c.showsNothing()
			c.destroy()
		})
	}
}

// An update that does not end in time is a warning too: what serves goes on serving, and
// the next plan has nothing to change.
func TestAccUpdate_thatIsNotReadyInTimeIsAWarning(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2-fail")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	c.write(k.config(serverHCL("v2-fail", `timeouts = { update = "2s" }`)))
	if text := c.apply(); !contains(text, "Update server acme/eu: not ready yet", "kurad goes on", "kurad status acme/eu --watch", "a longer `timeouts` waits for it") {
		t.Errorf("%s", text)
	}
	if v := k.server("acme", "eu"); v.ServingImageTag != "v1" || v.Intent.ImageTag != "v2-fail" || v.Deployment.Seq != 2 || !v.Deployment.Status.Open() {
		t.Errorf("while it is in progress it is %s, deployment %+v", standing(v), v.Deployment)
	}
	k.answers503("v2-fail", fleet.VerdictProgressing)
	c.showsNothing()
	k.behave(acmeEU, "ok")
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != "v2-fail" || v.Deployment.Seq != 2 {
		t.Errorf("it serves %s with deployment %d", v.ServingImageTag, v.Deployment.Seq)
	}
	c.showsNothing()
	c.destroy()
}

func TestAccCreate_ofAServerThatExistsNamesTheImportBlock(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	c.write(k.config())
	c.apply()
	k.write(acmeEU, "v1")
	c.write(k.config(serverHCL("v1")))
	c.refused([]string{"Create server acme/eu: it exists already", "import {", "to = kura_server.this", `id = "acme/eu"`}, "apply", "-no-color", "-auto-approve")
	if text, _ := c.run("state", "list"); contains(text, "kura_server") {
		t.Errorf("the server of somebody else is in state: %s", text)
	}
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.Generation != 1 || v.Deployment.Seq != 1 {
		t.Errorf("it was written: generation %d, deployment %d", v.Generation, v.Deployment.Seq)
	}
	// The block, pasted, works, and changes nothing.
	for _, form := range []string{`id = "acme/eu"`, `id = "kura-acme-eu"`, `identity = { account = "acme", region = "eu" }`} {
		c.write(k.config(serverHCL("v1"), "import {\n  to = kura_server.acme\n  "+form+"\n}\n"))
		c.shows(true, []string{"1 to import, 0 to add, 0 to change, 0 to destroy"})
	}
	for id, want := range map[string]string{"acme/mars": `region "mars" does not exist`, "nobody/eu": "Cannot import non-existent remote object", "kura-nobody-eu": "no server's instance is called"} {
		c.write(k.config(serverHCL("v1"), "import {\n  to = kura_server.acme\n  id = \""+id+"\"\n}\n"))
		c.refused([]string{want}, "plan", "-no-color")
	}
	c.write(k.config(serverHCL("v1"), "import {\n  to = kura_server.acme\n  id = \"acme/eu\"\n}\n"))
	c.apply()
	c.showsNothing()
	c.destroy()
}

// An apply of a plan that was made before somebody else's write is refused.
func TestAccUpdate_ofAPlanThatIsOutOfDateIsRefused(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2", "v3")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	planned := func(version string) {
		c.write(k.config(serverHCL(version)))
		if text, code := c.run("plan", "-no-color", "-out", "tfplan"); code != 0 {
			t.Fatal(text)
		}
	}
	planned("v2")
	k.write(acmeEU, "v3")
	c.refused([]string{"Update server acme/eu", "generation", "Plan again"}, "apply", "-no-color", "tfplan")
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.Intent.ImageTag != "v3" {
		t.Errorf("the other one's version was overwritten by %s", v.Intent.ImageTag)
	}
	// The daemon's own work is no write: a plan outlives it.
	planned("v2")
	id := k.id(acmeEU)
	k.podman(t, "rm", "--force", "--time", "0", id)
	k.until(acmeEU, "recreated", func(v *fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictConverged && len(v.Containers) == 1 && v.Containers[0].ID != id
	})
	if text, code := c.run("apply", "-no-color", "tfplan"); code != 0 {
		t.Errorf("%s", text)
	}
	c.showsNothing()
	c.destroy()
}

func TestAccDestroy_protectedIsRefusedInThePlan(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v1-fail")
	// Nobody could use a server that was never active yet: it may always go.
	c.write(k.configWith(`stall_after = "1s"`, serverHCL("v1-fail", "deletion_protection = true")))
	c.apply()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}

	c.write(k.config(serverHCL("v1", "deletion_protection = true")))
	c.apply()
	c.refused([]string{"Server acme/eu is protected from deletion", "first apply `deletion_protection = false`"}, "plan", "-no-color", "-destroy")
	c.write(k.config())
	c.refused([]string{"Server acme/eu is protected from deletion"}, "plan", "-no-color")
	if k.server("acme", "eu").Intent.Deleting != nil {
		t.Error("planning asked for its destruction")
	}
	c.write(k.config(serverHCL("v1")))
	c.apply()
	c.write(k.config())
	c.apply()
	if v := k.server("acme", "eu"); v != nil {
		t.Errorf("it is still there: %s", standing(v))
	}
	c.destroy()
}

// A server that takes its time to stop is waited for; it is in state until it is gone.
func TestAccDestroy_waitsUntilTheServerIsGone(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1-ignoreterm")
	c.write(strings.Replace(k.config(serverHCL("v1-ignoreterm", `timeouts = { delete = "100ms" }`)), `grace_period = "2s"`, `grace_period = "5s"`, 1))
	c.apply()
	c.refused([]string{"Destroy server acme/eu: it is not gone yet", "The timeout passed", "apply again to wait for it"}, "destroy", "-no-color", "-auto-approve")
	if text, _ := c.run("state", "list"); !contains(text, "kura_server.acme") {
		t.Errorf("the state lost a server that is still there: %s", text)
	}
	k.gone(acmeEU)
	// Gone already is success.
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
	events, err := k.api.Events(t.Context(), api.EventFilter{Account: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	// C6: that it had to be killed is said.
	for _, e := range events {
		if contains(strings.ToLower(e.Message), "kill") {
			return
		}
	}
	t.Errorf("no event says that it was killed: %v", events)
}

// OpenTofu deletes before it updates what used the object. A template that an apply no
// longer needs goes in the same apply if it says create_before_destroy.
func TestAccDestroy_ofATemplateThatTheSameApplyEndsTheUseOf(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	other := func(lifecycle string) string {
		return "resource \"kura_host_template\" \"other\" {\n  name = \"other\"\n  pattern = \"{account_handle}-{region}-other{env_suffix}.kura.test\"\n  " + lifecycle + "\n}\n"
	}
	const order = "lifecycle { create_before_destroy = true }"
	c.write(k.provider("staging") + neighbours + other("") + k.region("eu", "other", ""))
	c.apply()
	c.write(k.config())
	c.refused([]string{"Delete host template \"other\"", "is still used by region \"eu\"", "apply that first", "create_before_destroy = true"}, "apply", "-no-color", "-auto-approve")
	// Set before the use ends, it is kept in state and orders the deletion.
	c.write(k.provider("staging") + neighbours + other(order) + k.region("eu", "other", ""))
	c.apply()
	c.write(k.config())
	c.apply()
	c.showsNothing()
	c.destroy()
}

func TestAccData_showsServersAndTheFunctionTheirHosts(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
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
    data.kura_server.acme.deployments[0].status, tostring(length(data.kura_servers.all.servers)), data.kura_servers.all.servers[0].host,
  ])
}

output "published" {
  value = data.kura_server.acme.published_url == kura_server.acme.url
}

output "host" {
  value = provider::kura::host(kura_host_template.public.pattern, { account_handle = kura_account.acme.id, cluster_id = kura_region.eu.name, environment = "staging" })
}
`
	c.write(k.config(serverHCL("v1"), outputs))
	c.shows(true, []string{`+ host = "acme-eu-staging.kura.test"`})
	if text := c.apply(); !contains(text, `told = "active converged true v1 succeeded 1 acme-eu-staging.kura.test"`, "published = true") {
		t.Errorf("%s", text)
	}
	if got := k.server("acme", "eu").Hosts.Public; got != "acme-eu-staging.kura.test" {
		t.Errorf("the daemon renders %s", got)
	}
	c.showsNothing()
	c.write(k.config(serverHCL("v1"), "data \"kura_server\" \"x\" {\n  account = \"nobody\"\n  region = \"eu\"\n}\n"))
	c.refused([]string{"Read server nobody/eu", "does not exist"}, "plan", "-no-color")
	c.write(k.config(serverHCL("v1")))
	c.destroy()
}
