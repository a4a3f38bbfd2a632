package engine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// machineConf returns the machine's containers.conf: naming one of ours by
// CONTAINERS_CONF makes Podman 4.3 ignore it, so ours begins as its copy.
func machineConf() (string, error) {
	paths := []string{"/etc/containers/containers.conf", "/usr/share/containers/containers.conf"}
	if own := os.Getenv("CONTAINERS_CONF"); own != "" {
		paths = []string{own}
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the machine's podman settings: %w", err)
		}
		return string(b), nil
	}
	return "", nil
}

// merge puts our lines first into the sections of a containers.conf and takes out
// what the file itself says about the same keys. It reads TOML by lines, which is
// enough for files of `key = value` with values that may span lines.
func merge(conf string, ours map[string]string) string {
	set := map[string]bool{}
	for section, lines := range ours {
		for line := range strings.Lines(lines) {
			set[section+"."+key(line)] = true
		}
	}
	var out strings.Builder
	done := map[string]bool{}
	section, dropping := "", false
	for line := range strings.Lines(conf) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && !strings.ContainsAny(text, `",`):
			section, dropping = strings.Trim(text, "[] "), false
			out.WriteString(line)
			out.WriteString(ours[section])
			done[section] = true
			continue
		case key(line) != "":
			dropping = set[section+"."+key(line)]
		}
		if !dropping {
			out.WriteString(line)
		}
	}
	if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
		out.WriteString("\n")
	}
	for _, section := range slices.Sorted(maps.Keys(ours)) {
		if !done[section] {
			fmt.Fprintf(&out, "[%s]\n%s", section, ours[section])
		}
	}
	return out.String()
}

// key returns the key that a line sets, or "".
func key(line string) string {
	name, _, ok := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.ContainsAny(name, "#\"'[]{}, ") {
		return ""
	}
	return name
}
