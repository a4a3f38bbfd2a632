//go:build real

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// keep calls from so many places at once, and from each, after a while, when that ended, again.
// It returns when all were there once; end waits until all are gone.
func keep(t *testing.T, n int, again time.Duration, call func(ctx context.Context, there func(net.Conn), pace <-chan time.Time)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all, arrived sync.WaitGroup
	for range n {
		arrived.Add(1)
		all.Go(func() {
			pace := time.NewTicker(again)
			defer pace.Stop()
			once := sync.OnceFunc(arrived.Done)
			for ctx.Err() == nil {
				call(ctx, func(c net.Conn) {
					once()
					context.AfterFunc(ctx, func() { _ = c.Close() })
				}, pace.C)
				once()
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

// connect keeps so many connections open: each sends what it has to say, goes on with it as
// long as it is answered, and comes again, after a while, when it is closed.
func connect(t *testing.T, address string, n int, say string, again time.Duration) (end func()) {
	t.Helper()
	return keep(t, n, again, func(ctx context.Context, there func(net.Conn), pace <-chan time.Time) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, say) // a closed one tells below
		there(c)
		in := bufio.NewReader(c)
		for {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			select {
			case <-pace:
			case <-ctx.Done():
			}
			if _, err := io.WriteString(c, say); err != nil {
				return
			}
		}
	})
}

// takeNothing keeps so many connections open over TLS: each says what it has to say without a
// pause, and takes no answer, until it is closed. Few of them arrive at the same moment, for
// their side of a handshake costs the same machine.
func takeNothing(t *testing.T, address string, secure *tls.Config, n int, say string) (end func()) {
	t.Helper()
	small := &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		}), err)
	}}
	arriving := make(chan struct{}, 4)
	return keep(t, n, 20*time.Second, func(ctx context.Context, there func(net.Conn), _ <-chan time.Time) {
		arriving <- struct{}{}
		c, err := (&tls.Dialer{NetDialer: small, Config: secure}).DialContext(ctx, "tcp", address)
		<-arriving
		if err != nil {
			return
		}
		defer c.Close()
		there(c)
		for err == nil {
			_, err = io.WriteString(c, say)
		}
	})
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

// 2,048 connections that say as much as they may and take no answer: of somebody without a
// token, and of one with a token, most of whose calls are over its share.
func TestAttack_G8_whoTakesNoAnswerIsHeldLittleOf(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--tls-generate")
	k.start()
	secure := k.trusted()
	secure.NextProtos = []string{"h2", "http/1.1"} // the first of them had kurad hold 5 GiB
	h := k.besideWith(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}), k.trusted())
	reader := k.token(api.TokenRequest{Name: "reader", Scope: fleet.ScopeRead})
	var header strings.Builder
	for i := 0; header.Len() < 15<<10; i++ {
		fmt.Fprintf(&header, "X-%d: 0\r\n", i)
	}
	for what, say := range map[string]string{
		"liveness":       "GET /healthz HTTP/1.1\r\nHost: k\r\n" + header.String() + "\r\n",
		"no login":       "GET /v1/servers HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer kura_a_b\r\n" + header.String() + "\r\n",
		"too large":      "GET /v1/servers HTTP/1.1\r\nHost: k\r\n" + header.String() + header.String(),
		"a read token's": "GET /v1/openapi.json HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer " + reader + "\r\n" + header.String() + "\r\n",
	} {
		end := takeNothing(t, strings.TrimPrefix(k.url(), "https://"), secure, 2048, say)
		h.calls(100)
		t.Logf("%s: %d MiB", what, k.memory()>>20)
		end()
	}
	h.noticed("four times 2,048 connections whose answers are not taken")
}
