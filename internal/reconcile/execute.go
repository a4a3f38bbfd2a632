package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// claim stores that the plan's current task runs, and runs it beside the turns of its
// server. The effect begins only after the claim is in the store.
func (r *Reconciler) claim(ctx context.Context, key fleet.ServerKey, g fleet.Gathered, in projection.Input, out projection.Output) error {
	at := r.site(in.Region)
	if r.answered(key, out.Status) {
		r.Kick(key) // since this turn has looked
		return nil
	}
	status := out.Status.Clone()
	i := status.Runtime.Plan.Current()
	room := at.room(key, status.Runtime.Plan.Tasks[i])
	if !room.begin(key) {
		r.queue.AddAfter(key, noSlotRetry)
		return nil
	}
	claimed := false
	defer func() {
		if !claimed {
			room.end()
		}
	}()
	if task := status.Runtime.Plan.Tasks[i]; status.Runtime.Failing.Of(task) && !room.pace.may(key, subject(task), status.Runtime.Failing.Reason) {
		return nil
	}
	deadline := r.now().Add(status.Runtime.Plan.Tasks[i].Timeout())
	task := status.Runtime.Plan.Claim(i, deadline)
	if err := r.commitClaim(ctx, key, g, status); err != nil {
		return fmt.Errorf("claim task %s: %w", task.ID, err)
	}
	claimed = true
	running, cancel := context.WithDeadline(r.taskStart, deadline)
	e := &effect{task: task, cancel: cancel}
	r.begins(key, e) // its turn saw that none is under way
	r.tasks.Go(func() {
		defer r.Kick(key)
		defer r.ends(key, e)
		defer room.end()
		defer cancel()
		r.run(running, at, room, key, in.Desired, task)
	})
	r.Kick(key) // its deployment runs from the first effect on
	return nil
}

// run runs a claimed task and stores the answer.
func (r *Reconciler) run(ctx context.Context, at site, room *slots, key fleet.ServerKey, d fleet.Desired, task fleet.Task) {
	r.log.Debug("task begins", "server", key.String(), "task", task.ID, "what", task.Describe())
	if !r.leads() {
		return // this process was stopped since the claim: whoever leads now runs the task
	}
	outcome := r.execute(ctx, at, key, d, task)
	outcome.At = r.now()
	if errors.Is(ctx.Err(), context.Canceled) && (outcome.Class != fleet.ClassOK || task.Cancellable()) {
		r.log.Debug("task cut short", "server", key.String(), "task", task.ID)
		return // it was given up; or kurad ends: the claim stays, and the next start runs the task again
	}
	r.log.Debug("task ended", "server", key.String(), "task", task.ID, "class", outcome.Class, "reason", outcome.Reason, "message", outcome.Message)
	r.record(key, task, outcome)
	r.open(key, room.pace.heard(key, subject(task), outcome))
}

// execute returns what the task's site answers. For one that may be given up nobody waits
// longer than it may run, whether or not the site hears that: one who pulls may be deaf.
func (r *Reconciler) execute(ctx context.Context, at site, key fleet.ServerKey, d fleet.Desired, task fleet.Task) fleet.Outcome {
	answer := make(chan fleet.Outcome, 1)
	ask := func() {
		var o fleet.Outcome
		err := safely(func() error {
			o = at.execute(ctx, key, d, task)
			return nil
		})
		if err != nil {
			r.log.Error("task failed", "server", key.String(), "task", task.ID, "error", err)
			o = fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonRuntimeError, Message: "a fault of kurad's own; its log says more"}
		}
		answer <- o
	}
	if !task.Cancellable() {
		ask()
		return <-answer
	}
	go ask()
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("%s: no end within %s", task.Describe(), task.Timeout())}
	}
}

// leads reports whether this kurad may still act.
func (r *Reconciler) leads() bool { return r.cfg.Leadership == nil || r.cfg.Leadership.Valid() }

// record stores the answer to a claimed task. Turns of the server go on meanwhile, so a
// conflict means: read again. A store that gives no answer for a moment, such as one whose
// own leader changes, must not make a task run twice that ran once.
func (r *Reconciler) record(key fleet.ServerKey, task fleet.Task, o fleet.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.taskStart), storeTimeout)
	defer cancel()
	once := func() error { return r.recordOnce(ctx, key, task, o) }
	err := safely(once)
	for ctx.Err() == nil {
		if fleet.CodeOf(err) == fleet.CodeUnavailable {
			wait(ctx, firstRetry)
		} else if !r.cfg.Store.IsConflict(err) {
			break
		}
		err = safely(once)
	}
	if err != nil {
		// The claim stays: the task is run again, and tells itself apart by its id (S5).
		r.log.Error("the answer to a task could not be stored", "server", key.String(), "task", task.ID, "error", err)
	}
}

func (r *Reconciler) recordOnce(ctx context.Context, key fleet.ServerKey, task fleet.Task, o fleet.Outcome) error {
	g, err := r.cfg.Store.Gather(ctx, key)
	if err != nil {
		return err
	}
	if g.Status == nil {
		return errors.New("the server was removed, and declared again")
	}
	status := r.prev(key, g)
	if !claims(status.Runtime.Plan, task) {
		return errors.New("the task is no longer claimed")
	}
	if f := status.Runtime.Failing; f.Same(task, o) || f != nil && !f.Of(task) && o.Class == fleet.ClassOK && task.Kind == fleet.TaskPull {
		r.mu.Lock() // nothing new
		defer r.mu.Unlock()
		r.answers[key] = answer{task, o}
		return nil
	}
	status.Runtime.Plan.Record(status.Runtime.Plan.Current(), o)
	return r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
		Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: *status,
	})
}

// claims reports whether the plan is one whose task this one is, and runs. A server that was
// removed and declared again counts its plans anew, so the same id may name another task: the
// claim's deadline tells.
func claims(p *fleet.Plan, task fleet.Task) bool {
	i := p.Current()
	return i >= 0 && p.Tasks[i].ID == task.ID && p.Tasks[i].State == fleet.TaskRunning && p.Tasks[i].Deadline.Equal(*task.Deadline)
}

// effect is a task that runs in this process.
type effect struct {
	task   fleet.Task
	cancel context.CancelFunc
}

// begins notes an effect of the server's; false: another one is under way.
func (r *Reconciler) begins(key fleet.ServerKey, e *effect) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[key] != nil {
		return false
	}
	r.live[key] = e
	return true
}

func (r *Reconciler) ends(key fleet.ServerKey, e *effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[key] == e {
		delete(r.live, key)
	}
}

// cutShort ends the server's task if it may be given up and the stored plan claims it no more:
// something else is wanted by now (S6).
func (r *Reconciler) cutShort(key fleet.ServerKey, p *fleet.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.live[key]; e != nil && e.task.Cancellable() && !claims(p, e.task) {
		e.cancel()
		delete(r.live, key)
	}
}
