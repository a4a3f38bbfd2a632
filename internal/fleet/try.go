package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Try holds the claims of steps that have failed before, and are tried as they were (G12): all
// that a try costs which learns nothing new. It is a record of its own beside the status, and
// belongs to the one of a revision; with the next write of the status it is over.
type Try struct {
	Status int64           `json:"status"` // the revision of the status that it goes on from
	Claim                  // of the runtime
	Tracks map[Track]Claim `json:"tracks,omitempty"` // of all others
}

// Claim is what a track has come to since the status was stored, with the task that it has
// claimed.
type Claim struct {
	Plan         string     `json:"plan"`  // the id of the attempt, "" for none; its steps are in the status
	Cause        Cause      `json:"cause"` // of the attempt: which plan of the status it repeats
	Plans        int64      `json:"plans"`
	Task         int        `json:"task"` // which of its tasks; those before it are done
	Tries        int        `json:"tries"`
	Deadline     time.Time  `json:"deadline"`      // of the claimed task
	PlanDeadline time.Time  `json:"plan_deadline"` // of its plan
	EffectsUntil *time.Time `json:"effects_until,omitempty"`
	Count
	Beside *Count `json:"beside,omitempty"` // of the other course
	// Exits are those of what is in a crash loop, by service; Starts are the steps of an
	// attempt that starts such again, which is no plan of the status.
	Exits  map[string]Exits `json:"exits,omitempty"`
	Starts []Effect         `json:"starts,omitempty"`
}

// Count is what a course came to since the status was stored.
type Count struct {
	Attempts int `json:"attempts"`
	// Failed is how often the answer came, and Message the last one where it differs from
	// the status'.
	Failed  int    `json:"failed"`
	Message string `json:"message,omitempty"`
}

// Exits are those that were counted of a service by now, and when the last one was.
type Exits struct {
	Quick int       `json:"n"`
	Last  time.Time `json:"last"`
}

// TryWrite stores a claim in one small write: it is refused unless the intent, the status
// and the claim before it still have the revisions that it goes on from.
type TryWrite struct {
	Key            ServerKey
	IntentRevision int64
	TryRevision    int64
	Try            Try
}

// Try returns what every track has come to as a record of its own.
func (s Status) Try(stored Status, revision int64) Try {
	t := Try{Status: revision, Claim: s.claim(TrackRuntime, stored)}
	for service, c := range s.Crashes {
		if c.Loops() {
			if t.Exits == nil {
				t.Exits = map[string]Exits{}
			}
			t.Exits[service] = Exits{c.Quick, c.LastFinished}
		}
	}
	if p := s.Runtime.Plan; s.Restarts(p) {
		for _, task := range p.Tasks {
			t.Starts = append(t.Starts, task.Effect)
		}
	}
	for track := range s.Tracks {
		if t.Tracks == nil {
			t.Tracks = map[Track]Claim{}
		}
		t.Tracks[track] = s.claim(track, stored)
	}
	return t
}

func (s Status) claim(track Track, stored Status) Claim {
	w := s.On(track)
	c := Claim{Plans: w.Plans, EffectsUntil: w.EffectsUntil}
	if i := w.Plan.Current(); i >= 0 && w.Plan.Tasks[i].Deadline != nil && !w.Plan.claimedAs(stored.PlanOf(track), i) {
		task := w.Plan.Tasks[i] // of another track's claim it may have been answered, or may land still
		c.Plan, c.Cause, c.Task, c.Tries, c.Deadline, c.PlanDeadline = w.Plan.ID, w.Plan.Cause, i, task.Tries, *task.Deadline, w.Plan.Deadline
	}
	was := stored.Course(track, c.Cause)
	if n := s.Course(track, c.Cause).since(was); n != nil {
		c.Count = *n
	}
	if other := s.beside(track, c.Cause); other != nil {
		c.Beside = other.since(stored.beside(track, c.Cause))
	}
	return c
}

// beside is the other course of the track, nil where it has none.
func (s *Status) beside(track Track, cause Cause) *Course {
	switch {
	case track != TrackRuntime:
		return nil
	case cause == CauseOutage:
		return &s.Runtime.Course
	default:
		return &s.Outage.Course
	}
}

// since says what the course has come to since it was stored; nil: nothing fails.
func (c *Course) since(stored *Course) *Count {
	if c.Failing == nil {
		return nil
	}
	n := &Count{Attempts: c.Attempts, Failed: c.Failing.Count}
	if stored.Failing == nil || c.Failing.Message != stored.Failing.Message {
		n.Message = c.Failing.Message
	}
	return n
}

// claims are those of all tracks.
func (t Try) claims() map[Track]Claim {
	all := maps.Clone(t.Tracks)
	if all == nil {
		all = map[Track]Claim{}
	}
	all[TrackRuntime] = t.Claim
	return all
}

// Tried returns the status with the claims that were stored beside it.
func (s Status) Tried(t Try) Status {
	s = s.Counting(t)
	if s.Restarts(s.Runtime.Plan) {
		s.Runtime.Plan = nil
	}
	for service, n := range t.Exits {
		if c, ok := s.Crashes[service]; ok {
			c.Quick, c.LastFinished, c.RunningSince = n.Quick, n.Last, nil // it was started again, or ended, since that was stored
			s.Crashes[service] = c
		}
	}
	for track, claim := range t.claims() {
		w := s.On(track)
		w.Plans = max(w.Plans, claim.Plans)
		if claim.EffectsUntil != nil {
			w.EffectsUntil = claim.EffectsUntil
		}
		if claim.Plan != "" {
			s.tried(track, claim)
		}
	}
	return s
}

