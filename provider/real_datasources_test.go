//go:build real

package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// everyDataSource reads all of them, of a fleet that the same configuration declares.
const everyDataSource = `
resource "kura_account" "bravo" {
  id     = "bravo"
  handle = "bravo-inc"
  labels = { tier = "gold" }
}

data "kura_account" "bravo" {
  id = kura_account.bravo.id
}

data "kura_accounts" "all" {
  depends_on = [kura_account.acme, kura_account.bravo]
}

data "kura_accounts" "gold" {
  labels     = { tier = "gold" }
  depends_on = [kura_account.acme, kura_account.bravo]
}

data "kura_host_template" "public" {
  name = kura_host_template.public.name
}

data "kura_host_templates" "here" {
  zone       = kura_host_template.public.zone
  depends_on = [kura_host_template.public]
}

data "kura_host_templates" "elsewhere" {
  zone       = "example.dev"
  depends_on = [kura_host_template.public]
}

data "kura_region" "eu" {
  name = kura_region.eu.name
}

data "kura_regions" "containers" {
  runtime    = "containers"
  depends_on = [kura_region.eu]
}

data "kura_regions" "kubernetes" {
  runtime    = "kubernetes"
  depends_on = [kura_region.eu]
}

data "kura_server" "acme" {
  account    = kura_server.acme.account
  region     = kura_server.acme.region
  depends_on = [kura_server.acme]
}

data "kura_servers" "all" {
  depends_on = [kura_server.acme]
}

data "kura_cache_endpoints" "acme" {
  account    = kura_account.acme.id
  depends_on = [kura_server.acme, kura_cache_endpoint.this]
}

data "kura_cache_endpoints" "servers" {
  account    = kura_account.acme.id
  region     = kura_region.eu.name
  technology = "kura"
  depends_on = [kura_server.acme, kura_cache_endpoint.this]
}

data "kura_fleet" "all" {
  depends_on = [kura_server.acme]
}

data "kura_fleet" "nowhere" {
  region     = "nowhere"
  depends_on = [kura_server.acme]
}

data "kura_version" "this" {}

check "fleet" {
  assert {
    condition     = data.kura_fleet.all.by_verdict["converged"] == data.kura_fleet.all.servers
    error_message = "of ${data.kura_fleet.all.servers} servers, ${data.kura_fleet.all.by_verdict["converged"]} are converged"
  }
}

output "account" { value = data.kura_account.bravo }
output "accounts" { value = [for a in data.kura_accounts.all.accounts : a.id] }
output "gold" { value = [for a in data.kura_accounts.gold.accounts : a.id] }
output "template" { value = data.kura_host_template.public }
output "templates" { value = [data.kura_host_templates.here.host_templates[0].name, length(data.kura_host_templates.elsewhere.host_templates)] }
output "region" { value = data.kura_region.eu }
output "regions" { value = [data.kura_regions.containers.regions[0].name, length(data.kura_regions.kubernetes.regions)] }
output "server" { value = [data.kura_server.acme.verdict, data.kura_servers.all.servers[0].verdict] }
output "endpoints" { value = data.kura_cache_endpoints.acme.endpoints }
output "own" { value = length(data.kura_cache_endpoints.servers.endpoints) }
output "fleet" { value = data.kura_fleet.all }
output "nowhere" { value = data.kura_fleet.nowhere.servers }
output "version" { value = data.kura_version.this }
`

// outputs returns what the last apply put out.
func (c *cli) outputs() map[string]struct{ Value any } {
	c.t.Helper()
	text, code := c.run("output", "-json", "-no-color")
	out := map[string]struct{ Value any }{}
	if err := json.Unmarshal([]byte(text), &out); code != 0 || err != nil {
		c.t.Fatalf("output: %v %s", err, text)
	}
	return out
}

