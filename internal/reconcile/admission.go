package reconcile

import (
	"slices"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// admission gives out the places of each region's max_unsettled (G4). A place is held
// from the first plan of a cause until the server settles, fails or stalls; who waits
// is served in order, a newer image for an admitted or failed server first.
type admission struct {
	mu      sync.Mutex
	regions map[string]*places
}

type places struct {
	held    map[fleet.ServerKey]bool
	waiting []waiter
}

type waiter struct {
	key    fleet.ServerKey
	urgent bool
}

func newAdmission() *admission { return &admission{regions: map[string]*places{}} }

func (a *admission) region(name string) *places {
	p := a.regions[name]
	if p == nil {
		p = &places{held: map[fleet.ServerKey]bool{}}
		a.regions[name] = p
	}
	return p
}

// ask gives the server a place, or puts it in the queue and returns false.
func (a *admission) ask(key fleet.ServerKey, urgent bool, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	if p.held[key] {
		return true
	}
	i := slices.IndexFunc(p.waiting, func(w waiter) bool { return w.key == key })
	if i < 0 {
		i = len(p.waiting)
		if urgent { // behind the other urgent ones
			i = slices.IndexFunc(p.waiting, func(w waiter) bool { return !w.urgent })
			if i < 0 {
				i = len(p.waiting)
			}
		}
		p.waiting = slices.Insert(p.waiting, i, waiter{key, urgent})
	}
	if i >= most-len(p.held) {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.held[key] = true
	return true
}

// report says after each turn where the server stands. It returns the servers that may
// ask again because places became free.
func (a *admission) report(key fleet.ServerKey, unsettled, waits bool, most int) []fleet.ServerKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	if unsettled {
		p.held[key] = true
	} else {
		delete(p.held, key)
	}
	if !waits {
		p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.key == key })
	}
	var next []fleet.ServerKey
	for _, w := range p.waiting[:max(0, min(len(p.waiting), most-len(p.held)))] {
		if w.key != key {
			next = append(next, w.key)
		}
	}
	return next
}
