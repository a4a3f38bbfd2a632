package kubernetes

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// gallery is a cache whose clock stands still, and what it told.
type gallery struct {
	*namespaceCache
	*testing.T
	clock time.Time
	told  []string
}

func exhibit(t *testing.T) *gallery {
	g := &gallery{T: t, clock: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	g.namespaceCache = newNamespaceCache(func() time.Time { return g.clock })
	g.notify(func(name string) { g.told = append(g.told, name) })
	return g
}

// at is version v of the object, whose image is that version as well.
func at(name string, v int) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(v)},
		spec: map[string]any{"image": "i:" + strconv.Itoa(v)}}
}

func (g *gallery) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// event is what the reflector does with one.
func (g *gallery) event(change func(any) error, o *object) {
	g.Helper()
	g.must(change(o))
	g.UpdateResourceVersion(o.ResourceVersion)
}

func (g *gallery) shows(name string, version string) {
	g.Helper()
	got := ""
	if o := g.snapshotOf(name).object; o != nil {
		got = o.ResourceVersion
	}
	if got != version {
		g.Errorf("%s is shown at version %q, want %q", name, got, version)
	}
}

func (g *gallery) tells(want ...string) {
	g.Helper()
	if !slices.Equal(g.told, want) {
		g.Errorf("told %q, want %q", g.told, want)
	}
	g.told = nil
}

func (g *gallery) list(version string, objects ...any) {
	g.Helper()
	g.listBegins()
	g.clock = g.clock.Add(time.Second)
	g.must(g.Replace(objects, version))
}

func TestK2_eachChangeIsToldOnceWhateverItCameBy(t *testing.T) {
	g := exhibit(t)
	if o := g.snapshotOf("a"); !o.begun.IsZero() {
		t.Errorf("before the first list: %+v", o)
	}
	began := g.clock
	g.list("10", at("a", 5), at("b", 6))
	g.tells("")
	if b := g.snapshotOf("a").begun; !b.Equal(began) {
		t.Errorf("begun %s, want when the list began, %s", b, began)
	}
	g.event(g.Update, at("a", 11))
	g.event(g.Add, at("c", 12))
	g.event(g.Delete, at("b", 13))
	g.event(g.Update, func() *object { o := at("a", 14); o.spec = at("a", 11).spec; return o }())
	g.tells("a", "c", "b")
	// What changed while the watch was away is told by the list that follows.
	g.list("20", at("a", 14), at("d", 19))
	g.tells("a", "d", "c")
	g.list("21", at("a", 14), at("d", 19))
	g.tells()
	g.shows("b", "")
	g.shows("a", "14")
}

func TestL44_theAnswerToAWriteIsNeitherTakenBackNorKeptForEver(t *testing.T) {
	g := exhibit(t)
	g.list("10", at("a", 5))
	g.told = nil
	g.wrote(at("a", 12), nil)
	g.event(g.Update, at("a", 11)) // the watch lags
	g.shows("a", "12")
	g.event(g.Update, at("a", 12))
	g.tells("a")
	// A list from before the write does not take back what it made.
	g.listBegins()
	g.wrote(at("b", 15), nil)
	g.must(g.Replace([]any{at("a", 12)}, "14"))
	g.shows("b", "15")
	// One from after it does.
	g.listBegins()
	g.wrote(at("b", 17), nil)
	g.must(g.Replace([]any{at("a", 12)}, "18"))
	g.shows("b", "")
	// What is gone before the answer comes does not come back.
	g.event(g.Add, at("c", 19))
	g.event(g.Delete, at("c", 20))
	g.wrote(at("c", 19), nil)
	g.shows("c", "")
	// A deletion of the former object says nothing about the one that took its place.
	g.wrote(at("a", 25), nil)
	g.event(g.Delete, at("a", 21))
	g.shows("a", "25")
}

