package fleet

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// kubeEdits says of every field that is declared where it changes the manifest; nowhere,
// if it does not.
func kubeEdits() map[string]struct {
	edit func(*kubeInput)
	want string
} {
	type row = struct {
		edit func(*kubeInput)
		want string
	}
	region := func(edit func(*Region), want string) row {
		return row{func(in *kubeInput) { edit(&in.region) }, want}
	}
	kube := func(edit func(*Kubernetes), want string) row {
		return row{func(in *kubeInput) { edit(in.region.Kubernetes) }, want}
	}
	server := func(edit func(*Server), want string) row {
		return row{func(in *kubeInput) { edit(&in.intent.Server) }, want}
	}
	over := func(o KubernetesOverrides, want string) row {
		return server(func(s *Server) { s.Overrides = &Overrides{Kubernetes: &o} }, want)
	}
	const hosts = "spec/globalPublicHost spec/grpcPublicHost spec/publicHost"
	return map[string]row{
		"Environment.Name":         {func(in *kubeInput) { in.env.Name = "other" }, "metadata/labels/dev.kura/environment"},
		"Environment.Suffix":       {func(in *kubeInput) { in.env.Suffix = "-other" }, hosts},
		"Environment.Suffixes":     {func(in *kubeInput) { in.env.Suffixes = map[string]string{"x": "-x"} }, ""},
		"Environment.VariableSets": {func(in *kubeInput) { in.env.VariableSets = map[string][]string{"secrets": {"OTHER"}} }, "spec/extraEnv"},

		"Account.ID":                 {func(in *kubeInput) { in.account.ID = "acc-2" }, "metadata/labels/app.kubernetes.io/instance metadata/labels/tuist.dev/account metadata/name spec/tenantID"},
		"Account.Handle":             {func(in *kubeInput) { in.account.Handle = "umbrella" }, "spec/accountHandle " + hosts},
		"Account.Labels":             {func(in *kubeInput) { in.account.Labels = map[string]string{"a": "b"} }, ""},
		"Account.DeletionProtection": {func(in *kubeInput) { in.account.DeletionProtection = true }, ""},

		"HostTemplate.Name":    {func(in *kubeInput) { in.templates["main"] = HostTemplate{Name: "x", Pattern: mainPattern} }, ""},
		"HostTemplate.Pattern": {func(in *kubeInput) { in.templates["main"] = HostTemplate{Name: "main", Pattern: "new-" + mainPattern} }, "spec/publicHost"},

		"Region.Name":               region(func(r *Region) { r.Name = "usa" }, "metadata/labels/tuist.dev/region spec/region"),
		"Region.DisplayName":        region(func(r *Region) { r.DisplayName = "other" }, ""),
		"Region.ClusterID":          region(func(r *Region) { r.ClusterID = "us-2" }, "metadata/labels/app.kubernetes.io/instance metadata/name spec/grpcPublicHost spec/publicHost"),
		"Region.Hosts":              region(func(r *Region) { r.Hosts = RegionHosts{Public: "grpc"} }, hosts),
		"Region.Location":           region(func(r *Region) { r.Location, r.Hosts.Global = nil, "" }, "spec/cloudflarePoolLatitude spec/cloudflarePoolLongitude spec/globalPublicHost"),
		"Region.Readiness":          region(func(r *Region) { r.Readiness = Readiness{Path: "/x", Port: 8443} }, ""),
		"Region.DNS":                region(func(r *Region) { r.DNS = DNS{} }, ""),
		"Region.StallAfter":         region(func(r *Region) { r.StallAfter = maxStallAfter }, ""),
		"Region.MaxUnsettled":       region(func(r *Region) { r.MaxUnsettled = 7 }, ""),
		"Region.Remediation":        region(func(r *Region) { r.Remediation = RemediationObserve }, ""),
		"Region.Paused":             region(func(r *Region) { r.Paused = true }, ""),
		"Region.Cordoned":           region(func(r *Region) { r.Cordoned = true }, ""),
		"Region.Labels":             region(func(r *Region) { r.Labels = map[string]string{"a": "b"} }, ""),
		"Region.DeletionProtection": region(func(r *Region) { r.DeletionProtection = true }, ""),
		"Region.Sidecar":            region(func(r *Region) { r.Sidecar = nil }, ""),
		"Region.Kubernetes": region(func(r *Region) { r.Kubernetes = &Kubernetes{Cluster: "x", Image: "x", Namespace: "y"} },
			"metadata/namespace spec/extraEnv spec/image spec/ingressClassName spec/nodeSelector/kubernetes.io/arch spec/private spec/replicas spec/storageClassName spec/storageSize spec/tolerations"),

		"RegionHosts.Public": region(func(r *Region) { r.Hosts.Public = "grpc" }, "spec/publicHost"),
		"RegionHosts.GRPC":   region(func(r *Region) { r.Hosts.GRPC = "" }, "spec/grpcPublicHost"),
		"RegionHosts.Global": region(func(r *Region) { r.Hosts.Global = "" }, "spec/globalPublicHost"),
		"Location.Latitude":  region(func(r *Region) { r.Location.Latitude = 0 }, "spec/cloudflarePoolLatitude"),
		"Location.Longitude": region(func(r *Region) { r.Location.Longitude = -74.5 }, "spec/cloudflarePoolLongitude"),

		"Kubernetes.Cluster":        kube(func(k *Kubernetes) { k.Cluster = "other" }, ""),
		"Kubernetes.Namespace":      kube(func(k *Kubernetes) { k.Namespace = "other" }, "metadata/namespace"),
		"Kubernetes.Image":          kube(func(k *Kubernetes) { k.Image = "other:{image_tag}" }, "spec/image"),
		"Kubernetes.Replicas":       kube(func(k *Kubernetes) { k.Replicas = 0 }, "spec/replicas"),
		"Kubernetes.Storage":        kube(func(k *Kubernetes) { k.Storage = nil }, "spec/storageClassName spec/storageSize"),
		"Kubernetes.IngressClass":   kube(func(k *Kubernetes) { k.IngressClass = "traefik" }, "spec/ingressClassName"),
		"Kubernetes.NodeSelector":   kube(func(k *Kubernetes) { k.NodeSelector["a"] = "" }, "spec/nodeSelector/a"),
		"Kubernetes.Tolerations":    kube(func(k *Kubernetes) { k.Tolerations = nil }, "spec/tolerations"),
		"Kubernetes.Env":            kube(func(k *Kubernetes) { k.Env = map[string]string{"A": "2"} }, "spec/extraEnv"),
		"Kubernetes.EnvFrom":        kube(func(k *Kubernetes) { k.EnvFrom = []string{"tracing", "secrets"} }, "spec/extraEnv"),
		"Kubernetes.ExtraSpec":      kube(func(k *Kubernetes) { k.ExtraSpec = `{"private":false}` }, "spec/private"),
		"Kubernetes.ForceConflicts": kube(func(k *Kubernetes) { k.ForceConflicts = true }, ""),
		"Kubernetes.DeleteOrphans":  kube(func(k *Kubernetes) { k.DeleteOrphans = true }, ""),
		"Storage.Class":             kube(func(k *Kubernetes) { k.Storage.Class = "slow" }, "spec/storageClassName"),
		"Storage.Size":              kube(func(k *Kubernetes) { k.Storage.Size = "60Gi" }, "spec/storageSize"),
		"Toleration.Key":            kube(func(k *Kubernetes) { k.Tolerations[0].Key = "other" }, "spec/tolerations"),
		"Toleration.Operator":       kube(func(k *Kubernetes) { k.Tolerations[0].Operator = "" }, "spec/tolerations"),
		"Toleration.Value":          kube(func(k *Kubernetes) { k.Tolerations[0].Value = "other" }, "spec/tolerations"),
		"Toleration.Effect":         kube(func(k *Kubernetes) { k.Tolerations[0].Effect = "NoExecute" }, "spec/tolerations"),

		"Server.Account":            server(func(s *Server) { s.Account = "x" }, ""), // the account's record says it
		"Server.Region":             server(func(s *Server) { s.Region = "x" }, ""),  // the region's record says it
		"Server.ImageTag":           server(func(s *Server) { s.ImageTag = "2" }, "spec/image"),
		"Server.Overrides":          server(func(s *Server) { s.Overrides = &Overrides{} }, ""),
		"Server.Labels":             server(func(s *Server) { s.Labels = map[string]string{"a": "b"} }, ""),
		"Server.Remediation":        server(func(s *Server) { s.Remediation = RemediationObserve }, ""),
		"Server.Paused":             server(func(s *Server) { s.Paused = true }, ""),
		"Server.DeletionProtection": server(func(s *Server) { s.DeletionProtection = true }, ""),

		"KubernetesOverrides.Replicas":    over(KubernetesOverrides{Replicas: 5}, "spec/replicas"),
		"KubernetesOverrides.StorageSize": over(KubernetesOverrides{StorageSize: "70Gi"}, "spec/storageSize"),
		"KubernetesOverrides.Env":         over(KubernetesOverrides{Env: map[string]string{"B": "2"}}, "spec/extraEnv"),

		"Deployment.ImageTag":    {func(in *kubeInput) { in.latest.ImageTag = "2" }, "spec/image"},
		"Deployment.RestartMark": {func(in *kubeInput) { in.latest.RestartMark = "m" }, "metadata/annotations/dev.kura/restart-mark spec/extraEnv"},
		"Deployment.Seq":         {func(in *kubeInput) { in.latest.Seq, in.latest.Generation, in.latest.Status = 7, 7, DeploymentFailed }, ""},
		"Intent.Generation":      {func(in *kubeInput) { in.intent.Generation, in.intent.Deployment = 9, 9 }, ""},
		"Status.PublishedURL":    {func(in *kubeInput) { in.status.PublishedURL = "https://x.example" }, "spec/clientHostAliases"},
		"Status.Aliases":         {func(in *kubeInput) { in.status.Aliases = nil }, "spec/clientHostAliases"},
		"Status.Status":          {func(in *kubeInput) { in.status.Status, in.status.ServingImageTag = StatusFailed, "9" }, ""},
	}
}

