//go:build real

package main

import (
	"maps"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// cacheService is the cache server with everything a real one has: TLS, variables, a
// volume of its own and one of the host, and a port that kurad assigns.
func cacheService() fleet.Service {
	return fleet.Service{
		Image:       "localhost/kura-cache:{image_tag}",
		GracePeriod: fleet.Duration(2 * time.Second),
		Env: map[string]string{
			"KURA_ACCOUNT": "{account}", "KURA_TLS_CERT": "/tls/server.pem", "KURA_TLS_KEY": "/tls/server-key.pem",
			"ZONE": "kura.test", "ALPHA": "1", "OMEGA": "2",
		},
		Volumes: []fleet.Volume{{Name: "data", Path: "/var/lib/kura"}, {HostPath: real.tls, Path: "/tls", ReadOnly: true}},
		Ports:   map[string]fleet.Port{"https": {Container: 8443, Endpoint: fleet.EndpointPublic}},
	}
}

// region is a region whose servers are one cache server each.
func region(name string, change ...func(*fleet.Region)) fleet.Region {
	r := fleet.Region{
		Name: name, Hosts: fleet.RegionHosts{Public: "public"},
		Readiness:  fleet.Readiness{Timeout: fleet.Duration(time.Second)},
		Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"cache": cacheService()}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// cache changes the cache service of a region.
func cache(change func(*fleet.Service)) func(*fleet.Region) {
	return func(r *fleet.Region) {
		services := maps.Clone(r.Containers.Services)
		s := services["cache"]
		change(&s)
		services["cache"] = s
		r.Containers.Services = services
	}
}

func stallAfter(d time.Duration) func(*fleet.Region) {
	return func(r *fleet.Region) { r.StallAfter = fleet.Duration(d) }
}

// declare writes the host template, accounts and the region, and sees to it that
// nothing of the region is left on the engine.
func (k *kurad) declare(r fleet.Region, accounts ...string) {
	k.t.Helper()
	k.t.Cleanup(func() {
		if k.cmd != nil {
			k.stop() // or it would heal what is discarded
		}
		if err := discard(r.Name); err != nil {
			k.t.Error(err)
		}
	})
	k.introduce(r, accounts...)
}

// introduce writes the host template, accounts and the region.
func (k *kurad) introduce(r fleet.Region, accounts ...string) {
	k.t.Helper()
	ctx := k.t.Context()
	if _, err := k.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{}); err != nil {
		k.t.Fatal(err)
	}
	for _, a := range accounts {
		if _, err := k.client.PutAccount(ctx, fleet.Account{ID: a}, api.PutOptions{}); err != nil {
			k.t.Fatal(err)
		}
	}
	k.putRegion(r)
}

func (k *kurad) putRegion(r fleet.Region) api.Written[api.Region] {
	k.t.Helper()
	w, err := k.client.PutRegion(k.t.Context(), r, api.PutOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return w
}

// put declares a server with an image.
func (k *kurad) put(key fleet.ServerKey, tag string) fleet.ServerView {
	k.t.Helper()
	return k.putServer(fleet.Server{Account: key.Account, Region: key.Region, ImageTag: tag})
}

func (k *kurad) putServer(s fleet.Server) fleet.ServerView {
	k.t.Helper()
	w, err := k.client.PutServer(k.t.Context(), s, api.PutOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return w.Object
}

// serving starts a kurad with one region and one server that serves v1.
func serving(t *testing.T, name string, change ...func(*fleet.Region)) (*kurad, fleet.ServerKey, fleet.ServerView) {
	t.Helper()
	k := startKurad(t)
	k.declare(region(name, change...), "acme")
	key := fleet.ServerKey{Account: "acme", Region: name}
	k.put(key, "v1")
	return k, key, k.converged(key, "v1")
}

// deployments are the server's, the oldest first, as "seq image status".
func (k *kurad) deployments(key fleet.ServerKey) []fleet.Deployment {
	k.t.Helper()
	list, err := k.client.Deployments(k.t.Context(), key)
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

func (k *kurad) delete(key fleet.ServerKey) fleet.ServerView {
	k.t.Helper()
	v, err := k.client.DeleteServer(k.t.Context(), key)
	if err != nil {
		k.t.Fatal(err)
	}
	return v
}