func (s *Status) tried(track Track, t Claim) {
	w, c := s.On(track), s.Course(track, t.Cause)
	if w.Plan != nil && s.Course(track, w.Plan.Cause) != c { // it has failed since
		s.Course(track, w.Plan.Cause).LastFailed, w.Plan = w.Plan, nil
	}
	switch {
	case len(t.Starts) > 0:
		w.Plan = &Plan{ID: t.Plan, Kind: PlanApply, Generation: s.Generation, Revision: s.Revision}
		for i, e := range t.Starts {
			w.Plan.Tasks = append(w.Plan.Tasks, Task{ID: fmt.Sprintf("%s/%d", t.Plan, i+1), Effect: e, State: TaskPending})
		}
	case w.Plan == nil:
		w.Plan, c.LastFailed, c.NextAttempt = c.LastFailed, nil, nil
	}
	if w.Plan == nil || t.Task >= len(w.Plan.Tasks) {
		return
	}
	for i := range t.Task {
		w.Plan.Tasks[i].State = TaskDone
	}
	w.Plan.named(t.Plan)
	w.Plan.Cause, w.Plan.Attempt, w.Plan.Deadline = t.Cause, t.Attempts, t.PlanDeadline
	w.Plan.Claim(t.Task, t.Deadline)
	w.Plan.Tasks[t.Task].Tries = t.Tries
}

// Counting returns the status with the counts of claims, for those who look at it.
func (s Status) Counting(t Try) Status {
	s = s.Clone()
	for track, claim := range t.claims() {
		s.Course(track, claim.Cause).counting(&s, &claim.Count)
		if other := s.beside(track, claim.Cause); other != nil {
			other.counting(&s, claim.Beside)
		}
	}
	return s
}

func (c *Course) counting(s *Status, n *Count) {
	if n == nil || c.Failing == nil {
		return
	}
	was := c.Failing.answer()
	c.Attempts, c.Failing.Count = n.Attempts, n.Failed
	if n.Message != "" {
		for _, track := range s.names() {
			if r := s.On(track).Refusal; r != nil && r.Message == c.Failing.Message {
				r.Message = n.Message
			}
		}
		c.Failing.Message = n.Message
		s.saying(was, c.Failing.answer())
	}
}

// saying puts another text in the place of one in what is shown.
func (s *Status) saying(was, is string) {
	s.Message = strings.ReplaceAll(s.Message, was, is)
	for i := range s.Conditions {
		s.Conditions[i].Message = strings.ReplaceAll(s.Conditions[i].Message, was, is)
	}
}

// Repeats reports whether a status differs from the stored one in nothing but that what had
// failed is tried again, or has failed once more in the same way, and that what is in a crash
// loop was started or ended once more: nothing was learned that is worth more than a count (G12).
func (s Status) Repeats(stored Status) bool {
	if !s.loops() && !slices.ContainsFunc(s.courses(), func(c *Course) bool { return c.Failing != nil }) {
		return false
	}
	x, errX := json.Marshal(s.uncounted())
	y, errY := json.Marshal(stored.uncounted())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// uncounted is the status without what a try changes that learns nothing new.
func (s Status) uncounted() Status {
	s = s.Clone()
	s.restless()
	for _, track := range s.names() {
		w := s.On(track)
		for _, c := range []*Course{&w.Course, s.beside(track, "")} {
			if c == nil || c.Failing == nil {
				continue
			}
			s.saying(c.Failing.answer(), "") // a message that varies is no news
			c.Failing.Message, c.Failing.Count = "", 0
			c.Attempts, c.NextAttempt = 0, nil
			if w.Plan != nil && c == s.Course(track, w.Plan.Cause) {
				w.Plan, c.LastFailed = nil, w.Plan
			}
			c.LastFailed = c.LastFailed.untried()
			w.Plans, w.EffectsUntil = 0, nil
		}
		if r := w.Refusal; r != nil {
			r.Message, r.Task, r.At = "", "", time.Time{}
		}
	}
	return s
}

// loops reports whether a service is in a crash loop.
func (s *Status) loops() bool {
	for _, c := range s.Crashes {
		if c.Loops() {
			return true
		}
	}
	return false
}

// restless takes away what a start and an end of what is in a crash loop change.
func (s *Status) restless() {
	if !s.loops() {
		return
	}
	w := &s.Runtime
	if s.Restarts(w.Plan) {
		w.Plan = nil
	}
	w.Plans, w.EffectsUntil, s.ConvergedAt = 0, nil, nil
	if s.Outage.Failing == nil {
		s.Outage.Attempts = 0
	}
	for i, c := range s.Containers {
		if s.Crashes[c.Service].Loops() && (c.State == ContainerRunning || c.State == ContainerExited) {
			c.State, c.ExitCode, c.Started, c.Finished, c.Ports = ContainerExited, 0, nil, nil, nil
			s.Containers[i] = c
		}
	}
	for service, c := range s.Crashes {
		if c.Loops() {
			s.Crashes[service] = CrashCount{Quick: CrashLoopFrom}
		}
	}
}
