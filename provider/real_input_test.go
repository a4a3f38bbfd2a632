//go:build real

package provider

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Bad input: each is refused with an error that names the attribute, the reason and
// what to do, as early as it can be known, and nothing is written.
func TestAccBadInput_namesTheAttributeTheReasonAndTheNextStep(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	template := func(pattern string) string {
		return k.provider("staging") + fmt.Sprintf("resource \"kura_host_template\" \"bad\" {\n  name    = \"bad\"\n  pattern = %q\n}\n", pattern)
	}
	region := func(more string) string {
		return k.provider("staging") + "resource \"kura_region\" \"bad\" {\n  name  = \"bad\"\n  hosts = { public = \"public\" }\n" + more + "\n}\n"
	}
	service := func(more string) string {
		return region("  containers = {\n    endpoint = \"edge\"\n    services = { cache = { image = \"localhost/cache:{image_tag}\", ports = { http = { container = 8080, endpoint = \"public\" } }" + more + " } }\n  }")
	}
	for _, row := range []struct {
		name    string
		config  string
		command string // the earliest that can know
		want    []string
	}{
		{"template without {env_suffix}", template("{account_handle}.kura.test"), "validate", []string{"pattern is not accepted", "pattern = ", "olds no {env_suffix}", "at the end of the first label"}},
		{"{env_suffix} in the second label", template("{account_handle}.x{env_suffix}.kura.test"), "validate", []string{"pattern is not accepted", "behind the first label"}},
		{"{env_suffix} not at the end", template("{env_suffix}-{account_handle}.kura.test"), "validate", []string{"pattern is not accepted", "write it at the label's end"}},
		{"label that reads like another environment's", template("{account_handle}-canary{env_suffix}.kura.test"), "plan", []string{"pattern is not accepted", `environment "canary"`}},
		{"a tag with a space", k.config(serverHCL("1 2")), "validate", []string{"image_tag is not accepted", `image_tag = "1 2"`}},
		{"a digest for a tag", k.config(serverHCL("sha256:abc")), "validate", []string{"image_tag is not accepted"}},
		{"a region with two runtimes", strings.Replace(service(""), "  containers", "  kubernetes = { cluster = \"prod\", image = \"localhost/cache\" }\n  containers", 1), "validate", []string{"containers is not accepted", "exactly one runtime, so remove one"}},
		{"a region without a runtime", region(""), "validate", []string{"containers is not accepted", "exactly one runtime"}},
		{"an unknown endpoint", strings.Replace(service(""), "\"edge\"", "\"moon\"", 1), "plan", []string{"containers/endpoint is not accepted", `no container endpoint named "moon"`, "it has: edge", "--container-endpoint moon="}},
		{"a cluster that this daemon was not given", region("  kubernetes = { cluster = \"prod\", image = \"localhost/cache:{image_tag}\" }"), "plan", []string{"kubernetes/cluster is not accepted", `this kurad was given no cluster named "prod"`}},
		{"a host path outside of the allowed ones", service(`, volumes = [{ host_path = "/etc", path = "/data" }]`), "plan", []string{"volumes/0/host_path is not accepted", "is not below an allowed folder", "allowed on endpoint \"edge\"", filepath.Dir(k.files.CA)}},
		{"variables that this daemon was not given", service(`, env_from = ["secrets"]`), "plan", []string{"env_from/0 is not accepted", `no variable set named "secrets"`, "known: tracing"}},
		{"an unknown token in an image", strings.Replace(service(""), "{image_tag}", "{version}", 1), "validate", []string{"services/cache/image is not accepted", "version"}},
		{"an unheard-of argument", region("  privileged = true"), "validate", []string{"privileged"}},
		{"a duration without a unit", strings.Replace(service(""), "  containers", "  stall_after = \"15\"\n  containers", 1), "validate", []string{"Not a duration", `stall_after = "15"`}},
		{"an account id with a capital", k.provider("staging") + "resource \"kura_account\" \"bad\" {\n  id = \"Acme\"\n}\n", "validate", []string{"id is not accepted", "Acme"}},
		{"a null variable", service(", env = { A = null }"), "validate", []string{"env", "null"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(row.config)
			c.refused(append(row.want, "Error:"), row.command, "-no-color")
		})
	}
	if err := k.nothingLeft(); err != nil {
		t.Errorf("bad input was written: %v", err)
	}
}

