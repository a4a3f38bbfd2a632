package reconcile_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
)

// gauge is an observer of what turns know nothing of: the owner of a host.
type gauge struct {
	mu       sync.Mutex
	owner    fleet.Ownership
	followed map[string]int // by account: turns that said what they wait for
	lost     map[string]bool
	hangs    chan struct{}
}

var _ reconcile.Observer = (*gauge)(nil)

func (g *gauge) Observe(in *projection.Input) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in.Region.DNS.Mode = fleet.DNSExternalDNS
	in.Seen.Hosts = map[string]fleet.HostRead{in.Desired.Hosts.Public: {Ownership: g.owner, Detail: "belongs to staging-2"}}
}

func (g *gauge) Follow(in projection.Input, out projection.Output) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.followed[in.Intent.Account]++
	g.lost[in.Intent.Account] = out.Status.Status == ""
}

func (g *gauge) Fresh(ctx context.Context, _ fleet.Gathered) error {
	select {
	case <-g.hangs:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gauge) Memory(fleet.ServerKey) (time.Time, int) { return time.Time{}, 0 }

// Toward D3: what a turn knows nothing of is seen, followed and awaited like an instance.
func TestD3_aTurnAsksEveryObserver(t *testing.T) {
	virtual(t, func(w *world) {
		g := &gauge{owner: fleet.OwnershipForeign, followed: map[string]int{}, lost: map[string]bool{}, hangs: make(chan struct{})}
		k := w.start(options{observers: []reconcile.Observer{g}})
		defer k.stop()
		w.declare("acme", "v1")
		w.until("its host is seen to be another's", time.Minute, func() bool {
			return w.condition("acme", fleet.ConditionDNSOwned).Status == fleet.False
		})
		w.pass(10 * time.Minute)
		s := w.status("acme").Status
		g.mu.Lock()
		if s == fleet.StatusActive || g.followed["acme"] == 0 {
			t.Errorf("status %s after %d turns, want it not active on a host that is another's (D3)", s, g.followed["acme"])
		}
		g.owner = fleet.OwnershipOurs
		g.mu.Unlock()
		k.loop.Kick(key("acme")) // as an observer does where there is news
		w.until("acme runs v1", time.Minute, func() bool { return w.converged("acme", "v1") })

		within, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		defer cancel()
		if err := k.loop.ObserveNow(within, key("acme")); err == nil {
			t.Error("?observe=now did not wait for the look of every observer")
		}
		close(g.hangs)
		if err := k.loop.ObserveNow(w.t.Context(), key("acme")); err != nil {
			t.Errorf("observe now: %v", err)
		}
		w.destroy("acme")
		w.until("it is gone, and the observer knows", time.Minute, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return w.gone("acme") && g.lost["acme"]
		})
	})
}
