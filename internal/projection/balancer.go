package projection

import (
	"cmp"
	"fmt"
	"math"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Balancer is the track of a server's pool in the load balancer of its account's global host
// (D1). The pool joins when its regional endpoint has answered, before the gate of the global one
// (D0), and leads to the published host from then on.
type Balancer struct{ Environment string }

var _ Track = Balancer{}

// Name implements Track.
func (Balancer) Name() fleet.Track { return fleet.TrackBalancer }

// Look implements Track.
func (b Balancer) Look(in Input) View {
	read, _ := in.Seen.Tracks[fleet.TrackBalancer].(fleet.PoolRead)
	host := in.Desired.Hosts.Global
	if !in.checksOwners() || host == "" && read.Is == nil {
		return View{None: true}
	}
	if read.Begun.Before(in.Intent.CreatedAt) { // of another server of that name
		read.Joined, read.Is, read.Elsewhere = false, nil, nil
	}
	want, due := b.pool(in)
	v := View{
		Revision: fmt.Sprintf("%s %+v", host, want), Begun: read.Begun, Failure: read.Failure,
		Cause: fleet.CauseHosts, Advisory: !in.globalRequired(),
	}
	leave := func(hosts ...string) {
		for _, host := range hosts {
			v.Steps = append(v.Steps, fleet.Effect{Kind: fleet.TaskLeave, Name: host, DNS: want})
			v.Differs = append(v.Differs, "our pool is in the load balancer of "+host)
		}
	}
	foreign := read.Foreign != "" && in.rule(RuleD1Foreign)
	if in.Intent.Deleting != nil || host == "" {
		leave(read.Elsewhere...)
		switch {
		case foreign || !read.Joined && read.Is == nil:
		case read.Host != "":
			leave(read.Host)
		case len(read.Elsewhere) == 0: // nothing has it; a departure from wherever deletes it
			v.Steps = []fleet.Effect{{Kind: fleet.TaskLeave, Name: in.Desired.Hosts.Public, DNS: want}}
			v.Differs = []string{"our pool is left, and in no load balancer"}
		}
		v.Gone = len(v.Steps) == 0
		return v
	}
	differs := poolDiffers(read, want)
	if differs == "" && len(in.Prev.Aliases) == 0 { // the account had another global host
		leave(read.Elsewhere...)
	}
	if differs != "" && due && !foreign {
		v.Steps = []fleet.Effect{{Kind: fleet.TaskJoin, Name: host, DNS: want}}
		v.Differs = []string{differs}
	}
	v.Waits = differs != "" && len(v.Steps) == 0
	v.Condition = in.pooled(read, differs, due)
	if led := read.Joined && read.Is != nil && read.Is.Origin == want.Origin; (!led || read.Failure != nil) && in.globalRequired() && in.rule(RuleR2Pool) {
		v.Gate = fleet.ReasonPoolMissing
	}
	return v
}

// pool is what the server's pool is to be, and whether there is something for it to lead to.
func (b Balancer) pool(in Input) (want fleet.DNSChange, due bool) {
	key := in.Intent.Key()
	want = fleet.DNSChange{
		Owner: in.Region.DNS.OwnerID, Resource: fleet.ResourceOf(b.Environment, key), Pool: fleet.PoolName(b.Environment, key),
		Origin: fleet.HostOf(in.Prev.PublishedURL),
	}
	if at := in.Region.Location; at != nil {
		want.Latitude, want.Longitude = at.Latitude, at.Longitude
	}
	if want.Origin != "" { // nobody is led to where another environment is (D3)
		return want, !in.claimOn(want.Origin).foreign()
	}
	want.Origin = in.Desired.Hosts.Public
	p, from := in.Seen.Endpoint, in.Prev.ConvergedAt
	answers := p.Ready && p.URL == in.Desired.URL && from != nil && !p.Begun.Before(*from) || !in.rule(RuleD0Order)
	return want, answers && in.entryClaim().status == fleet.True
}

// pooled is GlobalEndpointReady where the pool has something to say: what keeps it out, whatever
// the probe found elsewhere, or beside its answer how it differs. Otherwise it is the zero one.
func (in Input) pooled(read fleet.PoolRead, differs string, due bool) fleet.Condition {
	c := fleet.Condition{Type: fleet.ConditionGlobalEndpointReady, Status: fleet.False, Reason: fleet.ReasonPoolMissing, Message: differs}
	probe := in.Seen.Global
	switch w := in.Prev.Tracks[fleet.TrackBalancer]; {
	case read.Begun.IsZero() && read.Failure == nil,
		read.Joined && (differs == "" || read.Failure != nil || probe.Begun.IsZero()): // what was read before stands (D5)
		return fleet.Condition{}
	case read.Joined && probe.Ready:
		c.Status, c.Reason = fleet.True, fleet.ReasonReady
	case read.Joined:
		c.Reason, c.Message = fleet.ReasonBalancerDiffers, fmt.Sprintf("%s (%s)", differs, probe.Reason)
	case read.Foreign != "":
		c.Reason, c.Message = fleet.ReasonForeignBalancer, read.Foreign
	case w != nil && w.Failing != nil && w.Failing.Reason.Of(c.Type):
		c.Reason = w.Failing.Reason
	case !due:
		c.Message = "our pool is added when " + in.Desired.Hosts.Public + " answers and is ours"
	}
	return c
}

// poolDiffers says in words how a pool and its balancer differ from what is declared; "" not at all.
func poolDiffers(read fleet.PoolRead, want fleet.DNSChange) string {
	is := read.Is
	switch {
	case !read.Joined || is == nil:
		return "our pool is not in the load balancer"
	case is.Pool != want.Pool:
		return fmt.Sprintf("our pool is %s, wanted %s", is.Pool, want.Pool)
	case is.Origin != want.Origin:
		return fmt.Sprintf("our pool leads to %s, wanted %s", cmp.Or(is.Origin, "nothing"), want.Origin)
	case math.Abs(is.Latitude-want.Latitude) > 1e-4 || math.Abs(is.Longitude-want.Longitude) > 1e-4:
		return fmt.Sprintf("our pool is at %g, %g, wanted %g, %g", is.Latitude, is.Longitude, want.Latitude, want.Longitude)
	default:
		return read.Drift
	}
}
