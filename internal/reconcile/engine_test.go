package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// engine is a container engine in memory. It answers as internal/runtime/containers
// does with Podman below it.
type engine struct {
	mu      sync.Mutex
	boxes   map[string]*box // by id
	nextID  int
	hints   map[int]func(string)
	nextSub int
	down    bool
	deaf    bool                     // has no event stream
	lists   int                      // that were asked for
	lag     time.Duration            // between what a listing shows and its answer
	took    time.Duration            // by a task that is no pull
	pulling map[string]time.Duration // by a pull of an image
	effects []string                 // what changed, in order
	listing func()                   // called by each listing
	twice   []string                 // services of which two containers ran at once
	refuse  func(fleet.ServerKey, fleet.Task, *fleet.ServiceDocument) *fleet.Outcome
}

// box is a container.
type box struct {
	fleet.Container
	created  int  // how many came before it
	starts   int  // how often it was started
	stubborn bool // ignores its stop signal
}

func newEngine() *engine {
	return &engine{boxes: map[string]*box{}, hints: map[int]func(string){}, took: 50 * time.Millisecond}
}

var errDown = errors.New("connection refused")

func (e *engine) List(ctx context.Context, _ ...string) ([]fleet.Container, error) {
	e.mu.Lock()
	e.lists++
	listing, lag, down := e.listing, e.lag, e.down
	var cs []fleet.Container
	for _, b := range e.boxes {
		cs = append(cs, b.Container)
	}
	e.mu.Unlock()
	if listing != nil {
		listing()
	}
	if err := rest(ctx, lag); err != nil {
		return nil, err
	}
	if down {
		return nil, errDown
	}
	slices.SortFunc(cs, func(a, b fleet.Container) int { return strings.Compare(a.Name, b.Name) })
	return cs, nil
}

func (e *engine) Watch(ctx context.Context, changed func(string)) error {
	e.mu.Lock()
	if e.deaf {
		e.mu.Unlock()
		panic("there is no event stream")
	}
	id := e.nextSub
	e.nextSub++
	e.hints[id] = changed
	e.mu.Unlock()
	<-ctx.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.hints, id)
	return ctx.Err()
}

// changed notes an effect and tells those who watch; the lock is held.
func (e *engine) changed(what string, b *box) {
	e.effects = append(e.effects, what+" "+b.Name)
	for _, hint := range e.hints {
		hint(b.Name)
	}
}

// rest lets virtual time pass.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func replan(format string, args ...any) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Answered: true, Message: fmt.Sprintf(format, args...)}
}

func unanswered(err error) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonEndpointUnreachable, Message: err.Error()}
}

func refused(reason fleet.Reason) *fleet.Outcome {
	return &fleet.Outcome{Class: fleet.ClassRefused, Reason: reason, Answered: true, Message: "the engine refuses"}
}

func done(id string) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true, ContainerID: id}
}

