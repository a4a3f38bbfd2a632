package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// memoryHistory is how many revisions a Memory keeps at least. Older ones are compacted
// from time to time, so that a long simulation stays small and meets ErrCompacted.
const memoryHistory = 8192

// Memory is a Store in memory, for tests and simulation: the semantics of the real one
// without its durability. It needs no goroutine of its own and works in a synctest bubble.
type Memory struct {
	mu        sync.Mutex
	revision  int64
	compacted int64 // revisions up to this one are gone for watches; lists may still see it
	keys      []string
	versions  map[string][]version
	history   []kv.Batch
	asked     int           // how often Progress was called
	changed   chan struct{} // closed and replaced at each write, and when asked
	closed    chan struct{}
	failed    chan struct{}
	err       error
	watches   sync.WaitGroup
}

type version struct {
	revision int64
	value    []byte
	deleted  bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		revision: 1, versions: map[string][]version{},
		changed: make(chan struct{}), closed: make(chan struct{}), failed: make(chan struct{}),
	}
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, key string) (kv.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return kv.Item{}, err
	}
	item, ok := m.at(key, m.revision)
	if !ok {
		return kv.Item{}, fmt.Errorf("%s: %w", key, kv.ErrNotFound)
	}
	return item, nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	if err := kv.CheckPrefix(prefix); err != nil {
		return kv.Page{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return kv.Page{}, err
	}
	page := kv.Page{Revision: o.Revision}
	switch {
	case o.Revision == 0:
		page.Revision = m.revision
	case o.Revision < m.compacted:
		return kv.Page{}, kv.ErrCompacted
	case o.Revision > m.revision:
		return kv.Page{}, fmt.Errorf("revision %d is not there yet", o.Revision)
	}
	from := sort.SearchStrings(m.keys, prefix)
	to := from + sort.Search(len(m.keys)-from, func(i int) bool { return !strings.HasPrefix(m.keys[from+i], prefix) })
	for _, key := range m.keys[from:to] {
		if o.After != "" && key <= o.After {
			continue
		}
		item, ok := m.at(key, page.Revision)
		if !ok {
			continue
		}
		if o.Limit > 0 && len(page.Items) == o.Limit {
			page.More = true
			break
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// Txn implements Store.
func (m *Memory) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	for _, c := range t.If {
		if c.Prefix {
			if found, ok := m.first(c.Key); ok {
				return 0, &kv.ConflictError{Key: c.Key, Found: found}
			}
			continue
		}
		if item, _ := m.at(c.Key, m.revision); item.Revision != c.Revision {
			return 0, &kv.ConflictError{Key: c.Key}
		}
	}
	next := m.revision + 1
	var events []kv.Change
	for _, op := range t.Then {
		switch op.Kind {
		case kv.OpPut:
			item := kv.Item{Key: op.Key, Value: bytes.Clone(op.Value), Revision: next}
			events = append(events, kv.Change{Key: op.Key, Item: item})
		case kv.OpDelete:
			if _, ok := m.at(op.Key, m.revision); ok {
				events = append(events, deletion(op.Key, next))
			}
		case kv.OpDeletePrefix:
			for _, key := range m.keys[sort.SearchStrings(m.keys, op.Key):] {
				if !strings.HasPrefix(key, op.Key) {
					break
				}
				if _, ok := m.at(key, m.revision); ok {
					events = append(events, deletion(key, next))
				}
			}
		}
	}
	if len(events) == 0 {
		return m.revision, nil
	}
	m.revision = next
	for _, e := range events {
		m.record(e)
	}
	m.history = append(m.history, kv.Batch{Revision: next, Events: events})
	if len(m.history) >= 2*memoryHistory {
		m.compact(next - memoryHistory)
	}
	m.wake()
	return next, nil
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context, prefix string, from int64) (<-chan kv.Batch, error) {
	if err := kv.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	if from == 0 {
		from = m.revision + 1
	}
	out, asked := make(chan kv.Batch), m.asked
	m.watches.Go(func() { m.watch(ctx, prefix, from, asked, out) })
	return out, nil
}

func (m *Memory) watch(ctx context.Context, prefix string, from int64, asked int, out chan<- kv.Batch) {
	defer close(out)
	for {
		batches, changed, err := m.since(from, &asked)
		if err != nil {
			batches = []kv.Batch{{Err: err}}
		}
		for _, b := range batches {
			if b.Err == nil && b.Events != nil {
				from = b.Revision + 1
				if b.Events = under(prefix, b.Events); len(b.Events) == 0 {
					continue
				}
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			case <-m.closed:
				return
			}
		}
		if err != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-m.closed:
			return
		}
	}
}

// since returns the history from a revision on, with a batch without events where
// Progress was called again, and what is closed when there is more.
func (m *Memory) since(from int64, asked *int) ([]kv.Batch, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if from <= m.compacted {
		return nil, nil, kv.ErrCompacted
	}
	i := sort.Search(len(m.history), func(i int) bool { return m.history[i].Revision >= from })
	batches := slices.Clone(m.history[i:])
	if *asked != m.asked && from <= m.revision+1 {
		*asked = m.asked
		batches = append(batches, kv.Batch{Revision: m.revision})
	}
	return batches, m.changed, nil
}

// Progress implements Store.
func (m *Memory) Progress(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	m.asked++
	m.wake()
	return nil
}

// Campaign implements Store. Whoever leads does so until it resigns or its key goes.
func (m *Memory) Campaign(ctx context.Context, prefix string, value []byte) (kv.Leadership, error) {
	take := func(ctx context.Context, key string, value []byte) (*kv.Held, error) {
		return kv.HoldForLife(ctx, m, key, value)
	}
	l, err := kv.Election{Store: m, Log: hclog.NewNullLogger(), Take: take}.Campaign(ctx, prefix, value)
	if err != nil {
		return nil, err
	}
	m.watches.Go(l.Watch)
	return l, nil
}

// Health implements Store: there is always room.
func (m *Memory) Health(ctx context.Context) (kv.Health, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return kv.Health{}, m.usable(ctx)
}

func (m *Memory) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Failed implements Store.
func (m *Memory) Failed() <-chan struct{} { return m.failed }

// Err implements Store.
func (m *Memory) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Fail makes the store stop as a broken disk would: every call fails from now on.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
		close(m.failed)
		m.shut()
	}
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.shut()
	m.mu.Unlock()
	m.watches.Wait()
	return nil
}

