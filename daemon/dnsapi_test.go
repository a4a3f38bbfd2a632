package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// inZone starts a daemon of staging that was given the zone kura.test of an emulated Cloudflare,
// with what is there already, and a server of a region that checks whose its hosts are.
func inZone(t *testing.T, seed func(*cloudflare.Emulator)) (*inProcess, *cloudflare.Emulator) {
	t.Helper()
	noEnvironment(t)
	cf, err := cloudflare.New(cloudflare.Options{Zones: []cloudflare.Zone{{Name: "kura.test"}}, Tokens: []cloudflare.Token{{Value: "secret", Name: "kurad-staging"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cf.Close() })
	seed(cf)
	o := optionsFor(t)
	o.zones = []string{"kura.test,cloudflare=" + file(t, "secret\n") + ",api=" + cf.URL() + ",server=" + cf.DNS().Addr()}
	p := startInProcess(t, o)
	t.Setenv("KURA_DATA_DIR", o.dataDir)
	declareAcme(t, p.client)
	r, err := p.client.GetRegion(t.Context(), acme.Region)
	if err != nil {
		t.Fatal(err)
	}
	r.DNS = fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: "kura-staging"}
	if _, err := p.client.PutRegion(t.Context(), r.Region, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	return p, cf
}

func seedHost(t *testing.T, cf *cloudflare.Emulator, owner, resource, host string) {
	t.Helper()
	if err := cf.SeedExternalDNS(owner, resource, cloudflare.TXTNew, cloudflare.Record{Name: host, Type: "A", Content: "192.0.2.1", TTL: 300}); err != nil {
		t.Fatal(err)
	}
}

// audited waits until the audit says of a host that it is so.
func audited(t *testing.T, c *api.Client, host string, kind fleet.FindingKind) (a api.DNSAudit, f fleet.Finding) {
	t.Helper()
	soon(t, fmt.Sprintf("host %s is %s", host, kind), func() (err error) {
		if a, err = c.DNSAudit(t.Context(), api.DNSFilter{Kind: kind}); err != nil {
			return err
		}
		for _, f = range a.Items {
			if f.Host == host {
				return nil
			}
		}
		return fmt.Errorf("the audit has %+v of %+v", a.Items, a.Zones)
	})
	return a, f
}

// What people do who find that their host leads to another environment: the plan and the audit
// name the owner, what is theirs and stale is deleted, and the host is taken on purpose.
func TestD6_aShadowedHostIsFoundAndTakenAndWhatIsStaleIsPruned(t *testing.T) {
	const host = "acme-eu-staging.kura.test"
	p, cf := inZone(t, func(cf *cloudflare.Emulator) {
		seedHost(t, cf, "kura-production", "ingress/prod/web", host)
		seedHost(t, cf, "kura-production", "ingress/prod/web", "acme-eu.kura.test")
		seedHost(t, cf, "kura-staging", "kura-staging/eu/acme", "old-eu.kura.test")
		if err := cf.Seed("somebody", cloudflare.Record{Name: "bare-eu.kura.test", Type: "A", Content: "192.0.2.9", TTL: 300}); err != nil {
			t.Fatal(err)
		}
	})
	a, f := audited(t, p.client, host, fleet.FindingForeign)
	if a.Clean() || f.Owners[0] != "kura-production" || f.Account != "acme" || f.Region != "eu" || f.Prunable || len(a.Zones) != 1 || a.Zones[0].Listed == nil {
		t.Errorf("%+v %+v", a, f)
	}
	out, _, err := kuradCommand(t, "dns", "audit")
	if exitCode(err) != exitFindings || !strings.Contains(out, host) || !strings.Contains(out, "kura-production") || !strings.Contains(out, "old-eu.kura.test") || strings.Contains(out, "bare-eu") {
		t.Errorf("%v\n%s", err, out)
	}
	change, err := p.client.PutServer(t.Context(), fleet.Server{Account: "acme", Region: "eu", ImageTag: "v2"}, api.PutOptions{DryRun: true})
	if err != nil || !strings.Contains(fmt.Sprint(change.Warnings), host+" belongs to \"kura-production\"") {
		t.Errorf("the plan is told %+v, %v", change.Warnings, err)
	}

	_, _, err = kuradCommand(t, "dns", "prune")
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || len(cf.Records("old-eu.kura.test", "")) != 1 {
		t.Errorf("a prune without --yes: %v", err)
	}
	if got := ok(t, "dns", "prune", "--yes"); !strings.Contains(got, "deleted: old-eu.kura.test\n") || strings.Count(got, "deleted: ") != 1 {
		t.Errorf("the prune says:\n%s", got)
	}
	for name, want := range map[string]int{"old-eu.kura.test": 0, "a-old-eu.kura.test": 0, host: 1, "a-" + host: 1, "acme-eu.kura.test": 1, "a-acme-eu.kura.test": 1, "bare-eu.kura.test": 1} {
		if got := len(cf.Records(name, "")); got != want {
			t.Errorf("%s has %d records, want %d", name, got, want)
		}
	}
	if got := ok(t, "dns", "prune", "--yes"); !strings.Contains(got, "there is nothing to delete") {
		t.Errorf("once more:\n%s", got)
	}

	refused(t, []string{"dns", "take", host, "--from", "canary", "--yes"}, `"canary"`, `"kura-production"`)
	refused(t, []string{"dns", "take", "acme-eu.kura.test", "--from", "kura-production", "--yes"}, `no server of environment "staging" wants it`)
	refused(t, []string{"dns", "take", host, "--from", "kura-production"}, "nothing was changed", "--yes")
	if got := ok(t, "dns", "take", host, "--from", "kura-production", "--yes"); !strings.Contains(got, "taken: host "+host+" is owner kura-staging's now, for server acme/eu\n") {
		t.Errorf("the take says:\n%s", got)
	}
	if txt := cf.Records("a-"+host, "TXT"); len(txt) != 1 || !strings.Contains(txt[0].Content, "owner=kura-staging") || len(cf.Records("acme-eu.kura.test", "")) != 1 {
		t.Errorf("the ownership record is %+v", txt)
	}
	if got := ok(t, "dns", "take", host, "--from", "kura-production", "--yes"); !strings.Contains(got, "already") {
		t.Errorf("once more:\n%s", got)
	}
	var said []string
	events, err := p.client.Events(t.Context(), api.EventFilter{Account: "acme", Region: "eu"})
	for _, e := range events {
		said = append(said, e.Reason)
	}
	if all := strings.Join(said, " "); err != nil || strings.Count(all, "DNSPruned") != 1 || strings.Count(all, "DNSTaken") != 1 {
		t.Errorf("events %v, %v", said, err)
	}
	audited(t, p.client, host, fleet.FindingOurs)
}

// A zone that does not answer says so, in each of the ways to ask.
func TestD5_aZoneThatDoesNotAnswerIsNoCleanOne(t *testing.T) {
	p, cf := inZone(t, func(cf *cloudflare.Emulator) {
		seedHost(t, cf, "kura-staging", "ingress/staging/web", "acme-eu-staging.kura.test")
		seedHost(t, cf, "kura-staging", "ingress/staging/web", "old-eu.kura.test")
	})
	audited(t, p.client, "acme-eu-staging.kura.test", fleet.FindingOurs)
	cf.Revoke("secret")
	out, _, err := kuradCommand(t, "dns", "prune", "--yes")
	if err == nil || !strings.Contains(out, "zone kura.test cannot be listed") || len(cf.Records("old-eu.kura.test", "")) != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	_, err = p.client.PruneDNS(t.Context(), fleet.PruneRequest{Zone: "kura.test", Hosts: []string{"old-eu.kura.test"}}, false)
	if code := fleet.CodeOf(err); err == nil || code != fleet.CodeConflict && code != fleet.CodeUnavailable || !strings.Contains(err.Error(), "kura.test") {
		t.Errorf("%v", err)
	}
}

// What passes is unavailable, and says when to come back; what somebody has to remove is a conflict.
func TestG8_whatAZonesProviderSaysIsAProblemOfItsKind(t *testing.T) {
	for reason, c := range map[fleet.Reason]struct {
		said dns.Error
		code fleet.Code
	}{
		fleet.ReasonRateLimited:     {dns.Error{Class: fleet.ClassTransient, After: time.Minute}, fleet.CodeUnavailable},
		fleet.ReasonZoneUnreachable: {dns.Error{Class: fleet.ClassTransient}, fleet.CodeUnavailable},
		fleet.ReasonDrifted:         {dns.Error{Class: fleet.ClassRefused, NotFound: true}, fleet.CodeUnavailable},
		fleet.ReasonZoneForbidden:   {dns.Error{Class: fleet.ClassRefused}, fleet.CodeConflict},
		fleet.ReasonQuotaExceeded:   {dns.Error{Class: fleet.ClassRefused}, fleet.CodeConflict},
	} {
		c.said.Reason, c.said.Message = reason, "the provider's words"
		err := answered(fmt.Errorf("list zone kura.test: %w", &c.said))
		later, ok := errors.AsType[*server.Later](err)
		if fleet.CodeOf(err) != c.code || !ok || later.After != c.said.After || err.Error() != "list zone kura.test: the provider's words ("+string(reason)+")" {
			t.Errorf("%s: %v, code %s", reason, err, fleet.CodeOf(err))
		}
	}
	if own := fleet.Errorf(fleet.CodeNotFound, "no such zone"); answered(own) != error(own) || answered(nil) != nil {
		t.Error("an error of kurad's own becomes another")
	}
}
