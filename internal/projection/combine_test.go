package projection

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// dimension is one aspect in which stored states or worlds differ; to set it is what
// each of its values does.
type dimension struct {
	name   string
	values []value
}

type value struct {
	name string
	set  func(*sim)
}

func (s *sim) put(name, service, tag, dig string, state fleet.ContainerState, foreign bool) {
	s.nextID++
	s.boxes[name] = box{
		id: fmt.Sprintf("id%d", s.nextID), service: service, tag: tag, dig: dig, state: state, foreign: foreign,
		started: s.now.Add(-time.Hour), finished: s.now.Add(-time.Minute),
	}
}

// stored are the dimensions of what kurad has stored.
func stored(v variant) []dimension {
	status := func(v fleet.ServerStatus, reason fleet.Reason) value {
		return value{string(v), func(s *sim) { s.status.Status, s.status.Reason = v, reason }}
	}
	deployment := func(v fleet.DeploymentStatus) value {
		return value{string(v), func(s *sim) { s.latest.Status = v }}
	}
	served := func(tag, url string) value {
		return value{fmt.Sprintf("served %q at %q", tag, url), func(s *sim) {
			s.status.ServingImageTag, s.status.PublishedURL = tag, url
			s.status.Revision = s.desired().Revision // which names the hosts that stay routed
		}}
	}
	const declared, old = "https://acme-eu.kura.test:1", "https://old-eu.kura.test:1"
	none := value{"", func(*sim) {}}
	at := epoch.Add(-time.Minute)
	account := dimension{"account", []value{
		none,
		{"settled", func(s *sim) { s.status.Settled = fleet.Settled{Generation: 1, Revision: s.desired().Revision} }},
		{"admitted", func(s *sim) { s.status.Admitted, s.status.Runtime.Attempts, s.status.Runtime.Plans = true, 2, 2 }},
		{"refused", func(s *sim) {
			s.status.Runtime.Refusal = &fleet.Refusal{Reason: fleet.ReasonCreateFailed, Message: "no", Generation: 1, Revision: s.desired().Revision, At: at}
		}},
		{"stalled", func(s *sim) { s.status.Clock = fleet.StallClock{Cause: fleet.CauseRollOut, Expired: true, Since: &at} }},
	}}
	if v.kube {
		account.values = append(account.values, value{"an alias that is over", func(s *sim) {
			s.status.Aliases = []fleet.Alias{{Host: "alias-eu.kura.test", Until: &at}}
			s.status.Revision = s.desired().Revision
		}})
	} else {
		account.values = append(account.values, value{"in a crash loop", func(s *sim) {
			s.status.Crashes = map[string]fleet.CrashCount{"cache": {Quick: 3, LastFinished: at, SeenAt: at}}
		}})
	}
	return []dimension{
		{"status", []value{
			status(fleet.StatusProvisioning, ""), status(fleet.StatusActive, ""),
			status(fleet.StatusFailed, fleet.ReasonCreateFailed), status(fleet.StatusDestroying, fleet.ReasonDeleting),
		}},
		{"deployment", []value{
			deployment(fleet.DeploymentPending), deployment(fleet.DeploymentRunning), deployment(fleet.DeploymentSucceeded),
			deployment(fleet.DeploymentFailed), deployment(fleet.DeploymentCancelled), deployment(fleet.DeploymentSuperseded),
		}},
		{"served", []value{served("", ""), served("v1", declared), served("v1", old), served("v0", declared), served("v0", old)}},
		account,
		{"generation", []value{
			none,
			{"a newer one was declared", func(s *sim) { s.intent.Generation++ }},
			{"a newer image was declared", func(s *sim) {
				before := s.latest.Status
				s.declare("v2", "")
				s.latest.Status = before
			}},
		}},
	}
}

// instances is what the runtime holds.
func instances(v variant) dimension {
	if v.kube {
		return objects()
	}
	const name = "kura-acme-eu-cache"
	one := func(what, tag, dig string, state fleet.ContainerState) value {
		return value{what, func(s *sim) { s.put(name, "cache", tag, dig, state, false) }}
	}
	return dimension{"instance", []value{
		{"absent", func(*sim) {}},
		one("as desired", "v1", "c/v1//0", fleet.ContainerRunning),
		one("exited", "v1", "c/v1//0", fleet.ContainerExited),
		one("never started", "v1", "c/v1//0", fleet.ContainerCreated),
		one("another image", "v0", "c/v0//0", fleet.ContainerRunning),
		one("another document", "v1", "c/v1//9", fleet.ContainerRunning),
		one("no tag", "", "c/none", fleet.ContainerRunning),
		{"foreign", func(s *sim) { s.put(name, "", "v1", "", fleet.ContainerRunning, true) }},
		{"half replaced", func(s *sim) {
			s.put(name+"-old", "cache", "v0", "c/v0//0", fleet.ContainerExited, false)
			s.put(name+"-next", "cache", "v1", "c/v1//0", fleet.ContainerCreated, false)
		}},
		{"as desired with leftovers", func(s *sim) {
			s.put(name, "cache", "v1", "c/v1//0", fleet.ContainerRunning, false)
			s.put(name+"-old", "cache", "v0", "c/v0//0", fleet.ContainerExited, false)
		}},
		{"as desired with a service that left the document", func(s *sim) {
			s.put(name, "cache", "v1", "c/v1//0", fleet.ContainerRunning, false)
			s.put("kura-acme-eu-gone", "gone", "v1", "g/1", fleet.ContainerRunning, false)
		}},
	}}
}

