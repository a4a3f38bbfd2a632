//go:build real

package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// accountsHCL are accounts by id, as kura_account.all.
func accountsHCL(ids ...string) string {
	return fmt.Sprintf("resource \"kura_account\" \"all\" {\n  for_each = toset([\"%s\"])\n  id       = each.key\n}\n", strings.Join(ids, `", "`))
}

// fleetHCL are the servers of accounts in the region eu, and the blocks that import them.
func fleetHCL(form string, versions map[string]string) string {
	var b strings.Builder
	b.WriteString("locals {\n  fleet = {\n")
	for _, account := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&b, "    %s = %q\n", account, versions[account])
	}
	fmt.Fprintf(&b, `  }
}

import {
  for_each = local.fleet
  to       = kura_server.fleet[each.key]
  %s
}

resource "kura_server" "fleet" {
  for_each  = local.fleet
  account   = kura_account.all[each.key].id
  region    = kura_region.eu.name
  image_tag = each.value
}
`, form)
	return b.String()
}

// untouched checks that an instance is the one that the other tool made, of which nothing
// but metadata was changed since, by one apply of ours, and that nothing was rolled out.
func (k *kurad) untouched(before *unstructured.Unstructured) error {
	k.t.Helper()
	after := k.kube.get(before.GetName())
	if after == nil {
		return fmt.Errorf("%s is gone", before.GetName())
	}
	name := before.GetName()
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() {
		return fmt.Errorf("%s was uid %s generation %d, and is uid %s generation %d", name, before.GetUID(), before.GetGeneration(), after.GetUID(), after.GetGeneration())
	}
	if d := cmp.Diff(before.Object["spec"], after.Object["spec"]); d != "" {
		return fmt.Errorf("the spec of %s changed (-was +is):\n%s", name, d)
	}
	labels := before.GetLabels()
	labels[fleet.LabelEnvironment] = "staging"
	if d := cmp.Diff(labels, after.GetLabels()); d != "" {
		return fmt.Errorf("the labels of %s (-want +got):\n%s", name, d)
	}
	if !slices.ContainsFunc(after.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fleet.KubeFieldManager && e.Operation == metav1.ManagedFieldsOperationApply
	}) {
		return fmt.Errorf("%s was not applied by us: %+v", name, after.GetManagedFields())
	}
	return nil
}

