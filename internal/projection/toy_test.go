package projection

import (
	"reflect"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// toyName is that of a track of the model: a mark somewhere that is to be the version declared.
const toyName fleet.Track = "toy"

type toyTrack struct{}

// toySeen is what an observer of the mark saw.
type toySeen struct {
	begun  time.Time
	failed bool
	mark   string
}

func (toyTrack) Name() fleet.Track { return toyName }

func (toyTrack) Look(in Input) View {
	seen, _ := in.Seen.Tracks[toyName].(toySeen)
	want := in.Intent.ImageTag
	if in.Intent.Deleting != nil {
		want = ""
	}
	v := View{Revision: want, Begun: seen.begun, Gone: seen.mark == "", Cause: fleet.CauseManifest}
	if seen.failed {
		v.Failure = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "no answer"}
	}
	if seen.mark != want {
		v.Steps = []fleet.Effect{{Kind: "toy", Name: want}}
	}
	return v
}

// toyWorld is where the mark is, and what was seen of it.
type toyWorld struct {
	mark     string
	toyLater *fleet.Task // an unanswered task whose effect still lands
	toySeen  toySeen
}

// toyFaults are what is not as it should be there.
type toyFaults struct {
	toyBlind bool        // it cannot be read
	toyTasks fleet.Class // "" answers ok; "unanswered" lands later
}

func (s *sim) lookAtToy() {
	if s.toyLater != nil && !s.toyLater.Deadline.After(s.now) {
		s.mark, s.toyLater = s.toyLater.Name, nil
	}
	s.toySeen.failed = s.toyBlind
	if !s.toyBlind {
		s.toySeen = toySeen{begun: s.now, mark: s.mark}
	}
}

func (s *sim) seesToy(in *Input) {
	if s.toy {
		in.Tracks, in.Seen.Tracks = []Track{toyTrack{}}, map[fleet.Track]any{toyName: s.toySeen}
	}
}

// toyActs runs the current task of the toy's plan, if it is due.
func (s *sim) toyActs() bool {
	return s.actsOn(toyName, s.toyTasks, &s.toyLater, func(task fleet.Task) fleet.Reason { s.mark = task.Name; return "" })
}

// actsOn runs the current task of a track's plan, if it is due. The answer is of that class; of one
// that is not answered the effect is left to land later. effect says why it is refused.
func (s *sim) actsOn(track fleet.Track, class fleet.Class, later **fleet.Task, effect func(fleet.Task) fleet.Reason) bool {
	p := s.status.PlanOf(track)
	i := p.Current()
	if i < 0 || p.Runnable(s.now) < 0 && p.Tasks[i].State != fleet.TaskRunning {
		return false
	}
	st := s.status.Clone()
	p = st.PlanOf(track)
	task := p.Claim(i, s.now.Add(p.Tasks[i].Timeout()))
	s.now = s.now.Add(100 * time.Millisecond)
	o := fleet.Outcome{Class: fleet.ClassOK, Answered: true, At: s.now}
	switch class {
	case fleet.ClassRefused:
		o.Class, o.Reason, o.Message = fleet.ClassRefused, fleet.ReasonCreateFailed, "refused"
	case fleet.ClassTransient:
		o.Class, o.Reason, o.Message = fleet.ClassTransient, fleet.ReasonRuntimeError, "not today"
	case unanswered:
		o.Class, o.Answered, o.Reason = fleet.ClassTransient, false, fleet.ReasonEndpointUnreachable
		*later = &task
	default:
		*later = nil
		if o.Reason = effect(task); o.Reason != "" {
			o.Class, o.Message = fleet.ClassRefused, "it is somebody else's"
		}
	}
	p.Record(i, o)
	s.status = &st
	return true
}

func toyMoves(set func(string, func(*sim)) move) []move {
	return []move{
		set("the toy's tasks are refused", func(s *sim) { s.toyTasks = fleet.ClassRefused }),
		set("the toy's tasks fail transiently", func(s *sim) { s.toyTasks = fleet.ClassTransient }),
		set("the toy's tasks are not answered", func(s *sim) { s.toyTasks = unanswered }),
		set("the toy's tasks succeed", func(s *sim) { s.toyTasks = "" }),
		set("the toy cannot be read", func(s *sim) { s.toyBlind = true }),
		set("the toy can be read", func(s *sim) { s.toyBlind = false }),
		{"the toy is changed by hand", func(s *sim) bool { s.mark += "!"; return len(s.mark) < 4 }},
		{"the toy's task runs first", func(s *sim) bool { return s.status != nil && len(s.status.Holds) == 0 && s.toyActs() }},
	}
}

func (s *sim) toyKey(w func(...any), passed func(*time.Time) string) {
	w("toy", s.mark == s.intent.ImageTag, s.mark == "", s.toyBlind, string(s.toyTasks), s.toyLater != nil, s.toySeen.begun.IsZero())
	if s.status == nil || s.status.Tracks[toyName] == nil {
		return
	}
	s.workKey(w, passed, s.status.Tracks[toyName], s.intent.ImageTag)
}

// workKey is what tells states of a track's work apart.
func (s *sim) workKey(w func(...any), passed func(*time.Time) string, k *fleet.Work, revision string) {
	w(k.Revision == revision, k.Reached == revision, min(k.Attempts, 3), passed(k.NextAttempt), passed(k.EffectsUntil), k.Refusal != nil, k.Failing != nil, k.Intended != nil)
	if p := k.Plan; p != nil {
		w(p.Revision == revision, string(p.Kind), passed(&p.Deadline))
		for _, t := range p.Tasks {
			w(string(t.Kind), t.Name, string(t.State), min(t.Tries, 3), passed(t.NotBefore), passed(t.Deadline), t.Outcome != nil, t.Noted)
		}
	}
}

// apart complains where what is said of the runtime and of the toy makes a difference to the
// other, but for the order of P18, that something declared has settled, the conditions and the verdict.
func (x *explorer) apart(s *sim, in Input, out Output) {
	if !s.toy || in.silent() { // until the first read nothing is rewritten (G1)
		return
	}
	alone := in
	alone.Tracks, alone.Seen.Tracks = nil, nil
	want, is := Decide(alone).Status, out.Status.Clone()
	for _, st := range []*fleet.Status{&want, &is} {
		st.Tracks, st.Conditions, st.Verdict, st.VerdictReason = nil, nil, "", ""
	}
	if in.Intent.Deleting == nil && !sameRecord(want, is) {
		x.complain(s, "the toy makes a difference to the runtime: %s", cmp.Diff(want, is))
	}
	if out.Remove && s.mark != "" && s.toyLater == nil {
		x.complain(s, "the server is gone, and its mark is there")
	}
	blind := in
	blind.Seen.Instance = fleet.InstanceObservation{Unreadable: &fleet.ReadFailure{Reason: fleet.ReasonRuntimeError}}
	if out.Latest != nil {
		blind.Latest = *out.Latest
	}
	prev := fleet.Status{Settled: out.Status.Settled} // what is declared and has not settled yet runs where the region observes (S10)
	if in.Prev != nil {
		prev.Tracks = in.Prev.Clone().Tracks
	}
	blind.Prev = &prev
	if got, want := Decide(blind).Status.Tracks, out.Status.Tracks; !out.Remove && !reflect.DeepEqual(got, want) {
		x.complain(s, "the runtime makes a difference to the toy: %s", cmp.Diff(want, got))
	}
}
