package cloudflare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counters say how often the API was called.
type Counters struct {
	Calls    map[string]int `json:"calls"`    // by method and kind of path, such as "GET records", "POST batch": see routes
	Statuses map[int]int    `json:"statuses"` // of the answers; 0: there was none
	Writes   map[string]int `json:"writes"`   // of load balancers, by name: created, changed and deleted
	Batched  int            `json:"batched"`  // operations in batches, whether they were applied or not
	Limited  int            `json:"limited"`  // calls beyond the budget
}

func newCounters() Counters {
	return Counters{Calls: map[string]int{}, Statuses: map[int]int{}, Writes: map[string]int{}}
}

// Total is how many calls there were.
func (c Counters) Total() int {
	total := 0
	for _, n := range c.Calls {
		total += n
	}
	return total
}

// String tells the calls, sorted, for messages of tests.
func (c Counters) String() string {
	var told []string
	for _, name := range slices.Sorted(maps.Keys(c.Calls)) {
		told = append(told, fmt.Sprintf("%d × %s", c.Calls[name], name))
	}
	return strings.Join(told, ", ")
}

// Counters returns what was counted since the start or ResetCounters.
func (e *Emulator) Counters() Counters {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.counters
	c.Calls, c.Statuses, c.Writes = maps.Clone(c.Calls), maps.Clone(c.Statuses), maps.Clone(c.Writes)
	return c
}

// ResetCounters begins to count anew. Budgets are not counters: they stay as they are.
func (e *Emulator) ResetCounters() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters = newCounters()
}
