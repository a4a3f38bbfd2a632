package fleet

import (
	"slices"
	"strings"
	"testing"
)

// Much of a finding is what others wrote into a zone: none of it may change how a line is read (G11).
func TestG11_aFindingIsShownWithoutWhatControlsATerminal(t *testing.T) {
	const rude = "a\x1b[2J\u202eb\nc"
	f := Finding{Zone: "kura.test", Host: rude, Kind: FindingForeign, Owners: []string{rude}, Resource: rude, Environment: rude, Contents: []string{rude}, Why: rude}
	shown := f.Shown()
	for _, text := range []string{shown.Host, shown.Resource, shown.Environment, shown.Why, shown.Owners[0], shown.Contents[0]} {
		if text != "a [2Jb c" {
			t.Errorf("%q is shown", text)
		}
	}
	if f.Owners[0] != rude || f.Contents[0] != rude {
		t.Error("what was found has changed")
	}
}

func TestD6_findingsHaveOneOrderAndAClosedSetOfKinds(t *testing.T) {
	list := []Finding{
		{Zone: "b.test", Host: "a"}, {Zone: "a.test", Host: "b"}, {Zone: "a.test", Host: "a", Kind: FindingStale},
		{Zone: "a.test", Host: "a", Kind: FindingForeign, Owners: []string{"y"}}, {Zone: "a.test", Host: "a", Kind: FindingForeign, Owners: []string{"x"}},
	}
	slices.SortFunc(list, CompareFindings)
	var order []string
	for _, f := range list {
		order = append(order, strings.Join(append([]string{f.Zone, f.Host, string(f.Kind)}, f.Owners...), " "))
	}
	if !slices.IsSorted(order[:3]) || order[4] != "b.test a " || order[0] > order[1] {
		t.Errorf("%q", order)
	}
	kinds := FindingKinds()
	slices.Sort(kinds)
	if len(slices.Compact(kinds)) != 14 {
		t.Errorf("kinds %v", kinds)
	}
	if got := (Finding{Account: "acme", Region: "eu"}).Server(); got.String() != "acme/eu" {
		t.Errorf("server %s", got)
	}
}

// A read of a host is news when it turns out otherwise, or is not answered any more.
func TestD3_aReadIsNewsByWhoseTheHostIs(t *testing.T) {
	for _, c := range []struct {
		read   HostRead
		ours   bool
		reason Reason
	}{
		{HostRead{Ownership: OwnershipOurs}, true, "ours"},
		{HostRead{Ownership: OwnershipForeign}, false, "foreign"},
		{HostRead{Ownership: OwnershipOurs, Failure: &ReadFailure{Reason: ReasonZoneUnreachable}}, false, ReasonZoneUnreachable},
	} {
		if ours, reason := c.read.State(); ours != c.ours || reason != c.reason {
			t.Errorf("%+v: %v, %s", c.read, ours, reason)
		}
	}
	if got := ResourceOf("staging", ServerKey{Account: "acme", Region: "eu"}); got != "kura-staging/eu/acme" {
		t.Errorf("resource %s", got)
	}
}

func TestShorten_keepsBeginningAndEnd(t *testing.T) {
	if got := Shorten("one  two\nthree", 100); got != "one two three" {
		t.Errorf("%q", got)
	}
	if got := Shorten(strings.Repeat("a", 50)+strings.Repeat("z", 50), 10); got != "aaaaa … zzzzz" {
		t.Errorf("%q", got)
	}
}
