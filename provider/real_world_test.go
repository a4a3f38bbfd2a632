//go:build real

package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

// The acceptance tests drive the provider with a real CLI against a real kurad, which
// runs real containers: nothing between the configuration and what answers is made up.

// outside is what kurads of this process stand on: one engine, a certificate authority,
// DNS for kura.test, and the daemon's binary.
type outside struct {
	dir    string
	engine *engine.Engine
	dns    *world.DNS
	ca     *world.CA
	files  world.Files
	binary string
	ports  string       // of the endpoint, for this process alone
	held   net.Listener // the first of them, so that no other process takes them
	web    *http.Client // trusts the authority, and finds every host on loopback

	mu     sync.Mutex
	images map[string]bool
}

var theWorld = &outside{images: map[string]bool{}}

// Each part of the world starts with the first test that needs it; TestMain ends it.
var (
	openGround = sync.OnceValue(func() error { return theWorld.ground() })
	buildKurad = sync.OnceValue(func() error { return theWorld.build(context.Background()) })
	openWorld  = sync.OnceValue(func() error { return theWorld.open(context.Background()) })
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := theWorld.close(); err != nil {
		fmt.Fprintln(os.Stderr, "what the tests ran on is not removed:", err)
		code = 1
	}
	os.Exit(code)
}

// theOutside returns the world.
func theOutside(t *testing.T) *outside {
	t.Helper()
	if err := openWorld(); err != nil {
		t.Fatal(err)
	}
	return theWorld
}

// theGround returns the world without the engine: what does not run containers needs none.
func theGround(t *testing.T) *outside {
	t.Helper()
	if err := openGround(); err != nil {
		t.Fatal(err)
	}
	if err := buildKurad(); err != nil {
		t.Fatal(err)
	}
	return theWorld
}

func (w *outside) open(ctx context.Context) error {
	if err := openGround(); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(buildKurad)
	both.Go(func() (err error) {
		w.engine, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(w.dir, "podman")})
		return err
	})
	return both.Wait()
}

func (w *outside) ground() (err error) {
	if w.dir, err = os.MkdirTemp("", "kura-acc-"); err != nil {
		return err
	}
	if w.ca, err = world.NewCA(); err != nil {
		return err
	}
	certificate, err := w.ca.IssueWildcard("kura.test")
	if err != nil {
		return err
	}
	if w.files, err = w.ca.WriteFiles(filepath.Join(w.dir, "tls"), certificate); err != nil {
		return err
	}
	if w.dns, err = world.StartDNS("kura.test"); err != nil {
		return err
	}
	w.dns.SetWildcard(netip.MustParseAddr("127.0.0.1"))
	w.web = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: w.ca.Pool(), MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}}
	return w.reservePorts()
}

// build builds kurad, with the race detector where this test has it: a race in the
// daemon then ends it with a code that the tests notice.
func (w *outside) build(ctx context.Context) error {
	w.binary = filepath.Join(w.dir, "kurad")
	args := []string{"build", "-o", w.binary}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "../daemon")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build kurad: %w: %s", err, out)
	}
	return nil
}

// reservePorts finds a hundred ports that no other process of these tests uses.
func (w *outside) reservePorts() error {
	var last error
	for first := 20000; first < 28000; first += 100 {
		held, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
		if err == nil {
			w.held, w.ports = held, fmt.Sprintf("%d-%d", first+1, first+99)
			return nil
		}
		last = err
	}
	return fmt.Errorf("no range of ports is free: %w", last)
}

func (w *outside) close() error {
	var errs []error
	if w.engine != nil {
		errs = append(errs, w.engine.Close())
	}
	if w.dns != nil {
		errs = append(errs, w.dns.Close())
	}
	if w.held != nil {
		errs = append(errs, w.held.Close())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}

// image makes sure that the cache server's image of the version is there. A version
// that no test made an image of is one that nobody built.
func (w *outside) image(t *testing.T, tags ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tag := range tags {
		if w.images[tag] {
			continue
		}
		if err := w.engine.CacheImage(t.Context(), "localhost/kura-cache:"+tag); err != nil {
			t.Fatal(err)
		}
		w.images[tag] = true
	}
}

// loseImage takes the image away again.
func (w *outside) loseImage(t *testing.T, tag string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.engine.RemoveImage(context.WithoutCancel(t.Context()), "localhost/kura-cache:"+tag); err != nil {
		t.Error(err)
	}
	delete(w.images, tag)
}

// podman runs a command on the engine and returns what it printed.
func (w *outside) podman(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.engine.Podman(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask sends a request to a server's url and returns the status and what it said.
func (w *outside) ask(ctx context.Context, method, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := w.web.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	return res.StatusCode, string(body), err
}
