package fleet

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Try is the claim of a step that has failed before, and is tried as it was (G12): all that
// a try costs which learns nothing new. It is a record of its own beside the status, and
// belongs to the one of a revision; with the next write of the status it is over.
type Try struct {
	Status       int64     `json:"status"` // the revision of the status that it goes on from
	Plan         string    `json:"plan"`   // the id of the attempt; its steps are in the status
	Plans        int64     `json:"plans"`
	Task         int       `json:"task"` // which of its tasks; those before it are done
	Attempt      int       `json:"attempt"`
	Tries        int       `json:"tries"`
	Deadline     time.Time `json:"deadline"`      // of the claimed task
	PlanDeadline time.Time `json:"plan_deadline"` // of its plan
	// Failed is how often the answer came before, and Message the last one where it differs
	// from the status'.
	Failed  int    `json:"failed"`
	Message string `json:"message,omitempty"`
}

// TryWrite stores a claim in one small write: it is refused unless the intent, the status
// and the claim before it still have the revisions that it goes on from.
type TryWrite struct {
	Key            ServerKey
	IntentRevision int64
	TryRevision    int64
	Try            Try
}

// Try returns the claim of the plan's current task as a record of its own.
func (s Status) Try(stored Status, revision int64) Try {
	w := s.Runtime
	i := w.Plan.Current()
	task := w.Plan.Tasks[i]
	t := Try{
		Status: revision, Plan: w.Plan.ID, Plans: w.Plans, Task: i, Attempt: w.Plan.Attempt, Tries: task.Tries,
		Deadline: *task.Deadline, PlanDeadline: w.Plan.Deadline, Failed: w.Failing.Count,
	}
	if w.Failing.Message != stored.Runtime.Failing.Message {
		t.Message = w.Failing.Message
	}
	return t
}

// Tried returns the status with a claim that was stored beside it.
func (s Status) Tried(t Try) Status {
	s = s.Counting(t)
	w := &s.Runtime
	if w.Plan == nil {
		w.Plan, w.Again = w.Again, nil
	}
	if w.Plan == nil || t.Task >= len(w.Plan.Tasks) {
		return s
	}
	for i := range t.Task {
		w.Plan.Tasks[i].State = TaskDone
	}
	w.Plans, w.Attempts, w.NextAttempt = t.Plans, t.Attempt, nil
	w.Plan.named(t.Plan)
	w.Plan.Attempt, w.Plan.Deadline = t.Attempt, t.PlanDeadline
	w.Plan.Claim(t.Task, t.Deadline)
	w.Plan.Tasks[t.Task].Tries = t.Tries
	return s
}

// Counting returns the status with the count of a claim, for those who look at it.
func (s Status) Counting(t Try) Status {
	s = s.Clone()
	if f := s.Runtime.Failing; f != nil {
		was := f.answer()
		f.Count = t.Failed
		if t.Message != "" {
			f.Message = t.Message
			s.saying(was, f.answer())
		}
	}
	return s
}

// saying puts another text in the place of one in what is shown.
func (s *Status) saying(was, is string) {
	s.Message = strings.ReplaceAll(s.Message, was, is)
	for i := range s.Conditions {
		s.Conditions[i].Message = strings.ReplaceAll(s.Conditions[i].Message, was, is)
	}
}

// Repeats reports whether a status differs from the stored one in nothing but that what had
// failed is tried again, or has failed once more in the same way: nothing was learned that
// is worth more than a count (G12).
func (s Status) Repeats(stored Status) bool {
	counts := func(w Work) bool { return w.Failing != nil && (w.Plan == nil || w.Plan.Cause != CauseOutage) } // which has tries of its own
	if !counts(s.Runtime) || !counts(stored.Runtime) {
		return false
	}
	x, errX := json.Marshal(s.uncounted())
	y, errY := json.Marshal(stored.uncounted())
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// uncounted is the status without what a try changes that learns nothing new.
func (s Status) uncounted() Status {
	s = s.Clone()
	w := &s.Runtime
	s.saying(w.Failing.answer(), "") // a message that varies is no news
	w.Failing.Message, w.Failing.Count = "", 0
	if w.Refusal != nil {
		w.Refusal.Message, w.Refusal.Task, w.Refusal.At = "", "", time.Time{}
	}
	w.Plans, w.Attempts, w.NextAttempt, w.EffectsUntil = 0, 0, nil, nil
	if w.Plan == nil {
		w.Plan = w.Again
	}
	w.Plan, w.Again = w.Plan.untried(), nil
	return s
}
