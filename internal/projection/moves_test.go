package projection

import (
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// probeReasons are those of an endpoint that does not answer (R1).
var probeReasons = []fleet.Reason{
	fleet.ReasonNotResolvable, fleet.ReasonConnectFailed, fleet.ReasonTLSNotReady, fleet.ReasonHTTPNotReady, fleet.ReasonTimeout, fleet.ReasonNotChecked,
}

// move is one thing that may happen to the world, or to kurad, between two steps.
type move struct {
	name string
	do   func(*sim) bool // false: it makes no sense here
}

func moves(v variant) []move {
	set := func(name string, do func(*sim)) move {
		return move{name, func(s *sim) bool {
			before, fails, at, now := s.faults, s.seenFails, s.seenBegun, s.now
			do(s)
			return s.faults != before || s.seenFails != fails || s.seenBegun != at || s.now != now
		}}
	}
	ms := []move{
		set("reads stop answering", func(s *sim) { s.unreadable = true; s.look() }),
		set("reads answer", func(s *sim) { s.unreadable = false; s.look() }),
		set("listings lag", func(s *sim) { s.lag = true }),
		set("listings do not lag", func(s *sim) { s.lag = false; s.look() }),
		set("the endpoint answers", func(s *sim) { s.endpoint = "" }),
		set("the global endpoint does not answer", func(s *sim) { s.globalDown = s.global }),
		set("the global endpoint answers", func(s *sim) { s.globalDown = false }),
		set("records are ours", func(s *sim) { s.ownership = fleet.OwnershipOurs }),
		set("records are foreign", func(s *sim) { s.ownership = fleet.OwnershipForeign }),
		set("records cannot be read", func(s *sim) { s.ownership = fleet.OwnershipUnknown }),
		set("tasks succeed", func(s *sim) { s.tasks = "" }),
		set("tasks are refused", func(s *sim) { s.tasks = fleet.ClassRefused }),
		set("tasks fail transiently", func(s *sim) { s.tasks = fleet.ClassTransient }),
		set("tasks are not answered", func(s *sim) { s.tasks = unanswered }),
		set("paused", func(s *sim) { s.paused = true }),
		set("resumed", func(s *sim) { s.paused = false }),
		set("the region observes", func(s *sim) { s.observe = true }),
		set("the region heals", func(s *sim) { s.observe = false }),
		set("the region is full", func(s *sim) { s.full = true }),
		set("the region has room", func(s *sim) { s.full = false }),
		set("twenty minutes pass", func(s *sim) { s.wait(s.now.Add(20 * time.Minute)) }),
		{"v2 is declared", func(s *sim) bool { s.declare("v2", ""); return s.intent.Deleting == nil }},
		{"v1 is declared", func(s *sim) bool { s.declare("v1", ""); return s.intent.Deleting == nil }},
		{"labels are declared", func(s *sim) bool { s.declare(s.intent.ImageTag, ""); return s.intent.Deleting == nil }},
		{"redeploy", func(s *sim) bool {
			s.declare(s.intent.ImageTag, "r")
			return s.intent.Deleting == nil
		}},
		{"the region's document changes", func(s *sim) bool { s.doc, s.quick = s.doc+1, 0; return s.doc <= 2 }},
		{"destroy is declared", func(s *sim) bool {
			if s.intent.Deleting != nil {
				return false
			}
			at := s.now
			s.intent.Deleting = &at
			s.intent.Generation++
			return true
		}},
		{"kurad restarts", func(s *sim) bool {
			was := s.silent
			s.silent = s.status != nil
			return s.silent && !was
		}},
		{"kurad dies after a claim", func(s *sim) bool { return s.die(false) }},
		{"kurad dies after an effect", func(s *sim) bool { return s.die(true) }},
	}
	for _, r := range probeReasons {
		ms = append(ms, set("the endpoint: "+string(r), func(s *sim) { s.endpoint = r }))
	}
	if v.zone {
		ms = append(ms, containerMoves(set)...)
		ms = slices.DeleteFunc(ms, func(m move) bool { return !slices.Contains(besideZone, m.name) })
		return append(ms, zoneMoves(v, set)...)
	}
	if v.toy {
		ms = append(ms, toyMoves(set)...)
	}
	if v.kube {
		return append(ms, kubeMoves(set)...)
	}
	return append(ms, containerMoves(set)...)
}

// besideZone are the moves that are explored together with those of a zone.
var besideZone = []string{
	"reads stop answering", "reads answer", "the endpoint answers", "the endpoint: ConnectFailed",
	"the global endpoint does not answer", "the global endpoint answers", "tasks are refused", "tasks succeed",
	"paused", "resumed", "the region observes", "the region heals", "twenty minutes pass", "v2 is declared",
	"the region's document changes", "destroy is declared", "kurad restarts", "a container is killed",
}

// containerMoves are what may happen to an engine.
func containerMoves(set func(string, func(*sim)) move) []move {
	const carrier = carrierName
	return []move{
		set("what starts crashes", func(s *sim) { s.crash = true }),
		set("what starts stays", func(s *sim) { s.crash = false }),
		set("what is declared cannot be had", func(s *sim) { s.noImage = true }),
		set("what is declared can be had", func(s *sim) { s.noImage = false }),
		set("what is declared cannot be started", func(s *sim) { s.noStart = true }),
		set("what is declared can be started", func(s *sim) { s.noStart = false }),
		{"a container is renamed by hand", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if !ok || b.foreign {
				return false
			}
			delete(s.boxes, carrier)
			s.boxes["by-hand"] = b
			return true
		}},
		{"two containers are exchanged by hand", func(s *sim) bool {
			a, b := s.boxes[carrier], s.boxes["kura-acme-eu-proxy"]
			if a.id == "" || b.id == "" || a.foreign {
				return false
			}
			s.boxes[carrier], s.boxes["kura-acme-eu-proxy"] = b, a
			return true
		}},
		{"a container is paused by hand", func(s *sim) bool {
			b := s.boxes[carrier]
			if b.state != fleet.ContainerRunning || b.foreign {
				return false
			}
			b.state = fleet.ContainerPaused
			s.boxes[carrier] = b
			return true
		}},
		{"a container is removed behind its back", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if b.state == fleet.ContainerExited {
				s.quick = max(0, s.quick-1) // its exit may never have been seen
			}
			delete(s.boxes, carrier)
			return ok && !b.foreign
		}},
		{"a container is killed", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if !ok || b.state != fleet.ContainerRunning {
				return false
			}
			b.state, b.finished = fleet.ContainerExited, s.now
			s.boxes[carrier] = b
			return true
		}},
		{"another image runs under the name", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if !ok || b.foreign {
				return false
			}
			b.tag, b.dig = "v0", "c/v0"
			s.boxes[carrier] = b
			return true
		}},
		{"an image without a tag runs under the name", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if !ok || b.foreign {
				return false
			}
			b.tag, b.dig = "", "c/none"
			s.boxes[carrier] = b
			return true
		}},
		{"a foreign container takes the name", func(s *sim) bool {
			if _, ok := s.boxes[carrier]; ok {
				return false
			}
			s.boxes[carrier] = box{id: "foreign", tag: "v1", state: fleet.ContainerRunning, foreign: true}
			return true
		}},
		{"the foreign container goes", func(s *sim) bool {
			b, ok := s.boxes[carrier]
			if ok && b.foreign {
				delete(s.boxes, carrier)
			}
			return ok && b.foreign
		}},
	}
}

// die claims the current task and loses its outcome, with or without its effect.
func (s *sim) die(effect bool) bool {
	if s.status == nil || s.status.Runtime.Plan.Runnable(s.now) < 0 || s.tasks != "" || s.unreadable {
		return false
	}
	st := s.status.Clone()
	i := st.Runtime.Plan.Runnable(s.now)
	task := st.Runtime.Plan.Claim(i, s.now.Add(st.Runtime.Plan.Tasks[i].Timeout()))
	s.status = &st
	if effect {
		s.effect(task, &fleet.Outcome{})
	}
	return true
}