// What etcd was restored from, or the cluster was rebuilt from, counts versions from before.
func TestK2_aListWinsOverWhatWasKnownWhateverTheVersions(t *testing.T) {
	g := exhibit(t)
	g.list("100", at("a", 90), at("b", 91), at("c", 92))
	g.wrote(at("d", 101), nil)
	g.told = nil
	other := at("b", 7)
	other.UID = "another"
	g.list("10", other, at("c", 8))
	g.tells("b", "c", "a", "d")
	g.shows("a", "")
	g.shows("b", "7")
	g.shows("c", "8")
	g.shows("d", "")
	if uid := g.snapshotOf("b").object.UID; uid != "another" {
		t.Errorf("b is shown with the UID %s", uid)
	}
	// It goes on from there.
	g.event(g.Update, at("c", 11))
	g.shows("c", "11")
}

func TestL44_whileAWriteGoesOnNothingIsNewer(t *testing.T) {
	g := exhibit(t)
	g.list("10", at("a", 5))
	end, _ := g.established(func() {})
	g.clock = g.clock.Add(time.Minute)
	if b := g.snapshotOf("a").begun; !b.Equal(g.clock) {
		t.Errorf("begun %s while the watch stands, want now", b)
	}
	began := g.clock
	over := g.begin("a")
	g.clock = g.clock.Add(time.Minute)
	if a, b := g.snapshotOf("a").begun, g.snapshotOf("b").begun; !a.Equal(began) || !b.Equal(g.clock) {
		t.Errorf("while a is written: a begun %s, b %s", a, b)
	}
	over()
	if b := g.snapshotOf("a").begun; !b.Equal(g.clock) {
		t.Errorf("after the write: begun %s", b)
	}
	ended := g.clock
	end(false)
	g.clock = g.clock.Add(time.Minute)
	if b := g.snapshotOf("a").begun; !b.Equal(ended) {
		t.Errorf("without a watch: begun %s, want when it ended, %s", b, ended)
	}
}

func TestP18_aDirectReadHoldsUntilSomethingNewerIsKnown(t *testing.T) {
	g := exhibit(t)
	g.list("10", at("a", 5))
	g.told = nil
	end, _ := g.established(func() {})
	defer end(false)
	ask := func(name string, o *object) bool {
		begun := g.clock
		known := g.snapshotOf(name).object
		g.clock = g.clock.Add(time.Second)
		ok := g.answered(name, o, known, begun)
		if d := g.snapshotOf(name); ok && (!d.direct || !d.begun.Equal(begun)) {
			t.Errorf("%s after a direct read begun at %s: %+v", name, begun, d)
		}
		return ok
	}
	ask("a", nil)
	g.tells("a")
	ask("a", nil)
	g.tells()
	ask("b", at("b", 11))
	g.tells("b")
	g.event(g.Update, at("b", 12))
	if g.snapshotOf("b").direct || !g.snapshotOf("a").direct {
		t.Error("an event is newer than a direct read of the same name, and of no other")
	}
	ask("b", at("b", 11)) // an older answer
	g.shows("b", "12")
	over := g.begin("a")
	if g.snapshotOf("a").direct {
		t.Error("a write is newer than a direct read")
	}
	over()
	ask("a", nil)
	g.clock = g.clock.Add(directFor)
	if d := g.snapshotOf("a"); d.direct || !d.begun.Equal(g.clock) {
		t.Errorf("later: %+v", d)
	}
	// What came, or went, while it was asked for leaves open what is newest.
	known := g.snapshotOf("c").object
	g.event(g.Add, at("c", 20))
	if g.answered("c", nil, known, g.clock) {
		t.Error("absent, although it has just come")
	}
	g.event(g.Delete, at("c", 21))
	if g.answered("c", at("c", 20), nil, g.clock) {
		t.Error("there, although it has just gone")
	}
	g.shows("c", "")
}

