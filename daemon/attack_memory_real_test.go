//go:build real

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// endless is a body that says a little less than may be sent, and never ends.
type endless struct {
	ctx  context.Context
	left int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	n := min(len(b), e.left)
	for i := range b[:n] {
		b[i] = ' '
	}
	e.left -= n
	return n, nil
}

// throng calls from so many places at once, again and again until end, which waits for all.
func throng(t *testing.T, n int, call func(ctx context.Context, i int)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				call(ctx, i)
			}
		})
	}
	end = func() { cancel(); all.Wait() }
	t.Cleanup(end)
	return end
}

// Thousands of bodies that never end, of a token that may not write and of one
// that may.
func TestAttack_G8_bodiesThatNeverEndTakeNoMemory(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--tls-generate")
	k.start()
	secure := k.trusted()
	h := k.besideWith(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}), secure)
	for _, scope := range []fleet.Scope{fleet.ScopeRead, fleet.ScopeWrite} {
		token := k.token(api.TokenRequest{Name: "attacker", Scope: scope})
		transport := &http.Transport{ForceAttemptHTTP2: true, MaxConnsPerHost: 40, TLSClientConfig: secure.Clone()}
		client := &http.Client{Transport: transport}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2300 {
			all.Go(func() {
				req, err := http.NewRequestWithContext(ctx, "PUT", k.url()+"/v1/accounts/a", io.NopCloser(&endless{ctx, 1<<20 - 1}))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+token)
				req.Header.Set("Content-Type", "application/json")
				if res, err := client.Do(req); err == nil {
					_ = res.Body.Close()
				}
			})
		}
		h.calls(200)
		t.Logf("scope %s: %d MiB", scope, k.memory()>>20)
		cancel()
		all.Wait()
		transport.CloseIdleConnections()
	}
	h.noticed("2,300 bodies that never end, with a read and with a write token")
}

// Bodies of a megabyte each whose every key is wrong, and lists of servers that are as large
// as they may be.
func TestAttack_G8_largeBodiesErrorsAndListsTakeLittleMemory(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--container-endpoint", "mute=unix://"+silentEngine(t)+",ports=22000-22999")
	k.start()
	writer := k.token(api.TokenRequest{Name: "attacker", Scope: fleet.ScopeWrite})
	h := k.beside(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	var keys []string
	for i := range 60_000 {
		keys = append(keys, fmt.Sprintf(`"unknown-%d":0`, i))
	}
	wrong := ("{" + strings.Join(keys, ","))[:1<<20-20]
	wrong = wrong[:strings.LastIndexByte(wrong, ',')] + "}"
	end := throng(t, 16, func(ctx context.Context, _ int) {
		if status, answer, err := k.send(ctx, client, "PUT", "/v1/accounts/a", wrong, writer); err == nil && (status != 422 && status != 429 || len(answer) > 64<<10) {
			t.Errorf("%d with %d bytes: %.100s", status, len(answer), answer)
		}
	})
	h.calls(100)
	end()
	t.Logf("after large bodies: %d MiB", k.memory()>>20)

	writer = k.token(api.TokenRequest{Name: "attacker once more", Scope: fleet.ScopeWrite}) // what is under way is the other one's
	// A thousand servers of a megabyte are refused, those of 60 KiB are taken.
	k.declareMute("team-a")
	server := func(account string, env int) string {
		var vars []string
		for i := 0; env > 0; i, env = i+1, env-15<<10 {
			vars = append(vars, fmt.Sprintf(`"V%d":%q`, i, strings.Repeat("x", min(env, 15<<10))))
		}
		return fmt.Sprintf(`{"account":%q,"region":"mute","image_tag":"v1","overrides":{"containers":{"services":{"cache":{"env":{%s}}}}}}`, account, strings.Join(vars, ","))
	}
	if status, answer, err := k.send(t.Context(), client, "PUT", "/v1/servers/team-a/mute", server("team-a", 1000<<10), writer); err != nil || status != 422 || !strings.Contains(answer, "/overrides") {
		t.Errorf("a server of a megabyte: %d %.300s, %v", status, answer, err)
	}
	const servers = 100
	next := make(chan int, servers)
	for i := range servers {
		next <- i
	}
	close(next)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range next {
				name := fmt.Sprintf("heavy-%d", i)
				if status, answer, err := k.send(t.Context(), client, "PUT", "/v1/accounts/"+name, `{"id":"`+name+`"}`, writer); err != nil || status >= 300 {
					t.Errorf("account %s: %d %.300s, %v", name, status, answer, err)
				}
				if status, answer, err := k.send(t.Context(), client, "PUT", "/v1/servers/"+name+"/mute", server(name, 60<<10), writer); err != nil || status >= 300 {
					t.Errorf("server %s: %d %.300s, %v", name, status, answer, err)
				}
			}
		})
	}
	writers.Wait()
	reader := k.token(api.TokenRequest{Name: "reader", Scope: fleet.ScopeRead})
	end = throng(t, 16, func(ctx context.Context, i int) {
		path := "/v1/servers"
		if i%2 == 0 {
			path = "/v1/servers?wait=60s" // everything, at once
		}
		if status, answer, err := k.send(ctx, client, "GET", path, "", reader); err == nil && (status != 200 && status != 429 || len(answer) > 40<<20) {
			t.Errorf("GET %s: %d with %d bytes", path, status, len(answer))
		}
	})
	h.calls(100)
	end()
	h.noticed("bodies of 1 MiB of unknown keys, 100 servers of 60 KiB, 16 at once who list them")
}
