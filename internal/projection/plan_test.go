package projection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What is planned for what is there, step by step (C2, C4, C7).
func TestC4_planOfWhatIsThere(t *testing.T) {
	const name = carrierName
	type boxes func(*sim)
	has := func(suffix, tag, dig string, state fleet.ContainerState) boxes {
		return func(s *sim) { s.put(name+suffix, "cache", tag, dig, state, false) }
	}
	const same, other = "c/v1//0", "c/v0//0"
	running, exited, created := fleet.ContainerRunning, fleet.ContainerExited, fleet.ContainerCreated
	for _, c := range []struct {
		name  string
		there []boxes
		want  string
	}{
		{"C2 absent: made and started", nil, "create cache as itself; start cache"},
		{"C2 exited: started again", []boxes{has("", "v1", same, exited)}, "start cache"},
		{"C2 never started: started", []boxes{has("", "v1", same, created)}, "start cache"},
		{"C2 running: adopted", []boxes{has("", "v1", same, running)}, "-"},
		{"C4 another document: prepared, then swapped", []boxes{has("", "v0", other, running)}, "create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C14 another document, exited: started, whatever it takes to replace it", []boxes{has("", "v0", other, exited)}, "start cache"},
		{"C4 prepared already", []boxes{has("", "v0", other, running), has("-next", "v1", same, created)}, "stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C4 prepared for another document", []boxes{has("", "v0", other, running), has("-next", "v2", "c/v2", created)}, "remove cache; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C4 old stopped and renamed", []boxes{has("-old", "v0", other, exited), has("-next", "v1", same, created)}, "rename cache as itself; start cache; remove cache"},
		{"C4 old renamed, runs", []boxes{has("-old", "v0", other, running), has("-next", "v1", same, created)}, "stop cache; rename cache as itself; start cache; remove cache"},
		{"C4 new renamed", []boxes{has("", "v1", same, created), has("-old", "v0", other, exited)}, "start cache; remove cache"},
		{"C4 an old of an earlier plan is in the way", []boxes{has("", "v0", other, running), has("-old", "v9", "c/v9", exited)}, "create cache as -next; remove cache; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C4 a leftover that runs has the name of what follows", []boxes{has("", "v0", other, running), has("-next", "v2", "c/v2", running)}, "stop cache; remove cache; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C4 only the old one runs", []boxes{has("-old", "v0", other, running)}, "rename cache as itself; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C14 put aside and not prepared: started under its name", []boxes{has("-old", "v0", other, exited)}, "start cache; rename cache as itself"},
		{"C14 put aside, and what was to follow is of yet another document", []boxes{has("-old", "v0", other, exited), has("", "v2", "c/v2", created)}, "start cache; remove cache; rename cache as itself"},
		{"C15 renamed by hand", []boxes{has("-by-hand", "v1", same, running)}, "rename cache as itself"},
		{"C15 renamed by hand, ended", []boxes{has("-by-hand", "v1", same, exited)}, "start cache; rename cache as itself"},
		{"C15 renamed by hand, another document", []boxes{has("-by-hand", "v0", other, running)}, "rename cache as itself; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C15 renamed by hand to the name of what waits", []boxes{has("-next", "v0", other, running)}, "rename cache as itself; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache"},
		{"C2 paused: goes on", []boxes{has("", "v1", same, fleet.ContainerPaused)}, "start cache"},
		{"C4 another document, paused: goes on first", []boxes{has("", "v0", other, fleet.ContainerPaused)}, "start cache"},
		{"C4 leftovers of no plan", []boxes{has("", "v1", same, running), has("-next", "v2", "c/v2", created), has("-old", "v0", other, running)}, "remove cache; stop cache; remove cache"},
		{"C4 a service that left the document", []boxes{has("", "v1", same, running), func(s *sim) { s.put("kura-acme-eu-gone", "gone", "v1", "g", running, false) }}, "stop gone; remove gone"},
		{"C7 a foreign container of the name", []boxes{func(s *sim) { s.put(name, "", "v1", "", running, true) }}, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(variant{})
			s.status = &fleet.Status{Status: fleet.StatusProvisioning, Generation: 1, Revision: s.desired().Revision, Admitted: true}
			for _, put := range c.there {
				put(s)
			}
			s.look()
			out := Decide(s.input())
			if got := brief(out.Status.Runtime.Plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			in := s.input()
			if pure := Plan(in, Project(in)); brief(pure) != brief(out.Status.Runtime.Plan) {
				t.Errorf("Plan says %s", brief(pure))
			}
		})
	}
}