// Each field that is declared is changed alone: the manifest changes where the row says, and
// nowhere else, and the revision with it (L3, L4, L50). A declared field without a row fails.
func TestL3_L4_kubernetesFieldsChangeTheRevision(t *testing.T) {
	edits := kubeEdits()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Environment](), reflect.TypeFor[Account](), reflect.TypeFor[HostTemplate](), reflect.TypeFor[Region](), reflect.TypeFor[RegionHosts](), reflect.TypeFor[Location](),
		reflect.TypeFor[Kubernetes](), reflect.TypeFor[Storage](), reflect.TypeFor[Toleration](), reflect.TypeFor[Server](), reflect.TypeFor[KubernetesOverrides](),
	} {
		for i := range typ.NumField() {
			field := typ.Name() + "." + typ.Field(i).Name
			if _, tested := edits[field]; !tested && field != "Region.Containers" {
				t.Errorf("%s is not tested: does it change the revision?", field)
			}
		}
	}
	base := sampleKube(t).render(t)
	for _, field := range sortedKeys(edits) {
		in := sampleKube(t)
		edits[field].edit(&in)
		got := in.render(t)
		if again := in.render(t); again.Revision != got.Revision {
			t.Errorf("%s: rendered twice, the revision is another", field)
		}
		if want := strings.Fields(edits[field].want); !slices.Equal(changedPaths(base, got), want) {
			t.Errorf("%s: changed %q, want %q", field, changedPaths(base, got), want)
		}
		if (got.Revision == base.Revision) != (edits[field].want == "") {
			t.Errorf("%s: the revision changed: %v, want the opposite", field, got.Revision != base.Revision)
		}
	}
}

