package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// settle lets the events of one change of a container arrive before it is listed, and
// bounds how often an engine that is never quiet is listed.
const settle = 100 * time.Millisecond

// endpoint observes one container endpoint: one listing per tick serves all its
// servers, and the engine's event stream pulls the next one forward (C1).
type endpoint struct {
	name   string
	engine Runtime
	r      *Reconciler
	asked  chan struct{} // a listing is wanted now

	mu       sync.Mutex
	begun    time.Time // of the newest listing that answered
	failure  *fleet.ReadFailure
	byName   map[string]fleet.Container
	byOwner  map[fleet.ServerKey][]string // names
	since    map[string]time.Time         // by id: when it was first listed
	awaiting []chan struct{}              // want a listing that begins from now on
	stale    map[fleet.ServerKey]bool     // want a turn after the next listing, whatever it shows
}

func newEndpoint(name string, rt Runtime, r *Reconciler) *endpoint {
	return &endpoint{
		name: name, engine: rt, r: r, asked: make(chan struct{}, 1), stale: map[fleet.ServerKey]bool{},
	}
}

func (e *endpoint) String() string { return "endpoint " + e.name }

// target is that of the regions whose containers are here.
func (e *endpoint) target() string {
	return fleet.Region{Containers: &fleet.Containers{Endpoint: e.name}}.Target()
}

// observe lists at every tick, and soon when asked, until ctx ends.
func (e *endpoint) observe(ctx context.Context) {
	tick := time.NewTicker(e.r.cfg.Tick)
	defer tick.Stop()
	for ctx.Err() == nil {
		e.list(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-e.asked:
			wait(ctx, settle)
		}
	}
}

// watch takes the engine's hints until ctx ends. One that ends before costs latency only.
func (e *endpoint) watch(ctx context.Context) {
	for {
		err := safely(func() error { return e.engine.Watch(ctx, func(string) { e.requestList() }) })
		if ctx.Err() != nil {
			return
		}
		e.r.log.Error("the endpoint's event stream ended; until it is back, changes are seen at the tick", "endpoint", e.name, "error", err)
		wait(ctx, e.r.cfg.Tick)
	}
}

// requestList makes a listing due that begins from now on.
func (e *endpoint) requestList() {
	select {
	case e.asked <- struct{}{}:
	default: // one is asked for already, and it will begin after this
	}
}

// Follow makes a turn of the server due after the next listing, where it needs one.
func (e *endpoint) Follow(in projection.Input, out projection.Output) {
	if !lookNow(in, out) {
		return
	}
	e.mu.Lock()
	e.stale[in.Intent.Key()] = true
	e.mu.Unlock()
	e.requestList()
}

// Fresh implements Observer.
func (e *endpoint) Fresh(ctx context.Context, _ fleet.Gathered) error {
	done := make(chan struct{})
	e.mu.Lock()
	e.awaiting = append(e.awaiting, done)
	e.mu.Unlock()
	e.requestList()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("read %s: %w", e, ctx.Err())
	}
}

// list takes one listing and makes the turns of the servers due that it changed.
func (e *endpoint) list(ctx context.Context) {
	e.mu.Lock()
	awaiting, stale := e.awaiting, e.stale
	e.awaiting, e.stale = nil, map[fleet.ServerKey]bool{}
	e.mu.Unlock()

	adopted := e.adopted()
	begun := e.r.now()
	within, cancel := context.WithTimeout(ctx, listTimeout)
	var cs []fleet.Container
	err := safely(func() (err error) { cs, err = e.engine.List(within, adopted...); return err })
	cancel()
	if ctx.Err() != nil {
		return // cut short: it says nothing
	}

	var due []fleet.ServerKey
	if err != nil {
		if e.failed(err) {
			due = e.r.serversAt(e.target())
		}
	} else if changed, again := e.listed(begun, cs); again {
		due = e.r.serversAt(e.target())
	} else {
		due = e.concerned(changed)
	}
	e.r.kick(due)
	e.r.kick(slices.Collect(maps.Keys(stale)))
	for _, done := range awaiting {
		close(done)
	}
}

// failed notes a read that did not answer and says whether that is news (P2).
func (e *endpoint) failed(err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.r.cfg.ReadFailure(err)
	f.Since, f.Count = e.r.now(), 1
	news := e.failure == nil || e.failure.Reason != f.Reason
	if e.failure != nil {
		f.Since, f.Count = e.failure.Since, e.failure.Count+1
	}
	if news {
		e.r.log.Warn("endpoint cannot be read", "endpoint", e.name, "reason", f.Reason, "error", f.Message)
	} else {
		f.Message = e.failure.Message // a message that varies is no news
	}
	e.failure = &f
	return news
}

