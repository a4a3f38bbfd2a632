//go:build real

package containers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// The path is exchanged after kurad looked and before the engine mounts it: the container is
// removed, and nothing is said to run. The process that stands for it is one whose folder is
// a mount of its own.
func TestC10_aContainerThatMountedSomethingElseIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, exchanged := range map[string]bool{"as declared": false, "exchanged": true} {
		t.Run(name, func(t *testing.T) {
			source := path
			if exchanged {
				source = t.TempDir()
			}
			target := t.TempDir()
			process := exec.CommandContext(t.Context(), "unshare", "--mount", "--map-root-user", "sh", "-c", fmt.Sprintf("mount --bind %s %s && echo mounted && exec cat", source, target))
			in, err := process.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := process.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = in.Close(); _ = process.Wait() })
			if _, err := fmt.Fscanln(out, new(string)); err != nil {
				t.Fatalf("no mount in a namespace of its own: %v", err)
			}
			var started, removed atomic.Bool
			e := fakeEngineOf(t, containers.Config{Name: "local", Mounts: []string{dir}}, nil, map[string]http.HandlerFunc{
				"GET /containers/{id}/json": func(w http.ResponseWriter, _ *http.Request) {
					c := inspected("kura-acme-eu-cache", "created")
					if started.Load() {
						c = inspected("kura-acme-eu-cache", "running")
						c["State"].(map[string]any)["Pid"] = process.Process.Pid
					}
					c["Mounts"] = []map[string]any{{"Type": "bind", "Source": path, "Destination": target}}
					_ = json.NewEncoder(w).Encode(c)
				},
				"POST /containers/{id}/start": func(w http.ResponseWriter, _ *http.Request) { started.Store(true); w.WriteHeader(204) },
				"DELETE /containers/{id}": func(w http.ResponseWriter, r *http.Request) {
					removed.Store(r.URL.Query().Get("force") == "1")
					w.WriteHeader(204)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}, document())
			if exchanged && (o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonForbidden || !strings.Contains(o.Message, path+" was exchanged") || !removed.Load()) {
				t.Errorf("removed %v, %+v", removed.Load(), o)
			}
			if !exchanged && (o.Class != fleet.ClassOK || removed.Load()) {
				t.Errorf("removed %v, %+v", removed.Load(), o)
			}
		})
	}
}
