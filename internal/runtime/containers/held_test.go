package containers_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// A region that was declared before mounts were kept apart: what is mounted below what
// another one writes is refused where it would matter.
func TestC10_belowWhatAnotherRegionWritesNothingIsMounted(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "shared", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := inspected("kura-acme-eu-cache", "created")
	made["Mounts"] = []map[string]any{{"Type": "bind", "Source": filepath.Join(dir, "shared", "x"), "Destination": "/host"}}
	var calls atomic.Int64
	e := fakeEngineOf(t, containers.Config{Name: "local", Mounts: []string{dir}}, nil, map[string]http.HandlerFunc{
		"POST /containers/create":      func(http.ResponseWriter, *http.Request) { calls.Add(1) },
		"POST /containers/{id}/start":  func(http.ResponseWriter, *http.Request) { calls.Add(1) },
		"GET /containers/{id}/json":    answer(200, made),
		"GET /images/{name...}":        answer(200, map[string]string{"Id": "sha256:1"}),
		"GET /containers/json":         answer(200, []any{}),
		"DELETE /containers/{id}":      func(http.ResponseWriter, *http.Request) { calls.Add(1) },
		"POST /containers/{id}/rename": func(http.ResponseWriter, *http.Request) { calls.Add(1) },
	})
	e.KnowRegions(func() []fleet.Region {
		return []fleet.Region{
			{Name: "elsewhere", Containers: &fleet.Containers{Endpoint: "other", Services: map[string]fleet.Service{"a": {Volumes: []fleet.Volume{{HostPath: dir, Path: "/a"}}}}}},
			{Name: "writes", Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"a": {Volumes: []fleet.Volume{{HostPath: dir + "/shared", Path: "/a"}}}}}},
		}
	})
	doc := document()
	doc.Volumes = []fleet.VolumeDocument{{Source: filepath.Join(dir, "shared", "x"), HostPath: true, Path: "/host", ReadOnly: true}}
	doc.Digest = fleet.DigestService(*doc)
	for _, task := range []fleet.Task{{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name, Digest: doc.Digest}}, {Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}} {
		o := e.Execute(t.Context(), acme, "kura-acme-eu", task, doc)
		if o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonForbidden || !strings.Contains(o.Message, dir+"/shared/x lies below "+dir+"/shared") || !strings.Contains(o.Message, `service a of region "writes"`) {
			t.Errorf("%s: %+v", task.Kind, o)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the engine was told %d times to do something", n)
	}
}
