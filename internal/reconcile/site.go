package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// site is where instances are: a container endpoint, or a namespace of a cluster.
type site interface {
	Observer
	fmt.Stringer // names it for people
	// room is where the server waits for a task of this kind to begin, and no longer for one
	// of another.
	room(key fleet.ServerKey, task fleet.Task) *slots
	// forgo says that the server takes up no effect now: others are not kept waiting for it.
	forgo(key fleet.ServerKey)
	execute(ctx context.Context, key fleet.ServerKey, d fleet.Desired, task fleet.Task) fleet.Outcome
	// waiting says how many servers wait with this one for the tries of others (G12).
	waiting(key fleet.ServerKey) int
}

// whereabouts are what is remembered of a server that had a turn: where it is, and what
// there is its own.
type whereabouts struct {
	site    site // nil: this kurad was given none that the region names
	target  string
	names   []string                  // of its instance or its containers, unique in the target
	adopted map[string]fleet.Adoption // containers without labels, by service
}

// spot is a name within a target.
type spot struct{ target, name string }

// site returns where the region's instances are, nil where this kurad was not given it.
// It begins to observe a namespace that it hears of for the first time.
func (r *Reconciler) site(region fleet.Region) site {
	switch {
	case region.Containers != nil:
		if e := r.endpoints[region.Containers.Endpoint]; e != nil {
			return e
		}
	case region.Kubernetes != nil:
		if c := r.clusters[region.Kubernetes.Cluster]; c != nil {
			return c.namespace(region.WithDefaults().Kubernetes.Namespace)
		}
	}
	return nil
}

// siteless says what this kurad has to be started with.
func siteless(region fleet.Region) *fleet.ReadFailure {
	kind, flag, name := "endpoint", "--container-endpoint", ""
	switch {
	case region.Kubernetes != nil:
		kind, flag, name = "cluster", "--cluster", region.Kubernetes.Cluster
	case region.Containers != nil:
		name = region.Containers.Endpoint
	}
	return &fleet.ReadFailure{
		Reason:  fleet.ReasonEndpointUnreachable,
		Message: fmt.Sprintf("this kurad was given no %s named %q: start it with %s %s=…", kind, name, flag, name),
	}
}

// slots bound the effects that are under way at once on an endpoint or a cluster, so that
// one which hangs takes nothing from the others (P19). Who waits keeps its place until it
// begins or its turn ends otherwise: the slot that it was woken for is then the next one's.
type slots struct {
	kick func(fleet.ServerKey)
	pace pace // of the tries that have slots

	mu     sync.Mutex
	taken  int
	queued []fleet.ServerKey // want one, and have not begun
}

func newSlots(r *Reconciler) slots {
	return slots{kick: r.Kick, pace: pace{now: r.now, later: r.queue.AddAfter}}
}

// begin takes up a slot until end. Without one the server's turn is due when there is some.
func (s *slots) begin(key fleet.ServerKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == effectsAtOnce {
		if !slices.Contains(s.queued, key) {
			s.queued = append(s.queued, key)
		}
		return false
	}
	s.queued = slices.DeleteFunc(s.queued, func(k fleet.ServerKey) bool { return k == key })
	s.taken++
	return true
}

func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.wake()
}

func (s *slots) forgo(key fleet.ServerKey) {
	s.pace.forgo(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queued, key); i >= 0 {
		s.queued = slices.Delete(s.queued, i, i+1)
		s.wake() // it may have been woken instead of another
	}
}

// wake makes the turns due of as many as there is room for; s.mu is held.
func (s *slots) wake() {
	for _, key := range s.queued[:min(len(s.queued), effectsAtOnce-s.taken)] {
		s.kick(key)
	}
}