func (e *engine) Execute(ctx context.Context, key fleet.ServerKey, _ string, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	e.mu.Lock()
	took, down, refuse := e.took, e.down, e.refuse
	if task.Kind == fleet.TaskPull {
		took = e.pulling[task.Image]
	}
	if b := e.boxes[task.ContainerID]; task.Kind == fleet.TaskStop && b != nil && b.stubborn && b.State.Alive() {
		took += task.Grace.Std()
	}
	e.mu.Unlock()
	if down {
		return unanswered(errDown)
	}
	if refuse != nil {
		if o := refuse(key, task, doc); o != nil {
			return *o
		}
	}
	if err := rest(ctx, took); err != nil {
		return unanswered(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if task.Kind == fleet.TaskCreate {
		return e.create(key, task, doc)
	}
	if task.Kind == fleet.TaskRemoveVolumes || task.Kind == fleet.TaskPull {
		return done("")
	}
	b := e.boxes[task.ContainerID]
	adopted := b != nil && task.Adopted && b.Foreign == fleet.NotByKurad
	if b != nil && !adopted && (b.Account != key.Account || b.Region != key.Region) {
		return *refused(fleet.ReasonForeignInstance)
	}
	return e.change(task, b)
}

func (e *engine) create(key fleet.ServerKey, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	if doc == nil || doc.Digest != task.Digest {
		return replan("the document of %s changed", task.Service)
	}
	if old := e.named(task.Name); old != nil {
		switch {
		case old.Account != key.Account || old.Region != key.Region:
			return *refused(fleet.ReasonForeignInstance)
		case old.Digest == task.Digest && old.Service == task.Service:
			return done(old.ID)
		}
		return replan("container %s is there, made from another document", task.Name)
	}
	b := e.put(fleet.Container{
		Service: task.Service, Account: key.Account, Region: key.Region, Name: task.Name,
		Image: doc.Image, State: fleet.ContainerCreated, Digest: doc.Digest, RestartMark: doc.RestartMark,
	})
	return done(b.ID)
}

func (e *engine) change(task fleet.Task, b *box) fleet.Outcome {
	switch task.Kind {
	case fleet.TaskStop:
		if b == nil || !b.State.Alive() {
			return done(task.ContainerID)
		}
		e.exit(b, 0)
		o := done(b.ID)
		o.Forced = b.stubborn
		return o
	case fleet.TaskRename:
		if b == nil {
			return replan("container %s is gone", task.ContainerID)
		}
		if holder := e.named(task.Name); holder != nil && holder != b {
			if holder.Foreign != "" || holder.Account != b.Account || holder.Region != b.Region {
				return *refused(fleet.ReasonForeignInstance)
			}
			return replan("the name %s is taken", task.Name)
		}
		if b.Name != task.Name {
			b.Name = task.Name
			e.changed("rename", b)
		}
	case fleet.TaskStart:
		if b == nil {
			return replan("container %s is gone", task.ContainerID)
		}
		if b.State != fleet.ContainerRunning {
			b.State, b.Started, b.Finished = fleet.ContainerRunning, nil, nil
			b.starts++
			e.changed("start", b)
			for _, o := range e.boxes {
				if o != b && o.State == fleet.ContainerRunning && o.Account == b.Account && o.Region == b.Region && o.Service == b.Service {
					e.twice = append(e.twice, b.Name+" and "+o.Name)
				}
			}
		}
	case fleet.TaskRemove:
		if b == nil {
			return done(task.ContainerID)
		}
		if b.State.Alive() {
			return replan("container %s runs", b.Name)
		}
		e.drop(b)
	case fleet.TaskPull, fleet.TaskCreate, fleet.TaskRemoveVolumes:
	}
	return done(task.ContainerID)
}

func (e *engine) named(name string) *box {
	for _, b := range e.boxes {
		if b.Name == name {
			return b
		}
	}
	return nil
}

func (e *engine) put(c fleet.Container) *box {
	e.nextID++
	c.ID = fmt.Sprintf("id%d", e.nextID)
	b := &box{Container: c, created: e.nextID}
	e.boxes[c.ID] = b
	e.changed("create", b)
	return b
}

func (e *engine) drop(b *box) {
	delete(e.boxes, b.ID)
	e.changed("remove", b)
}

func (e *engine) exit(b *box, code int) {
	now := time.Now()
	before := now.Add(-time.Minute)
	b.State, b.Started, b.Finished, b.ExitCode = fleet.ContainerExited, &before, &now, code
	e.changed("exit", b)
}

// reboot ends all containers.
func (e *engine) reboot() {
	e.with(func() {
		for _, b := range e.boxes {
			e.exit(b, 255)
		}
	})
}

// with changes the engine under its lock.
func (e *engine) with(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// of returns the containers of a server, by name, as copies.
func (e *engine) of(account string) []box {
	e.mu.Lock()
	defer e.mu.Unlock()
	var bs []box
	for _, b := range e.boxes {
		if b.Account == account {
			bs = append(bs, *b)
		}
	}
	slices.SortFunc(bs, func(a, b box) int { return strings.Compare(a.Name, b.Name) })
	return bs
}

// count returns how many effects of a kind there were.
func (e *engine) count(what string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, effect := range e.effects {
		if strings.HasPrefix(effect, what+" ") {
			n++
		}
	}
	return n
}

// removeAll takes a server's containers away behind kurad's back.
func (e *engine) removeAll(account string) {
	e.with(func() {
		for _, b := range maps.Clone(e.boxes) {
			if b.Account == account {
				e.drop(b)
			}
		}
	})
}

// listed returns how many listings were asked for.
func (e *engine) listed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lists
}

// history returns all effects so far.
func (e *engine) history() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.effects)
}
