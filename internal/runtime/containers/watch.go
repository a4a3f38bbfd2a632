package containers

import (
	"context"
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
		if !gap || seen {
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

func (e *Endpoint) watchOnce(ctx context.Context, changed func(name string)) (seen bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := e.engine.Events(ctx, client.EventsListOptions{Filters: client.Filters{}.Add("type", string(events.ContainerEventType))})
	for {
		select {
		case m := <-stream.Messages:
			seen = true
			if name := m.Actor.Attributes["name"]; name != "" && matters(m.Action) {
				changed(name)
			}
		case err := <-stream.Err:
			return seen, err
		}
	}
}

// matters leaves out what says nothing about whether a container is there and runs;
// an unknown action matters, since engines differ in their words (die and died).
func matters(a events.Action) bool {
	switch a {
	case events.ActionExecCreate, events.ActionExecStart, events.ActionExecDie, events.ActionExecDetach,
		events.ActionAttach, events.ActionDetach, events.ActionResize, events.ActionTop, events.ActionCopy,
		events.ActionExport, events.ActionHealthStatus, "exec", "exec_died", "init", "mount", "unmount", "cleanup", "sync":
		return false
	default:
		return true
	}
}
