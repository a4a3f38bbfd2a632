package projection

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// step is one turn of the reconciler and what follows it. idle means that nothing was
// left to do now; the clock then stands at the next due time, if there is one.
func (s *sim) step(x *explorer) (what string, idle bool) {
	if !s.lag && !s.silent && !s.asked {
		s.look()
	}
	s.lookAtToy()
	s.lookAtZone()
	in := s.input()
	in.without = x.without
	out := Decide(in)
	changed := changed(out)
	x.check(s, in, out, changed)
	s.asked = false
	if changed {
		s.store(out)
		return "turn", false
	}
	if s.silent { // the first read of a kurad that has just started
		s.silent = false
		return "first read", false
	}
	if s.status.Runtime.Plan != nil && out.MayAct.Has(fleet.TrackRuntime) {
		i := s.status.Runtime.Plan.Current()
		if i >= 0 && !s.pulls() && (s.status.Runtime.Plan.Runnable(s.now) >= 0 || s.status.Runtime.Plan.Tasks[i].State == fleet.TaskRunning) {
			what := s.status.Runtime.Plan.Tasks[i].Describe()
			if s.telling { // a claim changes nothing of its plan but the task
				want := s.status.Runtime.Plan.Clone()
				claim := want.Claim(i, s.now.Add(want.Tasks[i].Timeout()))
				if c, task := out.Claimed(in, fleet.TrackRuntime, *claim.Deadline); !reflect.DeepEqual(c.Status.Runtime.Plan, want) || !reflect.DeepEqual(task, claim) {
					x.complain(s, "the claim of %s leaves the plan %s", what, brief(c.Status.Runtime.Plan))
				}
			}
			if complaint := s.act(); complaint != "" {
				x.complain(s, "%s", complaint)
			}
			return what, false
		}
	}
	if out.MayAct.Has(toyName) && s.toyActs() {
		return "the toy's task", false
	}
	if what := s.zoneActs(out); what != "" {
		return what, false
	}
	if out.NeedFreshRead.Has(fleet.TrackRuntime) && (s.lag || s.kube) && (s.status.Runtime.EffectsUntil == nil || !s.status.Runtime.EffectsUntil.After(s.now)) && !s.unreadable {
		s.refresh()
		return "fresh read", false
	}
	if s.rolls() && !s.lag {
		return "a pass of the controller", false
	}
	if s.abandoned() {
		x.complain(s, "what kurad stopped stays down")
	}
	if !out.Due.IsZero() {
		s.wait(out.Due)
		return "time", true
	}
	return "nothing", true
}

// pulls reports whether a pull is under way that does not end.
func (s *sim) pulls() bool {
	i := s.status.Runtime.Plan.Current()
	return s.hangs && i >= 0 && s.status.Runtime.Plan.Tasks[i].Kind == fleet.TaskPull && s.status.Runtime.Plan.Tasks[i].State == fleet.TaskRunning &&
		s.status.Runtime.Plan.Tasks[i].Deadline.After(s.now)
}

// abandoned reports whether kurad stopped what served, and leaves it at that although
// nothing keeps it from putting that or its successor in its place (C14).
func (s *sim) abandoned() bool {
	able := s.tasks == "" && !s.unreadable && !s.lag && !s.crash && s.late == nil && s.intent.Deleting == nil
	st := s.status
	if i := st.Runtime.Plan.Current(); i >= 0 && st.Runtime.Plan.Tasks[i].NotBefore != nil && !st.Runtime.Plan.Tasks[i].NotBefore.After(s.now.Add(5*time.Second)) {
		return false // it is tried again at once
	}
	waits := st.Outage.NextAttempt != nil && st.Outage.NextAttempt.After(s.now) || st.Runtime.EffectsUntil != nil && st.Runtime.EffectsUntil.After(s.now)
	down := func(service string) bool { return s.stopped[service] && s.last(service).id != "" }
	return able && !waits && (down("cache") || down("proxy"))
}

// changed is Output.Changed, which mostly has nothing to say, in less time.
func changed(o Output) bool {
	if o.stored != nil && !o.Remove && o.Latest == nil && len(o.Events) == 0 && reflect.DeepEqual(*o.stored, o.Status) {
		return false
	}
	return o.Changed()
}

// digest is a state's key, short.
type digest [16]byte

func (s *sim) digest() digest {
	sum := sha256.Sum256(s.key())
	return digest(sum[:16])
}

// explorer visits states and collects complaints.
type explorer struct {
	without Rule
	depth   int // disturbances
	moves   []move

	states      map[digest]bool
	healed      map[digest]bool // a healthy world was seen to lead from there to the end
	kept        map[digest]bool // and one in which what is declared cannot be had, to what served last
	transitions int
	turns       int
	complaints  []string
	at          *node
}

func newExplorer(depth int) *explorer {
	return &explorer{depth: depth, states: map[digest]bool{}, healed: map[digest]bool{}, kept: map[digest]bool{}}
}

