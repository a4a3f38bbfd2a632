package containers

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// start starts the container, or lets one that is paused go on.
func (r run) start(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	if seen == nil {
		return replan("container %s to start is gone", short(r.task.ContainerID))
	}
	switch stateOf(string(seen.State.Status)) {
	case fleet.ContainerRunning:
		return done(seen.ID)
	case fleet.ContainerPaused:
		return r.goOn(ctx, seen)
	case fleet.ContainerCreated, fleet.ContainerExited:
	}
	// A folder may have become a link to elsewhere since the container was made, and may
	// become one until the engine mounts it (C10).
	paths, err := r.hold(seen)
	if err != nil {
		return refuse(fleet.ReasonForbidden, "start container %s: %v", nameOf(seen), err)
	}
	defer release(paths)
	taken, err := r.portTaken(ctx, seen)
	if err != nil {
		return r.failed(opInspect, err)
	}
	if taken != "" {
		return refuse(fleet.ReasonStartFailed, "start container %s: %s", nameOf(seen), taken)
	}
	_, err = r.engine.ContainerStart(ctx, seen.ID, client.ContainerStartOptions{})
	switch {
	case err == nil:
		return r.verify(ctx, seen.ID, paths)
	case errdefs.IsNotFound(err):
		// Docker also answers 404 where the command does not exist.
		if _, lookErr := r.inspect(ctx, seen.ID); errdefs.IsNotFound(lookErr) {
			return replan("container %s to start is gone", short(seen.ID))
		}
	}
	return r.failed(opStart, err)
}

// goOn unpauses the container, whoever paused it (C2).
func (r run) goOn(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	_, err := r.engine.ContainerUnpause(ctx, seen.ID, client.ContainerUnpauseOptions{})
	if err == nil {
		return done(seen.ID)
	}
	now, lookErr := r.inspect(ctx, seen.ID)
	switch {
	case errdefs.IsNotFound(lookErr):
		return replan("container %s to unpause is gone", short(seen.ID))
	case lookErr == nil && stateOf(string(now.State.Status)) != fleet.ContainerPaused:
		return replan("container %s is not paused any more", nameOf(seen)) // what it is now decides
	}
	return r.failed(opStart, err)
}

// portTaken says which container with a process publishes a port of c already. Starting c
// would not only fail: Podman with netavark, seen with 4.3.1, takes the other's port
// rule away with the failed start's, and the other container answers no more.
func (e *Endpoint) portTaken(ctx context.Context, c *container.InspectResponse) (string, error) {
	if c.HostConfig == nil || len(c.HostConfig.PortBindings) == 0 {
		return "", nil
	}
	listed, err := e.engine.ContainerList(ctx, client.ContainerListOptions{})
	if err != nil {
		return "", err
	}
	for _, other := range listed.Items {
		if other.ID == c.ID || !stateOf(string(other.State)).Alive() {
			continue
		}
		for _, theirs := range other.Ports {
			for port, bindings := range c.HostConfig.PortBindings {
				for _, b := range bindings {
					if theirs.PublicPort != 0 && strconv.Itoa(int(theirs.PublicPort)) == b.HostPort &&
						theirs.Type == string(port.Proto()) && overlap(theirs.IP, b.HostIP) {
						return fmt.Sprintf("host port %s/%s is already in use by container %s (%s)",
							b.HostPort, theirs.Type, strings.TrimPrefix(strings.Join(other.Names, ", "), "/"), ownerOf(other.Labels)), nil
					}
				}
			}
		}
	}
	return "", nil
}

// overlap reports whether binding a and b on one port excludes each other.
func overlap(a, b netip.Addr) bool {
	return a == b || !a.IsValid() || !b.IsValid() || a.IsUnspecified() || b.IsUnspecified()
}
