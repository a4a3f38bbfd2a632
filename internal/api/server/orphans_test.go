package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestK5_orphansOfAClusterAreListedBesideContainers(t *testing.T) {
	w := newKubeWorld(t, "acme")
	for _, r := range []fleet.Region{kubeRegion("us"), kubeRegion("ap")} {
		r.Kubernetes.Namespace = r.Name
		r.Kubernetes.DeleteOrphans = r.Name == "us"
		w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
	}
	w.put(srv("acme", "eu", "v1"))
	since := w.clock.now()
	instance := func(account, region, name string) fleet.KubeInstance {
		return fleet.KubeInstance{Name: name, UID: "uid-" + name, Account: account, Region: region, SpecImage: "registry.test/cache:v1", Phase: "Ready"}
	}
	foreign := instance("lost", "eu", "kura-other-eu")
	foreign.Foreign = "environment production"
	eu := fleet.KubeListing{Cluster: "prod", Namespace: "kura", Begun: since, Instances: []fleet.KubeInstance{
		instance("acme", "eu", "kura-acme-copy"), instance("acme", "eu", "kura-acme-eu"), instance("acme", "us", "kura-acme-us"), instance("lost", "eu", "kura-lost-eu"), foreign,
	}, Since: map[string]time.Time{"uid-kura-lost-eu": since}}
	us := fleet.KubeListing{
		Cluster: "prod", Namespace: "us", Begun: since, Instances: []fleet.KubeInstance{instance("lost", "us", "kura-lost-us")},
		Unreadable: &fleet.ReadFailure{Reason: fleet.ReasonRuntimeRefused, Message: "Unauthorized", Since: since, Count: 3},
	}
	w.turns.mu.Lock()
	w.turns.kubeListings = []fleet.KubeListing{eu, us}
	w.turns.listings = []fleet.Listing{{Endpoint: "podman", Begun: since}}
	w.turns.mu.Unlock()
	item := func(account, region, namespace, name string) api.Orphan {
		return api.Orphan{Cluster: "prod", Namespace: namespace, Name: name, ID: "uid-" + name, Image: "registry.test/cache:v1", Phase: "Ready", Account: account, Region: region}
	}
	lost := item("lost", "eu", "kura", "kura-lost-eu")
	lost.Since = &since
	soon := item("lost", "us", "us", "kura-lost-us")
	soon.Deletes = true
	want := api.Orphans{
		Items: []api.Orphan{item("acme", "eu", "kura", "kura-acme-copy"), item("acme", "us", "kura", "kura-acme-us"), lost, soon},
		Unreadable: []api.UnreadableEndpoint{
			{Cluster: "prod", Namespace: "ap", Reason: fleet.ReasonNotObservedYet, Message: "it was not listed yet by the kurad that answers"},
			{Cluster: "prod", Namespace: "us", Reason: fleet.ReasonRuntimeRefused, Message: "Unauthorized", Since: &since},
		},
	}
	got, err := w.clientWith(w.token("reader", fleet.ScopeRead)).Orphans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	w.runtimes.kube = nil // a kurad that was started without it
	w.turns.mu.Lock()
	w.turns.kubeListings = nil
	w.turns.mu.Unlock()
	got, err = w.client.Orphans(t.Context())
	if err != nil || len(got.Unreadable) != 3 || got.Unreadable[0].Reason != fleet.ReasonEndpointUnreachable || len(got.Items) != 0 {
		t.Errorf("without the cluster: %+v, %v", got, err)
	}
}
