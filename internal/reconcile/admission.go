package reconcile

import (
	"slices"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// admission gives out the places of each region's max_unsettled (G4). A place is held
// from the first plan of a cause until the server settles, fails or stalls; who waits
// is served in order, a newer image for an admitted or failed server first.
type admission struct {
	mu      sync.Mutex
	regions map[string]*places
}

type places struct {
	most    int // as the last turn of a server of the region saw it
	held    map[fleet.ServerKey]bool
	waiting []waiter // the urgent ones first
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

// request gives the server a place, or puts it in the queue and returns false.
func (a *admission) request(key fleet.ServerKey, urgent bool, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	p.most = most
	if p.held[key] {
		return true
	}
	if !slices.Contains(p.waiting, waiter{key, urgent}) {
		p.leave(key) // it waited less urgently, or more
		p.enter(waiter{key, urgent})
	}
	if slices.Index(p.waiting, waiter{key, urgent}) >= p.free() {
		return false
	}
	p.leave(key)
	p.held[key] = true
	return true
}

// report says after each turn where the server stands. It returns the servers that may
// ask again because places became free. most is 0 where it is not known.
func (a *admission) report(key fleet.ServerKey, out projection.Output, most int) []fleet.ServerKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	if most > 0 {
		p.most = most
	}
	if out.Unsettled {
		p.held[key] = true
	} else {
		delete(p.held, key)
	}
	if !out.WantsAdmission {
		p.leave(key)
	}
	return p.next(key)
}

// withdraw takes a server that cannot use a place out of the queue. One that it holds
// it keeps: it may be stored.
func (a *admission) withdraw(key fleet.ServerKey) []fleet.ServerKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	p.leave(key)
	return p.next(key)
}

// forget drops a server that is no more.
func (a *admission) forget(key fleet.ServerKey) []fleet.ServerKey {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.region(key.Region)
	delete(p.held, key)
	p.leave(key)
	next := p.next(key)
	if len(p.held) == 0 && len(p.waiting) == 0 {
		delete(a.regions, key.Region)
	}
	return next
}

func (p *places) free() int { return max(0, p.most-len(p.held)) }

func (p *places) enter(w waiter) {
	i := len(p.waiting)
	if w.urgent {
		if first := slices.IndexFunc(p.waiting, func(o waiter) bool { return !o.urgent }); first >= 0 {
			i = first
		}
	}
	p.waiting = slices.Insert(p.waiting, i, w)
}

func (p *places) leave(key fleet.ServerKey) {
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiter) bool { return w.key == key })
}

// next names the servers for which there is a place, but the one that has its turn.
func (p *places) next(but fleet.ServerKey) []fleet.ServerKey {
	var keys []fleet.ServerKey
	for _, w := range p.waiting[:min(len(p.waiting), p.free())] {
		if w.key != but {
			keys = append(keys, w.key)
		}
	}
	return keys
}
