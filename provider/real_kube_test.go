//go:build real

package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// spec checks fields of the spec of acme's instance as it is in the cluster; nil stands for
// one that is not there.
func (c *kubeRig) spec(want map[string]any) error {
	o := c.get("kura-acme-eu")
	if o == nil {
		return errors.New("there is no KuraInstance kura-acme-eu")
	}
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return err
	}
	got := map[string]any{}
	for field := range want {
		got[field] = spec[field]
	}
	return differs("the instance's spec", want, got)
}

func TestAccKube_aServerIsCreatedChangedImportedAndDestroyed(t *testing.T) {
	k := startKubeKurad(t, kubernetes.Options{})
	const address = "kura_server.acme"
	config := func(more ...string) string { return k.kubeConfig("", "", more...) }
	image := func(tag string) func() error {
		return all(k.record(fleet.Server{ImageTag: tag}), func() error {
			return k.kube.spec(map[string]any{"image": "registry.test/kura/cache:" + tag, "publicHost": "acme-eu-staging.kura.test", "tenantID": "acme", "storageSize": "50Gi", "replicas": int64(1)})
		})
	}
	created := applies(config(serverHCL("v1")), address, plancheck.ResourceActionCreate, image("v1"))
	created.ConfigStateChecks = []statecheck.StateCheck{
		statecheck.ExpectKnownValue(address, tfjsonpath.New("host"), knownvalue.StringExact("acme-eu-staging.kura.test")),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("url"), knownvalue.StringExact("https://acme-eu-staging.kura.test:"+k.kube.port)),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("instance"), knownvalue.StringExact("kura-acme-eu")),
		statecheck.ExpectIdentity(address, map[string]knownvalue.Check{"account": knownvalue.StringExact("acme"), "region": knownvalue.StringExact("eu")}),
	}
	rolled := applies(config(serverHCL("v2")), address, plancheck.ResourceActionUpdate, image("v2"), changesOnly{address, []string{"image_tag"}})
	steps := append([]resource.TestStep{created, rolled}, imports(address, []string{"acme/eu", "kura-acme-eu"})...)

	overridden := fleet.Server{ImageTag: "v2", Overrides: &fleet.Overrides{Kubernetes: &fleet.KubernetesOverrides{Replicas: 2, StorageSize: "80Gi", Env: map[string]string{"CACHE_GB": "60"}}}}
	overrides := `overrides = { kubernetes = { replicas = 2, storage_size = "80Gi", env = { CACHE_GB = "60" } } }`
	steps = append(steps,
		applies(config(serverHCL("v2", overrides)), address, plancheck.ResourceActionUpdate, all(k.record(overridden), func() error {
			return k.kube.spec(map[string]any{"replicas": int64(2), "storageSize": "80Gi", "extraEnv": []any{map[string]any{"name": "CACHE_GB", "value": "60"}}})
		}), changesOnly{address, []string{"overrides"}}),
		applies(config(serverHCL("v2")), address, plancheck.ResourceActionUpdate, image("v2"), changesOnly{address, []string{"overrides"}}))

	// Every other attribute of the block, and none of them any more: the region follows its
	// declaration, and its server the region.
	full := `namespace       = "kura"
    ingress_class   = "nginx"
    node_selector   = { pool = "cache" }
    tolerations     = [{ key = "dedicated", operator = "Equal", value = "cache", effect = "NoSchedule" }]
    env_from        = ["tracing"]
    extra_spec      = jsonencode({ mesh = { enabled = true } })
    force_conflicts = true
    delete_orphans  = true`
	follows := func(want map[string]any) func() error {
		return func() error {
			v := k.stands(acmeEU, fleet.VerdictConverged)
			k.eventually("the instance follows the region", func() (bool, string) {
				err := k.kube.spec(want)
				return err == nil, fmt.Sprint(err)
			})
			return differs("who holds it", "", v.Resource.Foreign)
		}
	}
	set := map[string]any{
		"ingressClassName": "nginx", "nodeSelector": map[string]any{"pool": "cache"}, "mesh": map[string]any{"enabled": true},
		"tolerations": []any{map[string]any{"key": "dedicated", "operator": "Equal", "value": "cache", "effect": "NoSchedule"}},
		"extraEnv": []any{
			map[string]any{"name": "CACHE_GB", "value": "40"},
			map[string]any{"name": "TRACES", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "tracing", "key": "TRACES"}}},
		},
		"cloudflarePoolLatitude": 50.5,
	}
	unset := map[string]any{"ingressClassName": nil, "nodeSelector": nil, "mesh": nil, "tolerations": nil, "cloudflarePoolLatitude": nil}
	region := `location = { latitude = 50.5, longitude = 8 }`
	steps = append(steps, applies(k.kubeConfig(region, full, serverHCL("v2")), "kura_region.eu", plancheck.ResourceActionUpdate, follows(set)))
	steps = append(steps, imports("kura_region.eu", []string{"eu"})...)
	steps = append(steps, applies(config(serverHCL("v2")), "kura_region.eu", plancheck.ResourceActionUpdate, follows(unset)))
	looked := applies(config(serverHCL("v2"), "data \"kura_server\" \"acme\" {\n  account = kura_server.acme.account\n  region  = kura_server.acme.region\n}\n"),
		address, plancheck.ResourceActionNoop, fine)
	for name, want := range map[string]knownvalue.Check{
		"namespace": knownvalue.StringExact("kura"), "name": knownvalue.StringExact("kura-acme-eu"), "uid": knownvalue.NotNull(), "foreign": knownvalue.Null(), "adopted": knownvalue.Bool(false),
		"image": knownvalue.StringExact("registry.test/kura/cache:v2"), "observed_image": knownvalue.StringExact("registry.test/kura/cache:v2"), "ready_replicas": knownvalue.Int64Exact(1),
		"differs": knownvalue.ListSizeExact(0), "held": knownvalue.ListSizeExact(0), "dropped": knownvalue.ListSizeExact(0), "revision": knownvalue.NotNull(),
	} {
		looked.ConfigStateChecks = append(looked.ConfigStateChecks, statecheck.ExpectKnownValue("data.kura_server.acme", tfjsonpath.New("resource").AtMapKey(name), want))
	}
	steps = append(steps, looked)
	run(t, k, steps...)
}

