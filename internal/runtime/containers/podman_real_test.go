//go:build real

package containers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

const (
	imageV1 = "localhost/kura-worker:v1"
	imageV2 = "localhost/kura-worker:v2"
)

var (
	podman   *engine.Engine
	registry *engine.Registry
)

func TestMain(m *testing.M) {
	os.Exit(withPodman(m))
}

func withPodman(m *testing.M) (code int) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "kura-podman")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	images := filepath.Join(dir, "registry")
	if err = os.Mkdir(images, 0o700); err == nil {
		registry, err = engine.NewRegistry(images)
	}
	if err == nil {
		defer registry.Close()
		podman, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(dir, "engine"), Log: hclog.Default(), PlainRegistries: []string{registry.Addr()}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := podman.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for _, ref := range []string{imageV1, imageV2} {
		if err := podman.WorkerImage(ctx, ref); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func TestPodman(t *testing.T) {
	conformance.Run(t, conformance.Target{Engine: containers.Config{Socket: podman.Socket()}, V1: imageV1, V2: imageV2})
}

func TestP2_stoppedEngineIsUnreachable(t *testing.T) {
	e := open(t, containers.Config{Name: "local", Socket: podman.Socket()})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := e.List(ctx); err != nil {
		t.Fatal(err)
	}
	if err := podman.StopService(); err != nil {
		t.Fatal(err)
	}
	_, err := e.List(ctx)
	if err == nil {
		t.Fatal("a stopped engine listed its containers")
	}
	if f := containers.ReadFailure(err); f.Reason != fleet.ReasonEndpointUnreachable || f.Message == "" {
		t.Errorf("read failure %+v, want %s", f, fleet.ReasonEndpointUnreachable)
	}
	o := e.Execute(ctx, acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: "0123"}}, nil)
	if o.Class != fleet.ClassTransient || !o.Answered || o.Reason != fleet.ReasonEndpointUnreachable {
		t.Errorf("a task of a stopped engine: %+v, want transient, and nothing that may land later", o)
	}
	if err := podman.StartService(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := e.List(ctx); err != nil {
		t.Errorf("the engine is back and does not list: %v", err)
	}
}
