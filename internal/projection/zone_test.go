package projection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var balanced = variant{zone: true, global: true}

// does takes steps until nothing is left to do now, and says what was done, tasks that follow
// each other once.
func (p *script) does() (done []string) {
	p.t.Helper()
	for range 200 {
		before := p.sim.clone()
		what, idle := p.step()
		switch {
		case idle || p.removed:
			if idle {
				*p.sim = *before
			}
			return slices.Compact(done)
		case what != "turn":
			done = append(done, strings.TrimSuffix(what, " localhost/kura:v1"))
		}
	}
	p.t.Fatal("no rest after 200 steps")
	return nil
}

func (p *script) zoneIs(want map[string]zoneRecord, joined string) {
	p.t.Helper()
	same := len(p.records) == len(want) && p.joined == joined
	for host, r := range want {
		same = same && p.records[host] == r
	}
	if !same {
		p.t.Fatalf("the zone has %v, want %v; our pool leads to %q, want %q", p.records, want, p.joined, joined)
	}
}

func (p *script) said(reason string) (texts []string) {
	for _, e := range p.events {
		if e.Reason == reason {
			texts = append(texts, e.Message)
		}
	}
	return texts
}

// The record is there when the instance is, for probes; the pool when the regional endpoint has
// answered; and what leads to a server goes before it.
func TestD0_theOrderOfBeginningAndEnd(t *testing.T) {
	p := play(t, newSim(balanced))
	begin := []string{"pull image", "create container " + carrierName, "start", "a task of the records", "a task of the balancer"}
	end := []string{"a task of the records", "a task of the balancer", "stop", "remove", "remove the server's volumes"}
	is := func(done, want []string) {
		t.Helper()
		if !slices.EqualFunc(done, want, strings.HasPrefix) {
			t.Errorf("got  %q\nwant %q", done, want)
		}
	}
	is(p.does(), begin)
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
	p.shows(fleet.ConditionDNSOwned, fleet.True, fleet.ReasonOwned).shows(fleet.ConditionGlobalEndpointReady, fleet.True, fleet.ReasonReady)
	p.intent.Deleting = &p.now
	is(p.does(), end)
	p.zoneIs(nil, "")
	if !p.removed {
		t.Error("it is not gone")
	}
}

// The new host is published before its url is, which needs it; the old one is withdrawn when its
// time as an alias is over, and the pool follows the published one.
func TestP15_aMoveOfTheURLPublishesTheNewHostFirst(t *testing.T) {
	p := play(t, settledOn(balanced))
	p.doc, p.endpoint = 2, fleet.ReasonTLSNotReady
	p.rest().is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonURLMove)
	p.zoneIs(map[string]zoneRecord{firstHost: ourRecord, movedHost: ourRecord}, firstHost)
	p.endpoint = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	p.zoneIs(map[string]zoneRecord{firstHost: ourRecord, movedHost: ourRecord}, movedHost)
	p.pass(aliasPeriod + time.Hour)
	p.zoneIs(map[string]zoneRecord{movedHost: ourRecord}, movedHost)
}

// What is edited or deleted by hand is restored once, and an event says what differed. A region
// that observes shows it and touches nothing.
func TestD4_whatIsEditedByHandIsRestoredOnce(t *testing.T) {
	for what, edit := range map[string]func(*sim){
		firstHost + " is A 10.9.9.9 ttl 60, wanted A 10.0.0.7 ttl 60": func(s *sim) { s.records[firstHost] = zoneRecord{"us", ourServer, "10.9.9.9"} },
		firstHost + " is not published":                               func(s *sim) { delete(s.records, firstHost) },
		firstHost + " is published for kura-staging/us/acme":          func(s *sim) { s.records[firstHost] = zoneRecord{"us", "kura-staging/us/acme", zoneTarget} },
		"our pool leads to elsewhere.kura.test, wanted " + firstHost:  func(s *sim) { s.joined = "elsewhere.kura.test" },
		"our pool is not in the load balancer":                        func(s *sim) { s.joined = "" },
	} {
		p := play(t, settledOn(balanced))
		p.observe = true
		edit(p.sim)
		is := p.sim.clone()
		p.pass(time.Hour).zoneIs(is.records, is.joined)
		if p.status.Tracks[fleet.TrackRecords].Intended == nil && p.status.Tracks[fleet.TrackBalancer].Intended == nil {
			t.Errorf("%s: nothing is shown as intended", what)
		}
		p.observe = false
		p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
		if told := p.said("PlanStored"); len(told) != 1 || !strings.Contains(told[0], what) {
			t.Errorf("told %q, want %q", told, what)
		}
	}
}

