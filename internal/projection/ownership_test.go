package projection

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// readsHosts is what was read of the records of every host.
func (s *sim) readsHosts(in *Input) {
	if s.ownership == fleet.OwnershipNotChecked {
		return
	}
	in.Region.DNS = fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: "us"}
	in.Seen.Hosts = map[string]fleet.HostRead{}
	d := in.Desired.Hosts
	for _, host := range append(in.Prev.ClientHosts(), d.GRPC, d.Global) {
		in.Seen.Hosts[host] = fleet.HostRead{Host: host, Ownership: fleet.OwnershipOurs, Begun: s.now}
	}
	r := fleet.HostRead{Host: d.Public, Ownership: s.ownership, Begun: s.now}
	switch s.ownership {
	case fleet.OwnershipForeign:
		r.Owners, r.Detail = []string{"somebody"}, "belongs to somebody"
	case fleet.OwnershipUnknown:
		r.Begun, r.Failure = time.Time{}, noAnswer
	case fleet.OwnershipNotChecked, fleet.OwnershipOurs, fleet.OwnershipAbsent, fleet.OwnershipUnreadable:
	}
	in.Seen.Hosts[d.Public] = r
	for host, r := range s.owners {
		r.Host, r.Begun = host, s.now
		in.Seen.Hosts[host] = r
	}
}

var noAnswer = &fleet.ReadFailure{Reason: fleet.ReasonZoneUnreachable, Message: "no answer"}

var (
	foreignHost   = fleet.HostRead{Ownership: fleet.OwnershipForeign, Owners: []string{"prod"}, Detail: "belongs to prod"}
	ambiguousHost = fleet.HostRead{Ownership: fleet.OwnershipForeign, Owners: []string{"prod", "us"}}
)

const (
	firstHost, movedHost, grpcHost = "acme-eu.kura.test", "acme2-eu.kura.test", "grpc-eu.kura.test"
)

// Whatever a read of a host by which the server is to be reached says but ours, it is not entered;
// and what is said of it is a row of its own.
func TestD3_onlyAReadThatSaysOursOpensTheGate(t *testing.T) {
	for _, c := range []struct {
		read   fleet.HostRead
		status fleet.ConditionStatus
		reason fleet.Reason
		row    string
	}{
		{foreignHost, fleet.False, fleet.ReasonForeignOwner, "belongs to prod"},
		{fleet.HostRead{Ownership: fleet.OwnershipForeign, Detail: "has records that nobody claims"}, fleet.False, fleet.ReasonForeignOwner, "has records that nobody claims"},
		{ambiguousHost, fleet.False, fleet.ReasonAmbiguousOwner, "is claimed by prod and us"},
		{fleet.HostRead{Ownership: fleet.OwnershipUnreadable}, fleet.Unknown, fleet.ReasonUnreadableOwner, "has an ownership record that cannot be read"},
		{fleet.HostRead{Ownership: fleet.OwnershipAbsent}, fleet.False, fleet.ReasonHostAbsent, "is not published"},
		{fleet.HostRead{Ownership: fleet.OwnershipUnknown, Failure: noAnswer}, fleet.Unknown, fleet.ReasonZoneUnreachable, "cannot be read: no answer"},
		{fleet.HostRead{Ownership: fleet.OwnershipOurs, Failure: noAnswer}, fleet.Unknown, fleet.ReasonZoneUnreachable, "cannot be read: no answer; it was ours when last read"},
		{fleet.HostRead{Failure: &fleet.ReadFailure{Reason: fleet.ReasonInvalid, Message: "bad request"}}, fleet.Unknown, fleet.ReasonZoneUnreachable, "cannot be read: bad request"},
		{fleet.HostRead{}, fleet.Unknown, fleet.ReasonOwnershipUnknown, "has not been read yet"},
	} {
		for _, host := range []string{firstHost, grpcHost} {
			p := play(t, newSim(variant{}))
			p.grpc, p.ownership = grpcHost, fleet.OwnershipOurs
			p.owners = map[string]fleet.HostRead{host: c.read}
			p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, c.reason).shows(fleet.ConditionDNSOwned, c.status, c.reason)
			if got, want := condition(*p.status, fleet.ConditionDNSOwned).Message, host+" "+c.row; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			p.owners = nil
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionDNSOwned, fleet.True, fleet.ReasonOwned)
			p.owners = map[string]fleet.HostRead{host: c.read} // it never demotes
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		}
	}
}

