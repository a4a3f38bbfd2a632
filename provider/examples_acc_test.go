//go:build real

package provider

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

func TestAccExamples_areAppliedReadAndImportedAsTheyAre(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	resources := k.provider("staging") + example(t, "resources/*/resource.tf")
	c.write(resources)
	if text := c.apply(); !contains(text, "4 added") {
		t.Errorf("%s", text)
	}
	if text, changes := c.plan(); changes {
		t.Errorf("after the apply: %s", text)
	}
	c.write(resources + example(t, "data-sources/*/data-source.tf") + example(t, "functions/*/function.tf"))
	if text := c.apply(); !contains(text, `host = "acme-eu-central-staging.kura.example.dev"`, `preview_host = "acme-eu-central-preview.kura.example.dev"`) || contains(text, "Warning") {
		t.Errorf("%s", text)
	}
	for _, form := range []string{"import-by-string-id.tf", "import-by-identity.tf"} {
		other := &cli{t: t, binary: c.binary, dir: t.TempDir(), env: c.env}
		other.write(resources + example(t, "resources/*/"+form))
		// What an import cannot know is what only Terraform holds: a server's timeouts.
		if text, _ := other.plan(); !contains(text, "4 to import, 0 to add, 1 to change, 0 to destroy", "+ timeouts") {
			t.Errorf("%s: %s", form, text)
		}
	}
}

func TestAccExamples_theProviderBlockIsValid(t *testing.T) {
	c := newCLI(t)
	c.write(strings.Replace(example(t, "provider/provider.tf"), "kurafleet/kura", "hashicorp/kura", 1))
	if text, code := c.run("validate", "-no-color"); code != 0 {
		t.Errorf("%s", text)
	}
}
