package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// claim adds to the turn which tasks run: the current one of each track's plan that was there
// before and may begin now. Effects begin only after their claims are in the store; until then
// es has all that are noted, whatever happens. planned says that a plan is stored by this turn:
// its first task is claimed by the next.
func (r *Reconciler) claim(key fleet.ServerKey, in projection.Input, out projection.Output, es *[]*effect) (planned bool, _ projection.Output) {
	for _, track := range r.tracks {
		w, p := work{key, track}, out.Status.PlanOf(track)
		switch {
		case !out.MayAct.Has(track) || !due(p, r.now(), r.isLive(w)) || !r.acts():
			r.stopWaiting(w, nil)
		case in.Prev == nil || in.Prev.PlanOf(track) == nil || in.Prev.PlanOf(track).ID != p.ID:
			planned = true
		case r.answered(w, p):
			r.Kick(key) // since this turn has looked
		default:
			c := Call{Key: key, Track: track, Region: in.Region, Desired: in.Desired, Task: p.Tasks[p.Current()]}
			var failed fleet.Reason
			if f := out.Status.Course(track, p.Cause).Failing; f.Of(c.Task) {
				failed = f.Reason
			}
			room := r.enter(c, failed)
			if room == nil {
				continue
			}
			e := &effect{Call: c, room: room}
			if !r.begins(e) { // an orphan of its name is being ended
				room.end()
				continue
			}
			*es = append(*es, e)
			out, e.Task = out.Claimed(in, track, r.now().Add(c.Task.Timeout()))
		}
	}
	return planned, out
}

// enter takes a slot of the room where a task is run, and lets go of those elsewhere. Without
// one the turn of its server comes again.
func (r *Reconciler) enter(c Call, failed fleet.Reason) *slots {
	room := r.room(c.Task, c.Region)
	r.stopWaiting(c.work(), room)
	if room == nil {
		return nil
	}
	if !room.begin(c.work()) {
		r.queue.AddAfter(c.Key, noSlotRetry)
		return nil
	}
	if !room.pace.allows(c.work(), subject(c.Task), failed) {
		room.end()
		return nil
	}
	return room
}

// begin runs a claimed task beside the turns of its server. One that hears of no deadline has
// its slot until a moment after that (G9); its server waits for it, for nobody knows what it does.
func (r *Reconciler) begin(e *effect) {
	ctx, cancel := context.WithDeadline(r.taskStart, *e.Task.Deadline)
	e.cancel = cancel
	deaf := time.AfterFunc(e.Task.Deadline.Sub(r.now())+deafAfter, func() {
		r.log.Error("a task hears of no deadline: another has its slot from now on, and its server waits for it or for a restart of kurad",
			"server", e.Key.String(), "task", e.Task.ID, "what", e.Task.Describe(), "deaf", e.room.lend())
	})
	r.tasks.Go(func() {
		defer r.Kick(e.Key)
		defer func() { e.room.ended(!deaf.Stop()) }()
		defer cancel()
		r.run(ctx, e)
	})
}

// run runs a claimed task and hands its answer to the next turn, which stores it with what
// follows from it; or has it stored at once, where no turn does.
func (r *Reconciler) run(ctx context.Context, e *effect) {
	server, task := e.Key.String(), e.Task
	r.log.Debug("task begins", "server", server, "task", task.ID, "what", task.Describe())
	if !r.leads() {
		r.ends(e, nil)
		return // this process was stopped since the claim: whoever leads now runs the task
	}
	outcome := r.execute(ctx, e.Call)
	outcome.At = r.now()
	if errors.Is(ctx.Err(), context.Canceled) && (outcome.Class != fleet.ClassOK || task.Cancellable()) {
		r.log.Debug("task cut short", "server", server, "task", task.ID)
		r.ends(e, nil)
		return // it was given up; or kurad ends: the claim stays, and the next start runs the task again
	}
	r.log.Debug("task ended", "server", server, "task", task.ID, "class", outcome.Class, "reason", outcome.Reason, "message", outcome.Message)
	if e.record != nil {
		e.record(outcome)
		r.ends(e, nil)
		return
	}
	r.ends(e, &outcome)
	r.open(e.work(), e.room.pace.record(e.work(), subject(task), outcome))
}

