package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// ownCluster is a kube-apiserver of the demo's own, with the stand-in for the controller.
type ownCluster struct {
	cluster

	server     *kubernetes.Server
	kubeconfig string // kurad's
	admin      string // for a person who looks around
	controller *exec.Cmd
	where      struct{ HTTPS, DNS, CA string }
	zones      *cloudflare.Emulator
	given      []string // flags of kurad for it
}

func (g *ownCluster) introduce() string {
	return "kube-apiserver and etcd of its own, a stand-in for the KuraInstance controller, a Cloudflare with the zone " + g.zone + ", kurad for the environment \"" + g.environment + "\""
}

func (g *ownCluster) open(ctx context.Context, dir string) error {
	at := filepath.Join(dir, "kubernetes")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	err := progress("starting etcd and kube-apiserver", func() (err error) {
		g.server, err = kubernetes.Open(ctx, kubernetes.Options{Dir: at})
		return err
	})
	if err != nil {
		return err
	}
	g.context, g.namespace = kubernetes.Context, kubernetes.Namespace
	if g.kubeconfig, err = g.server.Kubeconfig(kubernetes.Kurad); err != nil {
		return err
	}
	if g.admin, err = g.server.Kubeconfig(kubernetes.Admin); err != nil {
		return err
	}
	if err := g.connect(g.server.REST(kubernetes.Other)); err != nil {
		return err
	}
	if g.zones, err = cloudflare.New(cloudflare.Options{Zones: []cloudflare.Zone{{Name: g.zone}}}); err != nil {
		return err
	}
	frankfurt, virginia := cloudflare.Place{Latitude: 50.1, Longitude: 8.7}, cloudflare.Place{Latitude: 38.9, Longitude: -77.4}
	g.zones.SetPlaces(cloudflare.Places{Here: frankfurt, Networks: map[netip.Prefix]cloudflare.Place{
		netip.PrefixFrom(inFrankfurt, 24): frankfurt, netip.PrefixFrom(inVirginia, 24): virginia,
	}})
	if g.given, err = g.zones.Give(at, g.zone, "kurad-"+g.environment); err != nil {
		return err
	}
	return progress("starting the controller", func() error { return g.startController(ctx, at) })
}

// startController builds and starts controllerd and reads where it is.
func (g *ownCluster) startController(ctx context.Context, dir string) error {
	program := filepath.Join(dir, "controllerd")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/kurafleet/terraform-provider-kura/internal/world/controllerd")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build controllerd: %w: %s", err, said)
	}
	config, err := g.server.Kubeconfig(kubernetes.Controller)
	if err != nil {
		return err
	}
	g.controller = exec.Command(program, "--kubeconfig", config, "--dir", filepath.Join(dir, "zone"), "--zone", g.zone)
	g.controller.Stderr = os.Stderr
	g.controller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // Ctrl-C is the demo's
	out, err := g.controller.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.controller.Start(); err != nil {
		g.controller = nil
		return fmt.Errorf("start controllerd: %w", err)
	}
	if err := json.NewDecoder(out).Decode(&g.where); err != nil {
		return fmt.Errorf("controllerd does not say where it is: %w", err)
	}
	return nil
}

func (g *ownCluster) close(context.Context, bool) error {
	var errs []error
	if g.controller != nil {
		errs = append(errs, g.controller.Process.Signal(syscall.SIGTERM), g.controller.Wait())
	}
	if g.server != nil {
		g.server.Close()
	}
	if g.zones != nil {
		errs = append(errs, g.zones.Close())
	}
	return errors.Join(errs...)
}

func (g *ownCluster) serve() []string {
	own := append(g.cluster.serve(), "--kubeconfig", g.kubeconfig, "--probe-ca", g.where.CA, "--probe-allow-cidr", "127.0.0.0/8")
	return append(own, g.given...)
}

func (g *ownCluster) variables() map[string]string {
	v := g.cluster.variables()
	_, v["port"], _ = net.SplitHostPort(g.where.HTTPS) // controllerd has printed it
	v["stall_after"] = "8s"
	v["targets"] = `{ eu = "127.0.0.1", us = "127.0.0.2" }` // the ingress answers at both
	return v
}

func (g *ownCluster) cloudflare() *cloudflare.Emulator { return g.zones }

func (g *ownCluster) nothingLeft(ctx context.Context) (string, error) {
	said, err := g.cluster.nothingLeft(ctx)
	if left := g.zones.Table(); left != "" {
		err = errors.Join(err, fmt.Errorf("the zone still has:\n%s", left))
	}
	return said + "; zone " + g.zone + ": nothing", err
}

func (g *ownCluster) global(account string) string {
	return account + "-" + g.environment + "." + g.zone
}

func (g *ownCluster) hint() string {
	return strings.Replace(g.cluster.hint(), "kubectl", "kubectl --kubeconfig "+g.admin, 1)
}

func (g *ownCluster) stays() bool { return false }
