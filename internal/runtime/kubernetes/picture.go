package kubernetes

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// picture is what is known of a namespace: what its watch has made known, what our own
// writes answered, and what the server itself was asked. It implements
// cache.ReflectorStore.
type picture struct {
	now func() time.Time

	mu          sync.Mutex
	changed     func(name string) // nil: nobody watches
	objects     map[string]*object
	uid         string          // of the namespace that was listed last; "" where that cannot be read
	reportedUID string          // the UID that was made known for want of one that is expected
	expected    string          // the UID that it is to have; "": none is known
	cut         func()          // ends the watch; nil: none was established
	version     string          // that the watch has reached
	begun       time.Time       // of the newest list that answered, or when the watch last said something
	listing     time.Time       // when the newest list began
	fresh       map[string]bool // names of which a write of ours was answered since then
	full        bool            // a list has answered since the last watch was cut or refused
	live        bool            // a watch stands
	watches     int             // that were established so far
	failure     *fleet.ReadFailure
	direct      map[string]time.Time          // when a direct read of a name began
	writing     map[string]time.Time          // when a write that goes on began
	echoes      map[string][]fleet.Alteration // what the answer to an apply had otherwise; the newest is not stored yet (K10)
	dropped     map[string]bool               // names of which the schema lacks a field
	rolling     map[string]bool               // names of which a controller's sign of life is news (K8)
}

// directFor bounds how long a direct read is newer than what the watch says: while
// nothing happens, a watch says nothing.
const directFor = 30 * time.Second

func newPicture(now func() time.Time) *picture {
	return &picture{
		now: now, objects: map[string]*object{}, direct: map[string]time.Time{},
		fresh: map[string]bool{}, writing: map[string]time.Time{}, echoes: map[string][]fleet.Alteration{}, dropped: map[string]bool{}, rolling: map[string]bool{},
	}
}

// notify says whom to notify of changes. Who begins to watch knows nothing yet: what an earlier
// watch has shown may be long past, for another kurad may have led since.
func (p *picture) notify(changed func(name string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = changed
	if changed != nil {
		p.begun, p.failure, p.full, p.uid = time.Time{}, nil, false, ""
		clear(p.objects)
		clear(p.direct)
		clear(p.echoes)
	}
}

// listBegins notes when a list begins: it may not show what comes later.
func (p *picture) listBegins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listing = p.now()
	clear(p.fresh)
}

// snapshot is what a picture knows of one name.
type snapshot struct {
	object  *object
	begun   time.Time
	failure *fleet.ReadFailure
	direct  bool
	altered []fleet.Alteration
	echoed  bool // an apply of ours was answered
}

func (p *picture) snapshotOf(name string) snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := snapshot{object: p.objects[name], begun: p.begun, failure: clone(p.failure)}
	g.altered, g.echoed = p.echoes[name]
	if p.live {
		// An established watch is a read that goes on.
		g.begun = p.now()
	}
	if d, ok := p.direct[name]; ok && p.now().Sub(d) < directFor {
		g.begun, g.direct, g.failure = d, true, nil
	}
	if w, ok := p.writing[name]; ok && w.Before(g.begun) {
		g.begun = w
	}
	return g
}

// list returns all objects by name.
func (p *picture) list() (all []*object, begun time.Time, failure *fleet.ReadFailure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range sortedKeys(p.objects) {
		all = append(all, p.objects[name])
	}
	begun = p.begun
	if p.live {
		begun = p.now()
	}
	return all, begun, clone(p.failure)
}

// update runs f on the picture and tells afterwards the names that it returns as changed.
func (p *picture) update(f func() (changed []string)) {
	p.mu.Lock()
	names, tell := f(), p.changed
	p.mu.Unlock()
	if tell == nil {
		return
	}
	for _, name := range names {
		tell(name)
	}
}

// Add implements cache.ReflectorStore.
func (p *picture) Add(obj any) error { return p.Update(obj) }

// Update implements cache.ReflectorStore.
func (p *picture) Update(obj any) error {
	o, ok := obj.(*object)
	if !ok {
		return nil
	}
	p.update(func() []string {
		delete(p.direct, o.Name)
		return p.take(o)
	})
	return nil
}

// take shows o, unless what is shown is newer.
func (p *picture) take(o *object) []string {
	was := p.objects[o.Name]
	if was != nil && newer(was.ResourceVersion, o.ResourceVersion) {
		return nil // our own write's answer, and the watch lags behind it
	}
	return p.put(o)
}

// put shows o, whatever is shown.
func (p *picture) put(o *object) []string {
	was := p.objects[o.Name]
	p.objects[o.Name] = o
	if sameView(was, o) && !(p.rolling[o.Name] && was.written != o.written) {
		return nil
	}
	return []string{o.Name}
}

// Delete implements cache.ReflectorStore.
func (p *picture) Delete(obj any) error {
	o, ok := obj.(*object)
	if !ok {
		return nil
	}
	p.update(func() []string {
		was := p.objects[o.Name]
		if was == nil || newer(was.ResourceVersion, o.ResourceVersion) {
			return nil
		}
		delete(p.direct, o.Name)
		return p.drop(o.Name)
	})
	return nil
}

// drop forgets what bears the name.
func (p *picture) drop(name string) []string {
	if p.objects[name] == nil {
		return nil
	}
	delete(p.objects, name)
	delete(p.echoes, name)
	delete(p.dropped, name)
	delete(p.rolling, name)
	return []string{name}
}

