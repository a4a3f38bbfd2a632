//go:build real

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// A server in a zone that kurad writes is published, found by its name, put behind its account's
// global host, repaired when somebody edits the zone, also after kurad was killed, and leaves
// nothing of its own there; what others have stays.
func TestD0_aServerIsPublishedBalancedAndWithdrawn(t *testing.T) {
	t.Parallel()
	cf, err := cloudflare.New(cloudflare.Options{
		Zones: []cloudflare.Zone{{Name: "kura.test"}}, Tokens: []cloudflare.Token{{Value: "secret-of-kurad", Name: "kurad"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cf.Close() })
	other := cloudflare.Record{Name: "other-eu.kura.test", Type: "A", Content: "192.0.2.9", TTL: 60}
	if err := cf.SeedExternalDNS("production", "ingress/kura/other", cloudflare.TXTNew, other); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret-of-kurad\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := startKurad(t, "--zone", "kura.test,cloudflare="+token+",api="+cf.URL(), "--resolver", cf.DNS().Addr())
	key := fleet.ServerKey{Account: "acme", Region: "eu-tracks"}
	if _, err := k.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "global", Pattern: "{account_handle}{env_suffix}.kura.test"}, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	k.declare(region(key.Region, func(r *fleet.Region) {
		r.Hosts.Global, r.Location = "global", &fleet.Location{Latitude: 50.1, Longitude: 8.7}
		r.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: "staging", Target: "127.0.0.1"}
	}), key.Account)
	const host, global = "acme-eu-tracks-staging.kura.test", "acme-staging.kura.test"
	leads := func() error {
		for _, p := range cf.Pools() {
			if len(p.Origins) != 1 || p.Origins[0].Address != host {
				return fmt.Errorf("the pool leads to %+v", p.Origins)
			}
		}
		if at := cf.Records(host, "A"); len(at) != 1 || at[0].Content != "127.0.0.1" {
			return fmt.Errorf("%s is %+v", host, at)
		}
		if b, ok := cf.Balancers()[global]; !ok || len(b.DefaultPools) != 1 || len(cf.Pools()) != 1 {
			return fmt.Errorf("the load balancer of %s is %+v, of pools %+v", global, b, cf.Pools())
		}
		return nil
	}
	k.put(key, "v1")
	v := k.converged(key, "v1")
	if err := leads(); err != nil {
		t.Error(err)
	}
	if c := condition(v, fleet.ConditionGlobalEndpointReady); c.Status != fleet.True || owned(v).Status != fleet.True {
		t.Errorf("%+v, %+v", c, owned(v))
	}
	k.kill()
	cf.Edit(host, "A", "192.0.2.66")
	cf.DeleteBalancer(global)
	k.start()
	eventually(t, "what was edited is restored", func() error {
		_, err := k.client.GetServer(t.Context(), key, api.GetOptions{ObserveNow: true})
		return errors.Join(err, leads())
	})
	k.converged(key, "v1")
	k.delete(key)
	k.gone(key)
	if left := cf.Records(host, ""); len(left) > 0 || len(cf.Balancers()) > 0 || len(cf.Pools()) > 0 {
		t.Errorf("left of it: %+v, %+v, %+v", left, cf.Balancers(), cf.Pools())
	}
	if kept := cf.Records(other.Name, "A"); len(kept) != 1 || slices.ContainsFunc(cf.History(), func(c cloudflare.Change) bool { return c.By == "kurad" && c.Name == other.Name }) {
		t.Errorf("of another is left: %+v", kept)
	}
}
