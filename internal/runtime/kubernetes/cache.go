package kubernetes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// namespaceCache is what is known of a namespace: what its watch has made known, what our
// own writes answered, and what the server itself was asked. It implements
// cache.ReflectorStore.
type namespaceCache struct {
	now func() time.Time

	mu sync.Mutex
	readState
	changed     func(name string) // nil: nobody watches
	objects     map[string]*object
	reportedUID string                        // the UID that was made known for want of one that is expected
	endWatch    func()                        // nil: none was established
	version     string                        // that the watch has reached
	listing     time.Time                     // when the newest list began
	written     map[string]bool               // names of which a write of ours was answered since then
	watches     int                           // that were established so far
	direct      map[string]time.Time          // when a direct read of a name began
	writing     map[string]time.Time          // when a write that goes on began
	altered     map[string][]fleet.Alteration // what the answer to an apply had otherwise; the newest is not stored yet (K10)
	dropped     map[string]bool               // names of which the schema lacks a field
	rolling     map[string]bool               // names of which a controller's sign of life is news (K8)
}

// readState is how far a namespace is read.
type readState struct {
	uid      string    // of the namespace that was listed last; "" where that cannot be read
	expected string    // the UID that it is to have; "": none is known
	listed   bool      // a list has answered since the last watch was cut or refused
	watching bool      // a watch stands
	begun    time.Time // of the newest list that answered, or when the watch last said something
	failure  *fleet.ReadFailure
	lacking  bool // the schema lacks a field of some document
}

// directFor bounds how long a direct read is newer than what the watch says: while
// nothing happens, a watch says nothing.
const directFor = 30 * time.Second

func newNamespaceCache(now func() time.Time) *namespaceCache {
	return &namespaceCache{
		now: now, objects: map[string]*object{}, direct: map[string]time.Time{}, written: map[string]bool{}, writing: map[string]time.Time{},
		altered: map[string][]fleet.Alteration{}, dropped: map[string]bool{}, rolling: map[string]bool{},
	}
}

// notify says whom to notify of changes. Who begins to watch knows nothing yet: what an earlier
// watch has shown may be long past, for another kurad may have led since.
func (c *namespaceCache) notify(changed func(name string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
	if changed != nil {
		c.begun, c.failure, c.listed, c.uid = time.Time{}, nil, false, ""
		clear(c.objects)
		clear(c.direct)
		clear(c.altered)
	}
}

// listBegins notes when a list begins: it may not show what comes later.
func (c *namespaceCache) listBegins() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing = c.now()
	clear(c.written)
}

// state returns how far the namespace is read now.
func (c *namespaceCache) state() readState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current()
}

// current is state for who holds the lock.
func (c *namespaceCache) current() readState {
	s := c.readState
	s.lacking = len(c.dropped) > 0
	if s.watching {
		s.begun = c.now() // an established watch is a read that goes on
	}
	return s
}

// snapshot is what is known of one name.
type snapshot struct {
	object   *object
	begun    time.Time
	failure  *fleet.ReadFailure
	direct   bool
	altered  []fleet.Alteration
	answered bool // an apply of ours was answered
}

func (c *namespaceCache) snapshotOf(name string) snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.current()
	s := snapshot{object: c.objects[name], begun: now.begun, failure: now.failure}
	s.altered, s.answered = c.altered[name]
	if d, ok := c.direct[name]; ok && c.now().Sub(d) < directFor {
		s.begun, s.direct, s.failure = d, true, nil
	}
	if w, ok := c.writing[name]; ok && w.Before(s.begun) {
		s.begun = w
	}
	return s
}

// list returns all objects by name.
func (c *namespaceCache) list() (all []*object, state readState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range sortedKeys(c.objects) {
		all = append(all, c.objects[name])
	}
	return all, c.current()
}

// update runs f on the cache and notifies afterwards of the names that it returns.
func (c *namespaceCache) update(f func() (changed []string)) {
	c.mu.Lock()
	names, changed := f(), c.changed
	c.mu.Unlock()
	if changed == nil {
		return
	}
	for _, name := range names {
		changed(name)
	}
}

