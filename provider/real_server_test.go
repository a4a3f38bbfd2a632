//go:build real

package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var (
	acmeEU  = fleet.ServerKey{Account: "acme", Region: "eu"}
	bravoEU = fleet.ServerKey{Account: "bravo", Region: "eu"}
)

var urlFormat = regexp.MustCompile(`^https://acme-eu-staging\.kura\.test:2\d{4}$`)

// changesOnly wants an update of the object in place that changes these attributes and
// shows nothing else.
type changesOnly struct {
	address    string
	attributes []string
}

// CheckPlan implements plancheck.PlanCheck.
func (c changesOnly) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, r := range req.Plan.ResourceChanges {
		if r.Address != c.address {
			continue
		}
		before, okBefore := r.Change.Before.(map[string]any)
		after, okAfter := r.Change.After.(map[string]any)
		unknown, okUnknown := r.Change.AfterUnknown.(map[string]any)
		if !okBefore || !okAfter || !okUnknown {
			resp.Error = fmt.Errorf("%s is not changed in place", c.address)
			return
		}
		var changed []string
		for name := range after {
			if !cmp.Equal(before[name], after[name]) || unknown[name] == true {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		resp.Error = differs("what the plan of "+c.address+" changes", c.attributes, changed)
		return
	}
	resp.Error = fmt.Errorf("%s is not in the plan", c.address)
}

// record checks the daemon's own record of acme/eu, and that its url answers with the
// version.
func (k *kurad) record(want fleet.Server) func() error {
	return func() error {
		v := k.server("acme", "eu")
		if v == nil || v.Verdict != fleet.VerdictConverged {
			return fmt.Errorf("the apply ended while the server is %s", standing(v))
		}
		want.Account, want.Region = "acme", "eu"
		return errors.Join(differs("the server", want, v.Intent.Server), k.answers(acmeEU, want.ImageTag))
	}
}

// sameContainer wants what the server runs to be the same at every call, or another one
// each time.
func (k *kurad) sameContainer(same bool) func() error {
	last := ""
	return func() error {
		id := k.id(acmeEU)
		was := last
		last = id
		if was != "" && (id == was) != same {
			return fmt.Errorf("container %.12s came after %.12s; the same is wanted: %v", id, was, same)
		}
		return nil
	}
}

func TestAccServer_isCreatedChangedImportedAndDestroyed(t *testing.T) {
	k := startKurad(t)
	k.image(t, "v1", "v2")
	const address = "kura_server.acme"
	unknown := []plancheck.PlanCheck{}
	for _, name := range []string{"instance", "host", "grpc_host", "global_host", "url", "grpc_url", "global_url"} {
		unknown = append(unknown, plancheck.ExpectUnknownValue(address, tfjsonpath.New(name)))
	}
	sameURL := statecheck.CompareValue(compareSame{})
	other, same := k.sameContainer(false), k.sameContainer(true)

	created := applies(k.config(serverHCL("v1")), address, plancheck.ResourceActionCreate, all(k.record(fleet.Server{ImageTag: "v1"}), other), unknown...)
	created.ConfigStateChecks = []statecheck.StateCheck{
		sameURL.AddStateValue(address, tfjsonpath.New("url")),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("host"), knownvalue.StringExact("acme-eu-staging.kura.test")),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("url"), knownvalue.StringRegexp(urlFormat)),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("grpc_url"), knownvalue.Null()),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("instance"), knownvalue.StringExact("kura-acme-eu")),
		statecheck.ExpectIdentity(address, map[string]knownvalue.Check{"account": knownvalue.StringExact("acme"), "region": knownvalue.StringExact("eu")}),
	}
	rolled := applies(k.config(serverHCL("v2")), address, plancheck.ResourceActionUpdate, all(k.record(fleet.Server{ImageTag: "v2"}), other, same), changesOnly{address, []string{"image_tag"}})
	rolled.ConfigStateChecks = []statecheck.StateCheck{sameURL.AddStateValue(address, tfjsonpath.New("url"))}
	steps := append([]resource.TestStep{created, rolled}, imports(address, []string{"acme/eu", "kura-acme-eu"})...)

	// What concerns the record alone leaves the container alone.
	quiet := `labels              = { team = "build" }
  remediation         = "observe"
  paused              = true
  deletion_protection = false
  wait_for            = "active"
  timeouts            = { create = "5m", update = "5m", delete = "5m" }`
	full := fleet.Server{ImageTag: "v2", Labels: map[string]string{"team": "build"}, Remediation: fleet.RemediationObserve, Paused: true}
	steps = append(steps, applies(k.config(serverHCL("v2", quiet)), address, plancheck.ResourceActionUpdate, all(k.record(full), same),
		changesOnly{address, []string{"labels", "paused", "remediation", "timeouts", "wait_for"}}))
	// Overrides change the document, and so the container; what is not set any more is
	// gone in the daemon too.
	overridden := fleet.Server{ImageTag: "v2", Overrides: &fleet.Overrides{Containers: &fleet.ContainerOverrides{Services: map[string]fleet.ServiceOverride{
		"cache": {Env: map[string]string{"A": ""}, Memory: "64Mi", CPUs: 0.5},
	}}}}
	overrides := `overrides = { containers = { services = { cache = { env = { A = "" }, memory = "64Mi", cpus = 0.5 } } } }`
	steps = append(steps, applies(k.config(serverHCL("v2", overrides)), address, plancheck.ResourceActionUpdate, all(k.record(overridden), other, func() error {
		_, names, err := k.ask(t.Context(), "GET", k.server("acme", "eu").DeclaredURL+"/env")
		return errors.Join(err, differs("an override of the environment", true, strings.Contains(names, `"A"`)))
	})))
	// Hollow objects mean nothing to the runtime, and stay as they are written.
	hollow := "labels = {}\n  overrides = { containers = { services = {} } }"
	steps = append(steps, applies(k.config(serverHCL("v2", hollow)), address, plancheck.ResourceActionUpdate, all(other, func() error { return k.answers(acmeEU, "v2") })))
	run(t, k, steps...)
}

