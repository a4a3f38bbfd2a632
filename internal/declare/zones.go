package declare

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// inZones checks that whose the hosts of a region are can be known and, where kurad writes
// records or a load balancer, written: all of them lie in zones that the daemon was given.
func (d *Declarer) inZones(r fleet.Region, templates map[string]store.Versioned[fleet.HostTemplate]) error {
	var v fleet.Invalid
	for _, h := range [][2]string{{"public", r.Hosts.Public}, {"grpc", r.Hosts.GRPC}, {"global", r.Hosts.Global}} {
		if t := templates[h[1]]; h[1] != "" && t.Exists() {
			if fault := d.zoneFault(r, t.Value, h[0] == "global"); fault != "" {
				v.Add("/hosts/"+h[0], "host template %q %s", h[1], fault)
			}
		}
	}
	return v.Err(nameRegion(r))
}

// templateInZones checks a changed template for every region that names it.
func (d *Declarer) templateInZones(ctx context.Context, t fleet.HostTemplate) error {
	if err := d.catchUp(ctx); err != nil {
		return err
	}
	var v fleet.Invalid
	for _, r := range store.Values(d.view.Regions()) {
		if r.Hosts.Public != t.Name && r.Hosts.GRPC != t.Name && r.Hosts.Global != t.Name {
			continue
		}
		if fault := d.zoneFault(r, t, r.Hosts.Global == t.Name); fault != "" {
			v.Add("/pattern", "%s (for region %q)", fault, r.Name)
		}
	}
	return v.Err(fmt.Sprintf("host template %q", t.Name))
}

// zoneFault says what the daemon lacks for the hosts of a template in a region; "": nothing.
func (d *Declarer) zoneFault(r fleet.Region, t fleet.HostTemplate, global bool) string {
	mode := cmp.Or(r.DNS.Mode, fleet.DNSNone)
	if mode == fleet.DNSNone {
		return ""
	}
	under := fleet.Zone(t.Pattern)
	domain, token := d.zones.Has("any." + under)
	switch {
	case domain == "":
		return fmt.Sprintf("renders hosts under %s, and this kurad was given no zone that has them (it has: %s); start it with --zone %s, or set dns.mode = \"none\"",
			under, cmp.Or(strings.Join(d.zones.Domains(), ", "), "none"), under)
	case token:
	case global:
		return fmt.Sprintf("is of the global host, whose load balancer kurad keeps in zone %s, and that was given without a token; start kurad with --zone %s,cloudflare=<file with the token>", domain, domain)
	case mode == fleet.DNSManaged:
		return fmt.Sprintf("renders hosts whose records kurad is to write in zone %s (dns.mode = \"managed\"), and that was given without a token; start kurad with --zone %s,cloudflare=<file with the token>", domain, domain)
	}
	return ""
}