func TestP13_everyChangeOfExtraSpecChangesTheRevision(t *testing.T) {
	revisions := map[string]string{}
	for _, spec := range []string{
		``, `{"private":true}`, `{"private":false}`, `{"private":""}`, `{"private":{}}`, `{"private":[]}`, `{"private":"true"}`, `{"private":1}`, `{"private":1.5}`, `{"private":"1"}`,
		`{"mesh":{"a":["x","y"]}}`, `{"mesh":{"a":["y","x"]}}`, `{"mesh":{"a":["x"]}}`, `{"mesh":{"b":["x","y"]}}`, `{"mesh":{"a":[{"x":"y"}]}}`, `{"mesh":{},"private":true}`,
	} {
		in := sampleKube(t)
		in.region.Kubernetes.ExtraSpec = spec
		got := in.render(t).Revision
		if other, taken := revisions[got]; taken {
			t.Errorf("%s renders as %s does", spec, other)
		}
		revisions[got] = spec
	}
}

func TestP13_whatSaysTheSameRendersTheSame(t *testing.T) {
	base := sampleKube(t).render(t)
	for name, edit := range map[string]func(in *kubeInput){
		"the default namespace": func(in *kubeInput) { in.region.Kubernetes.Namespace = DefaultNamespace },
		"defaults written out":  func(in *kubeInput) { in.region = in.region.WithDefaults() },
		"case of handles":       func(in *kubeInput) { in.account.Handle = strings.ToUpper(in.account.Handle) },
		"an override that says the same": func(in *kubeInput) {
			in.intent.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Replicas: 2, StorageSize: "50Gi", Env: map[string]string{"A": "1"}}}
		},
		"the tag appended": func(in *kubeInput) { in.region.Kubernetes.Image = "ghcr.io/kura/kura" },
		"a toleration said twice": func(in *kubeInput) {
			k := in.region.Kubernetes
			k.Tolerations = append(k.Tolerations, k.Tolerations[0])
		},
		"order of tolerations":      func(in *kubeInput) { slices.Reverse(in.region.Kubernetes.Tolerations) },
		"spaces in extra_spec":      func(in *kubeInput) { in.region.Kubernetes.ExtraSpec = " {\n\"private\" : true } " },
		"a deployment of the image": func(in *kubeInput) { in.latest.ImageTag = in.intent.ImageTag },
		"a set that nobody names":   func(in *kubeInput) { in.env.VariableSets["more"] = []string{"X"} },
		"an alias said twice": func(in *kubeInput) {
			in.status.Aliases = append(in.status.Aliases, in.status.Aliases[0], Alias{Host: "old.kura.example.dev"})
		},
	} {
		in := sampleKube(t)
		edit(&in)
		if got := in.render(t); got.Revision != base.Revision {
			t.Errorf("%s: the revision changed:\n%s", name, cmp.Diff(base.Manifest(), got.Manifest()))
		}
	}
}

