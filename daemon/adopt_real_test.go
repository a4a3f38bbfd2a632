//go:build real

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// handMade starts a cache server as a person would, with no labels and more arguments, and
// returns its id and the host port that it publishes.
func handMade(t *testing.T, name, tag, account string, more ...string) (id string, port int) {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := real.engine.Podman(context.WithoutCancel(t.Context()), "rm", "--force", "--ignore", "--time", "0", name); err != nil {
			t.Error(err)
		}
	})
	args := append([]string{"run", "--detach", "--name", name, "--publish", fmt.Sprintf("127.0.0.1:%d:8443", address.Port),
		"--env", "KURA_ACCOUNT=" + account, "--env", "KURA_TLS_CERT=/tls/server.pem", "--env", "KURA_TLS_KEY=/tls/server-key.pem",
		"--volume", real.tls + ":/tls:ro"}, more...)
	return podman(t, append(args, image(tag))...), address.Port
}

// started is when a container was started last, by the engine's words.
func started(t *testing.T, id string) string {
	t.Helper()
	return podman(t, "inspect", "--format", "{{.Id}} {{.State.StartedAt}} {{.State.Pid}}", id)
}

func TestAdopt_aHandMadeContainerGoesOnAndTheNextImageReplacesIt(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-adopt"}
	k.declare(region(key.Region), key.Account)
	id, port := handMade(t, "made-by-hand", "v1", key.Account, "--volume", "/scratch")
	scratch := podman(t, "inspect", "--format", `{{range .Mounts}}{{if eq .Destination "/scratch"}}{{.Name}}{{end}}{{end}}`, id)
	t.Cleanup(func() {
		if _, err := real.engine.Podman(context.WithoutCancel(t.Context()), "volume", "rm", "--force", scratch); err != nil {
			t.Error(err)
		}
	})
	before := started(t, id)

	said := k.cli("adopt", key.String(), "--image-tag", "v1", "--container", "cache=made-by-hand")
	if !strings.Contains(said, "adopted 1 container") {
		t.Errorf("kurad adopt says %q", said)
	}
	k.converged(key, "v1")
	const name = "kura-acme-eu-adopt-cache-staging"
	k.until(key, "has the container under its name", func(v fleet.ServerView) bool {
		return isConverged(v) && len(v.Containers) == 1 && v.Containers[0].Name == name
	})
	v := k.converged(key, "v1")
	c := v.Containers[0]
	if c.ID != id || !c.Adopted || v.Ports["cache/https"] != port || !strings.HasSuffix(v.PublishedURL, fmt.Sprintf(":%d", port)) {
		t.Errorf("%s\ncontainer %+v, ports %v; want container %s and port %d", brief(v), c, v.Ports, id, port)
	}
	unchanged := func(when string) {
		t.Helper()
		if now := started(t, id); now != before {
			t.Errorf("%s the container is %s, before %s", when, now, before)
		}
		if list := boxes(t, key.Region); len(list) != 0 {
			t.Errorf("%s there are containers with labels: %+v", when, list)
		}
		if version, err := up(t, v.PublishedURL); err != nil || version != "v1" {
			t.Errorf("%s %s answers %q, %v", when, v.PublishedURL, version, err)
		}
	}
	k.ticks(key, 10)
	unchanged("after ten ticks")
	k.stop()
	k.start()
	k.ticks(key, 2)
	k.converged(key, "v1")
	unchanged("after a restart of kurad")
	// What was adopted is no orphan, and adopting it again, by whatever names it, is nothing.
	for _, ref := range []string{id, id[:12], "made-by-hand"} {
		w, err := k.client.Adopt(t.Context(), key, api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": ref}})
		if err != nil || w.Changed {
			t.Errorf("adopting %s again: changed %t, %v", ref, w.Changed, err)
		}
	}
	// It ends, and is started again by its id (C2).
	podman(t, "kill", id)
	k.until(key, "runs the same container again", func(v fleet.ServerView) bool {
		return isConverged(v) && len(v.Containers) == 1 && v.Containers[0].ID == id && started(t, id) != before
	})

	k.put(key, "v2")
	k.until(key, "serves v2", func(v fleet.ServerView) bool {
		return isConverged(v) && v.ServingImageTag == "v2" && len(v.Containers) == 1
	})
	b := theBox(t, key.Region)
	if b.ID == id || b.name() != name || b.State != "running" || b.Image != image("v2") {
		t.Errorf("after the replace there is %+v", b)
	}
	if out, err := real.engine.Podman(t.Context(), "inspect", "--format", "{{.Name}}", id); err == nil {
		t.Errorf("the adopted container is still there: %s", out)
	}
	podman(t, "volume", "inspect", scratch) // what it kept stays behind
	if version, err := up(t, v.PublishedURL); err != nil || version != "v2" {
		t.Errorf("%s answers %q, %v; want v2 at the same url", v.PublishedURL, version, err)
	}
	if reasons, text := k.events(key); !strings.Contains(text, "is service cache from now on") || strings.Contains(text, "GraceExceeded") {
		t.Errorf("events %v:\n%s", reasons, text)
	}
}

func TestAdopt_refusesWhatIsNotItsToTake(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-adoptno"}
	k.declare(region(key.Region), key.Account, "umbra")
	labelled := podman(t, "run", "--detach", "--name", "of-production", "--label", "dev.kura/environment=production",
		"--label", "dev.kura/account=umbra", "--label", "dev.kura/region=eu", image("v1"))
	t.Cleanup(func() {
		if _, err := real.engine.Podman(context.WithoutCancel(t.Context()), "rm", "--force", "--ignore", "--time", "0", labelled); err != nil {
			t.Error(err)
		}
	})
	other := fleet.ServerKey{Account: "umbra", Region: key.Region}
	k.put(other, "v1")
	k.converged(other, "v1")
	handMade(t, "adoptno-other-tag", "v2", "acme")
	handMade(t, "adoptno-always", "v1", "acme", "--restart", "always")
	handMade(t, "adoptno-removed", "v1", "acme", "--rm")
	unpublished := podman(t, "run", "--detach", "--name", "adoptno-silent", image("v1"))
	t.Cleanup(func() {
		if _, err := real.engine.Podman(context.WithoutCancel(t.Context()), "rm", "--force", "--ignore", "--time", "0", unpublished); err != nil {
			t.Error(err)
		}
	})
	for ref, says := range map[string]string{
		"of-production":                       "server umbra/eu of environment production",
		"kura-umbra-eu-adoptno-cache-staging": "carries the labels of server umbra/eu-adoptno",
		"adoptno-other-tag":                   "cache:v2, and the service is image",
		"adoptno-always":                      "podman update --restart=no adoptno-always",
		"adoptno-removed":                     "(--rm)",
		"adoptno-silent":                      "does not publish 8443/tcp",
		"adoptno-nobody":                      "has no container with the name or id",
	} {
		_, err := k.client.Adopt(t.Context(), key, api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": ref}})
		if err == nil || !strings.Contains(err.Error(), says) || fleet.CodeOf(err) != fleet.CodeInvalid {
			t.Errorf("adopting %s: %v, want it to say %q", ref, err, says)
		}
	}
	if _, err := k.client.GetServer(t.Context(), key, api.GetOptions{}); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("a refused adoption declared the server: %v", err)
	}
}

// cli runs a command of kurad's against the daemon.
func (k *kurad) cli(args ...string) string {
	k.t.Helper()
	c := command()
	var out bytes.Buffer
	c.SetArgs(append(args, "--data-dir", k.dir))
	c.SetOut(&out)
	c.SetErr(&out)
	if err := c.ExecuteContext(k.t.Context()); err != nil {
		k.t.Fatalf("kurad %s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}
