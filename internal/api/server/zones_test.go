package server_test

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// givenZones are the zones that a daemon was given.
type givenZones struct{ dns.Zones }

func (w *world) give(flags ...string) {
	w.t.Helper()
	zs, err := dns.ParseZones(flags)
	if err != nil {
		w.t.Fatal(err)
	}
	w.zones.Zones = zs
}

// What is needed to know whose hosts are, and to write them, is missed when a region is declared, or a
// template changed, and named with what there is.
func TestD3_hostsWhoseOwnersAreCheckedLieInZonesThatWereGiven(t *testing.T) {
	w := newWorld(t)
	for name, pattern := range map[string]string{"public": "{account_handle}-{cluster_id}{env_suffix}.kura.test", "away": "{account_handle}-{cluster_id}{env_suffix}.away.test", "global": "{account_handle}-g{env_suffix}.kura.test"} {
		w.must(w.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: name, Pattern: pattern}, api.PutOptions{}))
	}
	external := func(r *fleet.Region) { r.DNS = fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: "staging"} }
	managed := func(r *fleet.Region) {
		r.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: "staging", Target: "192.0.2.1"}
	}
	global := func(mode func(*fleet.Region)) func(*fleet.Region) {
		return func(r *fleet.Region) {
			mode(r)
			r.Hosts.Global = "global"
			r.Location = &fleet.Location{Latitude: 50.1, Longitude: 8.7}
		}
	}
	away := func(r *fleet.Region) { external(r); r.Hosts.Public = "away" }
	const token = ",cloudflare=/etc/token"
	for _, c := range []struct {
		name    string
		given   []string
		region  func(*fleet.Region)
		pointer string // "": it is taken
		says    []string
	}{
		{"no zone at all", nil, external, "/hosts/public", []string{"kura.test", "it has: none", "--zone kura.test"}},
		{"another zone", []string{"other.test", "else.test"}, external, "/hosts/public", []string{"else.test, other.test", "dns.mode"}},
		{"its zone", []string{"kura.test"}, external, "", nil},
		{"the zone above", []string{"test"}, external, "", nil},
		{"a template of another zone", []string{"kura.test"}, away, "/hosts/public", []string{"away.test"}},
		{"managed without a token", []string{"kura.test"}, managed, "/hosts/public", []string{"managed", "without a token", "--zone kura.test,cloudflare="}},
		{"managed with one", []string{"kura.test" + token}, managed, "", nil},
		{"a global host without a token", []string{"kura.test"}, global(external), "/hosts/global", []string{"load balancer", "--zone kura.test,cloudflare="}},
		{"a global host with one", []string{"kura.test" + token}, global(external), "", nil},
		{"a global host, and nobody checks", nil, global(func(*fleet.Region) {}), "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.give(c.given...)
			r := region("eu")
			c.region(&r)
			_, err := w.client.PutRegion(t.Context(), r, api.PutOptions{})
			if c.pointer == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := w.client.DeleteRegion(t.Context(), "eu"); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || fleet.CodeOf(err) != fleet.CodeInvalid {
				t.Fatalf("%v, want it refused", err)
			}
			for _, part := range append(c.says, c.pointer) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v does not say %q", err, part)
				}
			}
		})
	}
	w.give("kura.test")
	r := region("eu")
	external(&r)
	w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
	_, err := w.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.away.test"}, api.PutOptions{})
	if err == nil || !strings.Contains(err.Error(), "/pattern") || !strings.Contains(err.Error(), `region "eu"`) || !strings.Contains(err.Error(), "--zone away.test") {
		t.Errorf("a template that moves to no zone: %v", err)
	}
}

func TestD7_whatATokenLacksIsACondition(t *testing.T) {
	var lacks []string
	w := newWorld(t, func(c *server.Config) {
		c.ZoneNames = []string{"kura.test"}
		c.ZoneTrouble = func() (fleet.Reason, []string) {
			if len(lacks) == 0 {
				return "", nil
			}
			return fleet.ReasonZoneForbidden, lacks
		}
	})
	usable := func() api.DaemonCondition {
		v, err := w.client.Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v.Conditions[len(v.Conditions)-1]
	}
	if c := usable(); c.Type != api.ConditionZonesUsable || c.Status != fleet.True {
		t.Errorf("%+v", c)
	}
	lacks = []string{"zone kura: its token lacks DNS:Edit", "zone b: away"}
	if c := usable(); c.Status != fleet.False || c.Reason != fleet.ReasonZoneForbidden || c.Message != "zone kura: its token lacks DNS:Edit; zone b: away" {
		t.Errorf("%+v", c)
	}
}
