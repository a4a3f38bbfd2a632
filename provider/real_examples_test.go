//go:build real

package provider

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// example returns the text of example files, one after the other.
func example(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "examples", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no example %s: %v", pattern, err)
	}
	var all []string
	for _, file := range slices.Sorted(slices.Values(files)) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return strings.Join(all, "\n")
}

// Nobody serves example.dev here, so the applies do not wait for what answers there; all
// else is as it stands in the files.
func TestAccExamples_areAppliedReadAndImportedAsTheyAre(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	const image = "registry.example.dev/kura/cache:1.4.2"
	if err := k.engine.TagImage(t.Context(), "localhost/kura-cache:v1", image); err != nil {
		t.Fatal(err)
	}
	block := replaceOnce(t, k.provider("staging"), "environment =", "wait_for    = \"accepted\"\n  environment =")
	resources := block + example(t, "resources/*/resource.tf")
	c.write(resources)
	if text := c.apply(); !contains(text, "5 added") {
		t.Errorf("%s", text)
	}
	c.showsNothing()
	key := fleet.ServerKey{Account: "acme", Region: "eu-central"}
	if v := k.until(key, "runs", func(v *fleet.ServerView) bool {
		return v.ObservedImageTag == "1.4.2" && v.Reason == fleet.ReasonEndpointNotReady
	}); v.Verdict != fleet.VerdictProgressing {
		t.Errorf("the example is %s", standing(v))
	}
	c.write(resources + example(t, "data-sources/*/data-source.tf") + example(t, "functions/*/function.tf"))
	if text := c.apply(); !contains(text, `host = "acme-eu-central-staging.kura.example.dev"`, `preview_host = "acme-eu-central-preview.kura.example.dev"`, "Check block assertion failed", "acme in eu-central is progressing: EndpointNotReady") {
		t.Errorf("%s", text)
	}
	for _, form := range []string{"import-by-string-id.tf", "import-by-identity.tf"} {
		other := &cli{t: t, binary: c.binary, dir: t.TempDir(), env: c.env}
		other.write(resources + example(t, "resources/*/"+form))
		// What an import cannot know is what only Terraform holds: a server's timeouts.
		other.shows(true, []string{"5 to import, 0 to add, 1 to change, 0 to destroy", "+ timeouts"})
	}
	c.destroy()
}

// The demo's configuration, in which the endpoint has another name and the connection
// comes from the environment.
func TestAccExamples_theDemoIsPlannedAppliedAndDestroyed(t *testing.T) {
	zones, err := cloudflare.New(cloudflare.Options{Zones: []cloudflare.Zone{{Name: "kura.test"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := zones.Close(); err != nil {
			t.Error(err)
		}
	})
	given, err := zones.Give(t.TempDir(), "kura.test", "kurad")
	if err != nil {
		t.Fatal(err)
	}
	k, c := startKurad(t, given...), newCLI(t)
	k.image(t, "v1", "v2")
	t.Setenv(envEndpoint, k.endpoint)
	t.Setenv(envTokenFile, filepath.Join(k.data, "token"))
	c.env = append(c.env, "TF_VAR_tls_dir="+filepath.Dir(k.files.CA))
	c.write(replaceOnce(t, replaceOnce(t, example(t, "demo/*.tf"), "kurafleet/kura", "hashicorp/kura"), `"local"`, `"edge"`))
	c.shows(true, []string{`"acme/eu" = "acme-eu-central-staging.kura.test"`, `"umbra/us" = "umbra-us-east-staging.kura.test"`, "9 to add"})
	c.apply()
	c.showsNothing()
	for _, key := range []fleet.ServerKey{{Account: "acme", Region: "eu"}, {Account: "acme", Region: "us"}, {Account: "umbra", Region: "eu"}, {Account: "umbra", Region: "us"}} {
		if err := k.answers(key, "v1"); err != nil {
			t.Error(err)
		}
	}
	c.env = append(c.env, "TF_VAR_image_tag=v2")
	c.shows(true, []string{"0 to add, 4 to change, 0 to destroy"}, "Warning")
	c.apply()
	c.showsNothing()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
	if left := zones.Table(); left != "" {
		t.Errorf("the zone still has:\n%s", left)
	}
}

// As people have it: the built program, found in a mirror on either CLI's own host, and
// the address that the examples name.
func TestAccExamples_theProgramIsInstalledFromAMirrorAndApplies(t *testing.T) {
	k, c := startKurad(t), newInstalledCLI(t)
	c.write(strings.ReplaceAll(k.config(), "hashicorp/kura", "kurafleet/kura"))
	if text, _ := c.run("providers"); !contains(text, "provider["+mirrorHost()+"/kurafleet/kura]") {
		t.Errorf("%s", text)
	}
	if text := c.apply(); !contains(text, "3 added") {
		t.Errorf("%s", text)
	}
	c.showsNothing()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

// mirrorHost is the registry that the CLI under test takes for a source without a host.
func mirrorHost() string { return strings.TrimSuffix(providerAddress(), "/hashicorp/kura") }

// newInstalledCLI is a working directory in which init finds the built program. Unlike that
// of newCLI it can be configured several times, by aliases.
func newInstalledCLI(t *testing.T) *cli {
	t.Helper()
	host, mirror := mirrorHost(), t.TempDir()
	at := filepath.Join(mirror, host, "kurafleet", "kura", "0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(at, "terraform-provider-kura_v0.1.0"), "..").CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v: %s", err, out)
	}
	config := filepath.Join(t.TempDir(), "cli.tfrc")
	if err := os.WriteFile(config, fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cli{t: t, binary: requireCLI(t), dir: t.TempDir()}
	c.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+config, "TF_IN_AUTOMATION=1", "TF_INPUT=0")
	return c
}

func TestAccExamples_theProviderBlockIsValid(t *testing.T) {
	c := newCLI(t)
	c.write(strings.Replace(example(t, "provider/provider.tf"), "kurafleet/kura", "hashicorp/kura", 1))
	if text, code := c.run("validate", "-no-color"); code != 0 {
		t.Errorf("%s", text)
	}
}
