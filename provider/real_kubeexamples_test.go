//go:build real

package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// another starts a further daemon of the cluster, with other flags.
func (c *kubeRig) another(flags ...string) *kurad {
	c.t.Helper()
	config, err := c.server.Kubeconfig(kubernetes.Kurad)
	if err != nil {
		c.t.Fatal(err)
	}
	k := &kurad{outside: theGround(c.t), t: c.t, data: c.t.TempDir(), kube: c}
	k.runtime = append([]string{"--kubeconfig", config}, flags...)
	return k.begin()
}

// examples copies a folder of examples to where the CLI works.
func (c *cli) examples(folder string) {
	c.t.Helper()
	if err := os.CopyFS(c.dir, os.DirFS(filepath.Join("..", "examples", folder))); err != nil {
		c.t.Fatal(err)
	}
	if out, code := c.run("init", "-no-color"); code != 0 {
		c.t.Fatalf("init: %s", out)
	}
}

// Two environments, three clusters: one configuration that talks to two daemons.
func TestAccExamples_aModulePerEnvironmentAndARegionPerClusterArePlanned(t *testing.T) {
	c := newInstalledCLI(t)
	rig := startKubeKurad(t, kubernetes.Options{}).kube
	staging := rig.another("--cluster", "staging-eu="+kubernetes.Context)
	production := rig.another("--environment", "production", "--cluster", "prod-eu="+kubernetes.Context, "--cluster", "prod-us="+kubernetes.Context)
	object := func(name, of1, of2 string) string {
		return fmt.Sprintf("TF_VAR_%s={staging=%q,production=%q}", name, of1, of2)
	}
	c.env = append(c.env, object("endpoints", staging.endpoint, production.endpoint),
		object("token_files", filepath.Join(staging.data, "token"), filepath.Join(production.data, "token")))
	c.examples("kubernetes")
	c.shows(true, []string{
		`"production/acme/us-east" = "acme-us-east.kura.example.dev"`, `"staging/umbra/eu-central" = "umbra-games-eu-central-staging.kura.example.dev"`,
		"15 to add",
	})
}

// The demo's configuration for Kubernetes, in a daemon that is set up as the demo's.
func TestAccExamples_theDemoOnKubernetesIsPlannedAppliedAndDestroyed(t *testing.T) {
	c := newInstalledCLI(t)
	rig := startKubeKurad(t, kubernetes.Options{}).kube
	k := rig.another("--environment", "demo", "--env-suffix", "-demo", "--cluster", "demo="+kubernetes.Context)
	c.env = append(c.env, envEndpoint+"="+k.endpoint, envTokenFile+"="+filepath.Join(k.data, "token"),
		"TF_VAR_zone=kura.test", "TF_VAR_image=registry.kura.test/kura/cache", "TF_VAR_port="+rig.port)
	c.examples("demo-kubernetes")
	c.shows(true, []string{`"acme/eu" = "acme-eu-central-demo.kura.test"`, `"umbra/us" = "umbra-us-east-demo.kura.test"`, "9 to add"})
	c.apply()
	c.showsNothing()
	answers := func(version string) {
		t.Helper()
		for _, host := range []string{"acme-eu-central", "acme-us-east", "umbra-eu-central", "umbra-us-east"} {
			if err := k.answersAt("https://"+host+"-demo.kura.test:"+rig.port, version); err != nil {
				t.Error(err)
			}
		}
	}
	answers("v1")
	c.env = append(c.env, "TF_VAR_image_tag=v2")
	c.shows(true, []string{"0 to add, 4 to change, 0 to destroy"}, "Warning")
	c.apply()
	c.showsNothing()
	answers("v2")
	c.destroy()
	if left := strings.TrimSpace(rig.left()); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
}
