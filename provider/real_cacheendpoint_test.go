//go:build real

package provider

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// endpointHCL is a declared endpoint of acme.
func endpointHCL(url, more string) string {
	return fmt.Sprintf("resource \"kura_cache_endpoint\" \"this\" {\n  account = kura_account.acme.id\n  url     = %q\n  %s\n}\n", url, more)
}

// endpoints returns the daemon's own records.
func (k *kurad) endpoints() []string {
	k.t.Helper()
	all, err := k.api.ListCacheEndpoints(k.t.Context(), api.CacheEndpointFilter{})
	if err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.String())
	}
	slices.Sort(names)
	return names
}

func TestAccCacheEndpoint_isCreatedReplacedImportedAndDestroyed(t *testing.T) {
	k := startKurad(t)
	const address, first, second = "kura_cache_endpoint.this", "https://cache.example.dev", "https://cache.example.dev:8443/bazel"
	config := func(url, more string) string { return k.provider("staging") + neighbours + endpointHCL(url, more) }
	record := func(want ...string) func() error {
		return func() error { return differs("the endpoints", want, k.endpoints()) }
	}
	technology := func(want string) plancheck.PlanCheck {
		return plancheck.ExpectKnownValue(address, tfjsonpath.New("technology"), knownvalue.StringExact(want))
	}
	steps := []resource.TestStep{
		applies(config(first, ""), address, plancheck.ResourceActionCreate, record("acme/default/"+first), technology("default")),
		applies(config(second, ""), address, plancheck.ResourceActionDestroyBeforeCreate, record("acme/default/"+second), technology("default")),
		applies(config(second, `technology = "bazel"`), address, plancheck.ResourceActionDestroyBeforeCreate, record("acme/bazel/"+second), technology("bazel")),
	}
	const id = "acme/bazel/" + second
	steps = append(steps,
		resource.TestStep{ResourceName: address, ImportState: true, ImportStateId: id, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "url"},
		resource.TestStep{
			ResourceName: address, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateId: id,
			ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop)}},
		},
		resource.TestStep{
			ResourceName: address, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
			ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop)}},
		},
	)
	run(t, k, steps...)
}

// A url of another environment is refused by the plan, at its attribute, before the
// account that it is for is there; so is one that replaces another.
func TestAccCacheEndpoint_H9_aStaleURLIsRefusedByThePlan(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	const stale = "https://acme-eu.kura.test"
	why := []string{"url is not accepted", `url = "` + stale + `"`, `host "acme-eu.kura.test" is stale in environment "staging"`, `zone "kura.test" of host template "public"`, `"-staging"`}
	template := strings.SplitN(neighbours, "resource \"kura_host_template\"", 2)[1]
	c.write(k.provider("staging") + "resource \"kura_host_template\"" + template)
	c.apply()
	c.write(k.provider("staging") + neighbours + endpointHCL(stale, ""))
	c.refused(why, "plan", "-no-color")
	c.write(k.provider("staging") + neighbours + endpointHCL("https://acme-eu-staging.kura.test", ""))
	c.apply()
	c.showsNothing()
	c.write(k.provider("staging") + neighbours + endpointHCL(stale, ""))
	c.refused(why, "plan", "-no-color")
	if got := k.endpoints(); len(got) != 1 {
		t.Errorf("the daemon has %v", got)
	}
	c.write(k.provider("staging") + neighbours)
	c.destroy()
}

func TestAccCacheEndpoint_whatIsWrongIsSaidAsEarlyAsItCanBeKnown(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	for _, row := range []struct {
		name, url, more, command string
		want                     []string
	}{
		{"http", "http://cache.example.dev", "", "validate", []string{"url is not accepted", "is not an https url"}},
		{"a password", "https://u:p@cache.example.dev", "", "validate", []string{"url is not accepted", "holds a user name or password"}},
		{"a slash at the end", "https://cache.example.dev/", "", "validate", []string{"url is not accepted", `write "https://cache.example.dev"`}},
		{"the daemon's own technology", "https://cache.example.dev", `technology = "kura"`, "validate", []string{"technology is not accepted", "derives from its servers"}},
		// The zone becomes known in the very apply, which then says the same.
		{"a zone that comes with the same apply", "https://acme.kura.test", "depends_on = [kura_host_template.public]", "apply", []string{"cache endpoint acme/default/https://acme.kura.test: url is not accepted", "is stale"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			c.write(k.provider("staging") + neighbours + endpointHCL(row.url, row.more))
			args := []string{row.command, "-no-color"}
			if row.command == "apply" {
				args = append(args, "-auto-approve")
			}
			c.refused(append(row.want, "Error:"), args...)
		})
	}
	if got := k.endpoints(); len(got) != 0 {
		t.Errorf("written: %v", got)
	}
	c.write(k.provider("staging") + neighbours)
	c.destroy()
}

// Somebody else's hand: one that exists is to be imported, one that is gone is created
// again, and an account is not deleted from under one.
func TestAccCacheEndpoint_othersWriteAsWell(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	e := fleet.CacheEndpoint{Account: "acme", URL: "https://cache.example.dev"}
	c.write(k.provider("staging") + neighbours)
	c.apply()
	if _, err := k.api.PutCacheEndpoint(t.Context(), e, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	c.write(k.provider("staging") + neighbours + endpointHCL(e.URL, ""))
	c.refused([]string{"Create cache endpoint " + e.String() + ": it exists already", "import {", "to = kura_cache_endpoint.this", `id = "` + e.String() + `"`}, "apply", "-no-color", "-auto-approve")
	c.write(k.provider("staging") + neighbours)
	c.refused([]string{`account "acme" is still used by cache endpoint ` + e.String(), "delete its cache endpoints"}, "destroy", "-no-color", "-auto-approve")
	c.write(k.provider("staging") + neighbours + endpointHCL(e.URL, "") + "import {\n  to = kura_cache_endpoint.this\n  id = \"" + e.String() + "\"\n}\n")
	c.apply()
	if err := k.api.DeleteCacheEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	c.write(k.provider("staging") + neighbours + endpointHCL(e.URL, ""))
	if text := c.apply(); !contains(text, "1 added, 0 changed, 0 destroyed") {
		t.Errorf("%s", text)
	}
	if text, code := c.run("state", "rm", "kura_cache_endpoint.this"); code != 0 {
		t.Fatal(text)
	}
	for id, want := range map[string]string{
		"acme":                            "write <account>/<technology>/<url>, such as acme/default/https://cache.example.dev",
		"acme/default":                    "write <account>/<technology>/<url>",
		"acme/https://cache.example.dev":  "write <account>/<technology>/<url>",
		"acme/kura/" + e.URL:              "derives from its servers",
		"acme/default/https://other.test": "non-existent",
	} {
		c.refused([]string{want}, "import", "-no-color", "kura_cache_endpoint.this", id)
	}
	if text, code := c.run("import", "-no-color", "kura_cache_endpoint.this", e.String()); code != 0 {
		t.Fatal(text)
	}
	c.showsNothing()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

// secureServer answers https for a host of kura.test on loopback with what status says,
// and returns its url.
func (w *outside) secureServer(t *testing.T, host string, status func() int) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status()) }))
	certificate, err := tls.LoadX509KeyPair(w.files.Cert, w.files.Key)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + net.JoinHostPort(host, port)
}
