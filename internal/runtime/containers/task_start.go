package containers

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// start starts the container, or lets one that is paused go on.
func (r run) start(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	switch stateOf(string(seen.State.Status)) {
	case fleet.ContainerRunning:
		return done(seen.ID)
	case fleet.ContainerPaused:
		return r.unpause(ctx, seen)
	case fleet.ContainerCreated, fleet.ContainerExited:
	}
	// A folder may have become a link to elsewhere since the container was made, and may
	// become one until the engine mounts it (C10).
	paths, err := r.hold(seen)
	if err != nil {
		return runtime.Refuse(fleet.ReasonForbidden, "start container %s: %v", nameOf(seen), err)
	}
	defer release(paths)
	port, holder, err := r.portTaken(ctx, seen)
	if err != nil {
		return r.unread(err)
	}
	if port != 0 {
		o := runtime.Refuse(fleet.ReasonPortTaken, "start container %s: %s", nameOf(seen), holder)
		o.Port = port
		return o
	}
	_, err = r.engine.ContainerStart(ctx, seen.ID, client.ContainerStartOptions{})
	switch {
	case err == nil:
		return r.verify(ctx, seen.ID, paths)
	case errdefs.IsNotFound(err):
		// Docker also answers 404 where the command does not exist.
		if _, lookErr := r.inspect(ctx, seen.ID); errdefs.IsNotFound(lookErr) {
			return r.gone()
		}
	}
	o := r.failed(err)
	if b, ok := refusedPort(seen, o); ok {
		o.Reason, o.Port = fleet.ReasonPortTaken, b.port
		o.Message = fmt.Sprintf("start container %s: host port %d/%s is already in use%s: %s", nameOf(seen), b.port, b.protocol, r.holder(b), o.Message)
	}
	return o
}

// unpause lets the container go on, whoever paused it (C2).
func (r run) unpause(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	_, err := r.engine.ContainerUnpause(ctx, seen.ID, client.ContainerUnpauseOptions{})
	if err == nil {
		return done(seen.ID)
	}
	now, lookErr := r.inspect(ctx, seen.ID)
	switch {
	case errdefs.IsNotFound(lookErr):
		return r.gone()
	case lookErr == nil && stateOf(string(now.State.Status)) != fleet.ContainerPaused:
		return runtime.Replan("container %s is not paused any more", nameOf(seen)) // what it is now decides
	}
	return r.failed(err)
}

// portTaken says which container with a process publishes a port of c already. Starting c
// would not only fail: Podman with netavark, seen with 4.3.1, takes the other's port
// rule away with the failed start's, and the other container answers no more.
func (e *Endpoint) portTaken(ctx context.Context, c *container.InspectResponse) (port int, holder string, err error) {
	bound := bindings(c)
	if len(bound) == 0 {
		return 0, "", nil
	}
	listed, err := e.engine.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return 0, "", err
	}
	for _, other := range listed.Items {
		if other.ID == c.ID || !stateOf(string(other.State)).Alive() {
			continue
		}
		for _, theirs := range other.Ports {
			for _, b := range bound {
				if theirs.PublicPort != 0 && int(theirs.PublicPort) == b.port && theirs.Type == b.protocol && overlap(theirs.IP, b.ip) {
					return b.port, fmt.Sprintf("host port %d/%s is already in use by container %s (%s)",
						b.port, b.protocol, strings.TrimPrefix(strings.Join(other.Names, ", "), "/"), ownerOf(other.Labels)), nil
				}
			}
		}
	}
	return 0, "", nil
}

// overlap reports whether binding a and b on one port excludes each other.
func overlap(a, b netip.Addr) bool {
	return a == b || !a.IsValid() || !b.IsValid() || a.IsUnspecified() || b.IsUnspecified()
}