// all is the first error of the checks.
func all(checks ...func() error) func() error {
	return func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
}

func fine() error { return nil }

func TestAccServer_thatDisappearedIsPlannedAgain(t *testing.T) {
	k := startKurad(t)
	k.image(t, "v1")
	again := applies(k.config(serverHCL("v1")), "kura_server.acme", plancheck.ResourceActionCreate, k.record(fleet.Server{ImageTag: "v1"}))
	again.PreConfig = func() {
		if _, err := k.api.DeleteServer(t.Context(), acmeEU); err != nil {
			t.Fatal(err)
		}
		k.gone(acmeEU)
	}
	run(t, k, applies(k.config(serverHCL("v1")), "kura_server.acme", plancheck.ResourceActionCreate, fine), again)
}

func TestAccServer_inAnotherRegionIsAnotherServer(t *testing.T) {
	k := startKurad(t)
	k.image(t, "v1")
	us := k.region("us", "public", "")
	moved := strings.ReplaceAll(serverHCL("v1"), "kura_region.eu", "kura_region.us")
	run(t, k,
		applies(k.config(us, serverHCL("v1")), "kura_server.acme", plancheck.ResourceActionCreate, fine),
		applies(k.config(us, moved), "kura_server.acme", plancheck.ResourceActionDestroyBeforeCreate, func() error {
			if k.server("acme", "eu") != nil || k.server("acme", "us") == nil {
				return errors.New("the server did not move")
			}
			return differs("the containers", "kura-acme-us-cache-staging", strings.TrimSpace(k.podman(t, "ps", "--all", "--format", "{{.Names}}")))
		}, plancheck.ExpectUnknownValue("kura_server.acme", tfjsonpath.New("host"))))
}
