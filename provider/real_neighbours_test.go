//go:build real

package provider

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestAccAccount_isCreatedChangedImportedAndDestroyed(t *testing.T) {
	k := startKurad(t)
	account := func(more string) string {
		return k.provider("staging") + "resource \"kura_account\" \"acme\" {\n  id = \"acme\"\n  " + more + "\n}\n"
	}
	record := func(want fleet.Account) func() error {
		return func() error {
			got, err := k.api.GetAccount(t.Context(), "acme")
			if err != nil {
				return err
			}
			return differs("the account", want, got.Account)
		}
	}
	steps := []resource.TestStep{
		applies(account(""), "kura_account.acme", plancheck.ResourceActionCreate, record(fleet.Account{ID: "acme"})),
		applies(account("handle = \"Acme-Inc\"\n  labels = { tier = \"gold\" }"), "kura_account.acme", plancheck.ResourceActionUpdate,
			record(fleet.Account{ID: "acme", Handle: "Acme-Inc", Labels: map[string]string{"tier": "gold"}})),
	}
	steps = append(steps, imports("kura_account.acme", []string{"acme"})...)
	steps = append(steps, applies(account("labels = {}"), "kura_account.acme", plancheck.ResourceActionUpdate, record(fleet.Account{ID: "acme"})))
	run(t, k, steps...)
}

func TestAccHostTemplate_showsWhatFollowsFromThePatternInThePlan(t *testing.T) {
	k := startKurad(t)
	const address = "kura_host_template.public"
	template := func(pattern string) string {
		return k.provider("staging") + fmt.Sprintf("resource \"kura_host_template\" \"public\" {\n  name = \"public\"\n  pattern = %q\n}\n", pattern)
	}
	shows := func(zone, example string) []plancheck.PlanCheck {
		return []plancheck.PlanCheck{
			plancheck.ExpectKnownValue(address, tfjsonpath.New("env_suffix"), knownvalue.StringExact("-staging")),
			plancheck.ExpectKnownValue(address, tfjsonpath.New("zone"), knownvalue.StringExact(zone)),
			plancheck.ExpectKnownValue(address, tfjsonpath.New("example"), knownvalue.StringExact(example)),
		}
	}
	record := func(pattern string) func() error {
		return func() error {
			got, err := k.api.GetHostTemplate(t.Context(), "public")
			if err != nil {
				return err
			}
			return differs("the pattern", pattern, got.Pattern)
		}
	}
	first, second := "{account_handle}-{cluster_id}{env_suffix}.kura.test", "{account_handle}-{region}{env_suffix}.cache.test"
	steps := []resource.TestStep{
		applies(template(first), address, plancheck.ResourceActionCreate, record(first), shows("kura.test", "acme-eu-central-staging.kura.test")...),
		applies(template(second), address, plancheck.ResourceActionUpdate, record(second), shows("cache.test", "acme-eu-central-staging.cache.test")...),
	}
	run(t, k, append(steps, imports(address, []string{"public"})...)...)
}

const threeTemplates = `
resource "kura_host_template" "public" {
  name    = "public"
  pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.test"
}

resource "kura_host_template" "grpc" {
  name    = "grpc"
  pattern = "{account_handle}-{cluster_id}-grpc{env_suffix}.kura.test"
}

resource "kura_host_template" "global" {
  name    = "global"
  pattern = "{account_handle}{env_suffix}.kura.test"
}
`

// Every attribute of a container region, and the empty ones that the API cannot tell
// from none.
const fullRegion = `
resource "kura_region" "eu" {
  name                = "eu"
  display_name        = "Frankfurt"
  cluster_id          = "eu-1"
  hosts               = { public = kura_host_template.public.name, grpc = kura_host_template.grpc.name, global = kura_host_template.global.name }
  location            = { latitude = 50.11, longitude = -0.0012 }
  readiness           = { path = "/up", scheme = "http", port = 8443, timeout = "2s", global = "advisory" }
  dns                 = { mode = "none" }
  stall_after         = "900s"
  max_unsettled       = 3
  remediation         = "heal"
  paused              = false
  cordoned            = true
  labels              = { continent = "europe" }
  deletion_protection = false
  containers = {
    endpoint = "edge"
    pull     = "never"
    services = {
      cache = {
        image        = "localhost/cache:{image_tag}"
        command      = ["serve", "--name", "{instance}"]
        env          = { URL = "http://{public_host}:{port:http}", EMPTY = "" }
        env_from     = ["tracing"]
        volumes      = [{ name = "data", path = "/data", retain = true }, { host_path = "TLS", path = "/certs", read_only = true }]
        ports        = { http = { container = 8080, host = 18080, bind = "127.0.0.1", protocol = "tcp", endpoint = "public" }, grpc = { container = 9090, endpoint = "grpc" } }
        labels       = { "traefik.enable" = "true" }
        user         = "1000:1000"
        memory       = "256Mi"
        cpus         = 0.25
        stop_signal  = "SIGINT"
        grace_period = "90s"
      }
      side = { image = "localhost/side:1", command = [], env = {}, env_from = [], volumes = [], ports = {}, labels = {} }
    }
  }
}
`

