package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_namesTheFlagThatIsWrong(t *testing.T) {
	for flag, args := range map[string][]string{
		"--dir":        {"--kubeconfig", "config"},
		"--kubeconfig": {"--dir", t.TempDir(), "--kubeconfig", filepath.Join(t.TempDir(), "none")},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("run %v: %v, want an error that names %s", args, err, flag)
		}
	}
}
