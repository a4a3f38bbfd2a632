package projection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestS4_theTurnThatMakesAPlanDoesNothingElse(t *testing.T) { // L43
	p := play(t, newSim(variant{}))
	out := p.turn()
	if !out.Changed() || out.Status.Runtime.Plan == nil || !out.MayAct.Has(fleet.TrackRuntime) || len(p.boxes) != 0 {
		t.Fatalf("changed %v, plan %v, may act %v, containers %v", out.Changed(), brief(out.Status.Runtime.Plan), out.MayAct.Has(fleet.TrackRuntime), p.boxes)
	}
	if out.Status.Runtime.Plan.Runnable(p.now) != 0 {
		t.Error("the next turn is not due at once")
	}
	again := p.turn() // the write failed and is made again: the plan is the same
	if again.Changed() || again.Status.Runtime.Plan.ID != out.Status.Runtime.Plan.ID {
		t.Error("a second turn makes another plan")
	}
}

func TestS5_taskIDsAreDeterministicAndNewInEachPlan(t *testing.T) {
	s := newSim(variant{})
	s.look()
	one, two := Decide(s.input()).Status.Runtime.Plan, Decide(s.input()).Status.Runtime.Plan
	if one.Tasks[0].ID != two.Tasks[0].ID || one.Tasks[0].ID != "acme/eu/g1/roll-out/p1/1" {
		t.Errorf("%s and %s", one.Tasks[0].ID, two.Tasks[0].ID)
	}
	p := play(t, s)
	p.tasks = fleet.ClassRefused
	p.rest()
	p.wait(*p.status.Runtime.NextAttempt)
	p.turn()
	if id := p.status.Runtime.Plan.Tasks[0].ID; id != "acme/eu/g1/recreation/p2/1" || p.status.Runtime.Plan.Attempt != 2 {
		t.Errorf("the second plan is %s, attempt %d", id, p.status.Runtime.Plan.Attempt)
	}
}

func TestS5_aTransientAnswerIsTriedAgainWithBackoff(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassTransient
	p.rest()
	task := p.status.Runtime.Plan.Tasks[0]
	if task.Tries != 1 || task.NotBefore == nil || p.told("TaskRetried") != 1 {
		t.Fatalf("%+v, told %d times", task, p.told("TaskRetried"))
	}
	p.deployment(fleet.DeploymentRunning)
	p.tasks = ""
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.told("TaskRetried") != 1 {
		t.Errorf("told %d times", p.told("TaskRetried"))
	}
}

func TestS6_aPlanPastItsDeadlineIsMadeAnew(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.tasks = fleet.ClassTransient
	p.rest()
	first := p.status.Runtime.Plan.ID
	p.pass(p.status.Runtime.Plan.Deadline.Sub(p.now) + 2*time.Minute)
	if p.told(string(fleet.ReasonPlanTimedOut)) == 0 || p.status.Runtime.Plan != nil && p.status.Runtime.Plan.ID == first {
		t.Errorf("plan %+v, events %+v", p.status.Runtime.Plan, p.events)
	}
	p.deployment(fleet.DeploymentRunning)
}

// runs claims the current task; before it only a pull was done.
func (p *script) runs(kind fleet.TaskKind) fleet.Task {
	p.t.Helper()
	p.turn()
	if p.status.Runtime.Plan.Tasks[0].Kind != kind {
		p.step()
		p.turn()
	}
	st := p.status.Clone()
	i := st.Runtime.Plan.Current()
	task := st.Runtime.Plan.Claim(i, p.now.Add(st.Runtime.Plan.Tasks[i].Timeout()))
	if task.Kind != kind {
		p.t.Fatalf("%s runs, want a %s", task.Describe(), kind)
	}
	p.status = &st
	p.turn()
	return task
}

func TestS6_aNewGenerationSupersedesAtTheTaskBoundary(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.runs(fleet.TaskCreate)
	p.declare("v2", "")
	if out := p.turn(); out.Status.Runtime.Plan == nil || out.Status.Runtime.Plan.Generation != 1 || !out.MayAct.Has(fleet.TrackRuntime) {
		t.Fatal("a running task is abandoned")
	}
	p.deployment(fleet.DeploymentPending) // nothing was done for it yet
	const waits = "waits for what was begun before the change: create container kura-acme-eu-cache (by 2026-11-21T00:02:00Z at the latest)"
	if c := condition(*p.status, fleet.ConditionProgressing); c.Message != waits {
		t.Errorf("got  %s\nwant %s", c.Message, waits)
	}
	if view := fleet.NewServerView(p.intent, p.desired(), p.status, &p.latest); view.Message != waits {
		t.Errorf("the verdict says %q", view.Message)
	}
	p.step() // it is answered: its document is gone
	p.turn()
	if p.status.Runtime.Plan != nil && p.status.Runtime.Plan.Generation == 1 {
		t.Error("the old plan goes on")
	}
	p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.box().tag != "v2" {
		t.Errorf("%s runs", p.box().tag)
	}
}

