package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// outage takes steps until a container of the carrier runs, and returns how long that took.
func (p *script) outage() time.Duration {
	p.t.Helper()
	began := p.now
	for range 100 {
		if p.carrier().state == fleet.ContainerRunning {
			return p.now.Sub(began)
		}
		p.step()
	}
	p.t.Fatalf("nobody starts it: %s", brief(p.status.Runtime.Plan))
	return 0
}

// end kills what serves, whatever it is called.
func (p *script) end() {
	for name, b := range p.boxes {
		if b.service == "cache" && b.state == fleet.ContainerRunning {
			b.state, b.finished = fleet.ContainerExited, p.now
			p.boxes[name] = b
		}
	}
}

// What serves is killed, paused, superseded or held at every step of a replace whose
// successor cannot be had, pulled, started or paused: it is down only for the time of one
// start, or one swap.
func TestC14_whatServedIsDownForTheTimeOfOneStartAtMost(t *testing.T) {
	const swap = 2 * time.Second // a few tasks of the model
	worlds := map[string]func(*script){
		"healthy":            func(*script) {},
		"it cannot be had":   func(p *script) { p.noImage = true },
		"its pull hangs":     func(p *script) { p.hangs = true },
		"it does not start":  func(p *script) { p.noStart = true },
		"the region is full": func(p *script) { p.full = true },
	}
	disturb := map[string]func(*script){
		"nothing":                 func(*script) {},
		"what serves is killed":   func(p *script) { p.end() },
		"paused":                  func(p *script) { p.paused = true },
		"the region observes":     func(p *script) { p.observe = true },
		"v3, which cannot be had": func(p *script) { p.declare("v3", ""); p.noImage = true },
		"labels":                  func(p *script) { p.declare(p.intent.ImageTag, "") },
		"kurad restarts":          func(p *script) { p.silent = true },
		"kurad dies, then paused": func(p *script) { p.die(true); p.paused = true },
		"its document changes, which cannot be had": func(p *script) { p.doc, p.noImage = 1, true },
	}
	for world, set := range worlds {
		for what, happens := range disturb {
			longest := time.Duration(0)
			for step := range 24 {
				p := play(t, settledOn(variant{}))
				p.declare("v2", "")
				set(p)
				for range step {
					p.step()
				}
				happens(p)
				longest = max(longest, p.outage())
				for range 20 { // and on from there
					p.step()
					longest = max(longest, p.outage())
				}
				if p.box().state != fleet.ContainerRunning && p.status.Runtime.Plan == nil {
					t.Errorf("%s, %s at step %d: what runs does not bear its name: %v", world, what, step, p.boxes)
				}
			}
			t.Logf("%s, %s: down for %s at most", world, what, longest)
			if longest > swap {
				t.Errorf("%s, %s: down for %s", world, what, longest)
			}
		}
	}
}

// Its own crashes count, and wait for nothing else (C11).
func TestC14_whatServedAndDoesNotStayUpIsStartedWithThePauseOfACrashLoop(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.noImage = true
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonImagePullFailed)
	p.crash = true
	p.end()
	before := p.exits
	p.pass(10 * time.Minute)
	if n := p.exits - before; n < 8 || n > 20 {
		t.Errorf("%d restarts in ten minutes, want about one a minute in the end", n)
	}
	p.crash = false
	p.pass(2 * time.Minute)
	if b := p.box(); b.state != fleet.ContainerRunning || b.tag != "v1" {
		t.Errorf("%+v", p.boxes)
	}
}

