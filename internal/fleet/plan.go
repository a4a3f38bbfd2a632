package fleet

import (
	"slices"
	"strings"
	"time"
)

// PlanKind is what a plan does.
type PlanKind string

// Plan kinds.
const (
	PlanApply   PlanKind = "apply"   // create or start what is absent
	PlanReplace PlanKind = "replace" // swap a service for a new one (C4)
	PlanDestroy PlanKind = "destroy"
)

// Cause is why a server is not settled.
type Cause string

// Causes.
const (
	CauseRollOut    Cause = "roll-out"   // the image of the latest deployment is not there yet
	CauseRecreation Cause = "recreation" // the instance, or a part of it, is gone or stopped
	CauseOutage     Cause = "outage"     // what served last does not run (C14)
	CauseManifest   Cause = "manifest"   // the document differs
	CauseURLMove    Cause = "url-move"   // the declared url differs from the published one
	CauseEndpoint   Cause = "endpoint"   // all runs as declared and does not answer yet
	CauseCleanup    Cause = "cleanup"    // labelled leftovers of no active plan
	CauseHosts      Cause = "hosts"      // a host does not lead where it is declared to
	CauseDestroy    Cause = "destroy"
)

// TaskState is where a task stands.
type TaskState string

// Task states.
const (
	TaskPending TaskState = "pending"
	TaskRunning TaskState = "running" // claimed; after a crash it is run again
	TaskDone    TaskState = "done"
)

// Task is one idempotent step of a plan: what it does to the world, and where it stands.
type Task struct {
	ID string `json:"id"`
	Effect
	State TaskState `json:"state"`
	Tries int       `json:"tries,omitempty"`
	// NotBefore is when a task that failed transiently is due again.
	NotBefore *time.Time `json:"not_before,omitempty"`
	// Deadline is when the running task's effects are over.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Outcome is the answer to the last try; Noted says that a projection has taken
	// it into account.
	Outcome *Outcome `json:"outcome,omitempty"`
	Noted   bool     `json:"noted,omitempty"`
}

// Class says what an answer to a change means for what comes next.
type Class string

// Classes of answers.
const (
	ClassOK        Class = "ok"
	ClassTransient Class = "transient" // again with backoff, the deployment stays open
	ClassRefused   Class = "refused"   // the deployment failed, with the reason
)

// Outcome is the runtime's answer to a task.
type Outcome struct {
	Class   Class  `json:"class"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Answered is false where the runtime did not answer: an effect may still land
	// until the task's deadline.
	Answered    bool   `json:"answered"`
	ContainerID string `json:"container_id,omitempty"`
	Forced      bool   `json:"forced,omitempty"` // the stop needed SIGKILL (C6)
	Port        int    `json:"port,omitempty"`   // the host port that somebody else has (ReasonPortTaken)
	// After is for how long at least nothing is to be tried again, as who answered said: a
	// rate limit. 0: unknown.
	After Duration `json:"after,omitempty"`
	// Applied is the KuraInstance that an apply was answered with (K8).
	Applied *KubeState `json:"applied,omitempty"`
	// Altered is what that instance has otherwise than it was applied (K10).
	Altered []Alteration `json:"altered,omitempty"`
	At      time.Time    `json:"at"`
}

// Plan is an ordered list of tasks, stored before the first one runs (S4).
type Plan struct {
	ID         string    `json:"id"`
	Kind       PlanKind  `json:"kind"`
	Cause      Cause     `json:"cause"`
	Generation int64     `json:"generation"`
	Revision   string    `json:"revision"`
	Attempt    int       `json:"attempt"`
	CreatedAt  time.Time `json:"created_at"`
	Deadline   time.Time `json:"deadline"`
	Tasks      []Task    `json:"tasks"`
}

// Current returns the index of the first task that is not done, or -1.
func (p *Plan) Current() int {
	if p == nil {
		return -1
	}
	for i := range p.Tasks {
		if p.Tasks[i].State != TaskDone {
			return i
		}
	}
	return -1
}

// Runnable returns the index of the task that may run at now, or -1.
func (p *Plan) Runnable(now time.Time) int {
	i := p.Current()
	if i < 0 {
		return -1
	}
	t := p.Tasks[i]
	if t.Outcome != nil && !t.Noted {
		return -1 // answered, and the projection has not looked at it yet
	}
	if t.NotBefore != nil && t.NotBefore.After(now) {
		return -1
	}
	return i
}

// Claim marks task i as running until deadline and returns it.
func (p *Plan) Claim(i int, deadline time.Time) Task {
	t := &p.Tasks[i]
	t.State, t.Deadline, t.Outcome, t.Noted, t.NotBefore = TaskRunning, &deadline, nil, false, nil
	t.Tries++
	return *t
}

// Record stores the answer to task i. A success ends the task and fills in the
// container id of the tasks that it created the container for; what another answer
// means is for the projection to say.
func (p *Plan) Record(i int, o Outcome) {
	t := &p.Tasks[i]
	t.Outcome, t.Noted = &o, false
	if o.Class != ClassOK {
		t.State = TaskPending
		return
	}
	t.State = TaskDone
	for j := i + 1; j < len(p.Tasks); j++ {
		if p.Tasks[j].CreatedBy == t.ID {
			p.Tasks[j].ContainerID = o.ContainerID
		}
	}
}

// claimedAs reports whether the newest claim of task i is the other plan's, too.
func (p *Plan) claimedAs(o *Plan, i int) bool {
	return o != nil && o.ID == p.ID && i < len(o.Tasks) && o.Tasks[i].Deadline != nil && o.Tasks[i].Deadline.Equal(*p.Tasks[i].Deadline)
}

// Repeats reports whether p takes the steps of another plan of its course.
func (p *Plan) Repeats(again *Plan) bool {
	return p != nil && again != nil && p.Kind == again.Kind && p.Generation == again.Generation && p.Revision == again.Revision &&
		slices.Equal(p.untried().Tasks, again.untried().Tasks)
}

// named gives the plan and its tasks another id (S5).
func (p *Plan) named(id string) {
	for i := range p.Tasks {
		t := &p.Tasks[i]
		t.ID = id + strings.TrimPrefix(t.ID, p.ID)
		if t.CreatedBy != "" {
			t.CreatedBy = id + strings.TrimPrefix(t.CreatedBy, p.ID)
		}
	}
	p.ID = id
}

// untried is the plan without its name and cause, for a roll-out that failed is a recreation
// from then on, and without what tries leave in it: an image that is
// there is none of the steps that bring a server nearer.
func (p *Plan) untried() *Plan {
	if p = p.Clone(); p == nil {
		return nil
	}
	p.named("")
	p.Cause, p.Attempt, p.CreatedAt, p.Deadline = "", 0, time.Time{}, time.Time{}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.State != TaskDone || t.Kind == TaskPull {
			t.State, t.Tries, t.NotBefore, t.Deadline, t.Outcome, t.Noted = TaskPending, 0, nil, nil, nil, false
		}
	}
	return p
}

// Clone returns a deep copy.
func (p *Plan) Clone() *Plan {
	if p == nil {
		return nil
	}
	c := *p
	c.Tasks = make([]Task, len(p.Tasks))
	for i, t := range p.Tasks {
		t.NotBefore, t.Deadline, t.Outcome = clone(t.NotBefore), clone(t.Deadline), clone(t.Outcome)
		c.Tasks[i] = t
	}
	return &c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
