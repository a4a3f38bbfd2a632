package containers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// Execute runs one task of server key, until it succeeded, the engine answered
// otherwise or ctx ended. Every task may be repeated. doc is the rendered document of
// the task's service; a pull and a create need it, and remove-volumes keeps and removes the
// volumes that it names as it says, whatever their labels say.
func (e *Endpoint) Execute(ctx context.Context, key fleet.ServerKey, instance string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	r := run{Endpoint: e, key: key, instance: instance, task: task, doc: doc}
	o := r.execute(ctx)
	o.At = time.Now().UTC()
	runtime.LogUndone(e.log, key, task, o)
	return o
}

// run is one execution of a task.
type run struct {
	*Endpoint
	key      fleet.ServerKey
	instance string
	task     fleet.Task
	doc      *fleet.ServiceDocument
}

func (r run) execute(ctx context.Context) fleet.Outcome {
	switch r.task.Kind {
	case fleet.TaskPull:
		return r.prepare(ctx, r.pull)
	case fleet.TaskCreate:
		return r.prepare(ctx, r.create)
	case fleet.TaskStop:
		return r.onContainer(ctx, r.stop)
	case fleet.TaskRename:
		return r.onContainer(ctx, r.rename)
	case fleet.TaskStart:
		return r.onContainer(ctx, r.start)
	case fleet.TaskRemove:
		return r.onContainer(ctx, r.remove)
	case fleet.TaskRemoveVolumes:
		return r.removeVolumes(ctx)
	case fleet.TaskApply, fleet.TaskDelete, fleet.TaskPublish, fleet.TaskWithdraw, fleet.TaskJoin, fleet.TaskLeave: // not an engine's
	}
	return runtime.Refuse(fleet.ReasonInvalid, "this kurad knows no task %q of an engine", r.task.Kind)
}

// onContainer runs a step on the container that the task names by id, and on none that is not
// the server's (C7).
func (r run) onContainer(ctx context.Context, step func(context.Context, *container.InspectResponse) fleet.Outcome) fleet.Outcome {
	if r.task.ContainerID == "" {
		return runtime.Replan("the plan names no container to %s", r.task.Kind)
	}
	seen, err := r.inspect(ctx, r.task.ContainerID)
	switch {
	case errdefs.IsNotFound(err) && (r.task.Kind == fleet.TaskStop || r.task.Kind == fleet.TaskRemove):
		return done(r.task.ContainerID)
	case errdefs.IsNotFound(err):
		return r.gone()
	case err != nil:
		return r.unread(err)
	}
	if who := ownerOf(seen.Config.Labels); who != r.ownerFor(r.key) && !r.adopted(seen.ID, who) {
		return runtime.Foreign("container "+nameOf(seen), who.String())
	}
	return step(ctx, seen)
}

// gone is the outcome of a task whose container is not there any more.
func (r run) gone() fleet.Outcome {
	return runtime.Replan("container %s to %s is gone", short(r.task.ContainerID), r.task.Kind)
}

// adopted reports whether the container is the server's by its recorded id: the very one
// that the task names, and without labels of anybody.
func (r run) adopted(id string, who runtime.Owner) bool {
	return r.task.Adopted && id == r.task.ContainerID && who == (runtime.Owner{})
}

// inspect looks at a container by id or name. Without a container the error is not
// found; with one, its Config and State are set.
func (e *Endpoint) inspect(ctx context.Context, ref string) (*container.InspectResponse, error) {
	if err := e.negotiate(ctx); err != nil {
		return nil, err
	}
	seen, err := e.engine.ContainerInspect(ctx, ref, client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	c := &seen.Container
	// Engines also take the beginning of an id for a name.
	if c.ID != ref && nameOf(c) != ref {
		return nil, fmt.Errorf("container %s: %w", ref, errdefs.ErrNotFound)
	}
	if c.Config == nil || c.State == nil {
		return nil, fmt.Errorf("the engine's answer about container %s lacks its configuration or state", ref)
	}
	return c, nil
}

func nameOf(c *container.InspectResponse) string { return strings.TrimPrefix(c.Name, "/") }

func runs(c *container.InspectResponse) bool {
	return stateOf(string(c.State.Status)).Alive()
}

// done is a task's success with the container it was about.
func done(id string) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true, ContainerID: id}
}

// failed is the outcome of an engine's error about the change that the task makes.
func (r run) failed(err error) fleet.Outcome {
	attempt := r.task.Describe()
	if r.task.Kind == fleet.TaskPull {
		attempt = "pull image " + r.doc.Image
	}
	return r.outcome(r.task.Kind, attempt, err)
}

// unread is the outcome of a look at something that failed.
func (r run) unread(err error) fleet.Outcome {
	return r.outcome("", "look at endpoint "+r.cfg.Name, err)
}

func (r run) outcome(kind fleet.TaskKind, attempt string, err error) fleet.Outcome {
	status := statusOf(err)
	class, reason := classify(kind, status)
	return fleet.Outcome{
		Class: class, Reason: reason, Answered: status != unanswered || neverSent(err),
		Message: fmt.Sprintf("%s: %s", attempt, shorten(r.cfg.hide(err.Error()))),
	}
}

// neverSent reports whether the engine could not be connected to, so that nothing may
// land later. The client calls every broken connection a failed one; of those that broke
// off after the request it keeps the URL's error, of the others only the cause.
func neverSent(err error) bool {
	_, sent := errors.AsType[*url.Error](err)
	return client.IsErrConnectionFailed(err) && !sent
}

func isConflict(err error) bool {
	s := statusOf(err)
	return s == http.StatusConflict || s == http.StatusInternalServerError
}
