package declare

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// found is what a declaration takes over from containers that run already.
type found struct {
	ports       map[string]int     // host ports by "<service>/<port name>"
	restartMark string             // of a redeploy before the record was lost
	aliases     []string           // old hosts that its instance still routes
	routed      []fleet.Alias      // those of them that are nobody else's
	unread      *fleet.ReadFailure // why the runtime could not be read

	// Of a request to adopt:
	containers map[string]fleet.Container    // by service
	begun      time.Time                     // when they were looked at
	instance   *fleet.KubeInstance           // of a Kubernetes region
	status     store.Versioned[fleet.Status] // the newest that is known, stored or not
	try        int64                         // the revision of the newest claim beside it
}

const (
	// freshEnough is how old the listing may be that a new declaration reads ports from:
	// many are declared at once, and those of a server that is not declared stand still.
	freshEnough = time.Second
	// listWithin bounds how long a declaration waits for it.
	listWithin = 3 * time.Second
)

// running looks for what bears a server's own labels before it is declared: its record was
// lost, and it goes on with the ports, the mark of the last redeploy and the old hosts that are found, so
// that it renders to what runs and nothing restarts. A runtime that cannot be read is no
// reason to refuse: the first choice of a port is the same for ever.
func (d *Declarer) running(ctx context.Context, key fleet.ServerKey, r fleet.Region) (found, error) {
	if r.Kubernetes != nil {
		return d.lastKnown(ctx, key, r)
	}
	if r.Containers == nil {
		return found{}, nil
	}
	listing, err := d.listed(ctx, r, freshEnough, listWithin)
	if err != nil {
		return found{}, err
	}
	f := found{ports: map[string]int{}, unread: listing.Unreadable}
	for _, c := range listing.Containers {
		if !isOf(key, c) {
			continue
		}
		f.restartMark = c.RestartMark
		for _, need := range fleet.PortNeeds(r) {
			if need.Service != c.Service || need.Fixed != 0 {
				continue
			}
			if port := c.Ports[published(r, need)]; port != 0 {
				f.ports[need.Key()] = port
			}
		}
	}
	return f, nil
}

// listed are the containers of a region's endpoint, none where it cannot be read: as they are
// now, or were within maxAge.
func (d *Declarer) listed(ctx context.Context, r fleet.Region, maxAge, limit time.Duration) (fleet.Listing, error) {
	return ask(ctx, fmt.Sprintf("container endpoint %s within %s", r.Containers.Endpoint, maxAge), limit, func(ctx context.Context) (fleet.Listing, error) {
		return d.runtimes.Containers(ctx, r.Containers.Endpoint, maxAge), nil
	})
}

// isOf reports whether a container bears the labels of a server.
func isOf(key fleet.ServerKey, c fleet.Container) bool {
	return c.Foreign == "" && c.Account == key.Account && c.Region == key.Region
}

// publishedByOthers are the host ports of all containers but a server's own.
func (d *Declarer) publishedByOthers(ctx context.Context, key fleet.ServerKey, r fleet.Region) (map[int]bool, error) {
	ports := map[int]bool{}
	listing, err := d.listed(ctx, r, freshEnough, listWithin)
	if err != nil {
		return nil, err
	}
	for _, c := range listing.Containers {
		if isOf(key, c) {
			continue
		}
		for _, port := range c.Ports {
			ports[port] = true
		}
	}
	return ports, nil
}

// published names a port of the region's document as the engine lists it.
func published(r fleet.Region, need fleet.PortNeed) string {
	return fmt.Sprintf("%d/%s", r.Containers.Services[need.Service].Ports[need.Port].Container, need.Protocol)
}

// keptPorts are the ports that a server has and those that were found, unless somebody
// else has them meanwhile.
func (f found) keptPorts(have map[string]int, used map[int]bool) map[string]int {
	if len(f.ports) == 0 {
		return have
	}
	ports := maps.Clone(have)
	if ports == nil {
		ports = map[string]int{}
	}
	for key, port := range f.ports {
		// What is adopted publishes what it does: whether nobody else has it was checked.
		if f.adopting() || !used[port] {
			ports[key], used[port] = port, true
		}
	}
	return ports
}
