package containers

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Bounds of the wait before the event stream is opened again.
const (
	watchBackoffMin = 200 * time.Millisecond
	watchBackoffMax = 10 * time.Second
)

// Bounds of the stream itself (G9): in how much time it must begin, and for how long it may
// say nothing before it is opened again, for one that is half dead says nothing either.
const (
	streamBegins = 15 * time.Second
	streamIdle   = time.Minute
)

// Watch calls changed with the name of each container that was created, started,
// renamed, ended or removed, until ctx ends, whose error it returns. Events are a hint
// and may be lost (C1): after a gap in the stream changed is called with "", which
// means any container.
func (e *Endpoint) Watch(ctx context.Context, changed func(name string)) error {
	backoff := watchBackoffMin
	for gap := false; ; gap = true {
		seen, err := e.watchOnce(ctx, changed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if seen {
			backoff = watchBackoffMin
		}
		switch {
		case errors.Is(err, errIdle):
			e.log.Debug("event stream is silent, opening it again")
			changed("")
			continue
		case !gap || seen:
			e.log.Info("event stream ended, opening it again", "error", err)
		}
		select {
		case <-time.After(backoff/2 + rand.N(backoff)):
		case <-ctx.Done():
			return ctx.Err()
		}
		backoff = min(2*backoff, watchBackoffMax)
		changed("")
	}
}

// errIdle says that an event stream was open and silent for a while.
var errIdle = errors.New("no event came for a while")

func (e *Endpoint) watchOnce(ctx context.Context, changed func(name string)) (seen bool, err error) {
	if err := e.negotiate(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := time.AfterFunc(e.streamBegins, func() { cancel(errors.New("the engine did not begin its event stream in time")) })
	stream := e.engine.Events(ctx, client.EventsListOptions{Filters: client.Filters{}.Add("type", string(events.ContainerEventType))})
	begin.Stop()
	idle := time.NewTimer(e.streamIdle)
	defer idle.Stop()
	for {
		select {
		case m := <-stream.Messages:
			seen = true
			idle.Reset(e.streamIdle)
			if name := m.Actor.Attributes["name"]; name != "" && relevant(m.Action) {
				changed(name)
			}
		case err := <-stream.Err:
			return seen, cmp.Or(context.Cause(ctx), err)
		case <-idle.C:
			return seen, errIdle
		}
	}
}

// relevant leaves out what says nothing about whether a container is there and runs; an
// unknown action stays in, since engines differ in their words (die and died).
func relevant(a events.Action) bool {
	switch a {
	case events.ActionExecCreate, events.ActionExecStart, events.ActionExecDie, events.ActionExecDetach,
		events.ActionAttach, events.ActionDetach, events.ActionResize, events.ActionTop, events.ActionCopy,
		events.ActionExport, events.ActionHealthStatus, "exec", "exec_died", "init", "mount", "unmount", "cleanup", "sync":
		return false
	default:
		return true
	}
}
