package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// knownHosts is what is known of hosts, as it is told to be.
type knownHosts struct {
	reads  map[string]fleet.HostRead
	shared map[string]string   // environment by owner id
	lacks  map[string][]string // by domain
	asked  int
}

func (k *knownHosts) Host(_ context.Context, host, _ string) (fleet.HostRead, bool) {
	k.asked++
	r, known := k.reads[host]
	r.Host = host
	return r, known
}

func (k *knownHosts) SharedOwner(owner string) (environment, domain string) {
	if k.shared[owner] == "" {
		return "", ""
	}
	return k.shared[owner], "kura.test"
}

func (k *knownHosts) Lacks(host string) (domain string, missing []string) {
	for domain, missing := range k.lacks {
		if strings.HasSuffix(host, "."+domain) {
			return domain, missing
		}
	}
	return "", nil
}

// checks makes the region one that checks whose its hosts are.
func (w *world) checks(name string) (warnings []fleet.Warning) {
	w.t.Helper()
	r, err := w.client.GetRegion(w.t.Context(), name)
	w.must(nil, err)
	r.DNS = fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: "kura-staging"}
	out, err := w.client.PutRegion(w.t.Context(), r.Region, api.PutOptions{DryRun: true})
	w.must(nil, err)
	w.must(w.client.PutRegion(w.t.Context(), r.Region, api.PutOptions{}))
	w.viewed()
	return out.Warnings
}

func TestD3_aDryRunSaysWhoseHostsAre(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme", "bravo")
	const host = "acme-eu-staging.kura.test"
	w.hosts.reads = map[string]fleet.HostRead{
		host:                          {Ownership: fleet.OwnershipForeign, Owners: []string{"production"}, Detail: `belongs to "production" of environment "production"`},
		"bravo-eu-staging.kura.test":  {Ownership: fleet.OwnershipOurs},
		"apex-eu-staging.kura.test":   {Ownership: fleet.OwnershipUnreadable, Detail: "has an ownership record that cannot be read"},
		"acme-eu-2-staging.kura.test": {Ownership: fleet.OwnershipForeign, Owners: []string{"a", "b"}},
	}
	w.hosts.shared, w.hosts.lacks = map[string]string{"kura-staging": "production"}, map[string][]string{"kura.test": {"DNS:Edit"}}
	dry := func(s fleet.Server) []fleet.Warning {
		t.Helper()
		out, err := w.client.PutServer(t.Context(), s, api.PutOptions{DryRun: true})
		w.must(nil, err)
		return out.Warnings
	}
	if got := dry(srv("acme", "eu", "v1")); len(got) != 0 || w.hosts.asked != 0 {
		t.Errorf("a region that checks nothing: %+v, %d hosts asked for", got, w.hosts.asked)
	}
	w.give("kura.test,cloudflare=/etc/token")
	planned := w.checks("eu")
	want := func(got []fleet.Warning, codes string, words ...string) {
		t.Helper()
		var have, text []string
		for _, g := range got {
			have, text = append(have, string(g.Code)), append(text, g.Detail)
		}
		if strings.Join(have, " ") != codes {
			t.Errorf("warnings %v, want %s", have, codes)
		}
		for _, word := range words {
			if !strings.Contains(strings.Join(text, "\n"), word) {
				t.Errorf("%q is not said in %q", word, text)
			}
		}
	}
	want(planned, "shared_owner zone_token", "is in use by environment \"production\", too (in zone kura.test)")
	got := dry(srv("acme", "eu", "v1"))
	want(got, "foreign_host shared_owner zone_token", host+` belongs to "production" of environment "production"`, `owner id "kura-staging" is in use by environment "production"`, "zone kura.test lacks DNS:Edit", "kurad dns take")
	if got[0].Reason != fleet.ReasonForeignOwner || got[0].Cause != "production" {
		t.Errorf("%+v", got[0])
	}
	w.hosts.shared, w.hosts.lacks = nil, nil
	want(dry(srv("bravo", "eu", "v1")), "")
	w.put(srv("acme", "eu", "v1")) // it is declared all the same
	want(dry(srv("acme", "eu", "v2")), "foreign_host")
	// A new handle moves it to another host, of which that counts.
	account := func(handle string) []fleet.Warning {
		t.Helper()
		out, err := w.client.PutAccount(t.Context(), fleet.Account{ID: "acme", Handle: handle}, api.PutOptions{DryRun: true})
		w.must(nil, err)
		return out.Warnings
	}
	moved := account("apex")
	want(moved, "hosts_move no_alias foreign_host", "apex-eu-staging.kura.test has an ownership record that cannot be read")
	if moved[2].Reason != fleet.ReasonUnreadableOwner {
		t.Errorf("%+v", moved[2])
	}
	want(account("new"), "hosts_move no_alias")
	// A template moves them all, and is one warning.
	out, err := w.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}-2{env_suffix}.kura.test"}, api.PutOptions{DryRun: true})
	w.must(nil, err)
	want(out.Warnings, "hosts_move no_alias foreign_host", "1 host is not this environment's: acme-eu-2-staging.kura.test is not ours")
	if out.Warnings[2].Reason != fleet.ReasonAmbiguousOwner {
		t.Errorf("%+v", out.Warnings[2])
	}
}