// listed takes a listing over. It returns the containers that changed, or again=true
// where every server's turn is due: it is the first one, or the first after a failure.
func (e *endpoint) listed(begun time.Time, cs []fleet.Container) (changed []fleet.Container, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		e.r.log.Info("endpoint can be read again", "endpoint", e.name, "failed_reads", e.failure.Count)
	}
	again = e.byName == nil || e.failure != nil
	old := e.byName
	e.begun, e.failure = begun, nil
	e.byName, e.byOwner = make(map[string]fleet.Container, len(cs)), map[fleet.ServerKey][]string{}
	since := make(map[string]time.Time, len(cs))
	for _, c := range cs {
		e.byName[c.Name] = c
		since[c.ID] = begun
		if at, ok := e.since[c.ID]; ok {
			since[c.ID] = at
		}
		if c.Foreign == "" {
			owner := fleet.ServerKey{Account: c.Account, Region: c.Region}
			e.byOwner[owner] = append(e.byOwner[owner], c.Name)
		}
		if was, ok := old[c.Name]; !ok || !reflect.DeepEqual(was, c) {
			changed = append(changed, c)
			if ok && (was.Account != c.Account || was.Region != c.Region) {
				changed = append(changed, was)
			}
		}
	}
	for name, was := range old {
		if _, ok := e.byName[name]; !ok {
			changed = append(changed, was)
		}
	}
	e.since = since
	return changed, again
}

// concerned names the servers that a container belongs to, or whose name it bears.
func (e *endpoint) concerned(cs []fleet.Container) []fleet.ServerKey {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	var keys []fleet.ServerKey
	for _, c := range cs {
		if key, ok := e.r.names[targetName{e.target(), c.Name}]; ok {
			keys = append(keys, key)
		}
		if key, ok := e.r.adopted[c.ID]; ok {
			keys = append(keys, key)
		}
		if c.Foreign == "" && c.Account != "" {
			keys = append(keys, fleet.ServerKey{Account: c.Account, Region: c.Region})
		}
	}
	return keys
}

// adopted are the ids of containers without labels that are servers' of this endpoint.
func (e *endpoint) adopted() []string {
	e.r.mu.Lock()
	defer e.r.mu.Unlock()
	var ids []string
	for id, key := range e.r.adopted {
		if e.r.known[key].site == site(e) {
			ids = append(ids, id)
		}
	}
	return ids
}

// listing returns all that is known of the endpoint's containers.
func (e *endpoint) listing() fleet.Listing {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := fleet.Listing{Endpoint: e.name, Begun: e.begun, Since: maps.Clone(e.since)}
	if e.failure != nil {
		f := *e.failure
		l.Unreadable = &f
	}
	for _, name := range slices.Sorted(maps.Keys(e.byName)) {
		l.Containers = append(l.Containers, e.byName[name])
	}
	return l
}

// Observe adds the containers that bear the server's labels or one of its names, and those
// that it adopted. A container of another server that bears a name is foreign to this one.
func (e *endpoint) Observe(in *projection.Input) {
	key := in.Intent.Key()
	var adopted map[string]fleet.Adoption
	if in.Prev != nil {
		adopted = in.Prev.Adopted
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &in.Seen.Instance
	o.Begun = e.begun
	if e.failure != nil {
		f := *e.failure
		o.Unreadable = &f
	}
	taken := map[string]bool{}
	add := func(name string) {
		c, ok := e.byName[name]
		if !ok || taken[name] {
			return
		}
		taken[name] = true
		for service, a := range adopted {
			c, _ = a.Ours(key, service, c)
		}
		if c.Foreign == "" && (c.Account != key.Account || c.Region != key.Region) {
			c.Foreign = "server " + fleet.ServerKey{Account: c.Account, Region: c.Region}.String()
		}
		o.Containers = append(o.Containers, c)
	}
	for _, name := range namesOf(in.Desired) {
		add(name)
	}
	for _, a := range adopted {
		add(e.nameOf(a.ID))
	}
	for _, name := range e.byOwner[key] {
		add(name)
	}
	slices.SortFunc(o.Containers, func(a, b fleet.Container) int { return cmp.Compare(a.Name, b.Name) })
}

// nameOf returns the name of the container with an id, "" where there is none; e.mu is held.
func (e *endpoint) nameOf(id string) string {
	for name, c := range e.byName {
		if c.ID == id {
			return name
		}
	}
	return ""
}

func (e *endpoint) room() string { return e.name }

func (e *endpoint) execute(ctx context.Context, c Call) fleet.Outcome {
	return e.engine.Execute(ctx, c.Key, c.Desired.Instance, c.Task, document(c.Desired, c.Task))
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

// Memory implements Observer: one listing is of all servers.
func (e *endpoint) Memory(fleet.ServerKey) (time.Time, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure != nil {
		return e.begun, e.failure.Count
	}
	return e.begun, 0
}
