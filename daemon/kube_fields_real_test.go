//go:build real

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// fieldChange is one change of a declaration, on top of the ones before it.
type fieldChange struct {
	name   string
	region func(*fleet.Region)
	server func(*fleet.Server)
	other  func(k *kurad, key fleet.ServerKey) // what is neither
	path   string                              // what it changes in the instance
	want   any
}

func kubeField(name, path string, want any, change func(*fleet.Kubernetes)) fieldChange {
	return fieldChange{name: name, region: kubernetesOf(change), path: path, want: want}
}

func fieldChanges() []fieldChange {
	overridden := func(change func(*fleet.KubernetesOverrides)) func(*fleet.Server) {
		return func(s *fleet.Server) {
			o := fleet.KubernetesOverrides{}
			if s.Overrides != nil {
				o = *s.Overrides.Kubernetes
			}
			change(&o)
			s.Overrides = &fleet.Overrides{Kubernetes: &o}
		}
	}
	return []fieldChange{
		{name: "region hosts.grpc", region: func(r *fleet.Region) { r.Hosts.GRPC = "grpc" }, path: "spec.grpcPublicHost", want: "grpc-fields-kube-fields-staging.kura.test"},
		{name: "region location", region: func(r *fleet.Region) { r.Location = &fleet.Location{Latitude: 52.5, Longitude: 13.25} }, path: "spec.cloudflarePoolLatitude", want: 52.5},
		{name: "region location.longitude", region: func(r *fleet.Region) { r.Location = &fleet.Location{Latitude: 52.5, Longitude: -4} }, path: "spec.cloudflarePoolLongitude", want: int64(-4)},
		{name: "region hosts.global", region: func(r *fleet.Region) { r.Hosts.Global = "global"; r.Readiness.Global = fleet.GlobalAdvisory }, path: "spec.globalPublicHost", want: "fields-staging.kura.test"},
		kubeField("region kubernetes.image", "spec.image", "mirror.kura.test/kura/cache:v1", func(r *fleet.Kubernetes) { r.Image = "mirror.kura.test/kura/cache:{image_tag}" }),
		kubeField("region kubernetes.replicas", "spec.replicas", int64(3), func(r *fleet.Kubernetes) { r.Replicas = 3 }),
		kubeField("region kubernetes.storage.class", "spec.storageClassName", "slow", func(r *fleet.Kubernetes) { r.Storage = &fleet.Storage{Class: "slow", Size: r.Storage.Size} }),
		kubeField("region kubernetes.storage.size", "spec.storageSize", "20Gi", func(r *fleet.Kubernetes) { r.Storage = &fleet.Storage{Class: r.Storage.Class, Size: "20Gi"} }),
		kubeField("region kubernetes.ingress_class", "spec.ingressClassName", "haproxy", func(r *fleet.Kubernetes) { r.IngressClass = "haproxy" }),
		kubeField("region kubernetes.ingress_class, none", "spec.ingressClassName", nil, func(r *fleet.Kubernetes) { r.IngressClass = "" }),
		kubeField("region kubernetes.node_selector", "spec.nodeSelector.pool", "bigger", func(r *fleet.Kubernetes) { r.NodeSelector = map[string]string{"pool": "bigger"} }),
		kubeField("region kubernetes.node_selector, another key", "spec.nodeSelector.pool", nil, func(r *fleet.Kubernetes) { r.NodeSelector = map[string]string{"disk": "nvme"} }),
		kubeField("region kubernetes.tolerations", "spec.tolerations", []any{map[string]any{"key": "gpu", "operator": "Exists"}}, func(r *fleet.Kubernetes) {
			r.Tolerations = []fleet.Toleration{{Key: "gpu", Operator: "Exists"}}
		}),
		kubeField("region kubernetes.env", "spec.extraEnv", []any{map[string]any{"name": "ALPHA", "value": "2"}}, func(r *fleet.Kubernetes) { r.Env = map[string]string{"ALPHA": "2"} }),
		kubeField("region kubernetes.env_from", "spec.extraEnv", []any{
			map[string]any{"name": "ALPHA", "value": "2"},
			map[string]any{"name": "TOKEN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "shared", "key": "TOKEN"}}},
		}, func(r *fleet.Kubernetes) { r.EnvFrom = []string{"shared"} }),
		kubeField("region kubernetes.env_from, none", "spec.extraEnv", []any{map[string]any{"name": "ALPHA", "value": "2"}}, func(r *fleet.Kubernetes) { r.EnvFrom = nil }),
		kubeField("region kubernetes.extra_spec", "spec.podAnnotations.scrape", "yes", func(r *fleet.Kubernetes) { r.ExtraSpec = `{"podAnnotations":{"scrape":"yes"}}` }),
		{name: "server overrides.replicas", server: overridden(func(o *fleet.KubernetesOverrides) { o.Replicas = 5 }), path: "spec.replicas", want: int64(5)},
		{name: "server overrides.storage_size", server: overridden(func(o *fleet.KubernetesOverrides) { o.StorageSize = "50Gi" }), path: "spec.storageSize", want: "50Gi"},
		{name: "server overrides.env", server: overridden(func(o *fleet.KubernetesOverrides) { o.Env = map[string]string{"ALPHA": "3"} }), path: "spec.extraEnv", want: []any{map[string]any{"name": "ALPHA", "value": "3"}}},
		{name: "server image_tag", server: func(s *fleet.Server) { s.ImageTag = "v2" }, path: "spec.image", want: "mirror.kura.test/kura/cache:v2"},
		{name: "a redeploy", path: "metadata.annotations", other: func(k *kurad, key fleet.ServerKey) {
			if _, err := k.client.Redeploy(k.t.Context(), key, "once"); err != nil {
				k.t.Fatal(err)
			}
		}},
		{name: "account handle", path: "spec.accountHandle", want: "renamed", other: func(k *kurad, key fleet.ServerKey) {
			k.putAccount(fleet.Account{ID: key.Account, Handle: "renamed"})
		}},
		{name: "host template", path: "spec.publicHost", want: "c-renamed-kube-fields-staging.kura.test", other: func(k *kurad, _ fleet.ServerKey) {
			k.putTemplate("public", "c-{account_handle}-{cluster_id}{env_suffix}.kura.test")
		}},
	}
}

func TestP13_P14_L3_L4_everyChangedFieldIsAppliedOnceAndThenNothing(t *testing.T) {
	t.Parallel()
	const tick, quiet = 100 * time.Millisecond, 5 // ticks after each change
	s := newSite(t)
	set := filepath.Join(t.TempDir(), "shared.env")
	if err := os.WriteFile(set, []byte("TOKEN=secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	region := s.region("kube-fields", func(r *fleet.Region) { r.Kubernetes.EnvFrom = nil })
	k := s.kurad("--tick", tick.String(), "--env-set", "shared="+set)
	k.introduce(region, "fields")
	k.putTemplate("grpc", "grpc-{account_handle}-{cluster_id}{env_suffix}.kura.test")
	k.putTemplate("global", "{account_handle}{env_suffix}.kura.test")
	key := fleet.ServerKey{Account: "fields", Region: region.Name}
	server := fleet.Server{Account: key.Account, Region: key.Region, ImageTag: "v1"}
	k.putServer(server)
	name := k.converged(key, "v1").Instance
	applied := 1
	check := func(after string) {
		t.Helper()
		if n := s.applies(name); n != applied {
			t.Errorf("after %s there are %d applies, want %d", after, n, applied)
			applied = n
		}
	}
	check("the creation")
	uid := s.object(name).GetUID()
	for _, c := range fieldChanges() {
		before := s.object(name)
		switch {
		case c.region != nil:
			// Changes of one are not to reach what the store was given before.
			changed := region
			spec := *region.Kubernetes
			changed.Kubernetes = &spec
			c.region(&changed)
			region = changed
			k.putRegion(region)
		case c.server != nil:
			c.server(&server)
			k.putServer(server)
		default:
			c.other(k, key)
		}
		applied++
		v := k.until(key, "has settled on "+c.name, func(v fleet.ServerView) bool {
			return isConverged(v) && s.applies(name) >= applied && v.Resource != nil && v.DeclaredURL == v.PublishedURL
		})
		after := s.object(name)
		if got := at(after, c.path); c.want != nil && !cmp.Equal(c.want, got) || cmp.Equal(at(before, c.path), got) {
			t.Errorf("%s: %s is %v, want %v; it was %v", c.name, c.path, got, c.want, at(before, c.path))
		}
		check(c.name)
		pause(t.Context(), quiet*tick)
		check(c.name + ", and some ticks")
		if now := s.object(name); revisionOf(now) != revisionOf(after) && now.GetGeneration() != after.GetGeneration() {
			t.Errorf("%s: the instance went on changing (-then +now):\n%s", c.name, cmp.Diff(after.Object, now.Object))
		}
		if after.GetUID() != uid || len(v.Resource.Differs)+len(v.Resource.Held)+len(v.Resource.Dropped) > 0 {
			t.Errorf("%s: the server is %s with %+v", c.name, brief(v), v.Resource)
		}
	}
	// What is declared and not rendered is applied by nobody.
	for what, change := range map[string]func(){
		"labels and display name": func() { region.DisplayName, region.Labels = "Fields", map[string]string{"a": "b"}; k.putRegion(region) },
		"stall_after":             func() { region.StallAfter = fleet.Duration(time.Hour); k.putRegion(region) },
		"max_unsettled":           func() { region.MaxUnsettled = 3; k.putRegion(region) },
		"server labels":           func() { server.Labels = map[string]string{"a": "b"}; k.putServer(server) },
		"the same once more": func() {
			if w, err := k.client.PutServer(t.Context(), server, api.PutOptions{}); err != nil || w.Changed {
				t.Errorf("an equal declaration changed something: %+v, %v", w, err)
			}
		},
	} {
		change()
		pause(t.Context(), quiet*tick)
		k.converged(key, "v2")
		check(what)
	}
	if list := k.deployments(key); len(list) != 3 || slices.ContainsFunc(list, func(d fleet.Deployment) bool { return d.Status != fleet.DeploymentSucceeded }) {
		t.Errorf("deployments %+v; want those of the creation, the image and the redeploy, succeeded", list)
	}
	if _, text := k.events(key); strings.Contains(text, "Warning") {
		t.Errorf("there were warnings:\n%s", text)
	}
}
