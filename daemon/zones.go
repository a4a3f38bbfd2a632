package main

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/dns/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
)

// zones are the DNS zones that this daemon was given.
type zones struct {
	dns.Zones
	querier *dns.Querier
	writers map[string]*dns.Writer // by domain, of those with a token
	watched map[string]dns.API     // the same, of the share of calls that rounds of listings have
}

// openZones opens what the flags name, and talks to none of it. Policy is for servers that NS
// records lead to: what the operator gave is asked wherever it is (R4).
func openZones(o options, env fleet.Environment, policy readiness.Policy) (*zones, error) {
	list, err := dns.ParseZones(o.zones)
	if err != nil {
		return nil, err
	}
	opened, err := cloudflare.Open(list)
	if err != nil {
		return nil, err
	}
	z := &zones{Zones: list, writers: map[string]*dns.Writer{}, watched: map[string]dns.API{}}
	for _, given := range list {
		if zone := opened[given.Domain]; zone != nil {
			z.writers[given.Domain], z.watched[given.Domain] = dns.NewWriter(given, env, zone), zone.Observing()
		}
	}
	if z.querier, err = dns.NewQuerier(dns.QuerierConfig{Resolver: o.resolver, Allow: policy.Check}); err != nil {
		return nil, err
	}
	return z, nil
}

// tracks are what servers pursue in zones. A daemon without one neither publishes nor waits for
// what it could not see go.
func (z *zones) tracks(env fleet.Environment) []projection.Track {
	if len(z.Zones) == 0 {
		return nil
	}
	return []projection.Track{projection.Records{Environment: env.Name}, projection.Balancer{Environment: env.Name}}
}

// ownershipPace is how often a host is asked for whose zone has no token: fast while a gate waits
// for it, and slowly for ever (P16).
var ownershipPace = readiness.Pace{Converged: 5 * time.Minute, Concurrency: 32}

// watch reads hosts while this kurad leads.
func (z *zones) watch(env fleet.Environment, changed func(fleet.ServerKey), log hclog.Logger) *dns.Watch {
	return dns.NewWatch(dns.WatchConfig{
		Environment: env, Zones: z.Zones, APIs: z.watched, Read: z.querier.Read, Changed: changed, Now: time.Now, Log: log,
		Queries: func(ask func(context.Context, dns.Question) fleet.HostRead, changed func(fleet.ServerKey)) dns.Queries {
			return readiness.NewWatcher(ask, changed, ownershipPace)
		},
	})
}