func TestAccRegion_everyAttributeReadsAsItWasConfigured(t *testing.T) {
	k := startKurad(t)
	const address = "kura_region.eu"
	bare := k.provider("staging") + threeTemplates +
		"resource \"kura_region\" \"eu\" {\n  name = \"eu\"\n  cluster_id = \"eu-1\"\n  hosts = { public = kura_host_template.public.name }\n  %s\n  containers = { endpoint = \"edge\", services = { cache = { image = \"localhost/cache:{image_tag}\", ports = { http = { container = 8080, endpoint = \"public\" } } } } }\n}\n"
	record := func(check func(fleet.Region) error) func() error {
		return func() error {
			got, err := k.api.GetRegion(t.Context(), "eu")
			if err != nil {
				return err
			}
			return check(got.Region)
		}
	}
	wantBare := fleet.Region{Name: "eu", ClusterID: "eu-1", Hosts: fleet.RegionHosts{Public: "public"}, Containers: &fleet.Containers{Endpoint: "edge", Services: map[string]fleet.Service{
		"cache": {Image: "localhost/cache:{image_tag}", Ports: map[string]fleet.Port{"http": {Container: 8080, Endpoint: "public"}}},
	}}}
	steps := []resource.TestStep{applies(k.provider("staging")+threeTemplates+strings.Replace(fullRegion, "TLS", filepath.Dir(k.files.CA), 1), address, plancheck.ResourceActionCreate, record(func(r fleet.Region) error {
		return differs("what it takes", []any{"Frankfurt", 3, true, -0.0012, "SIGINT", 18080}, []any{r.DisplayName, r.MaxUnsettled, r.Cordoned, r.Location.Longitude, r.Containers.Services["cache"].StopSignal, r.Containers.Services["cache"].Ports["http"].Host})
	}))}
	// An import does not know the wording of stall_after nor what is empty and not absent.
	steps = append(steps, resource.TestStep{
		ResourceName: address, ImportState: true, ImportStateId: "eu", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
		ImportStateVerifyIgnore: []string{"stall_after", "containers"},
	})
	steps = append(steps, applies(fmt.Sprintf(bare, ""), address, plancheck.ResourceActionUpdate, record(func(r fleet.Region) error { return differs("the region", wantBare, r) })))
	steps = append(steps, imports(address, []string{"eu"})...)
	// Hollow objects mean nothing to the daemon, and stay as they are written.
	hollow := applies(fmt.Sprintf(bare, "readiness = {}\n  dns = {}\n  labels = {}"), address, plancheck.ResourceActionUpdate, record(func(r fleet.Region) error { return differs("the region", wantBare, r) }))
	run(t, k, append(steps, hollow)...)
}

// After an import the wording of a duration is the short one; a configuration that says
// the same otherwise is no change.
func TestAccRegion_aDurationInOtherWordsIsNoChangeAfterAnImport(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	region := k.config()
	c.write(region)
	c.apply()
	r, err := k.api.GetRegion(t.Context(), "eu")
	if err != nil {
		t.Fatal(err)
	}
	r.StallAfter = fleet.Duration(15 * 60 * 1e9)
	if _, err := k.api.PutRegion(t.Context(), r.Region, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, code := c.run("state", "rm", "kura_region.eu"); code != 0 {
		t.Fatal("state rm")
	}
	words := fmt.Sprintf("name      = %q\n  stall_after = \"900s\"", "eu")
	c.write(replaceOnce(t, region, "name      = \"eu\"", words) + "import {\n  to = kura_region.eu\n  id = \"eu\"\n}\n")
	if text, _ := c.plan(); !contains(text, "1 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("the import is a change: %s", text)
	}
}