// node is a state and how it was reached.
type node struct {
	s    *sim
	from *node
	what string
}

func (n *node) trail() string {
	var path []string
	for ; n != nil && n.what != ""; n = n.from {
		path = append(path, n.what)
	}
	slices.Reverse(path)
	return strings.Join(path, " → ")
}

func (x *explorer) complain(s *sim, format string, args ...any) {
	if len(x.complaints) >= 3 {
		return
	}
	var brief fleet.Status
	if s.status != nil {
		brief = s.status.Clone()
		brief.Conditions = nil
	}
	st, _ := json.Marshal(brief)
	x.complaints = append(x.complaints, fmt.Sprintf("%s\n  trail: %s\n  stored status: %s", fmt.Sprintf(format, args...), x.at.trail(), st))
}

// explore visits every state that turns and at most x.depth disturbances, at any points,
// lead to. Layers of equal disturbance are visited one after the other, so that each
// state is met with the most disturbances left; what nothing disturbs any more is
// visited at once and forgotten.
func (x *explorer) explore(starts ...*node) {
	x.moves = moves(starts[0].s.variant)
	layers := make([][]*node, x.depth+1)
	last := map[digest]bool{}
	visit := func(n *node, depth int) {
		seen := x.states
		if depth == x.depth {
			seen = last
		}
		for k := n.s.digest(); !seen[k]; k = n.s.digest() {
			if depth == x.depth && x.states[k] {
				return // met before, with disturbances left
			}
			seen[k] = true
			if depth < x.depth {
				layers[depth] = append(layers[depth], n)
				return
			}
			n = x.turn(n)
			if n == nil {
				return
			}
		}
	}
	for _, n := range starts {
		visit(n, 0)
	}
	for depth := range x.depth {
		for i := 0; i < len(layers[depth]) && len(x.complaints) == 0; i++ {
			n := layers[depth][i]
			layers[depth][i] = nil
			if next := x.turn(n); next != nil {
				visit(next, depth)
			}
			if n.s.removed {
				continue
			}
			for _, m := range x.moves {
				if c := n.s.clone(); m.do(c) {
					x.transitions++
					visit(&node{c, n, "[" + m.name + "]"}, depth+1)
				}
			}
		}
	}
	for k := range last {
		x.states[k] = true
	}
}

// turn takes one step from the state, after it was seen to heal. nil: it has ended, or
// there is a complaint.
func (x *explorer) turn(n *node) *node {
	if len(x.complaints) > 0 {
		return nil
	}
	x.heals(n)
	x.keeps(n)
	if n.s.removed || len(x.complaints) > 0 {
		return nil
	}
	x.transitions++
	x.at = n
	c := n.s.clone()
	what, _ := c.step(x)
	return &node{c, n, what}
}

// heals drives the state in a healthy world without holds to its fixed point: active on
// the latest image, or gone.
func (x *explorer) heals(from *node) {
	s := from.s.clone()
	s.heal()
	var path []digest
	x.at = &node{s, from, "healthy:"}
	for i := 0; ; i++ {
		k := s.digest()
		if x.healed[k] {
			break
		}
		path = append(path, k)
		if s.removed {
			break
		}
		what, idle := s.step(x)
		x.at = &node{s, x.at, what}
		if len(x.complaints) > 0 {
			return
		}
		if idle && s.ended() {
			break
		}
		if i > 400 || idle && what == "nothing" {
			x.complain(s, "a healthy world does not lead to the end: verdict %q", verdictOf(s))
			return
		}
	}
	for _, k := range path {
		x.healed[k] = true
	}
}

// keeps drives the state in a world that is healthy but for what is declared, which cannot
// be had, or whose pull does not end: what served last runs whenever there is nothing left to do now (C14).
func (x *explorer) keeps(from *node) {
	s := from.s.clone()
	if s.kube || s.intent.Deleting != nil || len(x.complaints) > 0 {
		return
	}
	s.heal()
	s.noImage, s.hangs = true, s.status != nil && preparing(s.status.Runtime.Plan)
	var path []digest
	x.at = &node{s, from, "healthy, but it cannot be had:"}
	for range 80 {
		k := s.digest()
		if x.kept[k] {
			break
		}
		path = append(path, k)
		before := s.clone()
		what, idle := s.step(x)
		x.at = &node{s, x.at, what}
		if len(x.complaints) > 0 {
			return
		}
		if !idle {
			continue
		}
		last := before.carrier()
		if last.id == "" || last.state == fleet.ContainerRunning {
			break
		}
		most := maxRestart
		if p := before.status.Runtime.Plan; p != nil && preparing(p) && before.status.Crashes[before.carrier().service].Quick >= fleet.CrashLoopFrom {
			most = p.Tasks[p.Current()].Timeout() // what does not stay up waits for the pull of what may mend it
		}
		if s.now.Sub(before.now) > most && before.late == nil && (before.status.Runtime.EffectsUntil == nil || !before.status.Runtime.EffectsUntil.After(before.now)) || what == "nothing" {
			x.complain(before, "what served last is down, and nobody starts it for %s", s.now.Sub(before.now))
			return
		}
	}
	for _, k := range path {
		x.kept[k] = true
	}
}

