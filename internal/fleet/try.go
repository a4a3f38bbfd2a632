package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Try is the claim of a step that has failed before, and is tried as it was (G12): all that
// a try costs which learns nothing new. It is a record of its own beside the status, and
// belongs to the one of a revision; with the next write of the status it is over.
type Try struct {
	Status       int64     `json:"status"` // the revision of the status that it goes on from
	Plan         string    `json:"plan"`   // the id of the attempt; its steps are in the status
	Cause        Cause     `json:"cause"`  // of the attempt: which plan of the status it repeats
	Plans        int64     `json:"plans"`
	Task         int       `json:"task"` // which of its tasks; those before it are done
	Tries        int       `json:"tries"`
	Deadline     time.Time `json:"deadline"`      // of the claimed task
	PlanDeadline time.Time `json:"plan_deadline"` // of its plan
	Count
	Beside *Count `json:"beside,omitempty"` // of the other course
	// Quick counts the exits of what is in a crash loop, by service; Starts are the steps of
	// an attempt that starts such again, which is no plan of the status.
	Quick  map[string]int `json:"quick,omitempty"`
	Starts []Effect       `json:"starts,omitempty"`
}

// Count is what a course came to since the status was stored.
type Count struct {
	Attempts int `json:"attempts"`
	// Failed is how often the answer came, and Message the last one where it differs from
	// the status'.
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
		Status: revision, Plan: w.Plan.ID, Cause: w.Plan.Cause, Plans: w.Plans, Task: i, Tries: task.Tries,
		Deadline: *task.Deadline, PlanDeadline: w.Plan.Deadline,
	}
	was := stored.courses()
	for i, c := range s.courses() {
		if c.Failing == nil {
			continue
		}
		count := Count{Attempts: c.Attempts, Failed: c.Failing.Count}
		if c.Failing.Message != was[i].Failing.Message {
			count.Message = c.Failing.Message
		}
		if c == s.Of(t.Cause) {
			t.Count = count
		} else {
			t.Beside = &count
		}
	}
	for service, c := range s.Crashes {
		if c.Loops() {
			if t.Quick == nil {
				t.Quick = map[string]int{}
			}
			t.Quick[service] = c.Quick
		}
	}
	if s.Restarts(w.Plan) {
		for _, task := range w.Plan.Tasks {
			t.Starts = append(t.Starts, task.Effect)
		}
	}
	return t
}

// Tried returns the status with a claim that was stored beside it.
func (s Status) Tried(t Try) Status {
	s = s.Counting(t)
	w, c := &s.Runtime, s.Of(t.Cause)
	if s.Restarts(w.Plan) {
		w.Plan = nil
	}
	for service, n := range t.Quick {
		if c, ok := s.Crashes[service]; ok {
			c.Quick, c.RunningSince = n, nil // it was started again, or ended, since that was stored
			s.Crashes[service] = c
		}
	}
	if w.Plan != nil && s.Of(w.Plan.Cause) != c { // it has failed since
		s.Of(w.Plan.Cause).Again, w.Plan = w.Plan, nil
	}
	switch {
	case len(t.Starts) > 0:
		w.Plan = &Plan{ID: t.Plan, Kind: PlanApply, Generation: s.Generation, Revision: s.Revision}
		for i, e := range t.Starts {
			w.Plan.Tasks = append(w.Plan.Tasks, Task{ID: fmt.Sprintf("%s/%d", t.Plan, i+1), Effect: e, State: TaskPending})
		}
	case w.Plan == nil:
		w.Plan, c.Again, c.NextAttempt = c.Again, nil, nil
	}
	if w.Plan == nil || t.Task >= len(w.Plan.Tasks) {
		return s
	}
	for i := range t.Task {
		w.Plan.Tasks[i].State = TaskDone
	}
	w.Plans = t.Plans
	w.Plan.named(t.Plan)
	w.Plan.Cause, w.Plan.Attempt, w.Plan.Deadline = t.Cause, t.Attempts, t.PlanDeadline
	w.Plan.Claim(t.Task, t.Deadline)
	w.Plan.Tasks[t.Task].Tries = t.Tries
	return s
}

// Counting returns the status with the counts of a claim, for those who look at it.
func (s Status) Counting(t Try) Status {
	s = s.Clone()
	s.Of(t.Cause).counting(&s, &t.Count)
	for _, c := range s.courses() {
		if c != s.Of(t.Cause) {
			c.counting(&s, t.Beside)
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
		if r := s.Runtime.Refusal; r != nil && r.Message == c.Failing.Message {
			r.Message = n.Message
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
	if s.Runtime.Failing == nil && s.Outage.Failing == nil && !s.loops() {
		return false
	}
	x, errX := json.Marshal(s.uncounted())
	y, errY := json.Marshal(stored.uncounted())
	return errX == nil && errY == nil && bytes.Equal(x, y)
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

// uncounted is the status without what a try changes that learns nothing new.
func (s Status) uncounted() Status {
	s = s.Clone()
	w := &s.Runtime
	s.restless()
	for _, c := range s.courses() {
		if c.Failing == nil {
			continue
		}
		s.saying(c.Failing.answer(), "") // a message that varies is no news
		c.Failing.Message, c.Failing.Count = "", 0
		c.Attempts, c.NextAttempt = 0, nil
		if w.Plan != nil && c == s.Of(w.Plan.Cause) {
			w.Plan, c.Again = nil, w.Plan
		}
		c.Again = c.Again.untried()
		w.Plans, w.EffectsUntil = 0, nil
	}
	if r := w.Refusal; r != nil {
		r.Message, r.Task, r.At = "", "", time.Time{}
	}
	return s
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
