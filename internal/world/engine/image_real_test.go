//go:build real

package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

func TestEngine_imagesAreOfTheVersionTheirTagNames(t *testing.T) {
	ctx := t.Context()
	e, err := engine.Start(ctx, engine.Options{Dir: filepath.Join(t.TempDir(), "engine")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := e.CacheImage(ctx, "localhost/kura-cache:1.2.3"); err != nil {
		t.Fatal(err)
	}
	if err := e.WorkerImage(ctx, "localhost:5001/worker:v7"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Podman(ctx, "run", "--detach", "--publish", "127.0.0.1::8080", "--name", "w", "localhost:5001/worker:v7"); err != nil {
		t.Fatal(err)
	}
	port, err := e.Podman(ctx, "port", "w", "8080/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, strings.TrimSpace(port)); got != "v7" {
		t.Errorf("the worker answers %q, want v7", got)
	}
	if err := e.TagImage(ctx, "localhost/kura-cache:1.2.3", "localhost/kura-cache:latest"); err != nil {
		t.Fatal(err)
	}
	if err := e.RemoveImage(ctx, "localhost/kura-cache:1.2.3"); err != nil {
		t.Fatal(err)
	}
	images, err := e.Podman(ctx, "images", "--format", "{{.Repository}}:{{.Tag}}", "localhost/kura-cache")
	if err != nil || strings.TrimSpace(images) != "localhost/kura-cache:latest" {
		t.Errorf("images %q, %v, want only the one tagged latest", images, err)
	}
}
