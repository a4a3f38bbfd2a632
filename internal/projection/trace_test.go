package projection

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What decided leaves a trace where one is asked for: the rule, what was seen, and what changed.
// It changes nothing of what is decided.
func TestTrace_namesTheRuleThatDecidedAndWhatItFound(t *testing.T) {
	p := play(t, newSim(variant{}))
	decided := func() string {
		t.Helper()
		in := p.input()
		plain := Decide(in)
		in.Trace = true
		out := Decide(in)
		if !reflect.DeepEqual(plain.Status, out.Status) || plain.Trace != nil {
			t.Errorf("a trace changes the outcome, or is there unasked: %v", plain.Trace)
		}
		text := ""
		for _, f := range out.Trace {
			if f.Decided {
				text += f.String() + "\n"
			}
		}
		return text
	}
	want := func(parts ...string) {
		t.Helper()
		got := decided()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("it was decided by %q, want %q in it", got, part)
			}
		}
	}
	p.look()
	want(string(RuleP4Absent), "absent, image none, fresh true", "decides, and changes nothing")
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	want(string(RuleP5Active), "present, image equal")
	p.declare("v2", "")
	p.full = true
	p.look()
	want(string(RuleG4Admission), "holds")
	p.full, p.paused = false, true
	want(string(RuleS11Holds), "runtime")
	p.unreadable = true
	p.look()
	want(string(RuleP2Unreadable), "unreadable")
	at := p.now
	p.intent.Deleting = &at
	want(string(RuleP18Destroy), "status")
}