func verdictOf(s *sim) fleet.Verdict {
	if s.status == nil {
		return ""
	}
	return s.status.Verdict
}

// ended reports whether the server is as it was declared, with nothing left over.
func (s *sim) ended() bool {
	if s.intent.Deleting != nil {
		return s.removed
	}
	d := s.desired()
	if s.toy && s.mark != s.intent.ImageTag || s.zone && !s.zoneEnded() {
		return false
	}
	if s.status == nil || s.status.Verdict != fleet.VerdictConverged || s.status.Status != fleet.StatusActive ||
		s.status.ServingImageTag != s.intent.ImageTag || s.status.PublishedURL != d.URL || s.latest.Status.Open() ||
		s.status.Runtime.Plan != nil || s.status.Admitted || s.late != nil {
		return false
	}
	if s.kube {
		return s.resourceEnded(d)
	}
	if len(s.boxes) != len(d.Containers.Services) {
		return false
	}
	for _, doc := range d.Containers.Services {
		if b := s.boxes[doc.Name]; b.state != fleet.ContainerRunning || b.dig != doc.Digest {
			return false
		}
	}
	return true
}

// settledOn is a server that was brought to v1 and has settled.
func settledOn(v variant) *sim {
	s := newSim(v)
	s.settle()
	return s
}

// settle takes turns until the server is as it was declared.
func (s *sim) settle() {
	x := newExplorer(0)
	for i := 0; i < 200 && !s.ended(); i++ {
		s.step(x)
	}
}

// starts are the states that an exploration begins with.
func starts(v variant) []*node {
	refused := settledOn(v) // serves v1, and v2 was refused
	refused.declare("v2", "")
	refused.tasks = fleet.ClassRefused
	x := newExplorer(0)
	for range 4 {
		refused.step(x)
	}
	renamed := settledOn(v) // the new host does not answer yet
	renamed.doc, renamed.endpoint = 2, fleet.ReasonConnectFailed
	for range 12 {
		renamed.step(x)
	}
	lost := newSim(v) // its record, of a redeploy
	if lost.latest.RestartMark = "r"; v.kube {
		lost.create(object{spec: lost.desired().Revision, image: imageOf("v1/"), observed: imageOf("v1/")})
	} else {
		lost.put(carrierName, "cache", "v1", "c/"+lost.desired().Revision, fleet.ContainerRunning, false)
	}
	lost.latest.RestartMark, lost.unreadable = "", true
	nodes := []*node{
		{s: newSim(v), what: "nothing"}, {s: settledOn(v), what: "settled on v1"},
		{s: refused, what: "serves v1, v2 was refused"}, {s: renamed, what: "a new host does not answer yet"},
		{s: lost, what: "declared anew, unread"},
	}
	if v.kube {
		nodes = append(nodes, &node{s: adoptedOn(v, false), what: "taken over"}, &node{s: adoptedOn(v, true), what: "taken over, with differences"},
			&node{s: adoptedUnseen(), what: "taken over, and not in the watch yet"})
	}
	return nodes
}

// efforts say how far the explorations go; they differ by build tags.
type efforts struct {
	depth     int // disturbances, of any kind
	bothDepth int // those of a server with two services and a global host
	toyDepth  int // those of a server with a track beside the runtime
	zoneDepth int // those of a server whose records kurad publishes
	turns     int // of every combination in each world, before it heals
	worlds    int // in which every combination is tried
	// kubeWorlds are those of a KuraInstance, of which there are more combinations.
	kubeWorlds int
}

func TestExploration_everyStateHeals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		of    variant
		depth int
	}{
		{"one service", variant{}, effort.depth},
		{"two services and a global host", variant{helper: true, ports: true, global: true}, effort.bothDepth},
		{"a KuraInstance", variant{kube: true}, effort.depth},
		{"a KuraInstance and a global host", variant{kube: true, global: true}, effort.bothDepth},
		{"one service and a toy track", variant{toy: true}, effort.toyDepth},
		{"a KuraInstance and a toy track", variant{kube: true, toy: true}, effort.toyDepth},
		{"one service whose records kurad publishes", variant{zone: true}, 1},
		{"one service, its records and a global host", variant{zone: true, global: true}, effort.zoneDepth},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newExplorer(c.depth)
			start := time.Now()
			x.explore(starts(c.of)...)
			t.Logf("at most %d of %d kinds of disturbances at any points: %d states visited by %d transitions with %d turns in %s",
				c.depth, len(x.moves), len(x.states), x.transitions, x.turns, time.Since(start).Round(time.Millisecond))
			for _, complaint := range x.complaints {
				t.Error(complaint)
			}
		})
	}
}