func TestAccKube_whatTheRegionSaysWrongIsAnErrorInThePlan(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	for block, want := range map[string][]string{
		`extra_spec = "{"`:                         {"extra_spec is not accepted", "no JSON object"},
		`extra_spec = jsonencode({ image = "x" })`: {"extra_spec is not accepted", "which kurad writes itself"},
		`namespace = "Kura"`:                       {"namespace is not accepted"},
		`tolerations = [{ operator = "Equal" }]`:   {"tolerations/0/key is not accepted"},
		`env_from = ["nobody"]`:                    {"env_from", "nobody"},
		`node_selector = { "not a key" = "x" }`:    {"node_selector"},
		`ingress_class = "Not a name"`:             {"ingress_class is not accepted"},
		`extra_spec = jsonencode({ mesh = null })`: {"extra_spec is not accepted"},
		`env_from = ["tracing", "tracing"]`:        {"env_from"},
		`force_conflicts = "perhaps"`:              {"force_conflicts"},
	} {
		c.write(k.kubeConfig("", block, serverHCL("v1")))
		c.refused(want, "plan", "-no-color")
	}
	c.write(strings.ReplaceAll(k.kubeConfig("", "", serverHCL("v1")), `cluster  = "prod"`, `cluster  = "nowhere"`))
	c.refused([]string{`no cluster named "nowhere"`, "it has: prod"}, "plan", "-no-color")
}

