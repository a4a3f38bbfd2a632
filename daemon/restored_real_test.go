//go:build real

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
)

// A snapshot serves the same fleet elsewhere: in another data directory, as on another
// machine, and in an etcd cluster, into which a fleet grows. No container notices (G7).
func TestG7_aSnapshotServesTheSameFleetElsewhere(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "moves")
	was := theBox(t, key.Region)
	file := filepath.Join(t.TempDir(), "fleet.snapshot")
	k.command("snapshot", "save", "--output", file, "--data-dir", k.dir)
	k.stop()

	broken := filepath.Join(t.TempDir(), "broken.snapshot")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(broken, text, 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "data")
	if got := k.refused("snapshot", "restore", broken, "--environment", "staging", "--data-dir", nowhere); !strings.Contains(got, broken) {
		t.Errorf("a corrupt snapshot is refused with %q, which does not name it", got)
	}

	cluster := etcd.Start(t, etcd.Options{})
	token, err := os.ReadFile(filepath.Join(k.dir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string][]string{
		"another data directory": nil,
		"an etcd cluster":        {"--store-endpoints", strings.Join(cluster.Endpoints(), ",")},
	} {
		next := newKurad(t, "staging", t.TempDir(), real.portRange())
		next.flags = append(withValue(k.flags, "--data-dir", next.dir), where...)
		to := where
		if to == nil {
			to = []string{"--data-dir", next.dir}
		}
		next.command(append([]string{"snapshot", "restore", file, "--environment", "staging"}, to...)...)
		// Whoever had a token before has it now.
		if err := os.WriteFile(filepath.Join(next.dir, tokenFile), token, 0o600); err != nil {
			t.Fatal(err)
		}
		next.start()
		v := next.converged(key, "v1")
		next.ticks(key, 3)
		is := theBox(t, key.Region)
		if is.ID != was.ID || is.Started != was.Started || v.PublishedURL != before.PublishedURL || v.Generation != before.Generation {
			t.Errorf("%s: container %+v, was %+v; it is %s", name, is, was, brief(v))
		}
		if _, err := up(t, v.PublishedURL); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		next.stop()
	}
}

// withValue returns flags with another value of one of them.
func withValue(flags []string, name, value string) []string {
	out := append([]string(nil), flags...)
	for i := range out[:len(out)-1] {
		if out[i] == name {
			out[i+1] = value
		}
	}
	return out
}

// command runs a command of kurad, which must succeed.
func (k *kurad) command(args ...string) string {
	k.t.Helper()
	out, err := k.run(args...)
	if err != nil {
		k.t.Fatalf("kurad %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs a command of kurad, which must fail, and returns what it says.
func (k *kurad) refused(args ...string) string {
	k.t.Helper()
	out, err := k.run(args...)
	if err == nil {
		k.t.Fatalf("kurad %s succeeds:\n%s", strings.Join(args, " "), out)
	}
	return out
}

func (k *kurad) run(args ...string) (string, error) {
	out, err := exec.CommandContext(k.t.Context(), real.kurad, args...).CombinedOutput()
	return string(out), err
}