// execute returns what the task's executor answers. For one that may be given up nobody waits
// longer than it may run, whether or not the executor hears that: one who pulls may be deaf.
func (r *Reconciler) execute(ctx context.Context, c Call) fleet.Outcome {
	answer := make(chan fleet.Outcome, 1)
	ask := func() {
		var o fleet.Outcome
		err := safely(func() error {
			o = r.executors[c.Task.Executor()].Execute(ctx, c)
			return nil
		})
		if err != nil {
			r.log.Error("task failed", "server", c.Key.String(), "task", c.Task.ID, "error", err)
			o = faulty()
		}
		answer <- o
	}
	if !c.Task.Cancellable() {
		ask()
		return <-answer
	}
	go ask()
	select {
	case o := <-answer:
		return o
	case <-ctx.Done():
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("%s: no end within %s", c.Task.Describe(), c.Task.Timeout())}
	}
}

// faulty is the answer of one that broke.
func faulty() fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonRuntimeError, Message: "a fault of kurad's own; its log says more"}
}

// leads reports whether this kurad may still act.
func (r *Reconciler) leads() bool { return r.cfg.Leadership == nil || r.cfg.Leadership.Valid() }

// acts reports whether this kurad may begin something.
func (r *Reconciler) acts() bool {
	r.mu.Lock()
	running := r.running != nil
	r.mu.Unlock()
	return running && r.leads()
}

// storeLast stores the answers that came when turns were taken no more. A store that gives no
// answer for a moment, such as one whose own leader changes, must not make a task run twice
// that ran once.
func (r *Reconciler) storeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	r.mu.Lock()
	keys := map[fleet.ServerKey]bool{}
	for w := range r.answers {
		keys[w.ServerKey] = true
	}
	r.mu.Unlock()
	for key := range keys {
		if !r.leads() {
			return // whoever leads now runs the tasks again
		}
		once := func() error { return r.turn(ctx, key) }
		err := safely(once)
		for ctx.Err() == nil && r.leads() {
			if fleet.CodeOf(err) == fleet.CodeUnavailable {
				wait(ctx, firstRetry)
			} else if !r.cfg.Store.IsConflict(err) {
				break
			}
			err = safely(once)
		}
		if err != nil {
			// The claim stays: the task is run again, and tells itself apart by its id (S5).
			r.log.Error("the answer to a task could not be stored", "server", key.String(), "error", err)
		}
	}
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
	Call
	room   *slots // its slot is taken
	cancel context.CancelFunc
	record func(fleet.Outcome) // stores the answer, nil where a turn does
}

// begins notes an effect; false: another one of its track is under way.
func (r *Reconciler) begins(e *effect) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is := r.live[e.work()]; is != nil {
		return is == e
	}
	r.live[e.work()] = e
	return true
}

// ends notes the end of an effect and its answer, at once: nobody sees that it has ended and
// not how. nil is no answer.
func (r *Reconciler) ends(e *effect, o *fleet.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o != nil {
		r.answers[e.work()] = answer{e.Task, *o}
	}
	if r.live[e.work()] == e {
		delete(r.live, e.work())
	}
}

// cutShort ends the tasks of a server that may be given up and that no stored plan claims any
// more: something else is wanted by now (S6).
func (r *Reconciler) cutShort(key fleet.ServerKey, s fleet.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, track := range r.tracks {
		w := work{key, track}
		if e := r.live[w]; e != nil && e.Task.Cancellable() && !claims(s.PlanOf(track), e.Task) {
			e.cancel()
			delete(r.live, w)
		}
	}
}
