package containers

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// rename gives the container the task's name.
func (r run) rename(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	if nameOf(seen) == r.task.Name {
		return done(seen.ID)
	}
	_, err := r.engine.ContainerRename(ctx, seen.ID, client.ContainerRenameOptions{NewName: r.task.Name})
	switch {
	case err == nil:
		return done(seen.ID)
	case errdefs.IsNotFound(err):
		return r.gone()
	case isConflict(err):
		// Podman answers a taken name with 500.
		if holder, lookErr := r.inspect(ctx, r.task.Name); lookErr == nil && holder.ID != seen.ID {
			if who := ownerOf(holder.Config.Labels); who != r.ownerFor(r.key) {
				return runtime.Foreign("container "+r.task.Name, who.String())
			}
			return runtime.Replan("the name %s is taken by container %s of the same server", r.task.Name, short(holder.ID))
		}
	}
	return r.failed(err)
}

// remove removes a container that does not run.
func (r run) remove(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	if runs(seen) {
		return runtime.Replan("container %s runs; it is stopped before it is removed", nameOf(seen))
	}
	// What a person's container keeps stays behind, wherever it is.
	adopted := r.adopted(seen.ID, ownerOf(seen.Config.Labels))
	if err := r.delete(ctx, seen.ID, client.ContainerRemoveOptions{RemoveVolumes: !adopted}); err != nil {
		return r.failed(err)
	}
	return done(seen.ID)
}

// delete removes a stopped container, and its anonymous volumes where the options say so;
// named ones stay.
func (e *Endpoint) delete(ctx context.Context, id string, o client.ContainerRemoveOptions) error {
	_, err := e.engine.ContainerRemove(ctx, id, o)
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	if _, lookErr := e.inspect(ctx, id); errdefs.IsNotFound(lookErr) {
		return nil // somebody else's removal was faster
	}
	return err
}

func short(id string) string { return id[:min(len(id), 12)] }
