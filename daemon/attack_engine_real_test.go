//go:build real

package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// silentEngine is a socket that accepts and never answers.
func silentEngine(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var kept []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			kept = append(kept, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
		for _, c := range kept {
			_ = c.Close()
		}
	})
	return socket
}

// Dry runs and writes that need the answer of an engine which gives none are their author's
// matter: nobody else waits for them, neither while they last nor when they were given up.
func TestAttack_G9_aSilentEngineFreezesNobodysWrites(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--container-endpoint", "mute=unix://"+silentEngine(t)+",ports=23000-23009")
	k.start()
	ctx := t.Context()
	k.declareMute("acme")
	writer := k.token(api.TokenRequest{Name: "attacker", Scope: fleet.ScopeWrite})
	h := k.beside(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}))
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // gives up
	var attackers sync.WaitGroup
	for range 20 {
		attackers.Go(func() {
			for _, query := range []string{"?dry_run=true", ""} {
				_, _, _ = k.send(ctx, client, "PUT", "/v1/servers/acme/mute"+query, `{"account":"acme","region":"mute","image_tag":"v1"}`, writer)
			}
		})
	}
	h.calls(100)
	attackers.Wait()
	h.calls(100)
	h.noticed("dry runs and writes of a region whose engine never answers")
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := k.client.PutServer(within, fleet.Server{Account: "acme", Region: "mute", ImageTag: "v1"}, api.PutOptions{}); err != nil {
		t.Errorf("a declaration does not need the engine: %v", err)
	}
}

// declareMute declares accounts, and a region whose engine never answers.
func (k *kurad) declareMute(accounts ...string) {
	k.t.Helper()
	ctx := k.t.Context()
	_, err := k.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{})
	if err == nil {
		_, err = k.client.PutRegion(ctx, fleet.Region{
			Name: "mute", Hosts: fleet.RegionHosts{Public: "public"}, Remediation: fleet.RemediationObserve,
			Containers: &fleet.Containers{Endpoint: "mute", Services: map[string]fleet.Service{"cache": {
				Image: "localhost/cache:{image_tag}", Ports: map[string]fleet.Port{"https": {Container: 8443, Endpoint: fleet.EndpointPublic}},
			}}},
		}, api.PutOptions{})
	}
	for _, a := range accounts {
		if err == nil {
			_, err = k.client.PutAccount(ctx, fleet.Account{ID: a}, api.PutOptions{})
		}
	}
	if err != nil {
		k.t.Fatal(err)
	}
}
