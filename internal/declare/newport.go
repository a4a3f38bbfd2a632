package declare

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	occupiedFor = 10 * time.Minute // that a port which was found taken is offered to nobody
	newPorts    = 5                // that a server gets in that time: then something else is wrong
)

// occupiedPorts are the host ports that were found taken by somebody whom neither the records
// nor the engine's list know: a process of the host.
type occupiedPorts struct {
	mu    sync.Mutex
	found map[hostPort]finding
}

type hostPort struct {
	endpoint string
	port     int
}

type finding struct {
	by fleet.ServerKey
	at time.Time
}

// note records that a server found a port taken, and returns how many it has found.
func (s *occupiedPorts) note(at hostPort, by fleet.ServerKey, now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.found, func(_ hostPort, f finding) bool { return now.Sub(f.at) >= occupiedFor })
	if s.found == nil {
		s.found = map[hostPort]finding{}
	}
	if _, known := s.found[at]; !known {
		s.found[at] = finding{by, now}
	}
	for _, f := range s.found {
		if f.by == by {
			n++
		}
	}
	return n
}

// mark adds an endpoint's ports that were found taken to those in use.
func (s *occupiedPorts) mark(endpoint string, now time.Time, used map[int]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, f := range s.found {
		if at.endpoint == endpoint && now.Sub(f.at) < occupiedFor {
			used[at.port] = true
		}
	}
}

// NewPort chooses another host port for a server that found its own taken (C12). The turn
// stores it; who took it meanwhile is a conflict there.
func (d *Declarer) NewPort(ctx context.Context, g fleet.Gathered, m fleet.PortMove) (int, error) {
	key := g.Intent.Key()
	if n := d.occupied.note(hostPort{m.Endpoint, m.From}, key, d.now()); n > newPorts {
		return 0, fmt.Errorf("server %s got %d other ports within %s, and somebody had each", key, newPorts, occupiedFor)
	}
	used, err := d.portsInUse(ctx, *g.Region)
	if err != nil {
		return 0, err
	}
	have := maps.Clone(g.Intent.Ports)
	delete(have, m.Need)
	ports, err := d.assignPorts(ctx, key, *g.Region, have, used)
	if err != nil {
		return 0, err
	}
	return ports[m.Need], nil
}
