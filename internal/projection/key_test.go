package projection

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// key names a state of the model up to what makes no difference: times count as passed
// or not, counts up to the last one that matters, ids by what they are attached to, and
// the reasons of an endpoint that does not answer are one, unless they are asked for.
func (s *sim) key() []byte {
	b := make([]byte, 0, 512)
	w := func(parts ...any) {
		for _, p := range parts {
			switch v := p.(type) {
			case string:
				b = append(b, v...)
			case bool:
				b = strconv.AppendBool(b, v)
			case int:
				b = strconv.AppendInt(b, int64(v), 10)
			default:
				panic(fmt.Sprintf("no text for %T", p))
			}
			b = append(b, ',')
		}
		b = append(b, ';')
	}
	passed := func(t *time.Time) string {
		switch {
		case t == nil:
			return "-"
		case t.After(s.now):
			return "later"
		default:
			return "past"
		}
	}
	f := s.faults
	if f.endpoint != "" && f.endpoint != fleet.ReasonNotChecked && !s.exact {
		f.endpoint = fleet.ReasonTimeout
	}
	w(f.unreadable, string(f.endpoint), string(f.ownership), string(f.tasks), f.paused, f.observe, f.full, f.crash, f.lag, f.globalDown, f.allPaused, s.silent, s.doc, s.removed, f.noImage, f.noStart, f.hangs, s.stopped["cache"], s.stopped["proxy"], s.intent.Deleting != nil, s.late != nil, s.seenFails, min(s.quick, 4), string(s.latest.Status), s.latest.RestartMark != "", s.forgotten())
	d := s.desired()
	if s.kube {
		s.kubeKey(w, d)
	}
	if s.toy {
		s.toyKey(w, passed)
	}
	if s.zone {
		s.zoneKey(w, passed)
	}
	box := func(name string, tag, dig string, state fleet.ContainerState, foreign bool) {
		digest := "other"
		for _, doc := range d.Containers.Services {
			if doc.Digest == dig {
				digest = "same"
			}
		}
		w(name, tag == s.intent.ImageTag, tag == "", digest, string(state), foreign)
	}
	for _, name := range slices.Sorted(maps.Keys(s.boxes)) {
		x := s.boxes[name]
		box(name, x.tag, x.dig, x.state, x.foreign)
	}
	w("seen", s.seenBegun.IsZero())
	for _, c := range s.seen {
		if !s.lag {
			break
		}
		tag, _ := fleet.TagOf(c.Image)
		box(c.Name, tag, c.Digest, c.State, c.Foreign != "")
	}
	st := s.status
	if st == nil {
		return b
	}
	fresh := st.Runtime.EffectsUntil == nil || !s.seenBegun.Before(*st.Runtime.EffectsUntil)
	w(string(st.Status), string(st.Reason), string(st.Verdict), st.Generation == s.intent.Generation, st.Revision == d.Revision,
		st.ServingImageTag == s.intent.ImageTag, st.ServingImageTag == "", st.PublishedURL == "", st.PublishedURL == d.URL,
		st.Settled == fleet.Settled{Generation: s.intent.Generation, Revision: d.Revision},
		min(st.Runtime.Attempts, 3), passed(st.Runtime.NextAttempt), passed(st.ConvergedAt), fresh, passed(st.Runtime.EffectsUntil),
		st.Admitted, st.VolumesRemoved, string(st.Clock.Cause), st.Clock.Since != nil, st.Clock.Expired, st.Runtime.Refusal != nil, st.Runtime.Failing != nil, st.Outage.Failing != nil,
		len(st.Aliases) > 0, len(st.Containers), len(st.Outage.Interrupted), min(st.Outage.Attempts, 2), passed(st.Outage.NextAttempt))
	for _, a := range st.Aliases {
		w(passed(a.Until), a.Ended)
	}
	for _, service := range slices.Sorted(maps.Keys(st.Crashes)) {
		c := st.Crashes[service]
		w(service, min(c.Quick, 4), c.RunningSince != nil)
	}
	for _, h := range st.Holds {
		w(string(h.Kind))
	}
	if p := st.Runtime.Plan; p != nil {
		w(string(p.Kind), string(p.Cause), p.Generation == s.intent.Generation, p.Revision == d.Revision, p.Deadline.After(s.now))
		for _, t := range p.Tasks {
			class := fleet.Class("")
			if t.Outcome != nil {
				class = t.Outcome.Class
			}
			w(string(t.Kind), t.Name, string(t.State), string(class), t.Noted, passed(t.NotBefore), t.ContainerID != "")
		}
	}
	return b
}