// Compact forgets what was before revision.
func (m *Memory) Compact(_ context.Context, revision int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision > m.revision {
		return fmt.Errorf("revision %d is not there yet", revision)
	}
	m.compact(revision)
	return nil
}

func (m *Memory) shut() {
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
}

func (m *Memory) usable(ctx context.Context) error {
	if m.err != nil {
		return fmt.Errorf("%w: %w", kv.ErrClosed, m.err)
	}
	select {
	case <-m.closed:
		return kv.ErrClosed
	default:
		return ctx.Err()
	}
}

// at returns key as it was at revision.
func (m *Memory) at(key string, revision int64) (kv.Item, bool) {
	vs := m.versions[key]
	i := sort.Search(len(vs), func(i int) bool { return vs[i].revision > revision })
	if i == 0 || vs[i-1].deleted {
		return kv.Item{}, false
	}
	return kv.Item{Key: key, Value: vs[i-1].value, Revision: vs[i-1].revision}, true
}

// first returns the first present key that begins with prefix.
func (m *Memory) first(prefix string) (string, bool) {
	for _, key := range m.keys[sort.SearchStrings(m.keys, prefix):] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if _, ok := m.at(key, m.revision); ok {
			return key, true
		}
	}
	return "", false
}

func (m *Memory) record(e kv.Change) {
	if _, ok := m.versions[e.Key]; !ok {
		i := sort.SearchStrings(m.keys, e.Key)
		m.keys = slices.Insert(m.keys, i, e.Key)
	}
	m.versions[e.Key] = append(m.versions[e.Key], version{revision: e.Item.Revision, value: e.Item.Value, deleted: e.Deleted})
}

func (m *Memory) compact(revision int64) {
	if revision <= m.compacted {
		return
	}
	m.compacted = revision
	i := sort.Search(len(m.history), func(i int) bool { return m.history[i].Revision > revision })
	m.history = slices.Clone(m.history[i:])
	kept := m.keys[:0]
	for _, key := range m.keys {
		vs := m.versions[key]
		// The newest version at the compacted revision stays visible to lists at it.
		i := sort.Search(len(vs), func(i int) bool { return vs[i].revision > revision })
		if i > 0 && !vs[i-1].deleted {
			i--
		}
		if vs = slices.Clone(vs[i:]); len(vs) == 0 {
			delete(m.versions, key)
			continue
		}
		m.versions[key] = vs
		kept = append(kept, key)
	}
	clear(m.keys[len(kept):])
	m.keys = kept
}

func deletion(key string, revision int64) kv.Change {
	return kv.Change{Key: key, Item: kv.Item{Key: key, Revision: revision}, Deleted: true}
}

func under(prefix string, events []kv.Change) []kv.Change {
	var out []kv.Change
	for _, e := range events {
		if strings.HasPrefix(e.Key, prefix) {
			out = append(out, e)
		}
	}
	return out
}