func TestP2_failuresAreCountedUntilAWatchStands(t *testing.T) {
	g := exhibit(t)
	refused := fleet.ReadFailure{Reason: fleet.ReasonRuntimeRefused, Message: "m"}
	since := g.clock
	g.failed(refused)
	g.clock = g.clock.Add(time.Minute)
	g.failed(refused)
	g.tells("")
	if f := g.snapshotOf("a").failure; f.Count != 2 || !f.Since.Equal(since) || f.Reason != fleet.ReasonRuntimeRefused {
		t.Errorf("failure: %+v", f)
	}
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable})
	g.tells("")
	if f := g.snapshotOf("a").failure; f.Count != 3 || !f.Since.Equal(since) {
		t.Errorf("for another reason: %+v", f)
	}
	// A list alone does not make it readable: changes would go unseen.
	g.list("10", at("a", 5))
	g.tells("")
	if o := g.snapshotOf("a"); o.failure == nil || o.object == nil {
		t.Errorf("after a list: %+v", o)
	}
	first, recovered := g.established(func() {})
	g.tells("")
	if g.snapshotOf("a").failure != nil || !recovered {
		t.Error("a watch that stands is readable")
	}
	// The end of a watch is no failure, and that of an earlier one nothing at all.
	second, recovered := g.established(func() {})
	first(false)
	if !g.state().watching || recovered {
		t.Error("the end of the first watch ended the second")
	}
	second(false)
	if g.state().watching || g.snapshotOf("a").failure != nil {
		t.Error("a watch that ended is a failure")
	}
	g.tells()
}

// A direct read hides for a while that the watch fails; that it no longer does must be told.
func TestP2_thatADirectReadNoLongerHidesAFailureIsTold(t *testing.T) {
	g := exhibit(t)
	g.list("10", at("a", 5), at("b", 6))
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonRuntimeError})
	g.told = nil
	g.answered("a", at("a", 5), g.snapshotOf("a").object, g.clock)
	g.clock = g.clock.Add(directFor - time.Second)
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonRuntimeError})
	g.tells()
	g.clock = g.clock.Add(time.Second)
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonRuntimeError})
	g.tells("a")
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonRuntimeError})
	g.tells()
}

// What happened since a watch was cut is not known when the next one stands. One that ended
// when it was to end is just gone on with: quiet hours cost no list (P16).
func TestK2_aWatchThatWasCutNeedsAListBeforeTheNextOne(t *testing.T) {
	g := exhibit(t)
	if g.state().listed {
		t.Error("nothing was listed")
	}
	g.list("10", at("a", 5))
	if !g.state().listed {
		t.Error("it was listed")
	}
	end, _ := g.established(func() {})
	if g.state().listed {
		t.Error("the list is of the first watch")
	}
	end(false)
	g.list("12", at("a", 5))
	if !g.state().listed {
		t.Error("it was listed again")
	}
	end, _ = g.established(func() {})
	end(true)
	if !g.state().listed {
		t.Error("the watch ended in its time, and needs no list")
	}
	g.failed(fleet.ReadFailure{Reason: fleet.ReasonRuntimeError})
	if g.state().listed {
		t.Error("the list is from before a watch that was refused")
	}
	if inTime(299*time.Second-time.Millisecond, 300) || !inTime(300*time.Second, 300) {
		t.Error("a watch of 300 s that lasted 299 was cut, and one that lasted 300 was not")
	}
}

func TestK3_whatTheSchemaLackedIsForgottenWithIt(t *testing.T) {
	g := exhibit(t)
	g.list("10", at("a", 11))
	g.note("a", true)
	if !g.state().lacking {
		t.Error("it lacks a field")
	}
	g.told = nil
	g.newSchema()
	g.tells("")
	if g.state().lacking {
		t.Error("after the schema changed it lacks nothing")
	}
	g.note("a", true)
	g.event(g.Delete, at("a", 12))
	if g.state().lacking {
		t.Error("what is gone lacks nothing")
	}
}

func TestK8_aSignOfLifeIsNewsWhileSomethingIsRolledOut(t *testing.T) {
	g := exhibit(t)
	written := func(v int, what string) *object {
		o := at("a", v)
		o.spec, o.shown.Written = nil, what
		return o
	}
	g.event(g.Add, written(1, "x"))
	g.told = nil
	for i, step := range []struct {
		rolling bool
		written string
		told    int
	}{{false, "y", 0}, {true, "z", 1}, {true, "z", 1}, {true, "y", 2}, {false, "x", 2}} {
		g.await("a", step.rolling)
		if g.event(g.Update, written(2+i, step.written)); len(g.told) != step.told {
			t.Errorf("step %d: told %q", i, g.told)
		}
	}
}
