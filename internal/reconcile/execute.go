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
	if at == nil || !r.leads() {
		return nil
	}
	if !at.begin(key) {
		r.queue.AddAfter(key, noSlotRetry)
		return nil
	}
	claimed := false
	defer func() {
		if !claimed {
			at.end()
		}
	}()
	status := out.Status.Clone()
	i := status.Plan.Current()
	deadline := r.now().Add(status.Plan.Tasks[i].Timeout())
	task := status.Plan.Claim(i, deadline)
	err := r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
		Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status,
	})
	if err != nil {
		return fmt.Errorf("claim task %s: %w", task.ID, err)
	}
	claimed = true
	r.setLive(key, true)
	r.tasks.Go(func() {
		defer r.Kick(key)
		defer r.setLive(key, false)
		defer at.end()
		r.run(at, key, in.Desired, task)
	})
	r.Kick(key) // its deployment runs from the first effect on
	return nil
}

// run runs a claimed task and stores the answer.
func (r *Reconciler) run(at site, key fleet.ServerKey, d fleet.Desired, task fleet.Task) {
	r.log.Debug("task begins", "server", key.String(), "task", task.ID, "what", task.Describe())
	ctx, cancel := context.WithDeadline(r.taskStart, *task.Deadline)
	defer cancel()
	if !r.leads() {
		return // this process was stopped since the claim: whoever leads now runs the task
	}
	var outcome fleet.Outcome
	err := safely(func() error {
		outcome = at.execute(ctx, key, d, task)
		return nil
	})
	if err != nil {
		r.log.Error("task failed", "server", key.String(), "task", task.ID, "error", err)
		outcome = fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonRuntimeError, Message: "a fault of kurad's own; its log says more"}
	}
	outcome.At = r.now()
	if r.taskStart.Err() != nil && outcome.Class != fleet.ClassOK {
		return // kurad ends: the claim stays, and the next start runs the task again
	}
	r.log.Debug("task ended", "server", key.String(), "task", task.ID, "class", outcome.Class, "reason", outcome.Reason, "message", outcome.Message)
	r.record(key, task, outcome)
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
	status := g.Status.Clone()
	i := status.Plan.Current()
	// A server that was removed and declared again counts its plans anew, so the same id
	// may name another task: the claim's deadline tells.
	if i < 0 || status.Plan.Tasks[i].ID != task.ID || status.Plan.Tasks[i].State != fleet.TaskRunning || !status.Plan.Tasks[i].Deadline.Equal(*task.Deadline) {
		return errors.New("the task is no longer claimed")
	}
	status.Plan.Record(i, o)
	return r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
		Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status,
	})
}

func (r *Reconciler) setLive(key fleet.ServerKey, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if live {
		r.live[key] = true
	} else {
		delete(r.live, key)
	}
}