// What only the daemon knows is refused by the apply, at the attribute, too.
func TestAccBadInput_whatOnlyTheDaemonKnows(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	account := func(id, more string) string {
		return fmt.Sprintf("resource \"kura_account\" %q {\n  id = %q\n  %s\n}\n", id, id, more)
	}
	server := func(name, account, region string) string {
		return fmt.Sprintf("resource \"kura_server\" %q {\n  account   = %s\n  region    = %s\n  image_tag = \"v1\"\n}\n", name, account, region)
	}
	secondRegion := "resource \"kura_host_template\" \"by_region\" {\n  name = \"by-region\"\n  pattern = \"{account_handle}-{region}{env_suffix}.kura.test\"\n}\n" +
		"resource \"kura_region\" \"copy\" {\n  name = \"copy\"\n  cluster_id = \"eu\"\n  hosts = { public = kura_host_template.by_region.name }\n  containers = kura_region.eu.containers\n}\n"
	bareRegion := "resource \"kura_host_template\" \"bare\" {\n  name = \"bare\"\n  pattern = \"{account_handle}{env_suffix}.kura.test\"\n}\n" +
		"resource \"kura_region\" \"bare\" {\n  name = \"bare\"\n  hosts = { public = kura_host_template.bare.name }\n  containers = kura_region.eu.containers\n}\n"
	long := strings.Repeat("a", 60)
	for _, row := range []struct {
		name, more string
		want       []string
	}{
		{"unknown account", server("x", `"nobody"`, `"eu"`), []string{"Create server nobody/eu: account is not accepted", `account "nobody" does not exist`, "kura_account"}},
		{"unknown region", server("x", `"acme"`, `"mars"`), []string{"Create server acme/mars: region is not accepted", `region "mars" does not exist`, "kura_region"}},
		{"two servers on one host", bareRegion + account("other", "handle = \"acme-eu\"") + server("x", "kura_account.other.id", "kura_region.bare.name"), []string{"acme-eu-staging.kura.test", "server acme/eu", "other/bare"}},
		{"another account's id as handle", account("other", "handle = \"acme\""), []string{`account "acme" has the name "acme" as its id or handle`}},
		{"two servers on one instance name", secondRegion + server("x", `"acme"`, "kura_region.copy.name"), []string{"kura-acme-eu", "server acme/eu"}},
		{"a label over 63", account("long", fmt.Sprintf("handle = %q", long)) + server("x", "kura_account.long.id", `"eu"`), []string{"Create server long/eu", "at most 63"}},
		{"a host that ends in another environment's suffix", bareRegion +
			account("twin", "handle = \"acme-canary\"") + server("x", "kura_account.twin.id", "kura_region.bare.name"), []string{"Create server twin/bare", `environment "canary"`}},
		{"unknown template", "resource \"kura_region\" \"x\" {\n  name = \"x\"\n  hosts = { public = \"nowhere\" }\n  containers = kura_region.eu.containers\n}\n", []string{`Create region "x": hosts/public is not accepted`, "nowhere"}},
		{"a service that the region does not have", account("bravo", "") + "resource \"kura_server\" \"x\" {\n  account = kura_account.bravo.id\n  region = \"eu\"\n  image_tag = \"v1\"\n  overrides = { containers = { services = { cahce = { memory = \"1Gi\" } } } }\n}\n",
			[]string{"overrides/containers/services/cahce is not accepted", "correct the name"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(k.config(serverHCL("v1"), row.more))
			c.refused(row.want, "apply", "-no-color", "-auto-approve")
		})
	}
	c.write(k.config(serverHCL("v1")))
	c.apply()
	c.showsNothing()
	c.destroy()
}

func TestAccProvider_aDaemonOfAnotherEnvironmentIsNeitherReadNorWritten(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.provider("production") + neighbours + k.region("eu", "public", ""))
	want := []string{"The daemon serves another environment", `environment = "production"`, "Nothing was read or written", "KURA_ENVIRONMENT"}
	c.refused(want, "plan", "-no-color")
	c.refused(want, "apply", "-no-color", "-auto-approve")
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
	// A resource that is in state is not taken for gone either.
	c.write(k.config())
	c.apply()
	c.write(k.provider("production") + neighbours + k.region("eu", "public", ""))
	c.refused(want, "plan", "-no-color")
}