// Who declares what mends a crash loop is not told that it failed because of what it replaces.
func TestC14_C11_theCrashesOfWhatServedFailNoRollOutOfItsSuccessor(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.crash = true
	p.end()
	p.pass(2*time.Minute).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCrashLoop)
	p.declare("v2", "")
	p.hangs = true
	p.pass(5*time.Minute).is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonRollingOut).deployment(fleet.DeploymentRunning)
	if c := condition(*p.status, fleet.ConditionProgressing); !strings.Contains(c.Message, "ends within 10 s of its start") {
		t.Errorf("what serves does not stay up, and Progressing says %s: %s", c.Reason, c.Message)
	}
	p.hangs, p.noImage = false, true
	p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonImagePullFailed).deployment(fleet.DeploymentFailed)
	p.noImage, p.crash = false, false
	p.pass(11*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// What served and cannot be started again is not on its way for ever (P10).
func TestC14_P10_aStartThatNeverSucceedsStalls(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.end()
	p.tasks = fleet.ClassTransient
	p.pass(20*time.Minute).is(fleet.StatusActive, fleet.VerdictStalled, fleet.ReasonRuntimeError)
	if p.told("Stalled") != 1 {
		t.Errorf("told %d times", p.told("Stalled"))
	}
	p.tasks = ""
	p.pass(2*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// What is prepared and cannot be swapped in is no reason to leave down what served: another
// server's container has the name, and keeps it.
func TestC14_C15_whatServedIsStartedWhereTheSwapWaitsForAName(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	for len(p.boxes) == 1 {
		p.step()
	}
	p.turn()
	b := p.box()
	delete(p.boxes, carrierName)
	b.state, b.finished = fleet.ContainerExited, p.now
	p.boxes[carrierName+"-old"] = b
	p.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
	p.status.Runtime.Plan, p.status.Runtime.NextAttempt = nil, nil
	p.look()
	in := p.input()
	for i := range in.Seen.Instance.Containers {
		if c := &in.Seen.Instance.Containers[i]; c.Foreign != "" {
			c.Account = "other"
		}
	}
	if got, want := brief(Decide(in).Status.Runtime.Plan), "start cache"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC14_aStartThatIsRefusedCostsOneSwapEachAttempt(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.noStart = true
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonImagePullFailed).deployment(fleet.DeploymentFailed)
	if b := p.box(); b.tag != "v1" || b.state != fleet.ContainerRunning {
		t.Errorf("%+v", p.boxes)
	}
	plans := p.status.Runtime.Plans
	p.pass(time.Hour)
	attempts := p.status.Runtime.Plans - plans
	if b := p.box(); b.tag != "v1" || b.state != fleet.ContainerRunning || attempts < 10 || attempts > 40 {
		t.Errorf("%d plans in an hour; %+v", attempts, p.boxes)
	}
	p.noStart = false
	p.pass(11*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	if len(p.boxes) != 1 || p.box().tag != "v2" {
		t.Errorf("%+v", p.boxes)
	}
}

// Each try of a swap takes down what serves: one that failed is not tried again within seconds
// (P9), but is at once when what is declared has changed.
func TestC14_P9_aSwapThatFailedIsTriedAgainAfterAMinuteAtTheEarliest(t *testing.T) {
	stops := func(p *script, d time.Duration) (at []time.Time) {
		for end := p.now.Add(d); p.now.Before(end); {
			ran := p.carrier().state == fleet.ContainerRunning
			if p.step(); ran && p.carrier().state != fleet.ContainerRunning {
				at = append(at, p.now)
			}
		}
		return at
	}
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.noStart = true
	at := stops(p, time.Hour)
	if len(at) < 7 || len(at) > 10 {
		t.Errorf("%d swaps in an hour", len(at))
	}
	for i := range at[1:] {
		if gap := at[i+1].Sub(at[i]); gap < 45*time.Second {
			t.Errorf("swap %d came %s after the one before", i+2, gap)
		}
	}
	p.declare("v3", "")
	if at := stops(p, 10*time.Second); len(at) != 1 {
		t.Errorf("%d swaps in the ten seconds after v3 was declared", len(at))
	}
	p.noStart = false
	p.pass(2*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestC14_aDestroyTakesDownWhatWasPutAside(t *testing.T) {
	for step := range 20 {
		p := play(t, settledOn(variant{}))
		p.declare("v2", "")
		for range step {
			p.step()
		}
		p.intent.Deleting = &p.now
		p.pass(10 * time.Minute)
		if !p.removed || len(p.boxes) != 0 {
			t.Errorf("destroyed at step %d: %v", step, p.boxes)
		}
	}
}

// A pause keeps what died by itself as it is (S11), and what kurad stopped is put back.
func TestC14_S11_aPauseStartsNothingThatDiedByItself(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.paused = true
	p.end()
	p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictHeld, fleet.ReasonPaused)
	if p.carrier().state != fleet.ContainerExited {
		t.Errorf("%+v", p.boxes)
	}
	p.shows(fleet.ConditionEndpointReady, fleet.False, fleet.ReasonConnectFailed).shows(fleet.ConditionReady, fleet.False, fleet.ReasonHeld)
}

// Of two services that exchange their fixed host ports, each is down for the swap alone, and
// what is called otherwise by hand gets its name back without a stop.
func TestC15_whatOfOursIsInTheWayGivesWay(t *testing.T) {
	const proxy = "kura-acme-eu-proxy"
	p := play(t, settledOn(variant{helper: true, ports: true}))
	p.doc = 1
	began := p.now
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if a, b := p.box(), p.boxes[proxy]; a.port != 1002 || b.port != 1001 || len(p.boxes) != 2 || p.now.Sub(began) > 3*time.Second || p.status.Runtime.Refusal != nil {
		t.Errorf("after %s: %+v", p.now.Sub(began), p.boxes)
	}
	ids := []string{p.box().id, p.boxes[proxy].id}
	p.boxes[carrierName], p.boxes[proxy] = p.boxes[proxy], p.box() // exchanged by hand
	want := []string{"rename proxy as kura-acme-eu-proxy-old; rename cache as itself; rename proxy as kura-acme-eu-proxy"}
	if plans := p.plans(); !slices.Equal(plans, want) {
		t.Errorf("got  %q\nwant %q", plans, want)
	}
	if p.box().id != ids[0] || p.boxes[proxy].id != ids[1] {
		t.Errorf("%+v", p.boxes)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// The name of what serves does not wait for what its successor waits for; nor is one tried all
// the time that the engine refuses.
func TestC15_P9_whatIsRenamedByHandGetsItsNameBackWhileItsSuccessorCannotBeHad(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.noImage = true
	p.pass(2*time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonImagePullFailed)
	renamed := func() (id string) {
		b := p.box()
		delete(p.boxes, carrierName)
		p.boxes["by-hand"] = b
		return b.id
	}
	next, id := *p.status.Runtime.NextAttempt, renamed()
	if plans, want := p.plans(), []string{"rename cache as itself"}; !slices.Equal(plans, want) || p.box().id != id || !next.After(p.now) {
		t.Errorf("got %q, want %q, before the next attempt at %s; at %s: %v", plans, want, next, p.now, p.boxes)
	}
	if at := p.status.Runtime.NextAttempt; at == nil || !at.Equal(next) || p.warned() && p.told("ImagePullFailed") == 0 {
		t.Errorf("the next attempt is at %v, was at %s", at, next)
	}
	renamed()
	p.tasks = fleet.ClassTransient
	before := p.status.Runtime.Plans
	p.pass(time.Hour)
	if n := p.status.Runtime.Plans - before; n > 80 {
		t.Errorf("%d plans in an hour", n)
	}
	p.tasks = ""
	p.pass(2*time.Minute).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonImagePullFailed)
	if p.box().state != fleet.ContainerRunning {
		t.Errorf("%+v", p.boxes)
	}
}

// A service that is renamed and keeps its fixed host port: its old container gives way within
// the swap, and comes back where the new one does not start.
func TestC15_C14_aServiceThatIsRenamedTakesItsPortAlong(t *testing.T) {
	for _, refused := range []bool{false, true} {
		p := play(t, settledOn(variant{helper: true, ports: true}))
		b := p.boxes["kura-acme-eu-proxy"]
		b.service = "old-proxy"
		delete(p.boxes, "kura-acme-eu-proxy")
		p.boxes["kura-acme-eu-old-proxy"] = b
		p.turn()
		if got, want := brief(p.status.Runtime.Plan), "create proxy as kura-acme-eu-proxy; stop old-proxy; start proxy; remove old-proxy"; got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if !refused {
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
			continue
		}
		for p.boxes["kura-acme-eu-old-proxy"].state == fleet.ContainerRunning {
			p.step()
		}
		p.paused = true
		p.rest()
		if p.boxes["kura-acme-eu-old-proxy"].state != fleet.ContainerRunning {
			t.Errorf("%+v", p.boxes)
		}
		p.paused = false
		p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "")
		if len(p.boxes) != 2 {
			t.Errorf("%+v", p.boxes)
		}
	}
}

// Two servers whose containers were exchanged by hand: each gives up the name that is not its
// own, and takes its own when that is free. A name that somebody else's container bears is his.
func TestC15_theNameOfAnotherServersContainerIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name    string
		account string // of the container that bears the name
		want    string
		status  fleet.ServerStatus
	}{
		{"another server of this environment", "other", "rename cache as -old", fleet.StatusActive},
		{"somebody else", "", "-", fleet.StatusFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			b := p.box()
			delete(p.boxes, carrierName)
			p.boxes["kura-other-eu-cache"] = b
			p.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
			p.look()
			in := p.input()
			for i := range in.Seen.Instance.Containers {
				if c := &in.Seen.Instance.Containers[i]; c.Foreign != "" {
					c.Account = "other"
				}
			}
			if c.account == "" {
				in = p.input()
				p.look()
				in.Seen.Instance.Containers = p.seen
			}
			out := Decide(in)
			if got := brief(out.Status.Runtime.Plan); got != c.want || out.Status.Status != c.status {
				t.Errorf("%s: got %s, want %s", out.Status.Status, got, c.want)
			}
		})
	}
}

func TestC2_aPausedContainerGoesOn(t *testing.T) {
	p := play(t, settledOn(variant{}))
	b := p.box()
	b.state = fleet.ContainerPaused
	p.boxes[carrierName], p.observe = b, true
	p.rest().is(fleet.StatusActive, fleet.VerdictDrifted, fleet.ReasonDrifted)
	p.shows(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonServiceStopped)
	p.observe = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if got := fmt.Sprint(p.box().id, p.box().state, len(p.boxes)); got != fmt.Sprint(b.id, fleet.ContainerRunning, 1) {
		t.Error(got)
	}
	b = p.box()
	b.state = fleet.ContainerPaused
	p.boxes[carrierName], p.intent.Deleting = b, &p.now
	p.turn()
	if got, want := brief(p.status.Runtime.Plan), "stop cache; remove cache; remove-volumes"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Somebody else's container under the name that what serves is put aside with keeps no service
// down while two exchange their host ports: each serves, as before or as declared.
func TestC15_C14_aForeignOldNameKeepsNothingStoppedWhilePortsAreExchanged(t *testing.T) {
	const proxy = "kura-acme-eu-proxy"
	for _, names := range [][]string{{carrierName}, {proxy}, {carrierName, proxy}} {
		for step := range 24 {
			p := play(t, settledOn(variant{helper: true, ports: true}))
			p.doc = 1
			for range step {
				p.step()
			}
			for _, name := range names {
				if _, taken := p.boxes[name+"-old"]; !taken {
					p.boxes[name+"-old"] = box{id: "foreign " + name, tag: "v1", state: fleet.ContainerRunning, foreign: true}
				}
			}
			p.pass(time.Hour)
			runs := map[string]int{}
			for _, b := range p.boxes {
				if b.state == fleet.ContainerRunning && !b.foreign {
					runs[b.service]++
				}
			}
			if runs["cache"] != 1 || runs["proxy"] != 1 {
				t.Errorf("%v at step %d: %s %s: %s; %+v", names, step, p.status.Status, p.status.Message, brief(p.status.Runtime.Plan), p.boxes)
			}
			for _, name := range names {
				if p.boxes[name+"-old"].foreign {
					delete(p.boxes, name+"-old")
				}
			}
			p.pass(time.Hour)
			if p.status.Verdict != fleet.VerdictConverged || len(p.boxes) != 2 {
				t.Errorf("%v at step %d, when it is gone: %s %s: %s; %+v", names, step, p.status.Status, p.status.Message, brief(p.status.Runtime.Plan), p.boxes)
			}
		}
	}
}
