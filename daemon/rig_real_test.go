//go:build real

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
	"github.com/kurafleet/terraform-provider-kura/internal/world/stopwatch"
)

// rig is what all real tests of this package share; each test has a kurad of its own.
type rig struct {
	dir       string
	kurad     string // the built binary
	engine    *engine.Engine
	dns       *world.DNS
	ca        *world.CA
	tls       string // folder with the certificate, which containers mount
	kube      kubeCluster
	stopwatch *stopwatch.Stopwatch // for what may take only so long
	files     world.Files
	ranges    atomic.Int32 // port ranges that were given out
}

var real *rig

func TestMain(m *testing.M) {
	os.Exit(func() (code int) {
		r, err := newRig(context.Background())
		real = r
		defer func() {
			if err := r.close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		// Most of the time is spent waiting for containers; -parallel wins over it.
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// versions are the tags of the cache server that are built: the endings make it
// misbehave.
func versions() []string {
	return []string{"v1", "v2", "v3", "v2-crash", "v2-hang", "v2-fail", "v1-ignoreterm", "v2-ignoreterm"}
}

func newRig(ctx context.Context) (r *rig, err error) {
	r = &rig{}
	if r.dir, err = os.MkdirTemp("", "kurad-real-"); err != nil {
		return r, err
	}
	if err := os.Chmod(r.dir, 0o755); err != nil { // containers mount the certificate below it
		return r, err
	}
	r.kurad = filepath.Join(r.dir, "kurad")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", r.kurad, ".").CombinedOutput(); err != nil {
		return r, fmt.Errorf("build kurad: %w\n%s", err, out)
	}
	if r.ca, err = world.NewCA(); err != nil {
		return r, err
	}
	cert, err := r.ca.IssueWildcard("kura.test")
	if err != nil {
		return r, err
	}
	r.stopwatch = stopwatch.New(stopwatch.Chore(r.dir))
	r.tls = filepath.Join(r.dir, "tls")
	if r.files, err = r.ca.WriteFiles(r.tls, cert); err != nil {
		return r, err
	}
	if r.dns, err = world.StartDNS("kura.test"); err != nil {
		return r, err
	}
	r.dns.SetWildcard(netip.MustParseAddr("127.0.0.1"))
	if r.engine, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(r.dir, "podman"), Log: hclog.Default()}); err != nil {
		return r, err
	}
	for _, v := range versions() {
		if err := r.engine.CacheImage(ctx, image(v)); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *rig) close() error {
	var errs []error
	errs = append(errs, r.kube.close())
	if r.stopwatch != nil {
		errs = append(errs, r.stopwatch.Stop())
	}
	if r.engine != nil {
		errs = append(errs, r.engine.Close())
	}
	if r.dns != nil {
		errs = append(errs, r.dns.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// portRange gives out 40 ports that no other test of the process uses, below the ports
// that the system gives to clients.
func (r *rig) portRange() string {
	first := 24000 + 40*(int(r.ranges.Add(1))-1)
	return fmt.Sprintf("%d-%d", first, first+39)
}

func image(tag string) string { return "localhost/kura-cache:" + tag }

// podman runs a command of the engine.
func podman(t *testing.T, args ...string) string {
	t.Helper()
	out, err := real.engine.Podman(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// box is a container as the engine lists it.
type box struct {
	ID      string `json:"Id"`
	Names   []string
	Image   string
	State   string
	Started int64 `json:"StartedAt"`
}

func (b box) name() string { return strings.Join(b.Names, ",") }

// boxes are all containers of a region in an environment, running or not.
func boxes(t *testing.T, region string, environment ...string) []box {
	t.Helper()
	args := []string{"ps", "--all", "--format", "json", "--filter", "label=dev.kura/region=" + region}
	for _, e := range environment {
		args = append(args, "--filter", "label=dev.kura/environment="+e)
	}
	var list []box
	if err := json.Unmarshal([]byte(podman(t, args...)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// theBox is the one container of a region.
func theBox(t *testing.T, region string, environment ...string) box {
	t.Helper()
	list := boxes(t, region, environment...)
	if len(list) != 1 {
		t.Fatalf("region %s has %d containers, want one: %+v", region, len(list), list)
	}
	return list[0]
}

// discard removes what a test left on the engine.
func discard(region string) error {
	ctx := context.Background()
	filter := "label=dev.kura/region=" + region
	ids, err := real.engine.Podman(ctx, "ps", "--all", "--quiet", "--filter", filter)
	if err != nil {
		return err
	}
	if ids = strings.TrimSpace(ids); ids != "" {
		if _, err := real.engine.Podman(ctx, append([]string{"rm", "--force", "--time", "0"}, strings.Fields(ids)...)...); err != nil {
			return err
		}
	}
	return nil
}
