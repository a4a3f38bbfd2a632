package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// keepFailure is how long an endpoint that did not answer is not asked again for a
// declaration, so that an engine that hangs holds up one of them and not each.
const keepFailure = 10 * time.Second

// lister lists an endpoint for the API, once for all that ask at the same time. It is not
// the reconciler's: a kurad that does not lead answers the API, too.
type lister struct {
	endpoint *containers.Endpoint

	mu   sync.Mutex
	last fleet.Listing
	at   time.Time // when last began
}

func (l *lister) list(ctx context.Context, maxAge time.Duration) fleet.Listing {
	asked := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	age := asked.Sub(l.at) // of one that began while this waited it is negative
	if !l.at.IsZero() && (age < maxAge || age <= 0 || maxAge > 0 && l.last.Unreadable != nil && age < keepFailure) {
		return l.last
	}
	begun := time.Now()
	out := fleet.Listing{Endpoint: l.endpoint.Name(), Begun: begun}
	cs, err := l.endpoint.List(ctx)
	if err != nil {
		asker := errors.Is(ctx.Err(), context.Canceled) // gave up: that is no news of the engine
		f := containers.ReadFailure(err)
		f.Since, f.Count = begun, 1
		out.Unreadable = &f
		if asker {
			return out
		}
	}
	out.Containers = cs
	l.last, l.at = out, begun
	return out
}

// Containers implements server.Runtimes.
func (r *runtimes) Containers(ctx context.Context, endpoint string, maxAge time.Duration) fleet.Listing {
	l := r.listers[endpoint]
	if l == nil {
		return fleet.Listing{Endpoint: endpoint, Unreadable: &fleet.ReadFailure{
			Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("this kurad was given no endpoint named %q", endpoint),
		}}
	}
	return l.list(ctx, maxAge)
}

// Adoptable implements server.Runtimes.
func (r *runtimes) Adoptable(ctx context.Context, endpoint, id string) error {
	e := r.containers[endpoint]
	if e == nil {
		return fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no endpoint named %q", endpoint)
	}
	return e.Adoptable(ctx, id)
}

// Listings implements server.Turns.
func (s *standing) Listings() []fleet.Listing {
	if t := s.Load(); t != nil {
		return t.loop.Listings()
	}
	return nil
}

// KubeListings implements server.Turns.
func (s *standing) KubeListings() []fleet.KubeListing {
	if t := s.Load(); t != nil {
		return t.loop.KubeListings()
	}
	return nil
}
