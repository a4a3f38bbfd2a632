package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

const (
	// listingWithin bounds a listing, whoever waits for it and for how long.
	listingWithin = 10 * time.Second
	// keepFailure is how long an endpoint that did not answer is not asked again for a
	// declaration, and slowListing after how long it is no longer waited for, so that an
	// engine that hangs holds up one of them and not each.
	keepFailure = 10 * time.Second
	slowListing = 3 * time.Second
)

// lister lists an endpoint for the API, once for all that ask at the same time. It is not
// the reconciler's: a kurad that does not lead answers the API, too. Nobody waits longer than
// he wants to, whatever the engine does (G9).
type lister struct {
	name string
	list func(context.Context) ([]fleet.Container, error)

	mu    sync.Mutex // no engine is asked under it
	last  fleet.Listing
	ended time.Time // of last
	under *underWay // nil: nobody lists now
}

// underWay is a listing that goes on.
type underWay struct {
	begun time.Time
	ended chan struct{}
}

// listing returns a listing that began no longer than maxAge before the call.
func (l *lister) listing(ctx context.Context, maxAge time.Duration) fleet.Listing {
	asked := time.Now()
	for {
		last, now := l.begin(asked, maxAge)
		if now == nil {
			return last
		}
		if maxAge > 0 && asked.Sub(now.begun) > slowListing {
			return l.unanswered(now.begun, context.DeadlineExceeded)
		}
		select {
		case <-now.ended:
		case <-ctx.Done():
			return l.unanswered(now.begun, ctx.Err())
		}
	}
}

// begin returns the last listing if it will do, else one that is under way.
func (l *lister) begin(asked time.Time, maxAge time.Duration) (fleet.Listing, *underWay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age := asked.Sub(l.last.Begun) // of one that began since it is negative
	if !l.last.Begun.IsZero() && (age < maxAge || age <= 0 || maxAge > 0 && l.last.Unreadable != nil && asked.Sub(l.ended) < keepFailure) {
		return l.last, nil
	}
	if l.under == nil {
		l.under = &underWay{begun: time.Now(), ended: make(chan struct{})}
		go l.run(l.under)
	}
	return fleet.Listing{}, l.under
}

// run lists for all who wait, also for those who come when the first has given up.
func (l *lister) run(now *underWay) {
	ctx, cancel := context.WithTimeout(context.Background(), listingWithin)
	defer cancel()
	cs, err := l.list(ctx)
	out := fleet.Listing{Endpoint: l.name, Begun: now.begun, Containers: cs}
	if err != nil {
		out = l.unanswered(now.begun, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.ended, l.under = out, time.Now(), nil
	close(now.ended)
}

func (l *lister) unanswered(begun time.Time, err error) fleet.Listing {
	f := containers.ReadFailure(fmt.Errorf("list containers of endpoint %q: %w", l.name, err))
	f.Since, f.Count = begun, 1
	return fleet.Listing{Endpoint: l.name, Begun: begun, Unreadable: &f}
}

// Containers implements declare.Runtimes.
func (r *runtimes) Containers(ctx context.Context, endpoint string, maxAge time.Duration) fleet.Listing {
	l := r.listers[endpoint]
	if l == nil {
		return fleet.Listing{Endpoint: endpoint, Unreadable: &fleet.ReadFailure{
			Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("this kurad was given no endpoint named %q", endpoint),
		}}
	}
	return l.listing(ctx, maxAge)
}

// Adoptable implements declare.Runtimes.
func (r *runtimes) Adoptable(ctx context.Context, endpoint, id string) error {
	e := r.containers[endpoint]
	if e == nil {
		return fleet.Errorf(fleet.CodeUnavailable, "this kurad was given no endpoint named %q", endpoint)
	}
	return e.Adoptable(ctx, id)
}

// Listings implements server.Turns.
func (s *currentTerm) Listings() []fleet.Listing {
	if t := s.Load(); t != nil {
		return t.loop.Listings()
	}
	return nil
}

// KubeListings implements server.Turns.
func (s *currentTerm) KubeListings() []fleet.KubeListing {
	if t := s.Load(); t != nil {
		return t.loop.KubeListings()
	}
	return nil
}
