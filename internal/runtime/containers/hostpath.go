package containers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// hostPath returns path without symbolic links if it is at or below a folder that the
// operator allowed (C10). A path with tokens is checked by its text: their values hold
// no slash. So is one of an engine elsewhere, whose links kurad cannot see.
func (c Config) hostPath(path string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("host path %s %s; allowed on endpoint %q: %s", path, why, c.Name, runtime.OrNone(c.Mounts))
	}
	switch {
	case !filepath.IsAbs(path):
		return refuse("is not absolute")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return refuse("holds ..")
	}
	clean := filepath.Clean(path)
	if !below(clean, c.Mounts) {
		return refuse("is not below an allowed folder")
	}
	if strings.ContainsAny(clean, "{}") || c.remote() {
		return clean, nil
	}
	real, err := resolve(clean)
	if err != nil {
		return refuse("cannot be read: " + err.Error())
	}
	allowed := make([]string, len(c.Mounts))
	for i, m := range c.Mounts {
		if allowed[i], err = resolve(m); err != nil {
			return refuse("cannot be compared: " + err.Error())
		}
	}
	if !below(real, allowed) {
		return refuse("leads to " + real + " by a symbolic link")
	}
	return real, nil
}

func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	})
}

// resolve follows the symbolic links of path as far as it exists; what does not exist
// (yet, or to kurad, which may see less than the engine) has none.
func resolve(path string) (string, error) {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		// A link whose target is missing does exist: where it leads is not known.
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&os.ModeSymlink != 0 {
			return "", err
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
}