func TestC1_aRunningContainerIsLeftAloneWhateverTheListingShows(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.look()
	in := p.input()
	in.Seen.Instance.Containers = slices.Clone(in.Seen.Instance.Containers)
	in.Seen.Instance.Containers[0].Ports = map[string]int{"80/tcp": 1}
	if out := Decide(in); out.Status.Runtime.Plan != nil {
		t.Errorf("planned: %s", brief(out.Status.Runtime.Plan))
	}
}

func TestC4_oneServiceAfterTheOtherAndPreparationFirst(t *testing.T) {
	p := play(t, settledOn(variant{helper: true}))
	p.doc = 1 // both documents change
	p.turn()
	want := "create cache as -next; create proxy as kura-acme-eu-proxy-next; " +
		"stop cache; rename cache as -old; rename cache as itself; start cache; remove cache; " +
		"stop proxy; rename proxy as kura-acme-eu-proxy-old; rename proxy as kura-acme-eu-proxy; start proxy; remove proxy"
	if got := brief(p.status.Runtime.Plan); got != want || p.status.Runtime.Plan.Kind != fleet.PlanReplace {
		t.Errorf("got  %s (%s)\nwant %s", got, p.status.Runtime.Plan.Kind, want)
	}
	p.shows(fleet.ConditionProgressing, fleet.True, fleet.ReasonReplacing)
	if stop := p.status.Runtime.Plan.Tasks[4]; stop.ContainerID == "" || stop.Grace != fleet.Duration(2*time.Second) {
		t.Errorf("the stop is not by id and with the service's grace: %+v", stop)
	}
	for _, task := range p.status.Runtime.Plan.Tasks {
		if task.CreatedBy != "" && !strings.HasPrefix(task.CreatedBy, p.status.Runtime.Plan.ID+"/") {
			t.Errorf("%s is made by %q, which is no task of the plan", task.ID, task.CreatedBy)
		}
	}
}

func TestC4_replaceKilledBetweenAnyTwoTasksEndsWithOneContainer(t *testing.T) {
	for _, effect := range []bool{false, true} {
		for task := range 7 {
			p := play(t, settledOn(variant{}))
			p.declare("v2", "")
			p.turn()
			for range task {
				p.step() // a task
				p.turn()
			}
			if !p.die(effect) {
				t.Fatalf("task %d does not run", task)
			}
			p.silent = true
			p.pass(15 * time.Minute)
			if b := p.box(); len(p.boxes) != 1 || b.tag != "v2" || b.state != fleet.ContainerRunning {
				t.Errorf("killed in task %d (effect %v): %+v", task, effect, p.boxes)
			}
			p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
		}
	}
}

func TestC5_rollForwardOnly(t *testing.T) {
	p := play(t, settledOn(variant{helper: true}))
	proxy := p.boxes["kura-acme-eu-proxy"].id
	p.declare("v2", "")
	p.tasks = fleet.ClassRefused // its image is missing
	p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed).deployment(fleet.DeploymentFailed)
	if b := p.box(); b.tag != "v1" || b.state != fleet.ContainerRunning || p.status.PublishedURL == "" {
		t.Errorf("v1 does not go on serving: %+v, published %q", b, p.status.PublishedURL)
	}
	p.declare("v3", "")
	p.tasks = ""
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.boxes["kura-acme-eu-proxy"].id != proxy {
		t.Error("a service that stayed healthy was replaced")
	}
}

func TestC6_aForcedKillIsAnEvent(t *testing.T) { // L62
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.turn()
	p.step() // pull
	p.turn()
	p.step() // create
	p.turn()
	st := p.status.Clone()
	st.Runtime.Plan.Claim(2, p.now.Add(time.Minute))
	st.Runtime.Plan.Record(2, fleet.Outcome{Class: fleet.ClassOK, Answered: true, Forced: true, At: p.now})
	p.status = &st
	p.turn()
	p.turn()
	if p.told("GraceExceeded") != 1 {
		t.Errorf("told %d times: %+v", p.told("GraceExceeded"), p.events)
	}
}