// A fleet that another tool made comes under Terraform as it is: nothing of it is changed
// but metadata, by one apply each (K6). One that differs is shown, and left alone until it
// is applied.
func TestAccKube_K6_aFleetOfAnotherToolIsImportedAndPlansEmpty(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	const many = 50
	versions, before := map[string]string{}, map[string]*unstructured.Unstructured{}
	var accounts []string
	for n := range many {
		account := fmt.Sprintf("a%02d", n)
		accounts = append(accounts, account)
		versions[account] = fmt.Sprintf("v%d", 1+n%3)
		before[account] = k.kube.made(k, account, versions[account], nil)
	}
	odd := k.kube.made(k, "odd", "v1", map[string]any{"storageSize": "20Gi"})
	accounts = append(accounts, "odd")
	base := func(more ...string) string {
		return k.kubeConfig("", "force_conflicts = true", append([]string{accountsHCL(accounts...)}, more...)...)
	}
	c.write(base())
	c.apply()

	config := base(fleetHCL(`id = "${each.key}/eu"`, versions))
	c.write(config)
	c.shows(true, []string{fmt.Sprintf("%d to import, 0 to add, 0 to change, 0 to destroy", many)})
	c.apply()
	for account, o := range before {
		key := fleet.ServerKey{Account: account, Region: "eu"}
		v := k.stands(key, fleet.VerdictConverged)
		if v.Resource.UID != string(o.GetUID()) || v.ServingImageTag != versions[account] || v.Resource.Adopted || v.Deployment.Seq != 1 {
			t.Errorf("%s reads as %+v, serving %s, deployment %d", key, v.Resource, v.ServingImageTag, v.Deployment.Seq)
		}
		if err := k.untouched(o); err != nil {
			t.Error(err)
		}
		if n := k.kube.applies(o.GetName()); n != 1 || v.Generation != 1 {
			t.Errorf("%s was applied %d times and declared %d times, want once each", key, n, v.Generation)
		}
	}
	c.showsNothing()

	// The odd one: another volume than the region says, and another version is wanted.
	versions["odd"] = "v2"
	config = base(fleetHCL(`id = "kura-${each.key}-eu"`, versions))
	c.write(config)
	for range 2 { // a plan does not change what the next one says
		c.shows(true, []string{
			"1 to import, 0 to add, 1 to change, 0 to destroy", `+ image_tag = "v2"`,
			"Server odd/eu: its KuraInstance is not as declared", "runs registry.test/kura/cache:v1", `spec.storageSize: "20Gi" -> "50Gi" (set by tuist-server)`,
		})
	}
	if o := k.kube.get("kura-odd-eu"); o.GetGeneration() != odd.GetGeneration() || o.GetLabels()[fleet.LabelEnvironment] != "" {
		t.Errorf("it was changed before anybody applied it: %v", o.Object)
	}
	c.apply()
	c.showsNothing()
	after := k.kube.get("kura-odd-eu")
	size, _, _ := unstructured.NestedString(after.Object, "spec", "storageSize")
	image, _, _ := unstructured.NestedString(after.Object, "status", "observedImage")
	if after.GetUID() != odd.GetUID() || size != "50Gi" || image != "registry.test/kura/cache:v2" {
		t.Errorf("after the apply: %v", after.Object)
	}
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

// Each way to write an import takes an instance over that kurad does not know, and what
// cannot be taken says why.
func TestAccKube_K6_everyFormOfImportTakesAnInstanceOver(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	accounts := []string{"byid", "byinstance", "byidentity", "bycommand", "held", "none", "theirs"}
	base := func(more ...string) string {
		return k.kubeConfig("", "force_conflicts = true", append([]string{accountsHCL(accounts...)}, more...)...)
	}
	c.write(base())
	c.apply()
	forms := map[string]string{
		"byid": `id = "${each.key}/eu"`, "byinstance": `id = "kura-${each.key}-eu"`, "byidentity": `identity = { account = each.key, region = "eu" }`,
	}
	for account, form := range forms {
		o := k.kube.made(k, account, "v1", nil)
		c.write(base(fleetHCL(form, map[string]string{account: "v1"})))
		c.shows(true, []string{"1 to import, 0 to add, 0 to change, 0 to destroy"})
		c.apply()
		c.showsNothing()
		k.stands(fleet.ServerKey{Account: account, Region: "eu"}, fleet.VerdictConverged)
		if err := k.untouched(o); err != nil {
			t.Error(err)
		}
		c.write(base())
		c.apply() // which ends the server
	}

	o := k.kube.made(k, "bycommand", "v1", nil)
	only := strings.SplitN(fleetHCL("", map[string]string{"bycommand": "v1"}), "import {", 2)
	_, servers, _ := strings.Cut(only[1], "\n}\n")
	c.write(base(only[0], servers))
	if text, code := c.run("import", "-no-color", `kura_server.fleet["bycommand"]`, "kura-bycommand-eu"); code != 0 {
		t.Fatalf("import: %s", text)
	}
	c.showsNothing()
	k.stands(fleet.ServerKey{Account: "bycommand", Region: "eu"}, fleet.VerdictConverged)
	if err := k.untouched(o); err != nil {
		t.Error(err)
	}
	c.write(base())
	c.apply()

	k.kube.made(k, "theirs", "v1", nil)
	theirs := k.kube.get("kura-theirs-eu")
	labels := theirs.GetLabels()
	labels[fleet.LabelEnvironment] = "production"
	theirs.SetLabels(labels)
	k.kube.update(theirs)
	for account, want := range map[string][]string{
		"none":   {`there is no KuraInstance kura-none-eu in namespace "kura" of cluster "prod"`},
		"theirs": {"server theirs/eu of environment production"},
	} {
		c.write(base(fleetHCL(`id = "${each.key}/eu"`, map[string]string{account: "v1"})))
		c.refused(want, "plan", "-no-color")
	}

	// The command line takes one over as well, and says before what it would do.
	k.kube.made(k, "held", "v1", map[string]any{"storageSize": "20Gi"})
	const differs = `spec.storageSize: "20Gi" -> "50Gi"`
	if said := k.cli("adopt", "held/eu", "--dry-run"); !contains(said, "would adopt KuraInstance kura/kura-held-eu, version v1", differs, "stays as it is until the declaration is applied") {
		t.Errorf("kurad adopt --dry-run: %s", said)
	}
	if v := k.server("held", "eu"); v != nil {
		t.Errorf("a dry run declared %+v", v)
	}
	if said := k.cli("adopt", "held/eu"); !contains(said, "adopted KuraInstance kura/kura-held-eu, version v1", differs) {
		t.Errorf("kurad adopt: %s", said)
	}
	if said := k.cli("adopt", "held/eu"); !contains(said, "has it already") {
		t.Errorf("kurad adopt again: %s", said)
	}
	k.stands(fleet.ServerKey{Account: "held", Region: "eu"}, fleet.VerdictHeld)
	c.write(base(fleetHCL(`id = "${each.key}/eu"`, map[string]string{"held": "v1"})))
	c.shows(true, []string{"1 to import, 0 to add, 1 to change, 0 to destroy", `+ image_tag = "v1"`, differs})
	c.apply()
	c.showsNothing()
	c.write(base())
	c.apply()

	if left := k.kube.left(); left != "kura-theirs-eu" {
		t.Errorf("in the cluster: %s", left)
	}
	list, err := k.api.ListServers(t.Context(), api.ServerFilter{})
	if err != nil || len(list) > 0 {
		t.Errorf("%d servers are declared, %v", len(list), err)
	}
	c.write(base())
	c.destroy()
}

// Another tool's claims are taken over deliberately. Without force_conflicts its instances
// stay as they are, and the plan says what to do; with it they come under Terraform as they
// are, and none is restarted.
func TestAccKube_K1_anotherToolsFieldsAreTakenOverDeliberately(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	config := func(block string, more ...string) string {
		return k.kubeConfig("", block, append([]string{accountsHCL("equal", "other")}, more...)...)
	}
	c.write(config(""))
	c.apply()
	equal := k.kube.made(k, "equal", "v1", nil)
	other := k.kube.made(k, "other", "v1", map[string]any{"storageSize": "20Gi"})
	servers := fleetHCL(`id = "${each.key}/eu"`, map[string]string{"equal": "v1", "other": "v1"})
	c.write(config("", servers))
	if text, _ := c.plan(); !contains(text, "2 to import", `spec.storageSize: "20Gi" -> "50Gi" (set by tuist-server)`) {
		t.Errorf("the plan: %s", text)
	}
	for account, o := range map[string]*unstructured.Unstructured{"equal": equal, "other": other} {
		// Where only metadata is claimed, the apply was refused; what differs waits for one.
		k.until(fleet.ServerKey{Account: account, Region: "eu"}, "is left alone", func(v *fleet.ServerView) bool {
			if v == nil {
				return false
			}
			if account == "other" {
				return v.Verdict == fleet.VerdictHeld && v.Reason == fleet.ReasonAdoption
			}
			return v.Verdict == fleet.VerdictFailed && v.Reason == fleet.ReasonFieldConflict
		})
		if after := k.kube.get(o.GetName()); !cmp.Equal(after.Object["spec"], o.Object["spec"]) || !cmp.Equal(after.GetLabels(), o.GetLabels()) {
			t.Errorf("%s was changed: %v", o.GetName(), after.Object)
		}
	}
	if text, _ := c.plan(); !contains(text, "version v1 failed (FieldConflict)", "another manager holds", "force_conflicts = true", `spec.storageSize: "20Gi" -> "50Gi" (set by tuist-server)`) {
		t.Errorf("the plan after the refusal: %s", text)
	}
	c.write(config("force_conflicts = true", servers))
	c.apply()
	for _, account := range []string{"equal", "other"} {
		k.stands(fleet.ServerKey{Account: account, Region: "eu"}, fleet.VerdictConverged)
	}
	c.showsNothing()
	if err := k.untouched(equal); err != nil {
		t.Error(err)
	}
	if err := k.untouched(other); err == nil || !strings.Contains(err.Error(), "generation") {
		t.Errorf("what differed was not applied: %v", err)
	}
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}