func TestAccDataSources_tellWhatIsDeclaredAndWhatIsThere(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	var down atomic.Bool
	declared := k.secureServer(t, "other.kura.test", func() int {
		if down.Load() {
			return 503
		}
		return 401 // it answers, though not to a stranger
	})
	// Its host lies in another zone than the template's, or it would have to bear the suffix.
	zone := "{account_handle}-{cluster_id}{env_suffix}.kura.test"
	if !strings.Contains(neighbours, zone) {
		t.Fatal("the template has another zone")
	}
	declared = strings.Replace(declared, "other.kura.test", "other-staging.kura.test", 1)
	config := k.config(serverHCL("v1"), endpointHCL(declared, ""), everyDataSource)
	c.write(config)
	if text := c.apply(); contains(text, "Check block assertion failed") {
		t.Errorf("%s", text)
	}
	c.showsNothing()
	k.eventually("the declared endpoint answers", func() (bool, string) {
		all, err := k.api.Resolve(t.Context(), "acme")
		return err == nil && len(all) == 2 && all[0].Ready && all[1].Ready, fmt.Sprint(all, err)
	})
	if text, code := c.run("apply", "-no-color", "-auto-approve"); code != 0 {
		t.Fatal(text)
	}
	url := k.server("acme", "eu").PublishedURL
	none := map[string]any{}
	want := map[string]any{
		"account":   map[string]any{"id": "bravo", "handle": "bravo-inc", "labels": map[string]any{"tier": "gold"}, "deletion_protection": false, "generation": 1.0},
		"accounts":  []any{"acme", "bravo"},
		"gold":      []any{"bravo"},
		"template":  map[string]any{"name": "public", "pattern": zone, "env_suffix": "-staging", "zone": "kura.test", "example": "acme-eu-central-staging.kura.test"},
		"templates": []any{"public", 0.0},
		"region": map[string]any{
			"name": "eu", "display_name": nil, "cluster_id": "eu", "hosts": map[string]any{"public": "public", "grpc": nil, "global": nil}, "location": nil,
			"runtime": "containers", "target": "edge", "stall_after": "15m", "max_unsettled": 10.0, "remediation": "heal", "paused": false, "cordoned": false,
			"labels": none, "deletion_protection": false, "generation": 1.0,
		},
		"regions": []any{"eu", 0.0},
		"server":  []any{"converged", "converged"},
		"endpoints": []any{
			map[string]any{"url": url, "technology": "kura", "region": "eu", "ready": true},
			map[string]any{"url": declared, "technology": "default", "region": nil, "ready": true},
		},
		"own": 1.0,
		"fleet": map[string]any{
			"account": nil, "region": nil, "labels": nil, "servers": 1.0,
			"by_verdict": map[string]any{"converged": 1.0, "progressing": 0.0, "held": 0.0, "stalled": 0.0, "failed": 0.0, "unobserved": 0.0, "destroying": 0.0, "drifted": 0.0, "absent": 0.0},
			"by_version": map[string]any{"v1": 1.0}, "by_declared_version": map[string]any{"v1": 1.0}, "by_region": map[string]any{"eu": 1.0},
		},
		"nowhere": 0.0,
		"version": map[string]any{
			"environment": "staging", "suffix": "-staging", "suffixes": map[string]any{"production": "", "staging": "-staging", "canary": "-canary"},
			"version": "dev", "api_version": api.APIVersion, "runtimes": []any{"containers", "kubernetes"}, "container_endpoints": []any{"edge"}, "clusters": []any{}, "dns_modes": []any{"none"}, "zones": []any{},
		},
	}
	got := map[string]any{}
	for name, o := range c.outputs() {
		got[name] = o.Value
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("outputs (-want +got):\n%s", d)
	}

	// What does not answer goes behind what does, and the check says what is not converged.
	down.Store(true)
	k.eventually("the declared endpoint is behind", func() (bool, string) {
		all, err := k.api.Resolve(t.Context(), "acme")
		return err == nil && len(all) == 2 && all[0].Technology == "kura" && !all[1].Ready, fmt.Sprint(all, err)
	})
	k.loseImage(t, "v2")
	k.write(acmeEU, "v2")
	k.until(acmeEU, "fails", func(v *fleet.ServerView) bool { return v != nil && v.Verdict == fleet.VerdictFailed })
	// With depends_on, core would read it only after the change that heals the server.
	c.write(replaceOnce(t, config, "\"all\" {\n  depends_on = [kura_server.acme]\n}\n\ndata \"kura_fleet\" \"nowhere\"", "\"all\" {}\n\ndata \"kura_fleet\" \"nowhere\""))
	text, _ := c.run("plan", "-no-color")
	if !contains(text, "Check block assertion failed", "of 1 servers, 0 are converged") {
		t.Errorf("%s", text)
	}
	k.image(t, "v2")
	c.destroy()
}

func TestAccDataSources_sayWhatIsNotThere(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	for config, want := range map[string]string{
		"data \"kura_account\" \"x\" {\n  id = \"nobody\"\n}\n":              `account "nobody" does not exist`,
		"data \"kura_host_template\" \"x\" {\n  name = \"nothing\"\n}\n":     `host template "nothing" does not exist`,
		"data \"kura_region\" \"x\" {\n  name = \"nowhere\"\n}\n":            `region "nowhere" does not exist`,
		"data \"kura_cache_endpoints\" \"x\" {\n  account = \"nobody\"\n}\n": `account "nobody" does not exist`,
		"data \"kura_regions\" \"x\" {\n  runtime = \"jails\"\n}\n":          "containers",
		"data \"kura_fleet\" \"x\" {\n  account = \"\"\n}\n":                 "at least 1",
	} {
		c.write(k.provider("staging") + config)
		c.refused([]string{"Error:", want}, "plan", "-no-color")
	}
}