// What is not ours is said and left alone, whoever made it; and so is what cannot be read, for as
// long as that lasts (D5).
func TestD4_whatIsNotOursIsLeftAlone(t *testing.T) {
	for owner, reason := range map[string]fleet.Reason{"another": fleet.ReasonForeignOwner, "both": fleet.ReasonAmbiguousOwner, "sealed": fleet.ReasonUnreadableOwner, "nobody": fleet.ReasonForeignOwner} {
		for _, begin := range []*sim{newSim(balanced), settledOn(balanced)} {
			p := play(t, begin)
			theirs := map[string]zoneRecord{firstHost: {owner, "", "10.9.9.9"}}
			joined := p.joined
			p.records = theirs
			p.pass(time.Hour).zoneIs(theirs, joined)
			p.shows(fleet.ConditionDNSOwned, condition(*p.status, fleet.ConditionDNSOwned).Status, reason)
			p.intent.Deleting = &p.now
			p.pass(time.Hour).zoneIs(theirs, "")
			if !p.removed {
				t.Errorf("%s: it waits for what is not its own", owner)
			}
		}
	}
	p := play(t, settledOn(balanced))
	p.zoneBlind = true
	p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionDNSOwned, fleet.Unknown, fleet.ReasonZoneUnreachable)
	p.zoneBlind = false
	p.pass(time.Hour).zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
	if told := p.said("PlanStored"); told != nil {
		t.Errorf("told %q", told)
	}
}

// The global host leads nobody to a host of somebody else's either: a pool that is out stays out.
func TestD3_noPoolJoinsWithAHostThatIsSomebodyElses(t *testing.T) {
	p := play(t, settledOn(balanced))
	theirs := map[string]zoneRecord{firstHost: {"another", "", "10.9.9.9"}}
	p.records, p.joined = theirs, ""
	p.pass(time.Hour).zoneIs(theirs, "")
	p.records = map[string]zoneRecord{firstHost: ourRecord}
	p.pass(time.Hour).zoneIs(p.records, firstHost)
}

// What keeps the pool out is a condition: a server that needs it waits and heals, and any other is
// active. Neither's deployment fails.
func TestD2_whatKeepsThePoolOutIsACondition(t *testing.T) {
	for _, c := range []struct {
		reason fleet.Reason
		world  func(s *sim, bad bool)
	}{
		{fleet.ReasonQuotaExceeded, func(s *sim, bad bool) {
			s.denies = nil
			if bad {
				s.denies = map[fleet.TaskKind]fleet.Reason{fleet.TaskJoin: fleet.ReasonQuotaExceeded}
			}
		}},
		{fleet.ReasonForeignBalancer, func(s *sim, bad bool) { s.taken = bad }},
	} {
		for _, advisory := range []bool{false, true} {
			v := balanced
			v.advisory = advisory
			p := play(t, newSim(v))
			c.world(p.sim, true)
			p.rest().shows(fleet.ConditionGlobalEndpointReady, fleet.False, c.reason)
			if advisory {
				p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
			} else {
				p.is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonGlobalNotReady).deployment(fleet.DeploymentRunning)
			}
			c.world(p.sim, false)
			p.pass(2*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
			p.shows(fleet.ConditionGlobalEndpointReady, fleet.True, fleet.ReasonReady)
			c.world(p.sim, true) // it never demotes
			p.pass(time.Hour).is(fleet.StatusActive, p.status.Verdict, p.status.VerdictReason)
		}
	}
}

// Two environments with one owner id are told apart by whom a record is for.
func TestD3_anotherEnvironmentWithOurOwnerIDIsSomebodyElse(t *testing.T) {
	theirs := zoneRecord{"us", "kura-production/eu/acme", "10.9.9.9"}
	p := play(t, newSim(variant{zone: true}))
	p.records = map[string]zoneRecord{firstHost: theirs}
	p.pass(time.Hour).zoneIs(map[string]zoneRecord{firstHost: theirs}, "")
	p.shows(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonForeignOwner)
	if p.status.Status == fleet.StatusActive {
		t.Error("it is active by the record of another environment")
	}
	p.records = nil
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionDNSOwned, fleet.True, fleet.ReasonOwned)
}

// A record that may not be written is shown with what kurad was answered, and heals.
func TestD2_aZoneThatMayNotBeWrittenIsACondition(t *testing.T) {
	p := play(t, newSim(variant{zone: true}))
	p.denies = map[fleet.TaskKind]fleet.Reason{fleet.TaskPublish: fleet.ReasonZoneForbidden}
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonHostAbsent).deployment(fleet.DeploymentRunning)
	p.shows(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonZoneForbidden)
	p.denies = nil
	p.pass(2*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

// What runs waits for what leads to it as long as for anything, a pause not counted; then it goes,
// and the record stays until the rest is withdrawn.
func TestP18_whatCannotBeWithdrawnHoldsUpTheInstanceForAWhile(t *testing.T) {
	for what, world := range map[string]func(s *sim, bad bool){
		"the zone cannot be read": func(s *sim, bad bool) { s.zoneBlind = bad },
		"it may not be changed": func(s *sim, bad bool) {
			s.denies = nil
			if bad {
				s.denies = map[fleet.TaskKind]fleet.Reason{fleet.TaskWithdraw: fleet.ReasonZoneForbidden, fleet.TaskLeave: fleet.ReasonRateLimited}
			}
		},
	} {
		p := play(t, settledOn(balanced))
		world(p.sim, true)
		p.paused = true
		at := p.now
		p.intent.Deleting = &at
		p.pass(time.Hour)
		p.paused = false
		p.pass(10 * time.Minute)
		if len(p.boxes) != 1 || p.told("NotWithdrawn") != 0 {
			t.Fatalf("%s: containers %v, told %d times", what, p.boxes, p.told("NotWithdrawn"))
		}
		if text := condition(*p.status, fleet.ConditionProgressing).Message; text == "" {
			t.Errorf("%s: nobody says what it waits for", what)
		}
		p.pass(10 * time.Minute)
		if len(p.boxes) != 0 || p.removed || p.told("NotWithdrawn") != 1 {
			t.Fatalf("%s: containers %v, removed %v, told %q", what, p.boxes, p.removed, p.said("NotWithdrawn"))
		}
		p.pass(24*time.Hour).is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting).zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
		world(p.sim, false)
		p.pass(20*time.Minute).zoneIs(nil, "")
		if !p.removed || p.told("NotWithdrawn") != 1 {
			t.Errorf("%s: removed %v, told %d times", what, p.removed, p.told("NotWithdrawn"))
		}
	}
}