// worlds are what is not as it should be, the most telling first: efforts take some.
func worlds(v variant) []value {
	ws := []value{{"healthy", func(*sim) {}}}
	fault := func(name string, set func(*faults)) {
		ws = append(ws, value{name, func(s *sim) { set(&s.faults) }})
	}
	fault("unreadable", func(f *faults) { f.unreadable = true })
	fault("tasks refused", func(f *faults) { f.tasks = fleet.ClassRefused })
	fault("paused", func(f *faults) { f.paused = true })
	if v.kube {
		fault("schema too old", func(f *faults) { f.old = true })
	}
	fault("endpoint down", func(f *faults) { f.endpoint = fleet.ReasonConnectFailed })
	fault("owner foreign", func(f *faults) { f.ownership = fleet.OwnershipForeign })
	fault("owner unknown", func(f *faults) { f.ownership = fleet.OwnershipUnknown })
	fault("observed only", func(f *faults) { f.observe = true })
	fault("region full", func(f *faults) { f.full = true })
	ws = append(ws, value{"just started", func(s *sim) { s.silent = true }})
	ws = append(ws, value{"listings lag", func(s *sim) { s.look(); s.lag = true }})
	fault("tasks transient", func(f *faults) { f.tasks = fleet.ClassTransient })
	fault("tasks unanswered", func(f *faults) { f.tasks = unanswered })
	if v.kube {
		fault("controller stuck", func(f *faults) { f.stuck = true })
		fault("finalizer", func(f *faults) { f.finalizer = true })
	} else {
		fault("crashing", func(f *faults) { f.crash = true })
	}
	fault("owner ours", func(f *faults) { f.ownership = fleet.OwnershipOurs })
	fault("kurad is paused", func(f *faults) { f.allPaused = true })
	fault("global endpoint down", func(f *faults) { f.globalDown = true })
	fault("endpoint not probed", func(f *faults) { f.endpoint = fleet.ReasonNotChecked })
	for _, r := range []fleet.Reason{fleet.ReasonNotResolvable, fleet.ReasonTLSNotReady, fleet.ReasonHTTPNotReady, fleet.ReasonTimeout} {
		fault("endpoint "+string(r), func(f *faults) { f.endpoint = r })
	}
	return ws
}

// contradicts reports whether no turn ever stores such a state (P20).
func (s *sim) contradicts() bool {
	st := s.status
	served := st.ServingImageTag != ""
	switch st.Status {
	case fleet.StatusActive:
		if !served || st.Runtime.Refusal != nil && st.Settled.Generation != 0 {
			return true
		}
	case fleet.StatusDestroying:
		if st.PublishedURL != "" || s.latest.Status.Open() || st.Runtime.Refusal != nil || st.Crashes != nil || st.Clock.Cause != "" || st.Admitted {
			return true
		}
	case fleet.StatusProvisioning, fleet.StatusFailed, fleet.StatusDestroyed:
	}
	if st.Runtime.Refusal != nil && (st.Status != fleet.StatusFailed || s.latest.Status.Open()) {
		return true
	}
	settled := st.Settled.Generation != 0
	return settled && (!served || st.ServingImageTag != "v1" || s.intent.ImageTag == "v1" && s.latest.Status.Open()) && st.Status != fleet.StatusDestroying
}

// combinations starts from every combination of the dimensions, whether or not anything
// leads there, takes some turns in that world, and then heals it.
func (x *explorer) combinations(v variant, worlds []value) {
	dims := append(stored(v), instances(v))
	seen := map[digest]bool{}
	var walk func(i int, base func(*sim), what string)
	walk = func(i int, base func(*sim), what string) {
		if len(x.complaints) > 0 {
			return
		}
		if i < len(dims) {
			for _, value := range dims[i].values {
				walk(i+1, func(s *sim) { base(s); value.set(s) }, what+", "+value.name)
			}
			return
		}
		for _, value := range worlds {
			s := newSim(v)
			s.now, s.exact = epoch.Add(time.Hour), true
			s.status = &fleet.Status{Generation: 1, Revision: s.desired().Revision, Verdict: fleet.VerdictProgressing}
			for _, ct := range conditionOrder {
				reason := fleet.ReasonNotObservedYet
				if ct == fleet.ConditionDNSOwned {
					reason = fleet.ReasonOwnershipUnknown
				}
				s.status.Conditions = append(s.status.Conditions, fleet.Condition{Type: ct, Status: fleet.Unknown, Reason: reason, LastTransitionTime: epoch})
			}
			base(s)
			if s.contradicts() {
				return
			}
			if s.status.Status == fleet.StatusDestroying {
				at := s.now
				s.intent.Deleting = &at
			}
			value.set(s)
			n := &node{s: s, what: what + ", " + value.name}
			for range effort.turns {
				k := s.digest()
				if n == nil || seen[k] {
					break
				}
				seen[k] = true
				if n = x.turn(n); n != nil {
					s = n.s
				}
			}
		}
	}
	walk(0, func(*sim) {}, "stored")
	for k := range seen {
		x.states[k] = true
	}
}

func TestExploration_everyCombinationHeals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		of     variant
		worlds int
	}{
		{"containers with a global host", variant{global: true}, effort.worlds},
		{"a KuraInstance", variant{kube: true}, effort.kubeWorlds},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newExplorer(0)
			start := time.Now()
			in := worlds(c.of)[:c.worlds]
			x.combinations(c.of, in)
			t.Logf("every combination in %d worlds, and what follows in %d turns: %d states visited by %d transitions with %d turns in %s",
				len(in), effort.turns, len(x.states), x.transitions, x.turns, time.Since(start).Round(time.Millisecond))
			for _, complaint := range x.complaints {
				t.Error(complaint)
			}
		})
	}
}
