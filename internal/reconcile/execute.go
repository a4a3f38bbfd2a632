package reconcile

import (
	"context"
	"fmt"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// claim stores that the plan's current task runs, and runs it beside the turns of its
// server. The effect begins only after the claim is in the store.
func (r *Reconciler) claim(ctx context.Context, key fleet.ServerKey, g fleet.Gathered, in projection.Input, out projection.Output) error {
	e := r.endpoints[place(in.Region)]
	if e == nil {
		return nil
	}
	select {
	case e.slots <- struct{}{}:
	default:
		r.queue.AddAfter(key, noSlotRetry)
		return nil
	}
	status := out.Status.Clone()
	i := status.Plan.Current()
	deadline := r.now().Add(status.Plan.Tasks[i].Timeout())
	task := status.Plan.Claim(i, deadline)
	plan := status.Plan.ID
	err := r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
		Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status,
	})
	if err != nil {
		<-e.slots
		return fmt.Errorf("claim task %s: %w", task.ID, err)
	}
	r.setLive(key, true)
	r.log.Debug("task begins", "server", key.String(), "task", task.ID, "what", task.Describe())
	r.tasks.Add(1)
	go func() {
		defer r.tasks.Done()
		defer func() { <-e.slots }()
		ctx, cancel := context.WithDeadline(r.taskStart, deadline)
		defer cancel()
		outcome := e.runtime.Execute(ctx, key, in.Desired.Instance, task, document(in.Desired, task))
		outcome.At = r.now()
		if r.taskStart.Err() != nil && outcome.Class != fleet.ClassOK {
			r.setLive(key, false)
			return // kurad ends: the claim stays, and the next start runs the task again
		}
		r.log.Debug("task ended", "server", key.String(), "task", task.ID, "class", outcome.Class, "reason", outcome.Reason, "message", outcome.Message)
		r.record(key, plan, task.ID, outcome)
		r.setLive(key, false)
		e.freshTurn(key)
		r.Kick(key)
	}()
	return nil
}

// record stores the answer to a task. Turns of the server go on meanwhile, so a conflict
// means: read again.
func (r *Reconciler) record(key fleet.ServerKey, plan, task string, o fleet.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.taskStart), storeTimeout)
	defer cancel()
	for {
		g, err := r.cfg.Store.Gather(ctx, key)
		if err == nil {
			if g.Status == nil || g.Status.Plan == nil || g.Status.Plan.ID != plan {
				r.log.Warn("the plan of a task that ended is gone", "server", key.String(), "task", task)
				return
			}
			status := g.Status.Clone()
			i := slices.IndexFunc(status.Plan.Tasks, func(t fleet.Task) bool { return t.ID == task })
			status.Plan.Record(i, o)
			err = r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
				Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status,
			})
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil || !r.cfg.Store.IsConflict(err) {
			// The claim stays: the task is run again, and tells itself apart by its id (S5).
			r.log.Error("the answer to a task could not be stored", "server", key.String(), "task", task, "error", err)
			return
		}
	}
}

// document returns what a task needs of the desired document: the service's, or for the
// removal of volumes one that names them all, so that retain holds for those that were
// declared to be kept only after they were made (C13).
func document(d fleet.Desired, t fleet.Task) *fleet.ServiceDocument {
	if d.Containers == nil {
		return nil
	}
	if t.Kind == fleet.TaskRemoveVolumes {
		all := &fleet.ServiceDocument{}
		for _, s := range d.Containers.Services {
			all.Volumes = append(all.Volumes, s.Volumes...)
		}
		return all
	}
	for _, s := range d.Containers.Services {
		if s.Service == t.Service {
			return &s
		}
	}
	return nil
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
