package server

import (
	"cmp"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// maxChanges is how many changes a long poll can lie behind before it gets everything.
const maxChanges = 8192

// changes remembers which servers changed lately, and in which order, for long polls.
// The order is this process's own: one revision of the store may change many servers,
// and a poll must not lose the ones that come after its wake-up.
type changes struct {
	id     string // of this memory: cursors of another one are foreign
	cancel func()

	mu     sync.Mutex
	keys   []fleet.ServerKey // changed at floor+1, floor+2, …
	floor  int64             // what changed up to here is forgotten
	server chan struct{}     // closed at the next change of a server
	event  chan struct{}     // closed at the next event
	closed bool
}

// follow hears of the view's changes until close.
func follow(view *store.View) *changes {
	c := &changes{id: rand.Text()[:10], server: make(chan struct{}), event: make(chan struct{})}
	c.cancel = view.Subscribe(func(u store.Update) { c.take(view, u) })
	return c
}

// take notes what an update changes of how servers read.
func (c *changes) take(view *store.View, u store.Update) {
	var keys []fleet.ServerKey
	everything := false
	switch u.Kind {
	case store.KindStatus, store.KindDeployment:
		keys = []fleet.ServerKey{u.Key}
	case store.KindIntent, store.KindAccount, store.KindRegion:
		keys = view.RenderedFrom(u)
	case store.KindTemplate:
		everything = true
	case store.KindEvent:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			close(c.event)
			c.event = make(chan struct{})
		}
		return
	case store.KindSchema, store.KindTry, store.KindClaims, store.KindToken, store.KindReservation, store.KindReference, store.KindEndpoint, store.KindLock, store.KindLeader, store.KindAnchor, store.KindCluster, store.KindOrphan:
		return // no server reads differently for it
	}
	c.note(keys, everything)
}

// note wakes the long polls of servers that read otherwise now.
func (c *changes) note(keys []fleet.ServerKey, everything bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, keys...)
	forget := max(0, len(c.keys)-maxChanges)
	if everything {
		forget = len(c.keys)
	}
	c.floor += int64(forget)
	c.keys = c.keys[forget:]
	if everything {
		c.floor++
	}
	if !c.closed {
		close(c.server)
		c.server = make(chan struct{})
	}
}

// since returns the keys that changed after a point, each once; known is false where
// that is too long ago to say. moved is closed at the next change of any server.
func (c *changes) since(point int64, of func(fleet.ServerKey) bool) (keys []fleet.ServerKey, at int64, known bool, moved <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, moved = c.floor+int64(len(c.keys)), c.server
	if point < c.floor || point > at {
		return nil, at, false, moved
	}
	seen := map[fleet.ServerKey]bool{}
	for _, k := range c.keys[point-c.floor:] {
		if of(k) && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b fleet.ServerKey) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Account, b.Account))
	})
	return keys, at, true, moved
}

// now returns the present point.
func (c *changes) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.floor + int64(len(c.keys))
}

// nextEvent is closed at the next event of any server.
func (c *changes) nextEvent() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.event
}

// done reports whether waiting has no end any more.
func (c *changes) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close ends every wait.
func (c *changes) close() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.server)
		close(c.event)
	}
}