// A zone that kurad was given no more keeps the record of a server that goes, for it may be given again, until
// its region says that nobody publishes there.
func TestP18_aServerWhoseZoneIsGoneForGoodIsLetGoByItsRegion(t *testing.T) {
	p := play(t, settledOn(balanced))
	at := p.now
	p.zoneBlind, p.intent.Deleting = true, &at
	p.pass(24*time.Hour).is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting)
	if len(p.boxes) != 0 || p.removed || !strings.Contains(condition(*p.status, fleet.ConditionProgressing).Message, noAnswer.Message) {
		t.Fatalf("containers %v, removed %v, it says %+v", p.boxes, p.removed, condition(*p.status, fleet.ConditionProgressing))
	}
	p.zone, p.global = false, false // dns.mode = "none"
	if p.pass(20 * time.Minute); !p.removed {
		t.Errorf("it is still there, and says %+v", condition(*p.status, fleet.ConditionProgressing))
	}
}

// A region that is given another mode leaves what is published to whoever publishes from then on.
func TestD4_aRegionThatIsPublishedOtherwiseIsLeftAlone(t *testing.T) {
	p := play(t, settledOn(balanced))
	in := p.input()
	in.Region.DNS = fleet.DNS{Mode: fleet.DNSNone}
	if out := Decide(in); len(out.Status.Tracks) != 0 || out.Status.Status != fleet.StatusActive {
		t.Errorf("%s, with %v", out.Status.Status, out.Status.Tracks)
	}
}

// The load balancer of the account's former global host keeps the pool as long as the former hosts
// are routed; and one that goes leaves both.
func TestH8_thePoolLeavesTheFormerGlobalHost(t *testing.T) {
	former := []string{"acme-before.kura.test"}
	p := play(t, settledOn(balanced))
	until := p.now.Add(time.Hour)
	p.left, p.status.Aliases = former, []fleet.Alias{{Host: "before-eu.kura.test", Until: &until}}
	p.pass(30*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	if len(p.left) != 1 {
		t.Error("it is left before its time")
	}
	p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
	if len(p.left) != 0 {
		t.Error("it is not left")
	}
	at := p.now
	p.left, p.intent.Deleting = former, &at
	p.pass(time.Hour).zoneIs(nil, "")
	if len(p.left) != 0 || !p.removed {
		t.Errorf("left %v, removed %v", p.left, p.removed)
	}
}

// A gRPC host that moves is withdrawn when the new one serves and the former public host is an
// alias no more: until then clients come by it (H8).
func TestH8_theFormerGRPCHostStaysPublished(t *testing.T) {
	p := play(t, newSim(variant{zone: true}))
	p.grpc = grpcHost
	p.settle()
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord, grpcHost: ourRecord}, "")
	p.grpc, p.doc, p.endpoint = "grpc2-eu.kura.test", 2, fleet.ReasonTLSNotReady
	all := map[string]zoneRecord{firstHost: ourRecord, grpcHost: ourRecord, movedHost: ourRecord, p.grpc: ourRecord}
	p.pass(time.Minute).zoneIs(all, "")
	p.endpoint = ""
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(all, "")
	p.pass(aliasPeriod+time.Hour).zoneIs(map[string]zoneRecord{movedHost: ourRecord, p.grpc: ourRecord}, "")
}

// What a user declares is carried through where the region only observes: the pool follows the url
// that moved, and one that no gate waits for joins (S10).
func TestS10_thePoolFollowsWhatWasDeclared(t *testing.T) {
	for _, advisory := range []bool{false, true} {
		v := balanced
		v.advisory = advisory
		p := play(t, newSim(v))
		p.observe = true
		p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord}, firstHost)
		p.doc = 2
		p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "")
		p.zoneIs(map[string]zoneRecord{firstHost: ourRecord, movedHost: ourRecord}, movedHost)
		p.joined = "elsewhere.kura.test" // this nobody declared
		p.pass(time.Hour).zoneIs(map[string]zoneRecord{firstHost: ourRecord, movedHost: ourRecord}, "elsewhere.kura.test")
	}
}