// The clock stands while it cannot be read whose a host is. That nobody publishes it was read:
// waiting for ever would tell nobody.
func TestP10_theClockStandsWhileOwnershipCannotBeRead(t *testing.T) {
	for read, stalls := range map[string]bool{"unknown": false, "absent": true, "unreadable": true, "foreign": true} {
		p := play(t, newSim(variant{}))
		p.ownership = fleet.Ownership(read)
		p.pass(time.Hour)
		if got := p.status.Verdict == fleet.VerdictStalled; got != stalls {
			t.Errorf("%s: the verdict is %s, it says %s", read, p.status.Verdict, condition(*p.status, fleet.ConditionReady).Message)
		}
		if !stalls {
			continue
		}
		if said := condition(*p.status, fleet.ConditionReady).Message; !strings.Contains(said, firstHost+" ") {
			t.Errorf("%s: a stalled server names no host: %s", read, said)
		}
	}
}

// What is withheld from clients is the published url, where its own host is somebody else's: with
// one event, until a read says otherwise.
func TestD3_theURLIsWithheldWhileItsOwnHostIsForeign(t *testing.T) {
	p := play(t, settledOn(variant{global: true}))
	p.grpc, p.ownership = grpcHost, fleet.OwnershipOurs
	p.doc = 2
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	withheld := func(want fleet.Reason, told int, read map[string]fleet.HostRead) {
		t.Helper()
		p.owners = read
		p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		if got, events := p.status.Withheld, p.told("EndpointWithheld"); got != want || events != told {
			t.Errorf("withheld for %q, want %q; told %d times, want %d", got, want, events, told)
		}
	}
	for _, host := range []string{grpcHost, firstHost, "acme.kura.test"} { // gRPC, alias, global
		withheld("", 0, map[string]fleet.HostRead{host: foreignHost})
		p.shows(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonForeignOwner)
	}
	p.events = nil
	withheld(fleet.ReasonForeignOwner, 1, map[string]fleet.HostRead{movedHost: foreignHost, grpcHost: ambiguousHost})
	if got, want := condition(*p.status, fleet.ConditionDNSOwned).Message, movedHost+" belongs to prod; "+grpcHost+" is claimed by prod and us"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	unanswered := foreignHost
	unanswered.Failure = noAnswer
	withheld(fleet.ReasonForeignOwner, 1, map[string]fleet.HostRead{movedHost: unanswered})
	withheld(fleet.ReasonForeignOwner, 1, map[string]fleet.HostRead{movedHost: {Ownership: fleet.OwnershipUnknown}}) // kurad restarts
	withheld(fleet.ReasonAmbiguousOwner, 1, map[string]fleet.HostRead{movedHost: ambiguousHost})
	withheld("", 1, nil)
	if p.told("EndpointRestored") != 1 || p.told("DNSOwnedLost") != 0 {
		t.Errorf("told %d and %d times", p.told("EndpointRestored"), p.told("DNSOwnedLost"))
	}
}

// A gRPC host of somebody else holds the move as the public one does, and nothing else.
func TestD3_aForeignGRPCHostHoldsTheMoveOnly(t *testing.T) {
	p := play(t, settledOn(variant{}))
	old := p.status.PublishedURL
	p.doc, p.grpc, p.ownership = 2, grpcHost, fleet.OwnershipOurs
	p.owners = map[string]fleet.HostRead{grpcHost: ambiguousHost}
	p.declare("v2", "")
	p.rest().is(fleet.StatusActive, fleet.VerdictHeld, fleet.ReasonForeignOwner).deployment(fleet.DeploymentSucceeded)
	p.shows(fleet.ConditionURLConverged, fleet.False, fleet.ReasonAmbiguousOwner)
	if p.status.PublishedURL != old || p.status.ServingImageTag != "v2" || p.status.Withheld != "" {
		t.Errorf("published %s, serving %s, withheld %q", p.status.PublishedURL, p.status.ServingImageTag, p.status.Withheld)
	}
	p.owners = nil
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// What stands in an ownership record or in a record was written by whoever may write the zone (G11).
func TestG11_whatStandsInRecordsIsShownWithoutControlCharacters(t *testing.T) {
	p := play(t, settledOn(variant{zone: true}))
	p.records[firstHost] = zoneRecord{"us", "service/x/\x1b[31m\u202ey\n", "\x1b]0;z"}
	p.rest()
	for _, c := range p.status.Conditions {
		if c.Message != fleet.Printable(c.Message) {
			t.Errorf("%s says %q", c.Type, c.Message)
		}
	}
	for _, e := range p.events {
		if e.Message != fleet.Printable(e.Message) {
			t.Errorf("%s says %q", e.Reason, e.Message)
		}
	}
}
