package containers

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// held is a path of the host that a container is to mount, kept open: whatever becomes of
// its name while the engine resolves it anew, this is what may be mounted (C10).
type held struct {
	path, target string
	file         *os.File
	inode        inode
}

// inode tells files apart, whatever they are called and wherever they are mounted.
type inode struct{ dev, ino uint64 }

// KnowRegions says from where the endpoint knows what all regions mount. A region that was
// declared before mounts were kept apart is then refused where it would matter.
func (e *Endpoint) KnowRegions(regions func() []fleet.Region) { e.regions = regions }

// mountable returns a path of the host without symbolic links, or why it may not be mounted: it
// is not allowed, or somebody may write above it.
func (e *Endpoint) mountable(path string) (string, error) {
	real, err := e.cfg.hostPath(path)
	if err != nil || e.regions == nil {
		return real, err
	}
	var all []fleet.HostMount
	for _, r := range e.regions() {
		if r.Containers != nil && r.Containers.Endpoint == e.cfg.Name {
			all = append(all, r.HostMounts()...)
		}
	}
	if m, ok := fleet.Exposed(path, all); ok {
		return "", fmt.Errorf("host path %s lies below %s, which %s mounts and may write: whatever runs there could lead it to any path of the host; mount that read-only, or choose a folder beside it", path, m.Path, m.By)
	}
	return real, nil
}

// hold keeps the paths open that the container mounts, where kurad sees them: not those of
// an engine elsewhere, and none that do not exist to kurad, which may see less than the
// engine does.
func (r run) hold(seen *container.InspectResponse) (list []held, err error) {
	for _, m := range seen.Mounts {
		if m.Type != mount.TypeBind {
			continue
		}
		real, err := r.mountable(m.Source)
		var h held
		ok := false
		if err == nil && !r.cfg.remote() {
			if h, ok, err = openWithoutLinks(real); err != nil {
				err = fmt.Errorf("host path %s cannot be opened without following a link that somebody put there just now: %w", real, err)
			}
		}
		if err != nil {
			release(list)
			return nil, err
		}
		if ok {
			h.path, h.target = real, m.Destination
			list = append(list, h)
		}
	}
	return list, nil
}

func release(list []held) {
	for _, h := range list {
		_ = h.file.Close()
	}
}

// verify looks at what the container that was just started has really mounted, and removes
// it where that is something else: in between, somebody has exchanged the path.
func (r run) verify(ctx context.Context, id string, list []held) fleet.Outcome {
	if len(list) == 0 {
		return done(id)
	}
	seen, err := r.inspect(ctx, id)
	if err != nil {
		return r.unread(err) // started again, it is looked at again
	}
	i := slices.IndexFunc(list, func(h held) bool {
		got, ok := mountedAt(seen.State.Pid, h.target)
		if !ok && runs(seen) {
			r.log.Warn("what a container has mounted cannot be looked at: kurad sees none of the engine's processes, or may not", "container", nameOf(seen), "path", h.path)
		}
		return ok && got != h.inode
	})
	if i < 0 {
		return done(id)
	}
	removed := "it was removed"
	if err := r.delete(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: !r.task.Adopted}); err != nil {
		removed = "it could not be removed: " + r.cfg.hide(err.Error())
	}
	r.log.Error("a path of the host was exchanged while a container was started", "container", nameOf(seen), "path", list[i].path, "outcome", removed)
	return runtime.Refuse(fleet.ReasonForbidden, "start container %s: host path %s was exchanged for something else while the engine mounted it; %s. See to it that no server and nobody else may write above that path", nameOf(seen), list[i].path, removed)
}