// Add implements cache.ReflectorStore.
func (c *namespaceCache) Add(obj any) error { return c.Update(obj) }

// Update implements cache.ReflectorStore.
func (c *namespaceCache) Update(obj any) error {
	if o, ok := obj.(*object); ok {
		c.update(func() []string {
			delete(c.direct, o.Name)
			return c.putNewer(o)
		})
	}
	return nil
}

// putNewer shows o, unless what is shown is newer.
func (c *namespaceCache) putNewer(o *object) []string {
	was := c.objects[o.Name]
	if was != nil && newer(was.ResourceVersion, o.ResourceVersion) {
		return nil // our own write's answer, and the watch lags behind it
	}
	return c.put(o)
}

// put shows o, whatever is shown.
func (c *namespaceCache) put(o *object) []string {
	was := c.objects[o.Name]
	c.objects[o.Name] = o
	if sameView(was, o) && !(c.rolling[o.Name] && was.shown.Written != o.shown.Written) {
		return nil
	}
	return []string{o.Name}
}

// Delete implements cache.ReflectorStore.
func (c *namespaceCache) Delete(obj any) error {
	if o, ok := obj.(*object); ok {
		c.update(func() []string {
			was := c.objects[o.Name]
			if was == nil || newer(was.ResourceVersion, o.ResourceVersion) {
				return nil
			}
			delete(c.direct, o.Name)
			return c.drop(o.Name)
		})
	}
	return nil
}

// drop forgets what bears the name.
func (c *namespaceCache) drop(name string) []string {
	if c.objects[name] == nil {
		return nil
	}
	delete(c.objects, name)
	delete(c.altered, name)
	delete(c.dropped, name)
	delete(c.rolling, name)
	return []string{name}
}

// Replace implements cache.ReflectorStore: it takes a list over, as of version. All else
// that is known is older, even where its version is higher: etcd may have been restored,
// or the cluster rebuilt. Only a write of ours that was answered since the list began may
// be newer.
func (c *namespaceCache) Replace(list []any, version string) error {
	c.update(func() []string {
		first := c.begun.IsZero()
		c.begun, c.version, c.listed = c.listing, version, true
		clear(c.direct)
		there := map[string]bool{}
		var changed []string
		for _, item := range list {
			if o, ok := item.(*object); ok {
				there[o.Name] = true
				put := c.put
				if c.written[o.Name] {
					put = c.putNewer
				}
				changed = append(changed, put(o)...)
			}
		}
		for _, name := range sortedKeys(c.objects) {
			if !there[name] && !(c.written[name] && newer(c.objects[name].ResourceVersion, version)) {
				changed = append(changed, c.drop(name)...)
			}
		}
		if news := c.expected == "" && c.reportedUID != c.uid; first || news {
			c.reportedUID = c.uid
			return []string{""}
		}
		return changed
	})
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to repeat.
func (c *namespaceCache) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (c *namespaceCache) UpdateResourceVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.begun = version, c.now()
}

// answered shows what the server itself answered about a name: nil, nothing is there.
// known is what the cache showed when it was asked. It returns false where the watch
// has been faster in a way that leaves open which of them is newer.
func (c *namespaceCache) answered(name string, o, known *object, begun time.Time) bool {
	ok := true
	c.update(func() (changed []string) {
		now := c.objects[name]
		switch {
		case o == nil && now != known, o != nil && now == nil && c.version != "" && !newer(o.ResourceVersion, c.version):
			ok = false // it came, or went, meanwhile
			return nil
		case o == nil:
			changed = c.drop(name)
		default:
			changed = c.putNewer(o)
		}
		c.direct[name] = begun
		return changed
	})
	return ok
}

