package fleet

import (
	"fmt"
	"slices"
	"strings"
)

// HostMount is a path of the host that a service of a region mounts.
type HostMount struct {
	Pointer  string // to it in the region's document
	By       string // who mounts it, such as `service cache of region "eu"`
	Path     string // tokens stand for anything but a slash
	Writable bool
}

// HostMounts are the paths of the host that the region's services mount.
func (r Region) HostMounts() (mounts []HostMount) {
	if r.Containers == nil {
		return nil
	}
	for _, name := range sortedKeys(r.Containers.Services) {
		for i, vol := range r.Containers.Services[name].Volumes {
			if vol.HostPath == "" {
				continue
			}
			mounts = append(mounts, HostMount{
				Pointer: join("/containers/services", name, "volumes", fmt.Sprint(i), "host_path"),
				By:      fmt.Sprintf("service %s of region %q", name, r.Name), Path: vol.HostPath, Writable: !vol.ReadOnly,
			})
		}
	}
	return mounts
}

// Exposed returns the first mount that is writable and above the path: whoever writes it
// could exchange what lies in between for a link to elsewhere, which the engine would
// follow as the host's root (C10). Two that mount one and the same path share its content
// and nothing else.
func Exposed(path string, mounts []HostMount) (HostMount, bool) {
	i := slices.IndexFunc(mounts, func(m HostMount) bool { return m.Writable && below(path, m.Path) })
	if i < 0 {
		return HostMount{}, false
	}
	return mounts[i], true
}

// below reports whether path may lie below dir, whatever the tokens of both stand for.
func below(path, dir string) bool {
	parts, above := strings.Split(path, "/"), strings.Split(dir, "/")
	if len(parts) <= len(above) {
		return false
	}
	for i := range above {
		if !mayEqual(parts[i], above[i]) {
			return false
		}
	}
	return true
}

// mayEqual reports whether two parts of paths can be the same: what is before the first
// token of each must not contradict, and neither what is behind the last.
func mayEqual(a, b string) bool {
	if !strings.Contains(a, "{") && !strings.Contains(b, "{") {
		return a == b
	}
	begin := func(s string) string { s, _, _ = strings.Cut(s, "{"); return s }
	end := func(s string) string { return s[strings.LastIndex(s, "}")+1:] }
	return (strings.HasPrefix(begin(a), begin(b)) || strings.HasPrefix(begin(b), begin(a))) &&
		(strings.HasSuffix(end(a), end(b)) || strings.HasSuffix(end(b), end(a)))
}

// MountsApart checks that no service of the region mounts a path below one that any server
// of the same container endpoint may write, and lets nobody write above what others mount.
func (r Region) MountsApart(others []Region) error {
	own := r.HostMounts()
	all := slices.Clone(own)
	for _, o := range others {
		if o.Name != r.Name && o.Containers != nil && r.Containers != nil && o.Containers.Endpoint == r.Containers.Endpoint {
			all = append(all, o.HostMounts()...)
		}
	}
	var v Invalid
	for _, m := range own {
		if above, ok := Exposed(m.Path, all); ok {
			v.Add(m.Pointer, "%s lies below %s, which %s mounts and may write: whatever runs there could lead it to any path of the host. Mount that read-only, or choose a folder beside it", m.Path, above.Path, above.By)
		}
	}
	for _, m := range all[len(own):] {
		if above, ok := Exposed(m.Path, own); ok {
			v.Add(above.Pointer, "%s is to be written, and %s mounts %s below it: whatever runs here could lead that to any path of the host. Mount it read-only, or choose a folder beside that one", above.Path, m.By, m.Path)
		}
	}
	return v.Err(fmt.Sprintf("region %q", r.Name))
}
