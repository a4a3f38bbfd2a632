//go:build real

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
)

// The suite of attacks: one caller misbehaves, and everybody else must not notice (G8, G9).
// Each attack runs on loopback against the built kurad; beside it an honest caller goes on,
// and kurad's memory is watched.

const (
	// mostNoticed is what an honest caller may notice of an attack: 99 of 100 calls are
	// answered within it, on a machine that keeps up.
	mostNoticed = time.Second
	// mostMemory is how much memory kurad may ever have taken, in bytes.
	mostMemory = 768 << 20
)

// honest is a caller who goes on while somebody attacks: as one that watches over kurad, as
// one that reads, and as one that writes.
type honest struct {
	k      *kurad
	token  string
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	took  []time.Duration
	fails []error
}

// beside starts an honest caller with a token.
func (k *kurad) beside(token string) *honest { return k.besideWith(token, nil) }

// besideWith is beside over TLS.
func (k *kurad) besideWith(token string, secure *tls.Config) *honest {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	h := &honest{k: k, token: token, cancel: cancel}
	k.t.Cleanup(func() { cancel(); h.done.Wait() })
	kept := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: secure}}
	fresh := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: secure.Clone(), DisableKeepAlives: true}}
	h.goOn(ctx, func(int) error { return h.call(ctx, fresh, "GET", "/healthz", "", "") })
	h.goOn(ctx, func(int) error { return h.call(ctx, kept, "GET", "/v1/servers?limit=10", "", token) })
	h.goOn(ctx, func(int) error { return h.call(ctx, fresh, "GET", "/v1/version", "", token) })
	h.goOn(ctx, func(i int) error {
		return h.call(ctx, kept, "PUT", "/v1/accounts/honest", fmt.Sprintf(`{"id":"honest","labels":{"n":"%d"}}`, i), token)
	})
	return h
}

// goOn calls again and again, 20 times a second at most.
func (h *honest) goOn(ctx context.Context, call func(i int) error) {
	h.done.Go(func() {
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return
			}
			begun := time.Now()
			err := call(i)
			took := real.stopwatch.Since(begun)
			if ctx.Err() != nil {
				return
			}
			h.mu.Lock()
			h.took = append(h.took, took)
			if err != nil {
				h.fails = append(h.fails, err)
			}
			h.mu.Unlock()
		}
	})
}

func (h *honest) call(ctx context.Context, client *http.Client, method, path, body, token string) error {
	status, answer, err := h.k.send(ctx, client, method, path, body, token)
	if err != nil {
		return err
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return fmt.Errorf("%s %s answers %d %.300s", method, path, status, answer)
	}
	return nil
}

// send sends one request with a token, none for "".
func (k *kurad) send(ctx context.Context, client *http.Client, method, path, body, token string) (int, string, error) {
	endpoint, err := os.ReadFile(filepath.Join(k.dir, endpointFile))
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSpace(string(endpoint))+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}

// calls waits until the caller has had so many answers more.
func (h *honest) calls(n int) {
	h.k.t.Helper()
	count := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.took)
	}
	want := count() + n
	eventually(h.k.t, fmt.Sprintf("the honest caller has %d answers", want), func() error {
		if got := count(); got < want {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

// noticed ends the caller, tells its figures, and fails where it noticed the attack or kurad
// took too much memory.
func (h *honest) noticed(attack string) {
	t := h.k.t
	t.Helper()
	h.cancel()
	h.done.Wait()
	slices.Sort(h.took)
	if len(h.took) < 50 {
		t.Fatalf("%s: the honest caller had %d answers only", attack, len(h.took))
	}
	at := func(percent int) time.Duration { return h.took[(len(h.took)-1)*percent/100].Round(time.Millisecond) }
	memory := h.k.memory()
	t.Logf("%s: an honest caller's %d calls took %s at the median, %s at p99, %s at most; %d failed; kurad took %d MiB at most",
		attack, len(h.took), at(50), at(99), at(100), len(h.fails), memory>>20)
	if at(99) >= mostNoticed {
		t.Errorf("%s: p99 %s, want less than %s", attack, at(99), mostNoticed)
	}
	if len(h.fails) > 0 {
		t.Errorf("%s: %d of %d calls failed, the first: %v", attack, len(h.fails), len(h.took), h.fails[0])
	}
	if memory > mostMemory {
		t.Errorf("%s: kurad took %d MiB, want %d at most", attack, memory>>20, mostMemory>>20)
	}
}

// memory is the most that the daemon's process has ever had in memory, in bytes.
func (k *kurad) memory() int {
	k.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.cmd.Process.Pid))
	if err != nil {
		k.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")))
			if err != nil {
				k.t.Fatal(err)
			}
			return n << 10
		}
	}
	k.t.Fatal("the system does not say how much memory kurad takes")
	return 0
}

// token makes a token and returns its secret.
func (k *kurad) token(r api.TokenRequest) string {
	k.t.Helper()
	made, err := k.client.CreateToken(k.t.Context(), r)
	if err != nil {
		k.t.Fatal(err)
	}
	return made.Token.Reveal()
}

// url is where the daemon's API answers.
func (k *kurad) url() string {
	k.t.Helper()
	endpoint, err := os.ReadFile(filepath.Join(k.dir, endpointFile))
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.TrimSpace(string(endpoint))
}

// trusted is how the daemon is reached over TLS that made its certificate itself.
func (k *kurad) trusted() *tls.Config {
	k.t.Helper()
	pem, err := os.ReadFile(filepath.Join(k.dir, tlsFolder, server.CAFile))
	if err != nil {
		k.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}