// Replace implements cache.ReflectorStore: it takes a list over, as of version. All else
// that is known is older, even where its version is higher: etcd may have been restored,
// or the cluster rebuilt. Only a write of ours that was answered since the list began may
// be newer.
func (p *picture) Replace(list []any, version string) error {
	p.update(func() []string {
		first := p.begun.IsZero()
		p.begun, p.version, p.full = p.listing, version, true
		clear(p.direct)
		listed := map[string]bool{}
		var changed []string
		for _, item := range list {
			if o, ok := item.(*object); ok {
				listed[o.Name] = true
				if p.fresh[o.Name] {
					changed = append(changed, p.take(o)...)
				} else {
					changed = append(changed, p.put(o)...)
				}
			}
		}
		for _, name := range sortedKeys(p.objects) {
			if !listed[name] && !(p.fresh[name] && newer(p.objects[name].ResourceVersion, version)) {
				changed = append(changed, p.drop(name)...)
			}
		}
		if news := p.expected == "" && p.reportedUID != p.uid; first || news {
			p.reportedUID = p.uid
			return []string{""}
		}
		return changed
	})
	return nil
}

// Resync implements cache.ReflectorStore: there is nothing to repeat.
func (p *picture) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (p *picture) UpdateResourceVersion(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version, p.begun = version, p.now()
}

// answered shows what the server itself answered about a name: nil, nothing is there.
// known is what the picture showed when it was asked. It returns false where the watch
// has been faster in a way that leaves open which of them is newer.
func (p *picture) answered(name string, o, known *object, begun time.Time) bool {
	ok := true
	p.update(func() (changed []string) {
		now := p.objects[name]
		switch {
		case o == nil && now != known, o != nil && now == nil && p.version != "" && !newer(o.ResourceVersion, p.version):
			ok = false // it came, or went, meanwhile
			return nil
		case o == nil:
			changed = p.drop(name)
		default:
			changed = p.take(o)
		}
		p.direct[name] = begun
		return changed
	})
	return ok
}

// wrote shows what our own write was answered with, unless the watch is past it: then
// it may be gone already.
func (p *picture) wrote(o *object, altered []fleet.Alteration) {
	p.update(func() []string {
		p.fresh[o.Name] = true
		p.echoes[o.Name] = altered
		if p.version != "" && !newer(o.ResourceVersion, p.version) {
			return nil
		}
		return p.take(o)
	})
}

// deleting shows that the object's deletion was accepted. What it has finalizers for may
// take its time; that it is gone, the watch tells.
func (p *picture) deleting(name, uid string) {
	p.update(func() []string {
		was := p.objects[name]
		if was == nil || string(was.UID) != uid || was.DeletionTimestamp != nil {
			return nil
		}
		o := *was
		at := metaTime(p.now())
		o.DeletionTimestamp = &at
		p.objects[name] = &o
		return []string{name}
	})
}

// begin notes that a write of name begins; what was seen before it ends may be older than it.
func (p *picture) begin(name string) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.direct, name)
	begun := p.now()
	p.writing[name] = begun
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.writing[name].Equal(begun) {
			delete(p.writing, name)
		}
	}
}

// established notes that a watch stands, until end is called; that it ended is no failure.
func (p *picture) established(cut func()) (end func(inTime bool), recovered bool) {
	var this int
	p.update(func() []string {
		p.watches++
		this = p.watches
		p.live, p.full, p.begun, p.cut = true, false, p.now(), cut
		if recovered = p.failure != nil; recovered {
			p.failure = nil
			return []string{""}
		}
		return nil
	})
	return func(inTime bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.live && p.watches == this { // else the next one stands already
			p.live, p.full, p.begun = false, inTime, p.now()
		}
	}, recovered
}

// listed reports whether a list has answered since a watch was last cut, or refused.
func (p *picture) listed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full
}

// watched reports whether a watch stands.
func (p *picture) watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// failed notes that a list or a watch was refused. What direct reads have hidden that for
// long enough is told as well.
func (p *picture) failed(f fleet.ReadFailure) (news bool) {
	p.update(func() (shown []string) {
		for _, name := range sortedKeys(p.direct) {
			if p.now().Sub(p.direct[name]) >= directFor {
				delete(p.direct, name)
				shown = append(shown, name)
			}
		}
		p.live, p.full = false, false
		f.Since, f.Count = p.now(), 1
		news = p.failure == nil || p.failure.Reason != f.Reason
		if p.failure != nil {
			f.Since, f.Count = p.failure.Since, p.failure.Count+1
		}
		p.failure = &f
		if news {
			return []string{""}
		}
		return shown
	})
	return news
}

// newSchema forgets what an earlier schema dropped.
func (p *picture) newSchema() {
	p.update(func() []string {
		clear(p.dropped)
		if p.begun.IsZero() {
			return nil
		}
		return []string{""}
	})
}

// note remembers whether the schema lacks a field of the name's document.
func (p *picture) note(name string, dropped bool) { p.mark(p.dropped, name, dropped) }

// await remembers whether somebody waits for what a controller writes to show that it has
// rolled the name out. What it wrote before is in the next look.
func (p *picture) await(name string, rolling bool) { p.mark(p.rolling, name, rolling) }

func (p *picture) mark(set map[string]bool, name string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		set[name] = true
	} else {
		delete(set, name)
	}
}

// drops reports whether the schema lacks any field of a document.
func (p *picture) drops() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.dropped) > 0
}

// newer reports whether version a is later than b. What cannot be compared is not.
func newer(a, b string) bool {
	n, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && n > 0
}

func clone(f *fleet.ReadFailure) *fleet.ReadFailure {
	if f == nil {
		return nil
	}
	c := *f
	return &c
}
