package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge_ownSettingsReplaceTheMachines(t *testing.T) {
	machine := `# a machine's settings
[containers]
# default_ulimits = ["nofile=1:1"]
default_ulimits = [
  "nofile=9:9",
]
tz = "local"
[engine]
runtime = "crun"
[engine.runtimes]
runc = ["/usr/bin/runc"]
`
	got := merge(machine, map[string]string{
		"containers": "default_ulimits = [\"nofile=1024:1024\"]\n",
		"engine":     "runtime = \"runc\"\nlock_type = \"file\"\n",
		"network":    "default_network = \"kura\"\n",
	})
	want := `# a machine's settings
[containers]
default_ulimits = ["nofile=1024:1024"]
# default_ulimits = ["nofile=1:1"]
tz = "local"
[engine]
runtime = "runc"
lock_type = "file"
[engine.runtimes]
runc = ["/usr/bin/runc"]
[network]
default_network = "kura"
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got, want := merge("", map[string]string{"engine": "a = 1\n"}), "[engine]\na = 1\n"; got != want {
		t.Errorf("without a machine's file: %q, want %q", got, want)
	}
}
