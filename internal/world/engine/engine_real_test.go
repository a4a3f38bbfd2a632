//go:build real

package engine_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

func TestEngine_runsContainersAndLeavesNothing(t *testing.T) {
	ctx := t.Context()
	// Deeper than a socket's path may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 20), "engine")
	var log strings.Builder
	e, err := engine.Start(ctx, engine.Options{Dir: dir, Log: hclog.New(&hclog.LoggerOptions{Output: &log})})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(log.String())
	if got := len(e.Socket()); got > 107 {
		t.Errorf("the socket's path has %d bytes, want at most 107", got)
	}
	if err := e.WorkerImage(ctx, "localhost/worker:v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Podman(ctx, "run", "--detach", "--name", "w", "--publish", "127.0.0.1::8080", "localhost/worker:v1"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		t.Errorf("mounts below %s are left:\n%s", dir, mounts)
	}
}

func TestEngine_startsWhereAKilledOneWas(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "engine")
	first, err := engine.Start(ctx, engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.WorkerImage(ctx, "localhost/worker:v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Podman(ctx, "run", "--detach", "--name", "w", "localhost/worker:v1"); err != nil {
		t.Fatal(err)
	}
	second, err := engine.Start(ctx, engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	out, err := second.Podman(ctx, "ps", "--all", "--quiet")
	if err != nil || out != "" {
		t.Errorf("containers of the first engine are left: %q, %v", out, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

func TestEngine_twoRunSideBySide(t *testing.T) {
	ctx := t.Context()
	var engines [2]*engine.Engine
	for i := range engines {
		e, err := engine.Start(ctx, engine.Options{Dir: filepath.Join(t.TempDir(), "engine")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := e.WorkerImage(ctx, "localhost/worker:v1"); err != nil {
			t.Fatal(err)
		}
		engines[i] = e
	}
	var ports [2]string
	for i, e := range engines {
		if _, err := e.Podman(ctx, "run", "--detach", "--name", "w", "--env", "WORKER_VERSION=of engine "+strconv.Itoa(i), "--publish", "127.0.0.1::8080", "localhost/worker:v1"); err != nil {
			t.Fatal(err)
		}
		port, err := e.Podman(ctx, "port", "w", "8080/tcp")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = strings.TrimSpace(port)
	}
	for i, port := range ports {
		if got, want := get(t, port), "of engine "+strconv.Itoa(i); got != want {
			t.Errorf("port %s answers %q, want %q", port, got, want)
		}
	}
	// What one does is nothing to the other, not even while it does it: they share no chain.
	rules, err := exec.CommandContext(ctx, "iptables", "-w", "-t", "nat", "-S", "NETAVARK-HOSTPORT-DNAT").Output()
	if err != nil {
		t.Fatal(err)
	}
	var chains [2]string
	for line := range strings.Lines(string(rules)) {
		for i, port := range ports {
			_, number, _ := strings.Cut(port, ":")
			if strings.Contains(line, "--dport "+number+" ") {
				_, chains[i], _ = strings.Cut(strings.TrimSpace(line), " -j ")
			}
		}
	}
	if chains[0] == "" || chains[0] == chains[1] {
		t.Errorf("the engines' ports are published by the chains %q", chains)
	}
	if _, err := engines[0].Podman(ctx, "rm", "--all", "--force", "--time", "0"); err != nil {
		t.Fatal(err)
	}
	if got := get(t, ports[1]); got != "of engine 1" {
		t.Errorf("after the other's end port %s answers %q", ports[1], got)
	}
}

// get asks until something answers.
func get(t *testing.T, addr string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := web.Get("http://" + addr)
		if err == nil {
			b, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", addr, err)
		}
	}
}

func TestEngine_keepsOutOfFoldersWithFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Start(t.Context(), engine.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("started in a folder with files: %v", err)
	}
	if err := engine.Remove(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("somebody's file is gone: %v", err)
	}
}