func TestP13_L4_orderOfUnorderedKubernetesInputsDoesNotChangeTheRevision(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,6}`)
	rapid.Check(t, func(r *rapid.T) {
		dict := func(label string) map[string]string { return rapid.MapOfN(word, word, 0, 6).Draw(r, label) }
		a, b := sampleKube(t), sampleKube(t)
		toleration := rapid.Custom(func(r *rapid.T) Toleration {
			return Toleration{Key: word.Draw(r, "key"), Value: word.Draw(r, "value"), Effect: rapid.SampledFrom([]string{"", "NoSchedule", "NoExecute"}).Draw(r, "effect")}
		})
		x := a.region.Kubernetes
		x.Env, x.NodeSelector, x.Tolerations = dict("env"), dict("node selector"), rapid.SliceOfN(toleration, 0, 6).Draw(r, "tolerations")
		// The names of no two sets are equal, so their order means nothing.
		a.env.VariableSets = map[string][]string{}
		for i := range rapid.IntRange(0, 4).Draw(r, "sets") {
			set := fmt.Sprintf("set-%d", i)
			a.env.VariableSets[set] = []string{strings.ToUpper(set[:3]) + set[4:], "B" + set[4:]}
			x.EnvFrom = sortedKeys(a.env.VariableSets)
		}
		if len(a.env.VariableSets) == 0 {
			x.EnvFrom = nil
		}
		b.env.VariableSets = map[string][]string{}
		for set, names := range a.env.VariableSets {
			b.env.VariableSets[set] = rapid.Permutation(names).Draw(r, "names")
		}
		extra := dict("extra")
		x.ExtraSpec = jsonObject(sortedKeys(extra), extra)
		y := *x
		y.Env, y.NodeSelector = maps.Clone(x.Env), maps.Clone(x.NodeSelector)
		y.Tolerations, y.EnvFrom = rapid.Permutation(x.Tolerations).Draw(r, "other order"), rapid.Permutation(x.EnvFrom).Draw(r, "other sets")
		y.ExtraSpec = jsonObject(rapid.Permutation(sortedKeys(extra)).Draw(r, "other keys"), extra)
		b.region.Kubernetes = &y
		b.status.Aliases = rapid.Permutation([]Alias{{Host: "b.x"}, {Host: "a.x"}, {Host: "c.x"}}).Draw(r, "aliases")
		a.status.Aliases = []Alias{{Host: "a.x"}, {Host: "b.x"}, {Host: "c.x"}}
		if one, two := a.render(t), b.render(t); one.Revision != two.Revision {
			t.Fatalf("the order changed the revision:\n%s", cmp.Diff(one.Manifest(), two.Manifest()))
		}
	})
}

// jsonObject writes the entries under names that no field of ours has, in this order.
func jsonObject(keys []string, values map[string]string) string {
	var parts []string
	for _, key := range keys {
		parts = append(parts, fmt.Sprintf("%q:%q", "x-"+key, values[key]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
