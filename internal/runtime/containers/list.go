package containers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// List returns all containers of the engine, foreign ones included, sorted by name.
// It is one listing; only ours that have no process are looked at one by one, for how they
// ended. Ours are those that our labels say, and those with one of the adopted ids.
func (e *Endpoint) List(ctx context.Context, adopted ...string) ([]fleet.Container, error) {
	if err := e.negotiate(ctx); err != nil {
		return nil, fmt.Errorf("list containers of endpoint %q: %w", e.cfg.Name, err)
	}
	listed, err := e.engine.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers of endpoint %q: %w", e.cfg.Name, err)
	}
	out := make([]fleet.Container, 0, len(listed.Items))
	for _, item := range listed.Items {
		c := e.observed(item)
		if (c.Foreign == "" || slices.Contains(adopted, c.ID)) && !c.State.Alive() {
			gone, err := e.readExit(ctx, &c)
			if err != nil {
				return nil, fmt.Errorf("list containers of endpoint %q: inspect %s: %w", e.cfg.Name, c.Name, err)
			}
			if gone {
				continue
			}
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b fleet.Container) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (e *Endpoint) observed(item container.Summary) fleet.Container {
	c := fleet.Container{ID: item.ID, Image: item.Image, State: stateOf(string(item.State))}
	if len(item.Names) > 0 {
		c.Name = strings.TrimPrefix(item.Names[0], "/")
	}
	if who := ownerOf(item.Labels); e.ours(who) {
		c.Account, c.Region = who.Account, who.Region
		c.Service, c.Digest = item.Labels[fleet.LabelService], item.Labels[fleet.LabelDigest]
		c.RestartMark = item.Labels[fleet.LabelRestartMark]
	} else {
		c.Foreign = who.String()
	}
	for _, p := range item.Ports {
		if p.PublicPort == 0 {
			continue
		}
		if c.Ports == nil {
			c.Ports = map[string]int{}
		}
		c.Ports[fmt.Sprintf("%d/%s", p.PrivatePort, p.Type)] = int(p.PublicPort)
	}
	return c
}

// readExit fills in how c ended. gone says that it has been removed since the listing.
func (e *Endpoint) readExit(ctx context.Context, c *fleet.Container) (gone bool, err error) {
	seen, err := e.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		// Podman answers 500 where the container is removed while it looks; a second
		// look says 404. One that goes must not make a whole endpoint unreadable.
		seen, err = e.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	}
	if errdefs.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	c.Name = strings.TrimPrefix(seen.Container.Name, "/")
	state := seen.Container.State
	if state == nil {
		return false, nil
	}
	c.State = stateOf(string(state.Status))
	c.ExitCode = state.ExitCode
	c.Started, c.Finished = engineTime(state.StartedAt), engineTime(state.FinishedAt)
	return false, nil
}

// stateOf maps what Docker and Podman call a container's state to the nearest of
// ours: running and paused is what still has a process.
func stateOf(s string) fleet.ContainerState {
	switch s {
	case "created", "configured", "initialized":
		return fleet.ContainerCreated
	case "running", "restarting", "stopping":
		return fleet.ContainerRunning
	case "paused":
		return fleet.ContainerPaused
	default: // exited, stopped, dead, removing
		return fleet.ContainerExited
	}
}

// engineTime reads a time of the engine; it writes year 1 or 1970 for never.
func engineTime(s string) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Unix() <= 0 {
		return nil
	}
	t = t.UTC()
	return &t
}