// A cluster that is gone, or as old as it is, is said once for the region, and no reason to
// plan anything.
func TestAccKube_P2_K3_K1_thePlanSaysOncePerRegionWhatItsClusterDoes(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{Without: []string{"mesh", "clientHostAliases"}}), newCLI(t)
	old := `extra_spec = jsonencode({ mesh = { enabled = true } })`
	config := k.kubeConfig("", old, serverHCL("v1"), bravo("v1"))
	c.write(config)
	c.apply()
	text, changes := c.plan()
	if changes || strings.Count(text, "KuraInstance is too old") != 1 || !contains(text, `Region "eu"`, "does not have spec.mesh") {
		t.Errorf("an old definition: changes %t: %s", changes, text)
	}
	// A rename moves its hosts, and it has no place for the old ones (K7).
	c.write(replaceOnce(t, config, `id = "acme"`, "id = \"acme\"\n  handle = \"acme-corp\""))
	c.shows(true, []string{"server acme/eu moves from acme-eu-staging.kura.test to acme-corp-eu-staging.kura.test", "old hosts stop answering", `cluster "prod" routes no old hosts`, "no clientHostAliases"})
	c.write(config)
	// Somebody else applies a field that we declare.
	autoscaler := func(spec map[string]any) {
		theirs := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": fleet.KubeGroup + "/" + fleet.KubeVersion, "kind": fleet.KubeKind,
			"metadata": map[string]any{"name": "kura-acme-eu", "namespace": kubernetes.Namespace}, "spec": spec,
		}}
		if _, err := k.kube.instances.Apply(t.Context(), "kura-acme-eu", theirs, metav1.ApplyOptions{FieldManager: "autoscaler", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	autoscaler(map[string]any{"accountHandle": "acme", "replicas": int64(5)})
	k.until(acmeEU, "a conflict", func(v *fleet.ServerView) bool { return v != nil && v.Resource != nil && len(v.Resource.Held) == 1 })
	text, changes = c.plan()
	if changes || strings.Count(text, "another manager holds fields") != 1 || !contains(text, "spec.replicas (by autoscaler)", "spec.replicas: 5 -> 1", "force_conflicts = true") {
		t.Errorf("a conflict: changes %t: %s", changes, text)
	}
	// It holds up no new version, which the plan still warns of once, and lets go.
	config = k.kubeConfig("", old, serverHCL("v2"), bravo("v1"))
	c.write(config)
	c.apply()
	text, changes = c.plan()
	if v := k.server("acme", "eu"); changes || v.ServingImageTag != "v2" || strings.Count(text, "another manager holds fields") != 1 {
		t.Errorf("a new version under a conflict: %s is served, changes %t: %s", v.ServingImageTag, changes, text)
	}
	autoscaler(map[string]any{"accountHandle": "acme"})
	k.until(acmeEU, "no conflict", func(v *fleet.ServerView) bool {
		return v.Verdict == fleet.VerdictConverged && len(v.Resource.Held)+len(v.Resource.Differs) == 0
	})
	if text, changes = c.plan(); changes || contains(text, "another manager holds fields") {
		t.Errorf("after the conflict: changes %t: %s", changes, text)
	}

	k.kube.between.Set(kubernetes.Fault{Status: 503})
	k.kube.between.CutWatches()
	k.stands(acmeEU, fleet.VerdictUnobserved)
	k.stands(bravoEU, fleet.VerdictUnobserved)
	text, changes = c.plan()
	if changes || strings.Count(text, `Region "eu" cannot be seen`) != 1 || !contains(text, `Cluster "prod", namespace "kura"`, "What is known is", "old (from 20") {
		t.Errorf("a cluster that does not answer: changes %t: %s", changes, text)
	}
	// So it is for what is planned anew: where no server is there yet nothing else would tell.
	carol := "resource \"kura_account\" \"carol\" {\n  id = \"carol\"\n}\n" + serverAs("carol", "v1")
	for _, planned := range []string{k.kubeConfig("", old, serverHCL("v2"), bravo("v1"), carol), k.kubeConfig("", old, carol), k.kubeConfig("", old, serverHCL("v3"), bravo("v1"))} {
		c.write(planned)
		for _, refresh := range []string{"true", "false"} {
			text, _ = c.run("plan", "-no-color", "-lock=false", "-refresh="+refresh)
			if strings.Count(text, `Region "eu" cannot be seen (`) != 1 || !contains(text, `amespace "kura"`, "Plan: ") {
				t.Errorf("a plan of a cluster that does not answer, refresh %s: %s", refresh, text)
			}
		}
	}
	c.write(config)
	k.kube.between.Heal()
	k.until(acmeEU, "seen again", func(v *fleet.ServerView) bool { return v.Verdict != fleet.VerdictUnobserved })
	k.until(bravoEU, "seen again", func(v *fleet.ServerView) bool { return v.Verdict != fleet.VerdictUnobserved })
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}
