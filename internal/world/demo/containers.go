package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

// zone is that of the hosts, where the demo brings its own DNS.
const zone = "kura.test"

// containers is a Podman of the demo's own.
type containers struct {
	tags   []string
	tls    string
	ca     string
	zones  *cloudflare.Emulator
	given  []string // flags of kurad for it
	engine *engine.Engine
	ports  string
}

func (g *containers) introduce() string {
	return "a certificate authority, a Cloudflare of its own with the zone " + zone + ", a Podman, kurad for staging"
}

func (g *containers) open(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("podman"); err != nil {
		return errors.New("podman is not installed: apt-get install podman")
	}
	g.tls = filepath.Join(dir, "tls")
	var err error
	if g.ports, err = freePorts(portsAtOnce); err != nil {
		return err
	}
	if err := g.startWorld(dir); err != nil {
		return err
	}
	err = progress("starting Podman with a root and a socket of its own", func() (err error) {
		g.engine, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(dir, "podman")})
		return err
	})
	if err != nil {
		return err
	}
	return progress("building the cache server's images "+strings.Join(g.tags, ", ")+" FROM scratch", func() error {
		for _, tag := range g.tags {
			if err := g.engine.CacheImage(ctx, "localhost/kura-cache:"+tag); err != nil {
				return err
			}
		}
		return nil
	})
}

// portsAtOnce are more than the story's servers need, and few enough to be found in a row.
const portsAtOnce = 40

// freePorts asks the system for a row of ports that nobody has. They are below those that it
// gives to whoever connects; who takes one before the servers do is got along with (C12).
func freePorts(n int) (string, error) {
	for range 100 {
		first := 20000 + rand.N(10000)
		if free(first, first+n-1) {
			return fmt.Sprintf("%d-%d", first, first+n-1), nil
		}
	}
	return "", fmt.Errorf("no %d ports in a row are free between 20000 and 30000", n)
}

func free(first, last int) bool {
	for port := first; port <= last; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)) // on whatever address somebody has it
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

func (g *containers) startWorld(dir string) error {
	ca, err := world.NewCA()
	if err != nil {
		return err
	}
	cert, err := ca.IssueWildcard(zone)
	if err != nil {
		return err
	}
	files, err := ca.WriteFiles(g.tls, cert)
	if err != nil {
		return err
	}
	g.ca = files.CA
	if g.zones, err = cloudflare.New(cloudflare.Options{Zones: []cloudflare.Zone{{Name: zone}}}); err != nil {
		return err
	}
	g.given, err = g.zones.Give(dir, zone, "kurad-staging")
	return err
}

func (g *containers) close(context.Context, bool) error {
	var errs []error
	if g.engine != nil {
		errs = append(errs, g.engine.Close())
	}
	if g.zones != nil {
		errs = append(errs, g.zones.Close())
	}
	return errors.Join(errs...)
}

func (g *containers) serve() []string {
	return append([]string{
		"--environment", "staging", "--tick", "5s",
		"--container-endpoint", "local=unix://" + g.engine.Socket() + ",address=127.0.0.1,ports=" + g.ports + ",mounts=" + g.tls,
		"--probe-ca", g.ca, "--probe-allow-cidr", "127.0.0.0/8",
	}, g.given...)
}

func (g *containers) variables() map[string]string { return map[string]string{"tls_dir": g.tls} }

func (g *containers) zoned() string { return zone }

func (g *containers) cloudflare() *cloudflare.Emulator { return g.zones }

// global is none: each server has a port of its own here.
func (g *containers) global(string) string { return "" }

func (g *containers) thing() string { return "container" }

func (g *containers) remove(ctx context.Context, v server) (string, error) {
	name := v.Containers[0].Name
	_, err := g.engine.Podman(ctx, "rm", "--force", "--time", "0", name)
	return "podman rm -f " + name, err
}

func (g *containers) rolling() string { return "one graceful replace by id for each server" }

func (g *containers) rolled(before, after server) (string, error) {
	if after.id() == before.id() {
		return "", fmt.Errorf("%s/%s was not replaced: %+v", after.Account, after.Region, after)
	}
	return fmt.Sprintf("%.12s → %.12s", before.id(), after.id()), nil
}

func (g *containers) failure() string { return "ImagePullFailed" }

func (g *containers) nothingLeft(ctx context.Context) (string, error) {
	for _, what := range [][]string{{"ps", "--all", "--quiet"}, {"volume", "ls", "--quiet"}} {
		out, err := g.engine.Podman(ctx, what...)
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(out) != "" {
			return "", fmt.Errorf("podman %s still lists:\n%s", strings.Join(what, " "), out)
		}
	}
	if left := g.zones.Table(); left != "" {
		return "", fmt.Errorf("the zone still has:\n%s", left)
	}
	return "podman ps --all: nothing; podman volume ls: nothing; zone " + zone + ": nothing", nil
}

func (g *containers) hint() string { return "" }

func (g *containers) target() string { return "demo" }

func (g *containers) stays() bool { return false }