func TestAccProvider_saysWhatIsWrongWithTheConnection(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	revoked := k.newToken("revoked", fleet.ScopeWrite, 0)
	if err := k.api.RevokeToken(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	expired := k.newToken("expired", fleet.ScopeWrite, time.Second)
	reader := k.newToken("reader", fleet.ScopeRead, 0)
	k.eventually("the token expires", func() (bool, string) {
		return time.Now().After(*expired.ExpiresAt), expired.ExpiresAt.String()
	})
	good := k.config()
	for _, row := range []struct {
		name, config, command string
		want                  []string
	}{
		{"wrong token", strings.Replace(good, k.token, "kura_aaaaaaaa_bbbb", 1), "plan", []string{"The daemon refused the token", "token_file"}},
		{"revoked token", strings.Replace(good, k.token, revoked.Token.Reveal(), 1), "plan", []string{"The daemon refused the token", "revoked"}},
		{"expired token", strings.Replace(good, k.token, expired.Token.Reveal(), 1), "plan", []string{"The daemon refused the token", `token "expired" expired at`, "kurad token create"}},
		{"no environment", strings.Replace(good, `environment = "staging"`, "", 1), "plan", []string{"No environment", "KURA_ENVIRONMENT"}},
		{"no token", strings.Replace(good, fmt.Sprintf("token       = %q", k.token), "", 1), "plan", []string{"No token", "kurad token create"}},
		{"token in two places", strings.Replace(good, "environment = \"staging\"", "environment = \"staging\"\n  token_file = \"/x\"", 1), "validate", []string{"token_file"}},
		{"read scope applies nothing", strings.Replace(good, k.token, reader.Token.Reveal(), 1), "apply", []string{"Create account \"acme\"", "kurad token create --scope write"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(row.config)
			args := []string{row.command, "-no-color"}
			if row.command == "apply" {
				args = append(args, "-auto-approve")
			}
			c.refused(row.want, args...)
		})
	}
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
	t.Run("read scope plans", func(t *testing.T) {
		c.write(strings.Replace(good, k.token, reader.Token.Reveal(), 1))
		if text, changes := c.plan(); !changes || !contains(text, "3 to add") {
			t.Errorf("%s", text)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		c := c.in(t)
		c.write(good)
		c.apply()
		c.write(strings.Replace(good, k.endpoint, "http://127.0.0.1:1", 1))
		c.refused([]string{"Read account \"acme\"", "http://127.0.0.1:1", "does not answer", "is it running"}, "plan", "-no-color")
		if text, code := c.run("state", "list"); code != 0 || !contains(text, "kura_account.acme", "kura_region.eu") {
			t.Errorf("state lost what nobody said is gone: %s", text)
		}
	})
}

func TestAccRegion_whatAChangeMeansIsSaidInThePlan(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	c.write(k.config(serverHCL("v1")))
	c.apply()
	renamed := func(from, to string) string {
		return strings.Replace(k.config(serverHCL("v1")), from, to, 1)
	}
	t.Run("another cluster id while servers exist", func(t *testing.T) {
		c := c.in(t)
		c.write(renamed("name      = \"eu\"", "name      = \"eu\"\n  cluster_id = \"other\""))
		c.refused([]string{`Plan the change of region "eu"`, "cluster_id", "is not accepted"}, "plan", "-no-color")
	})
	for _, row := range []struct {
		name, from, to string
		want           []string
	}{
		{"another image replaces servers", "localhost/kura-cache:{image_tag}", "localhost/other:{image_tag}", []string{"servers will be replaced or re-applied"}},
		{"another handle moves hosts", "  id = \"acme\"", "  id = \"acme\"\n  handle = \"acme-inc\"", []string{`Plan the change of account "acme": hosts will move`, "acme-eu-staging.kura.test", "acme-inc-eu-staging.kura.test"}},
		{"another pattern moves hosts", "{account_handle}-{cluster_id}", "cache-{account_handle}-{cluster_id}", []string{`Plan the change of host template "public": hosts will move`, "cache-acme-eu-staging.kura.test"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(renamed(row.from, row.to))
			text, changes := c.plan()
			if !changes || !contains(text, append(row.want, "Warning:")...) {
				t.Errorf("changes %v, want %q in: %s", changes, row.want, text)
			}
		})
	}
	if _, err := k.api.GetAccount(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	got, err := k.api.GetRegion(t.Context(), "eu")
	if err != nil || got.Generation != 1 {
		t.Errorf("planning wrote the region: generation %d, %v", got.Generation, err)
	}
	c.write(k.config(serverHCL("v1")))
	c.destroy()
}
