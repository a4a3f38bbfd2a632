package containers

import (
	"context"

	"github.com/containerd/errdefs"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Adoptable says why a container that carries no labels must not be adopted for what the
// engine does with it by itself; a listing does not show that. An error with another code
// than CodeInvalid says that the engine did not answer.
func (e *Endpoint) Adoptable(ctx context.Context, id string) error {
	seen, err := e.inspect(ctx, id)
	switch {
	case errdefs.IsNotFound(err):
		return fleet.Errorf(fleet.CodeInvalid, "container %s is gone", short(id))
	case err != nil:
		return fleet.Errorf(fleet.CodeUnavailable, "look at container %s: %s", short(id), shorten(e.cfg.hide(err.Error())))
	case seen.HostConfig == nil:
		return fleet.Errorf(fleet.CodeUnavailable, "look at container %s: the engine's answer lacks its restart policy", nameOf(seen))
	case seen.HostConfig.AutoRemove:
		return fleet.Errorf(fleet.CodeInvalid, "the engine removes container %s as soon as it ends (--rm), so kurad could not start it again; make it again without --rm", nameOf(seen))
	}
	if policy := seen.HostConfig.RestartPolicy; !policy.IsNone() {
		return fleet.Errorf(fleet.CodeInvalid, "the engine starts container %[1]s again by itself (restart policy %[2]q), beside kurad; switch that off first: docker update --restart=no %[1]s, or podman update --restart=no %[1]s (a Podman that does not know that option: make the container again without --restart)",
			nameOf(seen), policy.Name)
	}
	return nil
}
