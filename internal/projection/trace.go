package projection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Finding is a step or a rule that changed something, or that decided.
type Finding struct {
	Rule    Rule
	Decided bool
	Seen    string // what the read was found to show
	Changed string // fields of the status
}

func (f Finding) String() string {
	what := "changes "
	if f.Decided {
		what = "decides, and changes "
	}
	return fmt.Sprintf("%s: %s: %s%s", f.Rule, f.Seen, what, cmp.Or(f.Changed, "nothing"))
}

// follow follows a rule, unless a test has dropped it, and leaves a trace where one is wanted.
func (t *turn) follow(id Rule, rule func() bool) (decided bool) {
	switch {
	case !t.in.rule(id):
		return false
	case !t.in.Trace:
		return rule()
	}
	before := t.s.Clone()
	decided = rule()
	if fields := changes(before, t.s); decided || fields != "" {
		t.trace = append(t.trace, Finding{Rule: id, Decided: decided, Seen: t.seen.String(), Changed: fields})
	}
	return decided
}

// String says in short what was seen.
func (v reading) String() string {
	if !v.readable {
		return "unreadable"
	}
	return fmt.Sprintf("%s, image %s, fresh %t, document %t, running %t", v.presence, v.image, v.fresh, v.document, v.running)
}

// changes names the fields of the status in which two differ.
func changes(a, b fleet.Status) string {
	fields := func(s fleet.Status) (m map[string]json.RawMessage) {
		raw, _ := json.Marshal(s) // a status always has one
		_ = json.Unmarshal(raw, &m)
		return m
	}
	x, y := fields(a), fields(b)
	names := slices.Sorted(maps.Keys(x))
	for name := range y {
		if _, ok := x[name]; !ok {
			names = append(names, name)
		}
	}
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return bytes.Equal(x[name], y[name]) }), ", ")
}
