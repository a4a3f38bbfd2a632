package fleet

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestKubernetesFaultsNameTheirField(t *testing.T) {
	for name, c := range map[string]struct {
		edit          func(*Kubernetes)
		pointer, text string
	}{
		"no cluster":            {func(k *Kubernetes) { k.Cluster = "" }, "/cluster", "is required"},
		"illegal cluster":       {func(k *Kubernetes) { k.Cluster = "A" }, "/cluster", `"A"`},
		"illegal namespace":     {func(k *Kubernetes) { k.Namespace = "a.b" }, "/namespace", `"."`},
		"no image":              {func(k *Kubernetes) { k.Image = "" }, "/image", "is required"},
		"illegal image":         {func(k *Kubernetes) { k.Image = "A" }, "/image", "not an image"},
		"fixed version":         {func(k *Kubernetes) { k.Image = "kura:1" }, "/image", "write {image_tag}"},
		"fixed digest":          {func(k *Kubernetes) { k.Image = "kura@" + someDigest }, "/image", "write {image_tag}"},
		"tag in the repository": {func(k *Kubernetes) { k.Image = "kura-{image_tag}" }, "/image", "whole tag"},
		"unknown token":         {func(k *Kubernetes) { k.Image = "kura:{tag}" }, "/image", "use {image_tag}"},
		"port of a registry":    {func(k *Kubernetes) { k.Image = "localhost:5001/kura" }, "/image", "names a port of a registry, and a KuraInstance takes none"},
		"port before a tag":     {func(k *Kubernetes) { k.Image = "registry.example.dev:5000/x:{image_tag}" }, "/image", "write a registry that answers at its scheme's own port"},
		"address as registry":   {func(k *Kubernetes) { k.Image = "[::1]:5000/x" }, "/image", "names a port of a registry"},
		"upper-case registry":   {func(k *Kubernetes) { k.Image = "Registry.Dev/x:{image_tag}" }, "/image", `write "registry.dev/x:{image_tag}"`},
		"two in the first part": {func(k *Kubernetes) { k.Image = "a__b/x" }, "/image", "its first part may have only single"},
		"replicas":              {func(k *Kubernetes) { k.Replicas = -1 }, "/replicas", "from 0 to 100"},
		"storage class":         {func(k *Kubernetes) { k.Storage.Class = "A" }, "/storage/class", `"A"`},
		"storage size":          {func(k *Kubernetes) { k.Storage.Size = "50GB" }, "/storage/size", "50Gi"},
		"ingress class":         {func(k *Kubernetes) { k.IngressClass = "a b" }, "/ingress_class", `" "`},
		"node selector":         {func(k *Kubernetes) { k.NodeSelector = map[string]string{"a b": ""} }, "/node_selector/a b", "no label key"},
		"operator":              {func(k *Kubernetes) { k.Tolerations[0].Operator = "In" }, "/tolerations/0/operator", `"Exists" or "Equal"`},
		"effect":                {func(k *Kubernetes) { k.Tolerations[0].Effect = "No" }, "/tolerations/0/effect", "NoSchedule"},
		"toleration key":        {func(k *Kubernetes) { k.Tolerations[0].Key = "" }, "/tolerations/0/key", "is required"},
		"illegal taint":         {func(k *Kubernetes) { k.Tolerations[0].Key = "a b" }, "/tolerations/0/key", "no key"},
		"value of exists":       {func(k *Kubernetes) { k.Tolerations[1].Value = "x" }, "/tolerations/1/value", "no meaning"},
		"env key":               {func(k *Kubernetes) { k.Env = map[string]string{"1": ""} }, "/env/1", "no name of a variable"},
		"env value":             {func(k *Kubernetes) { k.Env = map[string]string{"A": "\x00"} }, "/env/A", "NUL"},
		"restart mark":          {func(k *Kubernetes) { k.Env = map[string]string{"KURA_RESTART_MARK": ""} }, "/env/KURA_RESTART_MARK", "use another name"},
		"set":                   {func(k *Kubernetes) { k.EnvFrom = []string{""} }, "/env_from/0", "is empty"},
		"set twice":             {func(k *Kubernetes) { k.EnvFrom = []string{"a", "a"} }, "/env_from/1", "again"},
		"long image":            {func(k *Kubernetes) { k.Image = strings.Repeat("a", 255) }, "/image", "257 characters long"},
		"no storage":            {func(k *Kubernetes) { k.Storage.Size = "0.0Gi" }, "/storage/size", "above 0"},
		"long ingress class":    {func(k *Kubernetes) { k.IngressClass = longHost(254) }, "/ingress_class", "at most 253"},
		"long node label":       {func(k *Kubernetes) { k.NodeSelector = map[string]string{"x/" + strings.Repeat("a", 64): ""} }, "/node_selector/x~1" + strings.Repeat("a", 64), "at most 63"},
		"node label's prefix":   {func(k *Kubernetes) { k.NodeSelector = map[string]string{"/a": ""} }, "/node_selector/~1a", "no label key"},
		"node label's value":    {func(k *Kubernetes) { k.NodeSelector = map[string]string{"a": "b c"} }, "/node_selector/a", "no value of a label"},
		"long value of a label": {func(k *Kubernetes) { k.NodeSelector = map[string]string{"a": strings.Repeat("b", 64)} }, "/node_selector/a", "at most 63"},
		"taint's value":         {func(k *Kubernetes) { k.Tolerations[0].Value = "a/b" }, "/tolerations/0/value", "no value of a label"},
		"extra spec":            {func(k *Kubernetes) { k.ExtraSpec = "null" }, "/extra_spec", "jsonencode"},
		"broken extra spec":     {func(k *Kubernetes) { k.ExtraSpec = "{" }, "/extra_spec", "jsonencode"},
		"long extra spec":       {func(k *Kubernetes) { k.ExtraSpec = strings.Repeat("x", 40000) }, "/extra_spec", "40000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := kubernetesRegion()
			c.edit(r.Kubernetes)
			wantField(t, r.Validate(), "/kubernetes"+c.pointer, c.text)
		})
	}
	for name, edit := range map[string]func(*Kubernetes){
		"the tag is appended":         func(k *Kubernetes) { k.Image = "ghcr.io/kura/kura" },
		"two separators in a row":     func(k *Kubernetes) { k.Image = "ghcr.io/kura/a__b--c:{image_tag}" },
		"a label of ours on a node":   func(k *Kubernetes) { k.NodeSelector = map[string]string{"dev.kura/cache": "", "A_b.c": "D-e"} },
		"a set that is not known yet": func(k *Kubernetes) { k.EnvFrom = []string{"another"} },
		"a fraction of a size":        func(k *Kubernetes) { k.Storage.Size = "0.5Ti" },
	} {
		r := kubernetesRegion()
		edit(r.Kubernetes)
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A daemon knows its sets, and says at once which one it was not given; the provider knows
// none.
func TestVariableSetsOfAKubernetesRegionAreThoseOfTheDaemon(t *testing.T) {
	in := sampleKube(t)
	in.region.Kubernetes.EnvFrom = []string{"secrets", "s3"}
	if err := in.region.Validate(); err != nil {
		t.Errorf("without knowing the sets: %v", err)
	}
	wantField(t, in.region.ValidateFor(in.env), "/kubernetes/env_from/1", `kurad was given no variable set named "s3" (known: secrets, tracing)`)
	in.env.VariableSets = map[string][]string{}
	wantField(t, in.region.ValidateFor(in.env), "/kubernetes/env_from/0", `"secrets" (known: none)`)
	in.env.VariableSets = map[string][]string{"secrets": {"A"}, "s3": {"A", "KURA_RESTART_MARK"}}
	wantField(t, in.region.ValidateFor(in.env), "/kubernetes/env_from/1", `"s3" holds KURA_RESTART_MARK`)
}

func TestServersOfAKubernetesRegionAreValidatedInIt(t *testing.T) {
	s, r := sampleIntent().Server, kubernetesRegion()
	r.Kubernetes.Image = strings.Repeat("a", 200)
	s.ImageTag = longTag(55)
	if err := s.ValidateIn(r); err != nil {
		t.Error(err)
	}
	s.ImageTag = longTag(56)
	wantField(t, s.ValidateIn(r), "/image_tag", "257 characters long; a KuraInstance takes at most 256")
	s.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Env: map[string]string{"KURA_RESTART_MARK": "1"}}}
	wantField(t, s.Validate(), "/overrides/kubernetes/env/KURA_RESTART_MARK", "kurad's own")
	s.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{StorageSize: "0"}}
	wantField(t, s.Validate(), "/overrides/kubernetes/storage_size", "above 0")
}

// What kurad takes as an image is what the API server takes, so that nobody learns of it by
// a roll-out that is refused.
func TestKubeImageFormatIsThePatternOfTheCustomResourceDefinition(t *testing.T) {
	raw, err := os.ReadFile("../../examples/kubernetes/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema struct {
						Properties struct {
							Spec struct {
								Properties map[string]struct {
									Pattern   string
									MaxLength int
								}
							}
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != KubeVersion {
		t.Fatalf("versions %+v, want %s alone", crd.Spec.Versions, KubeVersion)
	}
	image := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties.Spec.Properties["image"]
	if got := kubeImageFormat.String(); got != image.Pattern || image.MaxLength != maxKubeImage {
		t.Errorf("images match\n%s of at most %d, and the definition says\n%s of at most %d", got, maxKubeImage, image.Pattern, image.MaxLength)
	}
}
