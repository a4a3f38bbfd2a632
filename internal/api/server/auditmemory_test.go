package server_test

import (
	"slices"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
)

// auditMemory is an audit log in memory. Its zero value is ready.
type auditMemory struct {
	mu      sync.Mutex
	entries []audit.Entry
	changes int
	err     error
}

// Write keeps an entry.
func (m *auditMemory) Write(e audit.Entry, changed bool) error {
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
func (m *auditMemory) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Fail makes Write and Ready fail from now on; nil ends it.
func (m *auditMemory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Changes returns how many entries are of calls that may have changed something.
func (m *auditMemory) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Entries returns what was kept, the oldest first.
func (m *auditMemory) Entries() []audit.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}