func TestS6_aPullIsGivenUpForWhatIsWantedNow(t *testing.T) {
	for _, settled := range []bool{false, true} {
		running := func(t *testing.T) *script {
			s := newSim(variant{})
			if settled {
				s.settle()
				s.declare("v2", "")
			}
			p := play(t, s)
			p.runs(fleet.TaskPull)
			p.deployment(fleet.DeploymentRunning)
			if c := condition(*p.status, fleet.ConditionProgressing); c.Message != "pull image localhost/kura:"+s.intent.ImageTag {
				t.Errorf("Progressing says %q", c.Message)
			}
			return p
		}
		t.Run(fmt.Sprintf("for another image, settled %v", settled), func(t *testing.T) {
			p := running(t)
			began, before := p.now, p.status.Runtime.Plan.ID
			p.declare("v3", "")
			if out := p.turn(); out.Status.Runtime.Plan == nil || out.Status.Runtime.Plan.ID == before || out.Status.Runtime.Plan.Generation != p.intent.Generation {
				t.Fatalf("the first turn leaves the plan %s", brief(out.Status.Runtime.Plan))
			}
			p.deployment(fleet.DeploymentPending)
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
			if d := p.now.Sub(began); p.box().tag != "v3" || d > time.Second {
				t.Errorf("%s runs after %s", p.box().tag, d)
			}
			if p.told("TaskRetried")+p.told("Replanned")+p.told(string(fleet.ReasonCreateFailed)) != 0 {
				t.Errorf("it is told of what was given up: %+v", p.events)
			}
		})
		t.Run(fmt.Sprintf("to destroy it, settled %v", settled), func(t *testing.T) {
			p := running(t)
			began := p.now
			p.intent.Deleting = &began
			p.intent.Generation++
			p.rest()
			if d := p.now.Sub(began); !p.removed || d > time.Second {
				t.Errorf("removed %v after %s", p.removed, d)
			}
		})
		t.Run(fmt.Sprintf("not for a pause, settled %v", settled), func(t *testing.T) { // S11
			p := running(t)
			p.paused = true
			if out := p.turn(); out.Status.Runtime.Plan == nil {
				t.Error("a running task is abandoned")
			}
			p.declare("v3", "") // but a change of mind in the pause ends it
			if out := p.turn(); out.Status.Runtime.Plan != nil || brief(out.Status.Runtime.Intended) == "-" {
				t.Errorf("plan %s, intended %s", brief(out.Status.Runtime.Plan), brief(out.Status.Runtime.Intended))
			}
		})
	}
}

// An answer that comes together with a change of mind is no answer to what is wanted now.
func TestS6_whatWasAnsweredToAnEarlierGenerationDelaysNothing(t *testing.T) {
	for _, class := range []fleet.Class{fleet.ClassRefused, fleet.ClassTransient, unanswered} {
		p := play(t, settledOn(variant{}))
		p.declare("v2", "")
		p.runs(fleet.TaskPull)
		p.tasks = class
		p.act()
		began := p.now
		p.declare("v3", "")
		p.tasks = ""
		p.turn()
		if p.status.Status != fleet.StatusActive || p.status.Runtime.Refusal != nil || p.warned() {
			t.Errorf("%s: %s, refusal %+v, events %+v", class, p.status.Status, p.status.Runtime.Refusal, p.events)
		}
		p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		if d := p.now.Sub(began); p.box().tag != "v3" || d > time.Second {
			t.Errorf("%s: %s runs after %s", class, p.box().tag, d)
		}
	}
}

func TestS8_whatIsLearnedOnceIsWrittenOnce(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.endpoint = fleet.ReasonTimeout
	if !p.turn().Changed() {
		t.Error("an observation is not stored")
	}
	if p.turn().Changed() {
		t.Error("it is stored again")
	}
}

func TestS10_anObservingRegionShowsAndStartsNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		drift   func(*script)
		verdict fleet.Verdict
		reason  fleet.Reason
		plan    string
	}{
		{"removed", func(p *script) { p.remove() }, fleet.VerdictAbsent, fleet.ReasonAbsent, "create cache as itself; start cache"},
		{"killed", func(p *script) { p.kill() }, fleet.VerdictDrifted, fleet.ReasonDrifted, "start cache"},
		{"another image", func(p *script) {
			b := p.box()
			b.tag, b.dig = "v0", "c/v0"
			p.boxes[carrierName] = b
		}, fleet.VerdictDrifted, fleet.ReasonDrifted, "create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			p.observe = true
			c.drift(p)
			if plans := p.plans(); len(plans) != 0 {
				t.Fatalf("it starts %q", plans)
			}
			p.is(p.status.Status, c.verdict, c.reason)
			if got := brief(p.status.Runtime.Intended); got != c.plan {
				t.Errorf("intended %s, want %s", got, c.plan)
			}
			p.full = true
			p.observe = false       // switched to heal: drift is admitted under G4
			if c.name == "killed" { // what served and only has to be started needs no place (C14)
				p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
			} else {
				p.rest().is(p.status.Status, fleet.VerdictHeld, fleet.ReasonAdmission)
			}
			p.full = false
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestS10_whatAUserDeclaresRunsInAnObservingRegion(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.observe, p.tasks = true, fleet.ClassRefused
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed)
	p.tasks = ""
	p.pass(10*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "") // its retries included
	p.declare("v1", "again")
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	p.kill()
	p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictDrifted, fleet.ReasonDrifted)
}

func TestS10_leftoversOfOurOwnWorkAreTakenAwayAllTheSame(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.observe, p.full = true, true
	p.put(carrierName+"-next", "cache", "v0", "c/v0", fleet.ContainerRunning, false)
	if plans := p.plans(); len(plans) != 1 || plans[0] != "stop cache; remove cache" {
		t.Errorf("got %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "")
	if len(p.boxes) != 1 || p.told("LeftoversRemoved") != 1 {
		t.Errorf("containers %v, told %d times", p.boxes, p.told("LeftoversRemoved"))
	}
}

func TestS10_aCleanUpGivesWayToDriftInAnObservingRegion(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.observe = true
	p.put(carrierName+"-next", "cache", "v0", "c/v0", fleet.ContainerExited, false)
	p.turn()
	if p.status.Runtime.Plan == nil {
		t.Fatal("no plan")
	}
	p.kill()
	p.turn()
	p.is(fleet.StatusActive, fleet.VerdictDrifted, fleet.ReasonDrifted)
	if p.status.Runtime.Plan != nil || brief(p.status.Runtime.Intended) != "start cache" {
		t.Errorf("plan %s, intended %s", brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended))
	}
}

func TestS11_aPauseDropsThePlanAndShowsTheIntendedOne(t *testing.T) { // L38
	for name, pause := range map[string]func(*script){
		"region": func(p *script) { p.paused = true },
		"server": func(p *script) { p.intent.Paused = true },
		"daemon": func(p *script) { p.allPaused = true },
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			p.declare("v2", "")
			p.turn()
			pause(p)
			before := len(p.boxes)
			p.pass(time.Hour)
			if p.status.Runtime.Plan != nil || p.status.Runtime.Intended == nil || len(p.boxes) != before {
				t.Fatalf("plan %s, intended %s, %d containers", brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended), len(p.boxes))
			}
			if !p.status.Runtime.Intended.CreatedAt.IsZero() {
				t.Error("the intended plan has a date, so it would be written for ever")
			}
			p.shows(fleet.ConditionProgressing, fleet.False, fleet.ReasonHeld)
			p.paused, p.allPaused, p.intent.Paused = false, false, false
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestS11_aRunningTaskEndsWhileItIsPaused(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.runs(fleet.TaskCreate)
	p.paused = true
	if out := p.turn(); out.Status.Runtime.Plan == nil {
		t.Error("a running task is abandoned")
	}
	p.act() // ends, and is answered
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictHeld, fleet.ReasonPaused)
	if p.box().state != fleet.ContainerCreated || p.status.Runtime.Plan != nil {
		t.Errorf("%s, plan %s", p.box().state, brief(p.status.Runtime.Plan))
	}
}

func TestG1_aRestartRewritesNothing(t *testing.T) {
	given := map[string]func(*script){
		"settled":                   func(*script) {},
		"its endpoint fails":        func(p *script) { p.endpoint = fleet.ReasonTimeout },
		"its global endpoint fails": func(p *script) { p.globalDown = true; p.declare("v2", "") },
		"its url moves":             func(p *script) { p.doc, p.endpoint = 2, fleet.ReasonTimeout },
		"paused, with an intention": func(p *script) { p.paused = true; p.declare("v2", "") },
		"waits for a place":         func(p *script) { p.full = true; p.declare("v2", "") },
		"observed, drifted":         func(p *script) { p.observe = true; p.kill() },
		"failed":                    func(p *script) { p.tasks = fleet.ClassRefused; p.declare("v2", "") },
		"a plan waits":              func(p *script) { p.tasks = fleet.ClassTransient; p.declare("v2", "") },
		"destroying":                func(p *script) { p.paused, p.intent.Deleting = true, &p.now },
	}
	for name, set := range given {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(variant{global: true}))
			set(p)
			p.rest()
			was := Decide(p.input())
			p.silent = true
			out := Decide(p.input())
			if out.Changed() {
				t.Errorf("rewritten: %s", diffText(*p.status, out.Status))
			}
			p.silent = false
			in := p.input() // the first read is there, the first probe is not
			in.Seen.Endpoint, in.Seen.Published, in.Seen.Global = fleet.ProbeObservation{}, fleet.ProbeObservation{}, fleet.ProbeObservation{}
			if first := Decide(in); first.Changed() {
				t.Errorf("rewritten by the first read: %s", diffText(*p.status, first.Status))
			}
			if out.Unsettled != was.Unsettled || out.Pending != was.Pending || out.MayAct.Has(fleet.TrackRuntime) {
				t.Errorf("unsettled %v, pending %v, may act %v", out.Unsettled, out.Pending, out.MayAct.Has(fleet.TrackRuntime))
			}
		})
	}
}

