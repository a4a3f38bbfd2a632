package dns

import (
	"cmp"
	"context"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Known is what is known of every zone, for an audit. A zone of which nobody follows a host is
// listed for it, and waited for until ctx ends: as often as if somebody did, however many audits are asked for (D7).
func (w *Watch) Known(ctx context.Context) []ZoneRead {
	var all []ZoneRead
	for _, z := range w.cfg.Zones {
		if r := w.rounds[z.Domain]; r != nil {
			all = append(all, r.known(ctx))
			continue
		}
		read := ZoneRead{Zone: z, Hosts: map[string]fleet.HostRead{}}
		w.mu.Lock()
		for q, r := range w.reads {
			if q.Zone == z.Domain {
				read.Hosts[q.Host] = r
			}
		}
		w.mu.Unlock()
		all = append(all, read)
	}
	return all
}

// Again has a zone listed soon: somebody changed it by hand.
func (w *Watch) Again(domain string) {
	if r := w.rounds[domain]; r != nil {
		r.await()
	}
}

// await returns what is closed after a listing that begins from now on.
func (r *rounds) await() <-chan struct{} {
	done := make(chan struct{})
	r.mu.Lock()
	r.waiters = append(r.waiters, done)
	r.mu.Unlock()
	r.kick()
	return done
}

func (r *rounds) known(ctx context.Context) ZoneRead {
	r.mu.Lock()
	asleep := len(r.wishes) == 0 && r.clock().Sub(r.begun) > r.steady() || r.begun.IsZero()
	r.mu.Unlock()
	if asleep {
		select {
		case <-r.await():
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return ZoneRead{Zone: r.zone, Index: r.index, Failure: cmp.Or(r.failure, r.pooling)}
}

// Host says whose a host is to owner by what was read of its zone; false: nothing is known.
func (w *Watch) Host(host, owner string) (fleet.HostRead, bool) {
	z, _ := w.cfg.Zones.Of(host)
	r := w.rounds[z.Domain]
	if r == nil {
		return fleet.HostRead{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index == nil {
		return fleet.HostRead{}, false
	}
	return r.index.Host(host, owner), true
}

// SharedOwner names an environment besides ours that has hosts under the owner id, and the zone;
// "": none is known.
func (w *Watch) SharedOwner(owner string) (environment, domain string) {
	for _, z := range w.cfg.Zones {
		r := w.rounds[z.Domain]
		if r == nil {
			continue
		}
		r.mu.Lock()
		var others []string
		if r.index != nil {
			others = r.index.Environments(owner)
		}
		r.mu.Unlock()
		if len(others) > 0 {
			return others[0], z.Domain
		}
	}
	return "", ""
}

// Lacks names what the token of the host's zone may not.
func (w *Watch) Lacks(host string) (domain string, missing []string) {
	z, _ := w.cfg.Zones.Of(host)
	if r := w.rounds[z.Domain]; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return z.Domain, r.lacks
	}
	return "", nil
}