func TestC7_aForeignContainerIsNamedAndLeftAlone(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
	p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonForeignInstance).deployment(fleet.DeploymentFailed)
	if !strings.Contains(p.status.Message, "server other/eu of environment staging") {
		t.Errorf("the message does not say whose it is: %s", p.status.Message)
	}
	p.remove()
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
}

func TestC7_whatNoKuradMadeIsSaidToBeThat(t *testing.T) {
	s := newSim(variant{})
	s.put(carrierName, "", "v1", "", fleet.ContainerRunning, true)
	s.look()
	in := s.input()
	in.Seen.Instance.Containers[0].Foreign = fleet.NotByKurad
	const says = "container kura-acme-eu-cache is there and was not made by kurad; it is left alone: remove or rename it, and the server is made"
	if got := Decide(in).Status.Message; got != says {
		t.Errorf("got  %s\nwant %s", got, says)
	}
}

func TestC11_threeQuickExitsAreACrashLoopThatHeals(t *testing.T) {
	p := play(t, newSim(variant{}))
	p.crash = true
	p.rest()
	for p.status.Status != fleet.StatusFailed {
		if p.exits > fleet.CrashLoopFrom {
			t.Fatalf("%d exits, and it is %s", p.exits, p.status.Status)
		}
		p.step()
	}
	p.is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCrashLoop).deployment(fleet.DeploymentFailed)
	p.shows(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonCrashLoop)
	before := p.exits
	p.pass(10 * time.Minute)
	if n := p.exits - before; n < 8 || n > 20 {
		t.Errorf("%d restarts in ten minutes, want about one a minute in the end", n)
	}
	p.crash = false
	p.pass(2*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	if p.status.Crashes != nil {
		t.Errorf("the exits are not forgotten: %+v", p.status.Crashes)
	}
}

func TestC11_aSingleExitRestartsAtOnce(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.kill()
	before := p.now
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if d := p.now.Sub(before); p.box().state != fleet.ContainerRunning || d > time.Second {
		t.Errorf("%s after %s", p.box().state, d)
	}
	if p.told("ServiceExited") != 1 {
		t.Errorf("told %d times", p.told("ServiceExited"))
	}
}

func TestC13_destroyEndsWithTheVolumes(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.intent.Deleting = &p.now
	p.turn()
	if got, want := brief(p.status.Runtime.Plan), "stop cache; remove cache; remove-volumes"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.tasks = fleet.ClassRefused
	p.rest().is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting)
	if p.removed || p.status.Runtime.Refusal != nil || p.told(string(fleet.ReasonCreateFailed)) == 0 {
		t.Errorf("removed %v, refusal %v, events %v", p.removed, p.status.Runtime.Refusal, p.events)
	}
	p.tasks = ""
	p.pass(time.Hour)
	if !p.removed {
		t.Error("a refused removal is not attempted again")
	}
}

// D7: who is told when to come again does not come before, not by a new plan either.
func TestD7_nothingIsTriedAgainBeforeWhoAnsweredWantsIt(t *testing.T) {
	p := play(t, settledOn(variant{}))
	p.declare("v2", "")
	p.turn()
	for range 3 {
		st := p.status.Clone()
		plan := st.Runtime.Plan
		plan.Claim(0, p.now.Add(plan.Tasks[0].Timeout()))
		plan.Record(0, fleet.Outcome{
			Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, Message: "too many calls", Answered: true, At: p.now, After: fleet.Duration(20 * time.Minute),
		})
		p.status = &st
		answered := p.now
		p.turn()
		if at := p.status.Runtime.Plan.Tasks[0].NotBefore; at == nil || !at.Equal(answered.Add(20*time.Minute)) {
			t.Fatalf("due at %v, answered at %v", at, answered)
		}
		id := p.status.Runtime.Plan.ID
		p.now = answered.Add(20*time.Minute - time.Second)
		p.turn()
		if is := p.status.Runtime.Plan; is == nil || is.ID != id || is.Runnable(p.now) >= 0 {
			t.Fatalf("before it was due there is the plan %+v", is)
		}
		p.now = answered.Add(20 * time.Minute)
		p.turn()
		if is := p.status.Runtime.Plan; is == nil || is.ID != id || is.Runnable(p.now) != 0 {
			t.Fatalf("when it was due there is the plan %+v", is)
		}
	}
}
