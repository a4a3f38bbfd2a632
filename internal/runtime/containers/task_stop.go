package containers

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// killedExit is the exit code of a process that SIGKILL ended.
const killedExit = 128 + 9

// defaultGrace is the grace period of a stop that names none.
const defaultGrace = 30 * time.Second

const (
	releaseTime = 10 * time.Second // that an engine has to take back a container's addresses
	releasePace = 50 * time.Millisecond
)

// stop ends the container by the signal it was created with, and by SIGKILL after
// the grace period (C4, C6).
func (r run) stop(ctx context.Context, seen *container.InspectResponse) fleet.Outcome {
	if !runs(seen) {
		o := done(seen.ID)
		// An earlier try of this very task may have sent SIGKILL and not lived to tell.
		o.Forced = r.task.Tries > 1 && seen.State.ExitCode == killedExit && !seen.State.OOMKilled
		r.awaitRelease(ctx, seen.ID)
		return o
	}
	forced, err := r.end(ctx, seen, cmp.Or(r.task.Grace.Std(), defaultGrace))
	if err != nil {
		return r.failed(err)
	}
	r.awaitRelease(ctx, seen.ID)
	o := done(seen.ID)
	o.Forced = forced
	return o
}

// awaitRelease waits until the engine has taken back the addresses of a container that ended,
// and with them the rules that lead its ports there: Podman does so in a process of its own, and
// what is started on the same port before is not reached (C4).
func (e *Endpoint) awaitRelease(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	pace := time.NewTicker(releasePace)
	defer pace.Stop()
	for {
		seen, err := e.inspect(ctx, id)
		if err != nil || !addressed(seen) {
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			e.log.Warn("the engine has not taken back the addresses of a container that ended", "container", nameOf(seen), "after", releaseTime)
			return
		}
	}
}

// addressed reports whether the container has an address in a network.
func addressed(c *container.InspectResponse) bool {
	if c.NetworkSettings == nil {
		return false
	}
	for _, n := range c.NetworkSettings.Networks {
		if n != nil && n.IPAddress.IsValid() {
			return true
		}
	}
	return false
}

// end is the stop under our own clock: Podman 4.3 ignores the signal of its stop
// call, and goes on stopping when the client has given up.
func (e *Endpoint) end(ctx context.Context, c *container.InspectResponse, grace time.Duration) (forced bool, err error) {
	if c.State.Paused { // a frozen process gets no signal
		if _, err := e.engine.ContainerUnpause(ctx, c.ID, client.ContainerUnpauseOptions{}); err != nil {
			return false, err
		}
	}
	ended, err := e.signal(ctx, c.ID, cmp.Or(c.Config.StopSignal, "SIGTERM"))
	if ended || err != nil {
		return false, err
	}
	patience, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := e.awaitEnd(patience, c.ID); err == nil || ctx.Err() != nil || patience.Err() == nil {
		return false, err
	}
	e.log.Warn("container ignores its stop signal, killing it", "container", nameOf(c), "signal", c.Config.StopSignal, "grace", grace)
	ended, err = e.signal(ctx, c.ID, "SIGKILL")
	if ended || err != nil {
		return false, err
	}
	return true, e.awaitEnd(ctx, c.ID)
}

// signal sends a signal. ended says that the container had ended before.
func (e *Endpoint) signal(ctx context.Context, id, signal string) (ended bool, err error) {
	_, err = e.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal})
	if err == nil {
		return false, nil
	}
	// Engines answer 404, 409 or 500 where nothing runs: the state tells.
	seen, lookErr := e.inspect(ctx, id)
	if errdefs.IsNotFound(lookErr) || lookErr == nil && !runs(seen) {
		return true, nil
	}
	return false, err
}

// awaitEnd waits until the container no longer runs.
func (e *Endpoint) awaitEnd(ctx context.Context, id string) error {
	wait := e.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case res := <-wait.Result:
		if res.Error != nil && res.Error.Message != "" {
			return errors.New(res.Error.Message)
		}
		return nil
	case err := <-wait.Error:
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	}
}