// wrote shows what our own write was answered with, unless the watch is past it: then
// it may be gone already.
func (c *namespaceCache) wrote(o *object, altered []fleet.Alteration) {
	c.update(func() []string {
		c.written[o.Name] = true
		c.altered[o.Name] = altered
		if c.version != "" && !newer(o.ResourceVersion, c.version) {
			return nil
		}
		return c.putNewer(o)
	})
}

// deleting shows that the object's deletion was accepted. What it has finalizers for may
// take its time; that it is gone, the watch tells.
func (c *namespaceCache) deleting(name, uid string) {
	c.update(func() []string {
		was := c.objects[name]
		if was == nil || string(was.UID) != uid || was.shown.Deleting {
			return nil
		}
		o := *was
		o.shown.Deleting = true
		c.objects[name] = &o
		return []string{name}
	})
}

// begin notes that a write of name begins; what was seen before it ends may be older than it.
func (c *namespaceCache) begin(name string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.direct, name)
	begun := c.now()
	c.writing[name] = begun
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.writing[name].Equal(begun) {
			delete(c.writing, name)
		}
	}
}

// established notes that a watch stands, until end is called; that it ended is no failure.
func (c *namespaceCache) established(endWatch func()) (end func(inTime bool), recovered bool) {
	var this int
	c.update(func() []string {
		c.watches++
		this = c.watches
		c.watching, c.listed, c.begun, c.endWatch = true, false, c.now(), endWatch
		if recovered = c.failure != nil; recovered {
			c.failure = nil
			return []string{""}
		}
		return nil
	})
	return func(inTime bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watching && c.watches == this { // else the next one stands already
			c.watching, c.listed, c.begun = false, inTime, c.now()
		}
	}, recovered
}

// hangUp ends the watch.
func (c *namespaceCache) hangUp() {
	c.mu.Lock()
	end := c.endWatch
	c.mu.Unlock()
	if end != nil {
		end()
	}
}

// identified notes which namespace is about to be listed, and returns which is expected.
func (c *namespaceCache) identified(uid string) (expected string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = uid
	return c.expected
}

// expect says which namespace is read from now on. Where it was another one, what is known is
// read anew.
func (c *namespaceCache) expect(uid string) {
	var another bool
	c.update(func() []string {
		if c.expected == uid {
			return nil
		}
		if another = c.expected != ""; another {
			c.listed = false
			clear(c.direct)
		}
		c.expected = uid
		return []string{""}
	})
	if another {
		c.hangUp()
	}
}

// failed notes that a list or a watch was refused. What direct reads have hidden that for
// long enough is notified as well.
func (c *namespaceCache) failed(f fleet.ReadFailure) (news bool) {
	c.update(func() (shown []string) {
		for _, name := range sortedKeys(c.direct) {
			if c.now().Sub(c.direct[name]) >= directFor {
				delete(c.direct, name)
				shown = append(shown, name)
			}
		}
		c.watching, c.listed = false, false
		f.Since, f.Count = c.now(), 1
		news = c.failure == nil || c.failure.Reason != f.Reason
		if c.failure != nil {
			f.Since, f.Count = c.failure.Since, c.failure.Count+1
		}
		c.failure = &f
		if news {
			return []string{""}
		}
		return shown
	})
	return news
}

// newSchema forgets what an earlier schema dropped.
func (c *namespaceCache) newSchema() {
	c.update(func() []string {
		clear(c.dropped)
		if c.begun.IsZero() {
			return nil
		}
		return []string{""}
	})
}

// note remembers whether the schema lacks a field of the name's document.
func (c *namespaceCache) note(name string, dropped bool) { c.mark(c.dropped, name, dropped) }

// await remembers whether somebody waits for what a controller writes to show that it has
// rolled the name out. What it wrote before is in the next look.
func (c *namespaceCache) await(name string, rolling bool) { c.mark(c.rolling, name, rolling) }

func (c *namespaceCache) mark(set map[string]bool, name string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		set[name] = true
	} else {
		delete(set, name)
	}
}

// newer reports whether version a is later than b. What cannot be compared is not.
func newer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && n > 0
}
