package audit

import (
	"slices"
	"sync"
)

// Memory is an audit log for tests, in memory. Its zero value is ready.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	changes int
	err     error
}

// Write keeps an entry.
func (m *Memory) Write(e Entry, changed bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.entries = append(m.entries, e)
		if changed {
			m.changes++
		}
	}
	return m.err
}

// Ready returns what Fail was given.
func (m *Memory) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Fail makes Write and Ready fail from now on; nil ends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Changes returns how many entries are of calls that may have changed something.
func (m *Memory) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Entries returns what was kept, the oldest first.
func (m *Memory) Entries() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}
