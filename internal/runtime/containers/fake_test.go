package containers_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

const someID = "0123456789012345678901234567890123456789012345678901234567890123"

var acme = fleet.ServerKey{Account: "acme", Region: "eu"}

// fakeEngine answers routes ("METHOD /path" without the version) over a unix socket.
func fakeEngine(t *testing.T, routes map[string]http.HandlerFunc) *containers.Endpoint {
	t.Helper()
	return fakeEngineOf(t, containers.Config{Name: "local"}, nil, routes)
}

// fakeEngineOf is a fakeEngine behind an endpoint of its own configuration and log.
func fakeEngineOf(t *testing.T, cfg containers.Config, log hclog.Logger, routes map[string]http.HandlerFunc) *containers.Endpoint {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
	for route, handler := range routes {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" /v1.41"+path, handler)
	}
	cfg.Socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	return openWith(t, cfg, log)
}

func open(t *testing.T, cfg containers.Config) *containers.Endpoint {
	t.Helper()
	return openWith(t, cfg, nil)
}

func openWith(t *testing.T, cfg containers.Config, log hclog.Logger) *containers.Endpoint {
	t.Helper()
	e, err := containers.Open(cfg, fleet.Environment{Name: "staging", Suffix: "-staging"}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func answer(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

func refusal(status int, message string) http.HandlerFunc {
	return answer(status, map[string]string{"message": message})
}

// hangUp ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// inspected is an engine's answer about a container of acme/eu.
func inspected(name, state string) map[string]any {
	return map[string]any{
		"Id": someID, "Name": "/" + name,
		"State": map[string]any{"Status": state, "ExitCode": 3, "StartedAt": "2026-11-21T10:00:00Z", "FinishedAt": "2026-11-21T10:00:04.5Z"},
		"Config": map[string]any{"Labels": map[string]string{
			fleet.LabelEnvironment: "staging", fleet.LabelAccount: "acme", fleet.LabelRegion: "eu",
			fleet.LabelService: "cache", fleet.LabelDigest: "d1",
		}},
	}
}
