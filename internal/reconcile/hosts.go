package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// Hosts keeps the newest reads of what zones have of servers' hosts, at the pace that their state
// asks for (D3).
type Hosts interface {
	Set(key fleet.ServerKey, wish fleet.HostsWish)
	Latest(key fleet.ServerKey) fleet.HostsRead
	// Now reads the server's hosts afresh and waits for the answers.
	Now(ctx context.Context, key fleet.ServerKey) error
}

// hosts observes what zones have of servers' hosts.
type hosts struct {
	Hosts
	environment string
}

// Observe implements Observer.
func (h hosts) Observe(in *projection.Input) {
	if !checked(*in) {
		return
	}
	read := h.Latest(in.Intent.Key())
	in.Seen.Hosts = read.Hosts
	if in.Seen.Tracks == nil {
		in.Seen.Tracks = map[fleet.Track]any{}
	}
	in.Seen.Tracks[fleet.TrackBalancer] = read.Pool
}

// checked reports whether whose the server's hosts are is looked at.
func checked(in projection.Input) bool {
	return in.Region.DNS.Mode != "" && in.Region.DNS.Mode != fleet.DNSNone
}

// Follow reads every host that the server leads clients to, or is to: the declared ones, the
// published one, and its aliases. Until the instance has converged no gate waits for them.
func (h hosts) Follow(in projection.Input, out projection.Output) {
	if !checked(in) || in.NotRenderable != nil {
		h.Set(in.Intent.Key(), fleet.HostsWish{})
		return
	}
	wish := fleet.HostsWish{
		Owner: in.Region.DNS.OwnerID, Resource: fleet.ResourceOf(h.environment, in.Intent.Key()), Global: in.Desired.Hosts.Global,
		Pending: out.Pending && out.Status.ConvergedAt != nil,
		Fresh:   awaited(in, out, fleet.TrackRecords) || awaited(in, out, fleet.TrackBalancer),
	}
	declared := in.Desired.Hosts
	for _, host := range append([]string{declared.Public, declared.GRPC, declared.Global}, out.Status.ClientHosts()...) {
		if host != "" && !slices.Contains(wish.Hosts, host) {
			wish.Hosts = append(wish.Hosts, host)
		}
	}
	slices.Sort(wish.Hosts)
	h.Set(in.Intent.Key(), wish)
}

// awaited reports whether a read is needed that says something: one before the track's last
// effect may have landed would not.
func awaited(in projection.Input, out projection.Output, track fleet.Track) bool {
	work := out.Status.Tracks[track]
	return out.NeedFreshRead.Has(track) && (work == nil || work.EffectsUntil == nil || !work.EffectsUntil.After(in.Now))
}

// Fresh implements Observer. What did not answer is an answer, too.
func (h hosts) Fresh(ctx context.Context, g fleet.Gathered) error {
	if err := h.Now(ctx, g.Intent.Key()); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}

// Memory implements Observer: what failed is in the reads.
func (hosts) Memory(fleet.ServerKey) (time.Time, int) { return time.Time{}, 0 }
