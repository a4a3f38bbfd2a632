//go:build real

package provider

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A data directory that is lost takes the declarations with it and nothing else: the same
// HCL applied again takes the containers up as they are.
func TestAccLostData_theSameConfigurationAdoptsWhatRuns(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	before := k.stands(acmeEU, fleet.VerdictConverged)

	lost := k.token
	k.kill()
	if err := os.RemoveAll(k.data); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(k.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := k.answersAt(before.PublishedURL, "v1"); err != nil {
		t.Errorf("while there is no kurad: %v", err)
	}
	k.again()
	k.login()
	c.write(k.config(serverHCL("v1"))) // the new store has another token, and nothing else differs
	text, changes := c.plan()
	if !changes || !contains(text, "kura_server.acme will be created", "kura_region.eu will be created") {
		t.Errorf("the plan says:\n%s", text)
	}
	c.apply()
	after := k.stands(acmeEU, fleet.VerdictConverged)
	was, is := before.Containers[0], after.Containers[0]
	if len(after.Containers) != 1 || is.ID != was.ID || after.PublishedURL != before.PublishedURL {
		t.Errorf("container %.12s at %s, was %.12s at %s", is.ID, after.PublishedURL, was.ID, before.PublishedURL)
	}
	c.showsNothing()
	state, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil || !contains(string(state), "kura_server") || contains(string(state), k.token) || contains(string(state), lost) {
		t.Errorf("the state is not one, or holds a token: %v\n%s", err, state)
	}
	c.destroy()
}