func TestG1_aRestartTakesADestroyUpAndEndsARunningTask(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.silent, p.intent.Deleting = true, &p.now
	p.turn()
	if p.status.Status != fleet.StatusDestroying || p.status.PublishedURL != "" {
		t.Errorf("%s, published %q", p.status.Status, p.status.PublishedURL)
	}
	p = play(t, newSim(variant{}))
	p.turn()
	st := p.status.Clone()
	st.Runtime.Plan.Claim(0, p.now.Add(time.Minute))
	p.status, p.silent = &st, true
	if out := Decide(p.input()); out.MayAct.Has(fleet.TrackRuntime) {
		t.Error("a task that was claimed before the restart is run again before anything was read")
	}
	p.silent = false
	if out := p.turn(); !out.MayAct.Has(fleet.TrackRuntime) || out.Status.Runtime.Plan == nil {
		t.Error("a task that was claimed before the restart is not run again")
	}
}

func TestS11_aTaskWhoseProcessIsGoneIsNotRunAgainInAPause(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.turn()
	if !p.die(false) { // kurad ends in the middle of the first task
		t.Fatal("no task to die in")
	}
	p.paused = true
	deadline := *p.status.Runtime.Plan.Tasks[p.status.Runtime.Plan.Current()].Deadline
	if out := p.turn(); out.MayAct.Has(fleet.TrackRuntime) || out.Status.Runtime.Plan == nil || !out.Due.Equal(deadline) {
		t.Errorf("may act %v, plan %s, due %s; want the plan to wait for the task's deadline", out.MayAct.Has(fleet.TrackRuntime), brief(out.Status.Runtime.Plan), out.Due)
	}
	p.pass(11*time.Minute).is(fleet.StatusActive, fleet.VerdictHeld, fleet.ReasonPaused)
	if p.status.Runtime.Plan != nil || p.status.Runtime.Intended == nil || p.box().tag != "v1" {
		t.Errorf("plan %s, intended %s, %s runs", brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended), p.box().tag)
	}
	p.paused = false
	p.pass(11*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestG4_admission(t *testing.T) {
	v2 := func(p *script) { p.declare("v2", "") }
	for _, c := range []struct {
		name   string
		given  func(*script)
		waits  bool
		urgent bool
	}{
		{"a creation waits", func(p *script) { *p.sim = *newSim(variant{}) }, true, false},
		{"a recreation waits", func(p *script) { p.remove() }, true, false},
		{"a re-apply waits", func(p *script) { p.doc = 1 }, true, false},
		{"a newer image waits", v2, true, false},
		{"a newer image for a failed server goes first", func(p *script) {
			p.tasks = fleet.ClassRefused
			v2(p)
			p.rest()
			p.declare("v3", "")
		}, true, true},
		{"a newer image for a stalled server goes first", func(p *script) {
			p.endpoint = fleet.ReasonTimeout
			v2(p)
			p.pass(20 * time.Minute)
			p.declare("v3", "")
		}, true, true},
		{"a newer image for an admitted server has its place", func(p *script) {
			p.endpoint = fleet.ReasonTimeout
			v2(p)
			p.rest()
			p.declare("v3", "")
		}, false, false},
		{"the retry of a failed server has its place", func(p *script) {
			p.tasks = fleet.ClassRefused
			v2(p)
			p.rest()
			p.wait(*p.status.Runtime.NextAttempt)
		}, false, false},
		{"a destroy needs none", func(p *script) { p.intent.Deleting = &p.now }, false, false},
		{"taking leftovers away needs none", func(p *script) {
			p.put(carrierName+"-old", "cache", "v0", "c/v0", fleet.ContainerExited, false)
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, settledOn(variant{}))
			c.given(p)
			p.full = true
			for turn := range 3 {
				p.look()
				out := Decide(p.input())
				p.store(out)
				if out.WantsAdmission != c.waits || out.Urgent != c.urgent {
					t.Fatalf("turn %d: wants admission %v, urgent %v", turn, out.WantsAdmission, out.Urgent)
				}
				if !c.waits {
					return
				}
				if out.Unsettled || out.Status.Runtime.Plan != nil || out.Status.Runtime.Intended == nil {
					t.Fatalf("turn %d: unsettled %v, plan %s, intended %s", turn, out.Unsettled, brief(out.Status.Runtime.Plan), brief(out.Status.Runtime.Intended))
				}
			}
			if first := strings.Contains(p.status.Holds[0].Message, "goes first"); first != c.urgent {
				t.Errorf("the hold says %q", p.status.Holds[0].Message)
			}
			p.full = false
			if out := p.turn(); !out.Unsettled || out.Status.Runtime.Plan == nil || !Unsettled(out.Status) {
				t.Errorf("with a place: unsettled %v, plan %s", out.Unsettled, brief(out.Status.Runtime.Plan))
			}
		})
	}
}

