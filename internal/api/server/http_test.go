package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// do sends a raw request.
func (w *world) do(method, path, body, token string, header ...string) (*http.Response, []byte) {
	w.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, reader)
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp, b
}

func (w *world) getJSON(path string, out any) {
	w.t.Helper()
	resp, b := w.do("GET", path, "", w.admin)
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s: %d %s", path, resp.StatusCode, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		w.t.Fatalf("GET %s: %v in %s", path, err, b)
	}
}

// problem sends a request that must be refused, with a problem document that is whole.
func (w *world) problem(method, path, body, token string, header ...string) api.Problem {
	w.t.Helper()
	resp, b := w.do(method, path, body, token, header...)
	var p api.Problem
	if ct := resp.Header.Get("Content-Type"); ct != api.ContentTypeProblem {
		w.t.Fatalf("%s %s: %d, content type %q: %s", method, path, resp.StatusCode, ct, b)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		w.t.Fatalf("%s %s: %v in %s", method, path, err, b)
	}
	if p.Status != resp.StatusCode || p.Code == "" || p.Title == "" || p.Type == "" || p.Detail == "" || p.RequestID == "" || p.RequestID != resp.Header.Get(api.HeaderRequestID) {
		w.t.Errorf("%s %s: problem is not whole: %s", method, path, b)
	}
	return p
}

func TestETag_anUnchangedServerIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	first, _ := w.do("GET", "/v1/servers/acme/eu", "", w.admin)
	tag := first.Header.Get("ETag")
	if tag == "" {
		t.Fatal("no ETag")
	}
	w.turns.mu.Lock()
	w.turns.at = w.clock.now() // a look that found nothing new
	w.turns.mu.Unlock()
	if same, b := w.do("GET", "/v1/servers/acme/eu", "", w.admin, "If-None-Match", tag); same.StatusCode != 304 || len(b) != 0 {
		t.Errorf("unchanged: %d %s", same.StatusCode, b)
	}
	w.put(srv("acme", "eu", "v2"))
	if changed, _ := w.do("GET", "/v1/servers/acme/eu", "", w.admin, "If-None-Match", tag); changed.StatusCode != 200 || changed.Header.Get("ETag") == tag {
		t.Errorf("changed: %d, tag %s", changed.StatusCode, changed.Header.Get("ETag"))
	}
}

func TestRoutes_anUnknownRouteIsNotAMissingObject(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/nothing", 404}, {"GET", "/", 404}, {"POST", "/v1/servers/a/b", 404}, {"POST", "/v1/servers/a/b:explode", 404},
		{"PATCH", "/v1/accounts/a", 405}, {"POST", "/v1/accounts", 405},
	} {
		p := w.problem(c.method, c.path, "", w.admin)
		if p.Code != api.CodeNoRoute || p.Status != c.status {
			t.Errorf("%s %s: %+v, want %s with %d", c.method, c.path, p, api.CodeNoRoute, c.status)
		}
	}
}

func TestEnvironment_aRequestForAnotherOneIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.problem("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin, api.HeaderEnvironment, "production")
	if p.Code != api.CodeWrongEnvironment || p.Status != http.StatusMisdirectedRequest || !strings.Contains(p.Detail, `"staging"`) {
		t.Errorf("%+v", p)
	}
	if got := w.problem("GET", "/v1/accounts/acme", "", w.admin); got.Status != 404 {
		t.Errorf("it was written: %+v", got)
	}
}

func TestHealth_needsNoToken(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if resp, b := w.do("GET", path, "", ""); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		}
	}
}

func TestPanic_isAProblemAndTheDaemonLivesOn(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.turns.observe = func(context.Context, fleet.ServerKey) error { panic("the secret cause") }
	p := w.problem("GET", "/v1/servers/acme/eu?observe=now", "", w.admin)
	if p.Status != 500 || p.Code != fleet.CodeInternal || strings.Contains(p.Detail, "secret") || !strings.Contains(p.Detail, p.RequestID) {
		t.Errorf("%+v", p)
	}
	if log := w.logged.String(); !strings.Contains(log, "the secret cause") || !strings.Contains(log, p.RequestID) {
		t.Errorf("log: %s", log)
	}
	if resp, _ := w.do("GET", "/v1/servers/acme/eu", "", w.admin); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestMediaType_onlyJSONIsTaken(t *testing.T) {
	w := newWorld(t)
	p := w.problem("PUT", "/v1/accounts/acme", "id: acme", w.admin, "Content-Type", "application/yaml")
	if p.Code != fleet.CodeInvalid || !strings.Contains(p.Detail, "application/yaml") {
		t.Errorf("%+v", p)
	}
	if resp, b := w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin, "Content-Type", "application/json; charset=utf-8"); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

func TestListen_withoutTLSIsLoopbackOnly(t *testing.T) {
	for addr, word := range map[string]string{"0.0.0.0:0": "loopback", ":0": "loopback", "192.0.2.1:0": "loopback", "7433": "host:port"} {
		if l, err := server.Listen(addr, false); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, %v", addr, l, err)
		}
	}
	l, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
