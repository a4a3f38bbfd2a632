//go:build real

package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// requireCLI ends the test where it was not told which CLI to drive: an acceptance test
// that silently does nothing proves nothing.
func requireCLI(t *testing.T) (path string) {
	t.Helper()
	path = os.Getenv("TF_ACC_TERRAFORM_PATH")
	if path == "" || os.Getenv("TF_ACC") == "" {
		t.Fatal("set TF_ACC=1 and TF_ACC_TERRAFORM_PATH to a tofu or terraform binary (`make testacc` does, one after the other); for OpenTofu also TF_ACC_PROVIDER_HOST=registry.opentofu.org TF_ACC_PROVIDER_NAMESPACE=hashicorp")
	}
	// A CLI config that is not ours could send init to the network.
	t.Setenv("TF_CLI_CONFIG_FILE", os.DevNull)
	t.Setenv("CHECKPOINT_DISABLE", "1")
	clearAll(t)
	return path
}

func clearAll(t *testing.T) {
	for _, name := range []string{envEndpoint, envToken, envTokenFile, envEnvironment} {
		t.Setenv(name, "")
	}
}

// factories serve the provider in this process.
func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){"kura": providerserver.NewProtocol6WithError(New("test")())}
}

// run runs the steps against the daemon and destroys everything at the end.
func run(t *testing.T, k *kurad, steps ...resource.TestStep) {
	t.Helper()
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(), Steps: steps,
		CheckDestroy: func(*terraform.State) error { return k.nothingLeft() },
	})
}

// applies is a step that plans the action for the object, applies it, plans nothing
// afterwards, and leaves the daemon's own record as the check wants it.
func applies(config, address string, action plancheck.ResourceActionType, record func() error, more ...plancheck.PlanCheck) resource.TestStep {
	return resource.TestStep{
		Config: config,
		ConfigPlanChecks: resource.ConfigPlanChecks{
			PreApply:             append([]plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}, more...),
			PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
		},
		Check: func(*terraform.State) error { return record() },
	}
}

// imports are the steps that import an object in every form, each followed by an empty
// plan. ids are the strings that mean it.
func imports(address string, ids []string, ignore ...string) []resource.TestStep {
	var steps []resource.TestStep
	for _, id := range ids {
		steps = append(steps,
			resource.TestStep{
				ResourceName: address, ImportState: true, ImportStateId: id, ImportStateVerify: true, ImportStateVerifyIgnore: ignore,
				ImportStateVerifyIdentifierAttribute: identifier(address),
			},
			resource.TestStep{
				ResourceName: address, ImportState: true, ImportStateKind: resource.ImportBlockWithID, ImportStateId: id,
				ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop)}},
			})
	}
	return append(steps, resource.TestStep{
		ResourceName: address, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
		ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop)}},
	})
}

func identifier(address string) string {
	switch address {
	case "kura_account.acme":
		return "id"
	case "kura_server.acme":
		return "instance"
	default:
		return "name"
	}
}

// differs is an error where the daemon's record is not what is wanted.
func differs(what string, want, got any) error {
	if d := cmp.Diff(want, got); d != "" {
		return fmt.Errorf("%s in the daemon (-want +got):\n%s", what, d)
	}
	return nil
}

// compareSame wants a value to be the same in every step.
type compareSame struct{}

// CompareValues implements compare.ValueComparer.
func (compareSame) CompareValues(values ...any) error {
	for _, v := range values[1:] {
		if v != values[0] {
			return fmt.Errorf("%v became %v", values[0], v)
		}
	}
	return nil
}

func replaceOnce(t *testing.T, s, from, to string) string {
	t.Helper()
	if strings.Count(s, from) != 1 {
		t.Fatalf("%q is in there %d times", from, strings.Count(s, from))
	}
	return strings.Replace(s, from, to, 1)
}