func TestG4_aPlaceIsGivenBackBySettlingFailingOrStalling(t *testing.T) {
	for name, set := range map[string]func(*script){
		"settled": func(p *script) { p.rest() },
		"failed":  func(p *script) { p.tasks = fleet.ClassRefused; p.rest() },
		"stalled": func(p *script) { p.endpoint = fleet.ReasonTimeout; p.pass(20 * time.Minute) },
	} {
		p := play(t, newSim(variant{}))
		p.turn()
		if !Unsettled(*p.status) {
			t.Fatal("admitted, and not unsettled")
		}
		set(p)
		if Unsettled(*p.status) {
			t.Errorf("%s: still unsettled", name)
		}
	}
}

// A claim of one track leaves what is said of another that is held: the place that it waits for,
// and the plan that it would run.
func TestG4_P19_aClaimOfATrackLeavesTheHoldOfTheRuntime(t *testing.T) {
	p := play(t, settledOn(variant{toy: true}))
	p.declare("v2", "")
	p.full = true
	p.look()
	p.lookAtToy()
	held := Decide(p.input()) // stores the toy's plan
	p.store(held)
	if !held.WantsAdmission || held.Status.Runtime.Intended == nil || held.Status.PlanOf(toyName) == nil {
		t.Fatalf("the runtime waits for no place, or the toy has nothing to do: %+v", held.Status.Holds)
	}
	in := p.input()
	out, _ := Decide(in).Claimed(in, toyName, p.now.Add(time.Minute))
	if len(out.Status.Holds) != 1 || out.Status.Runtime.Intended == nil || out.Status.Verdict != held.Status.Verdict {
		t.Errorf("with the toy's claim it is %s/%s, held by %v, and would run %s", out.Status.Verdict, out.Status.VerdictReason, out.Status.Holds, brief(out.Status.Runtime.Intended))
	}
}
