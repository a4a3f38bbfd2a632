//go:build real

package conformance_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

// TestEngine tries the engine that KURA_TEST_ENGINE names as --container-endpoint does,
// without the name: unix:///path or tcp://host:port,ca=…,cert=…,key=… (make test-docker).
// Without one it is a Podman of its own behind a proxy that ends TLS. Nothing that it did
// not make itself is touched.
func TestEngine(t *testing.T) {
	given := os.Getenv("KURA_TEST_ENGINE")
	if given == "" {
		given = podmanOverTLS(t)
	}
	if strings.HasPrefix(given, "/") {
		given = "unix://" + given
	}
	cfg, err := containers.ParseEndpoint("tried=" + given)
	if err != nil {
		t.Fatal(err)
	}
	api, err := containers.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	seen, err := api.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := "engine"
	if len(seen.Components) > 0 {
		name = seen.Components[0].Name
	}
	t.Logf("%s: %s %s on %s/%s, API %s (from %s)", cfg, name, seen.Version, seen.Os, seen.Arch, seen.APIVersion, seen.MinAPIVersion)

	run := strings.ToLower(rand.Text()[:8])
	target := conformance.Target{Engine: cfg}
	for tag, ref := range map[string]*string{"v1": &target.V1, "v2": &target.V2} {
		*ref = "localhost/kura-conformance-" + run + ":" + tag
		load(t, api, *ref)
	}
	conformance.Run(t, target)
}

// load makes an image present by the API, and takes it away when the test ends.
func load(t *testing.T, c *client.Client, ref string) {
	t.Helper()
	archive, err := engine.WorkerArchive(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute) // the test's has ended
		defer cancel()
		if _, err := c.ImageRemove(ctx, ref, client.ImageRemoveOptions{}); err != nil {
			t.Errorf("remove image %s: %v", ref, err)
		}
	})
	loaded, err := c.ImageLoad(t.Context(), bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if said, err := io.ReadAll(loaded); err != nil {
		t.Fatalf("load image %s: %v: %s", ref, err, said)
	}
}

// podmanOverTLS starts a Podman of its own that is reached over TLS with client
// certificates, as an engine on another machine is.
func podmanOverTLS(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	podman, err := engine.Start(t.Context(), engine.Options{Dir: filepath.Join(dir, "engine"), Log: hclog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := podman.Close(); err != nil {
			t.Error(err)
		}
	})
	ca, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	kurad, err := ca.IssueClient("kurad")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.WriteFiles(filepath.Join(dir, "tls"), kurad)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := world.StartTLSProxy(server, ca, "unix", podman.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return "tcp://" + proxy.Addr() + ",ca=" + files.CA + ",cert=" + files.Cert + ",key=" + files.Key
}
