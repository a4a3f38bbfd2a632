//go:build real

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

const zoneTested = "kura.test"

// zoned is a Cloudflare with the zone of the tests.
type zoned struct {
	*cloudflare.Emulator
	t *testing.T
}

func newZoned(t *testing.T) zoned {
	t.Helper()
	cf, err := cloudflare.New(cloudflare.Options{
		Zones: []cloudflare.Zone{{Name: zoneTested, Plan: cloudflare.PlanEnterprise}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cf.Close(); err != nil {
			t.Error(err)
		}
	})
	return zoned{cf, t}
}

// flags give the zone to a kurad, with a token of that name.
func (z zoned) flags(token string) []string {
	z.t.Helper()
	flags, err := z.Give(z.t.TempDir(), zoneTested, token)
	if err != nil {
		z.t.Fatal(err)
	}
	return flags
}

// touched are the names of the records that a token changed.
func (z zoned) touched(token string) (names []string) {
	for _, c := range z.History() {
		if c.By == token {
			names = append(names, c.Name)
		}
	}
	return names
}

// managed is a region whose records kurad publishes.
func managed(name, owner string) fleet.Region {
	r := region(name)
	r.ClusterID = "eu" // of every environment the same
	r.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: owner, Target: "127.0.0.1"}
	return r
}

// Three environments, each with a kurad and a store of its own, in one zone, with the same account
// and cluster id: three hosts, each active by itself, and none able to touch another's records. A
// name of staging's that an unsuffixed template of production's would have made is production's:
// plan and audit say so, and nothing is switched.
func TestH2_D4_threeEnvironmentsInOneZone(t *testing.T) {
	t.Parallel()
	z := newZoned(t)
	environments := []string{"production", "staging", "canary"}
	kurads, urls := map[string]*kurad{}, map[string]string{}
	for _, e := range environments {
		kurads[e] = startKuradFor(t, e, z.flags("kurad-"+e)...)
	}
	key := func(e, account string) fleet.ServerKey { return fleet.ServerKey{Account: account, Region: "zone-" + e} }
	for _, e := range environments {
		kurads[e].declare(managed("zone-"+e, "kurad-"+e), "acme", "beta")
		kurads[e].put(key(e, "acme"), "v1")
	}
	for _, e := range environments {
		v := kurads[e].converged(key(e, "acme"), "v1")
		for other, url := range urls {
			if fleet.HostOf(url) == fleet.HostOf(v.PublishedURL) {
				t.Errorf("%s and %s have one host: %s", e, other, url)
			}
		}
		urls[e] = v.PublishedURL
		if version, err := up(t, v.PublishedURL); err != nil || version != "v1" {
			t.Errorf("%s answers %q, %v", v.PublishedURL, version, err)
		}
	}

	// What an unsuffixed template of production's would have made for its account beta-eu.
	shadowed := "beta-eu-staging." + zoneTested
	if err := z.SeedExternalDNS("production-dns", "ingress/kura/beta", cloudflare.TXTNew, cloudflare.Record{Name: shadowed, Type: "A", Content: "203.0.113.7"}); err != nil {
		t.Fatal(err)
	}
	staging := kurads["staging"]
	written, err := staging.client.PutServer(t.Context(), fleet.Server{Account: "beta", Region: "zone-staging", ImageTag: "v1"}, api.PutOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(written.Warnings); !strings.Contains(said, shadowed) || !strings.Contains(said, "production-dns") {
		t.Errorf("a dry run does not say whose %s is: %s", shadowed, said)
	}
	staging.put(key("staging", "beta"), "v1")
	v := staging.until(key("staging", "beta"), "its host is seen to be production's", func(v fleet.ServerView) bool {
		return v.Reason == fleet.ReasonForeignOwner
	})
	if v.PublishedURL != "" {
		t.Errorf("it was published at %s", v.PublishedURL)
	}
	audit, err := staging.client.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprint(audit.Items); audit.Counts[fleet.FindingForeign] != 1 || !strings.Contains(said, "production-dns") {
		t.Errorf("the audit says %s", said)
	}
	if got := z.Records(shadowed, "A"); len(got) != 1 || got[0].Content != "203.0.113.7" {
		t.Errorf("production's record is %v", got)
	}

	if _, err := staging.client.DeleteServer(t.Context(), key("staging", "acme")); err != nil {
		t.Fatal(err)
	}
	staging.gone(key("staging", "acme"))
	for _, e := range environments {
		host := fleet.HostOf(urls[e])
		if left := len(z.Records(host, "A")) + len(z.Records("a-"+host, "TXT")); left != map[bool]int{true: 0, false: 2}[e == "staging"] {
			t.Errorf("%s has %d records after staging's server is gone:\n%s", host, left, z.Table())
		}
		for _, name := range z.touched("kurad-" + e) {
			if !strings.HasSuffix(name, host) {
				t.Errorf("the kurad of %s changed %s:\n%s", e, name, z.History())
			}
		}
	}
}
