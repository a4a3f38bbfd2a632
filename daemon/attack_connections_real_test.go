//go:build real

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// connect keeps so many connections open: each sends what it has to say, goes on with it as
// long as it is answered, and comes again, after a while, when it is closed. It returns when all
// were there once; end waits until all are gone.
func connect(t *testing.T, address string, n int, say string, again time.Duration) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var arrived sync.WaitGroup
	for range n {
		arrived.Add(1)
		all.Go(func() {
			pace := time.NewTicker(again)
			defer pace.Stop()
			for first := true; ctx.Err() == nil; first = false {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if err == nil {
					_, _ = io.WriteString(c, say) // a closed one tells below
				}
				if first {
					arrived.Done()
				}
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					in := bufio.NewReader(c)
					for {
						res, err := http.ReadResponse(in, nil)
						if err != nil {
							break
						}
						_, _ = io.Copy(io.Discard, res.Body)
						select {
						case <-pace.C:
						case <-ctx.Done():
						}
						if _, err := io.WriteString(c, say); err != nil {
							break
						}
					}
					stop()
					_ = c.Close()
				}
				select {
				case <-pace.C:
				case <-ctx.Done():
				}
			}
		})
	}
	arrived.Wait()
	end = func() { cancel(); all.Wait() }
	t.Cleanup(end)
	return end
}

// 2,048 connections of somebody without a token, those that say nothing, those that never end
// what they say, and those that ask for liveness again and again: everybody else is answered,
// liveness included, on the API's address and on its own.
func TestAttack_G8_connectionsWithoutATokenKeepNobodyOut(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--health-listen", "127.0.0.1:0")
	k.start()
	address := strings.TrimPrefix(k.url(), "http://")
	h := k.beside(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}))
	for what, say := range map[string]string{
		"silent":      "",
		"unfinished":  "GET /healthz HTTP/1.1\r\nHost: k\r\nX: ",
		"kept alive":  "GET /healthz HTTP/1.1\r\nHost: k\r\n\r\n",
		"no login":    "GET /v1/servers HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer kura_a_b\r\n\r\n",
		"endless put": "PUT /v1/accounts/a HTTP/1.1\r\nHost: k\r\nContent-Length: 1000000\r\n\r\n{",
	} {
		end := connect(t, address, 2048, say, 20*time.Second)
		h.calls(100)
		t.Logf("%s: %d MiB", what, k.memory()>>20)
		end()
	}
	h.noticed("five times 2,048 connections without a token")
	_, health, ok := strings.Cut(k.log.String(), "liveness and readiness are answered: address=")
	if !ok {
		t.Fatal("kurad does not say where it answers about its health")
	}
	health, _, _ = strings.Cut(health, "\n")
	end := connect(t, strings.TrimSpace(health), 2048, "", 20*time.Second)
	defer end()
	res, err := http.Get(fmt.Sprintf("http://%s/readyz", strings.TrimSpace(health)))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("beside 2,048 connections to it, the health listener answers %d", res.StatusCode)
	}
}

// A read token with 2,048 connections, each of which waits: it gets its share, others theirs.
func TestAttack_G8_theConnectionsOfOneTokenAreItsOwnMatter(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir())
	k.start()
	reader := k.token(api.TokenRequest{Name: "reader", Scope: fleet.ScopeRead})
	h := k.beside(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}))
	first, err := k.client.WaitServers(t.Context(), "", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, strings.TrimPrefix(k.url(), "http://"), 2048,
		"GET /v1/servers?wait=60s&after="+first.Cursor+" HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer "+reader+"\r\n\r\n", 20*time.Second)
	h.calls(200)
	h.noticed("2,048 connections of a read token that wait")
}
