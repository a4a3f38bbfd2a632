package projection

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// script plays a story with the model world, in which every turn is checked against the
// invariants too.
type script struct {
	*sim
	t *testing.T
	x *explorer
}

const carrierName = "kura-acme-eu-cache"

// play begins with a state; its events are kept from here on.
func play(t *testing.T, s *sim) *script {
	t.Helper()
	s.telling, s.events = true, nil
	p := &script{sim: s, t: t, x: newExplorer(0)}
	p.x.at = &node{s: s, what: "script"}
	return p
}

func (p *script) step() (what string, idle bool) {
	p.t.Helper()
	what, idle = p.sim.step(p.x)
	for _, complaint := range p.x.complaints {
		p.t.Fatal(complaint)
	}
	return what, idle
}

// turn decides and stores once, and runs no task.
func (p *script) turn() Output {
	p.t.Helper()
	if !p.lag && !p.silent {
		p.look()
	}
	in := p.input()
	out := Decide(in)
	p.x.check(p.sim, in, out, changed(out))
	for _, complaint := range p.x.complaints {
		p.t.Fatal(complaint)
	}
	p.store(out)
	return out
}

// rest takes steps until nothing is left to do now; the clock moves only by what tasks
// take.
func (p *script) rest() *script {
	p.t.Helper()
	for range 200 {
		before := p.sim.clone()
		if _, idle := p.step(); idle || p.removed {
			if idle {
				*p.sim = *before
			}
			return p
		}
	}
	p.t.Fatal("no rest after 200 steps")
	return p
}

// pass lets time pass, in which everything due happens.
func (p *script) pass(d time.Duration) *script {
	p.t.Helper()
	end := p.now.Add(d)
	for range 2000 {
		before := p.sim.clone()
		_, idle := p.step()
		if p.removed {
			return p
		}
		if p.now.After(end) || idle && p.now.Equal(before.now) {
			*p.sim = *before
			p.wait(end)
			return p.rest()
		}
	}
	p.t.Fatalf("time does not pass: too many steps in %s", d)
	return p
}

// is checks the status and the verdict.
func (p *script) is(status fleet.ServerStatus, verdict fleet.Verdict, reason fleet.Reason) *script {
	p.t.Helper()
	st := p.status
	if st.Status != status || st.Verdict != verdict || st.VerdictReason != reason {
		p.t.Fatalf("got %s %s/%s (reason %q: %s), want %s %s/%s", st.Status, st.Verdict, st.VerdictReason, st.Reason, st.Message, status, verdict, reason)
	}
	return p
}

// deployment checks the latest deployment.
func (p *script) deployment(want fleet.DeploymentStatus) *script {
	p.t.Helper()
	if p.latest.Status != want {
		p.t.Fatalf("deployment %d is %s (%s), want %s", p.latest.Seq, p.latest.Status, p.latest.Reason, want)
	}
	return p
}

// shows checks a condition.
func (p *script) shows(ct fleet.ConditionType, status fleet.ConditionStatus, reason fleet.Reason) *script {
	p.t.Helper()
	if c := condition(*p.status, ct); c.Status != status || c.Reason != reason {
		p.t.Fatalf("%s is %s/%s (%s), want %s/%s", ct, c.Status, c.Reason, c.Message, status, reason)
	}
	return p
}

// told counts the events of a reason.
func (p *script) told(reason string) int {
	n := 0
	for _, e := range p.events {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

// warned reports whether an event says that something is wrong.
func (p *script) warned() bool {
	return slices.ContainsFunc(p.events, func(e fleet.Event) bool { return e.Type == fleet.EventWarning })
}

// quiet checks that n turns, a tick apart, write nothing.
func (p *script) quiet(n int) *script {
	p.t.Helper()
	for range n {
		p.wait(p.now.Add(10 * time.Second))
		p.look()
		if out := Decide(p.input()); out.Changed() {
			p.t.Fatalf("a turn writes: %s", diffText(*p.status, out.Status))
		}
	}
	return p
}

// brief are the tasks of a plan in short.
func brief(p *fleet.Plan) string {
	if p == nil {
		return "-"
	}
	var out []string
	for _, task := range p.Tasks {
		s := string(task.Kind)
		if task.Kind == fleet.TaskApply || task.Kind == fleet.TaskDelete {
			out = append(out, s+" "+cmp.Or(task.UID, "new"))
			continue
		}
		if task.Kind == fleet.TaskPull {
			continue // every create has one before it
		}
		if task.Service != "" {
			s += " " + task.Service
		}
		switch name := strings.TrimPrefix(task.Name, carrierName); {
		case task.Name == "":
		case name == "":
			s += " as itself"
		default:
			s += " as " + name
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func (p *script) box() box { return p.boxes[carrierName] }

// kill ends the carrier's container behind kurad's back.
func (p *script) kill() {
	b := p.box()
	b.state, b.finished = fleet.ContainerExited, p.now
	p.boxes[carrierName] = b
}

// remove takes the carrier's container away behind kurad's back.
func (p *script) remove() { delete(p.boxes, carrierName) }

// plans runs until rest and returns the steps of every plan that was stored.
func (p *script) plans() []string {
	p.t.Helper()
	var out []string
	id := ""
	if p.status != nil && p.status.Runtime.Plan != nil {
		id = p.status.Runtime.Plan.ID
	}
	for range 200 {
		before := p.sim.clone()
		if _, idle := p.step(); idle {
			*p.sim = *before
			return out
		}
		if plan := p.status.Runtime.Plan; plan != nil && plan.ID != id {
			id = plan.ID
			out = append(out, brief(plan))
		}
	}
	return slices.Clip(out)
}
