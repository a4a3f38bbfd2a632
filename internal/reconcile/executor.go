package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Executor runs the effects of the kinds that it is registered for.
type Executor interface {
	// Room is where a region's task is run: those of a room share its slots, and what hangs
	// there takes none from another (P19). Without a name there is no such place.
	Room(region fleet.Region, task fleet.Task) Room
	// Execute runs a claimed task until it succeeded, was answered otherwise or ctx ended. A
	// room's tasks run beside each other: Coalesce makes one call of them.
	Execute(ctx context.Context, c Call) fleet.Outcome
}

// Room is a place where tasks are run.
type Room struct {
	Name  string
	Slots int // tasks at once, which a room keeps; 0: 16
}

// Call is a claimed task, with what it is for.
type Call struct {
	Key     fleet.ServerKey
	Track   fleet.Track
	Region  fleet.Region
	Desired fleet.Desired
	Task    fleet.Task
}

// work is what one track of a server pursues.
type work struct {
	fleet.ServerKey
	track fleet.Track
}

func (c Call) work() work { return work{c.Key, c.Track} }

// sites runs what is done at the sites of servers.
type sites struct{ r *Reconciler }

// Room implements Executor.
func (s sites) Room(region fleet.Region, _ fleet.Task) Room {
	if at := s.r.site(region); at != nil {
		return Room{Name: at.room()}
	}
	return Room{}
}

// Execute implements Executor.
func (s sites) Execute(ctx context.Context, c Call) fleet.Outcome {
	return s.r.site(c.Region).execute(ctx, c) // it has a room
}

// room is a place where effects are run, with slots of its own.
type room struct {
	executor fleet.Executor
	name     string
}

// room returns the slots that a task needs one of, nil where nobody runs it.
func (r *Reconciler) room(task fleet.Task, region fleet.Region) *slots {
	at := room{executor: task.Executor()}
	x := r.executors[at.executor]
	if x == nil {
		return nil
	}
	of := x.Room(region, task)
	if at.name = of.Name; at.name == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.rooms[at]
	if s == nil {
		later := func(w work, d time.Duration) { r.queue.AddAfter(w.ServerKey, d) }
		s = &slots{most: cmp.Or(of.Slots, effectsAtOnce), kick: func(w work) { r.Kick(w.ServerKey) }, pace: pace{now: r.now, later: later}}
		r.rooms[at] = s
	}
	return s
}

// everyRoom returns the slots of all rooms.
func (r *Reconciler) everyRoom() []*slots {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.rooms))
}

// stopWaiting gives on what slots a track waits for or was woken for, but in the room where it
// goes on waiting.
func (r *Reconciler) stopWaiting(w work, but *slots) {
	for _, s := range r.everyRoom() {
		if s != but {
			s.stopWaiting(w)
		}
	}
}

// forgetWaiting drops what rooms keep of a server that is no more.
func (r *Reconciler) forgetWaiting(key fleet.ServerKey) {
	for _, s := range r.everyRoom() {
		for _, track := range r.tracks {
			s.forget(work{key, track})
		}
	}
}

// stopAllWaiting gives on the slots of all tracks of a server.
func (r *Reconciler) stopAllWaiting(key fleet.ServerKey) {
	for _, track := range r.tracks {
		r.stopWaiting(work{key, track}, nil)
	}
}

// slots bound the effects that are under way at once in a room (P19). Who waits keeps its place until it
// begins or its turn ends otherwise: the slot that it was woken for is then the next one's.
type slots struct {
	kick func(work)
	pace pace // of the tries that have slots
	most int

	mu     sync.Mutex
	taken  int
	deaf   int    // that have lost their slots, and have not ended
	queued []work // want one, and have not begun
}

// begin takes up a slot until end. Without one the server's turn is due when there is some.
func (s *slots) begin(key work) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == s.most {
		if !slices.Contains(s.queued, key) {
			s.queued = append(s.queued, key)
		}
		return false
	}
	s.queued = slices.DeleteFunc(s.queued, func(k work) bool { return k == key })
	s.taken++
	return true
}

// tryBegin takes up a slot until end, where there is one, for what waits for none.
func (s *slots) tryBegin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == s.most {
		return false
	}
	s.taken++
	return true
}

// forget says that the track is no more.
func (s *slots) forget(w work) {
	s.pace.forget(w)
	s.stopWaiting(w)
}

func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.wake()
}

// lend gives on the slot of a task that hears of no deadline, and returns how many there are.
func (s *slots) lend() int {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf++
	return s.deaf
}

// ended is end, but for a task that had lost its slot before.
func (s *slots) ended(lent bool) {
	if !lent {
		s.end()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf--
}

func (s *slots) stopWaiting(key work) {
	s.pace.stopWaiting(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queued, key); i >= 0 {
		s.queued = slices.Delete(s.queued, i, i+1)
		s.wake() // it may have been woken instead of another
	}
}

// wake makes the turns due of as many as there is room for; s.mu is held.
func (s *slots) wake() {
	for _, key := range s.queued[:min(len(s.queued), s.most-s.taken)] {
		s.kick(key)
	}
}
