package server_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
)

// happen stores events of one write, each message that of its server.
func (w *world) happen(servers ...string) {
	w.t.Helper()
	tx := w.records.Begin()
	for _, s := range servers {
		k, message, _ := strings.Cut(s, " ")
		server, err := fleet.ParseServerKey(k)
		w.must(server, err)
		w.clock.advance(time.Second)
		tx.AddEvent(fleet.Event{Account: server.Account, Region: server.Region, At: w.clock.now(), Type: fleet.EventNormal, Reason: "R", Message: message})
	}
	w.must(tx.Commit(w.t.Context()))
	w.viewed()
}

func messages(events []fleet.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Message)
	}
	return strings.Join(all, " ")
}

func (w *world) waitEvents(filter api.EventFilter, cursor string, wait time.Duration) api.EventChanges {
	w.t.Helper()
	c, err := w.client.WaitEvents(w.t.Context(), filter, cursor, wait)
	w.must(c, err)
	if c.Cursor == "" {
		w.t.Errorf("no cursor: %+v", c)
	}
	return c
}

func TestWaitEvents_tellsEachOnceAndInOrder(t *testing.T) {
	w := newWorld(t)
	w.happen("acme/eu a1", "beta/eu b1")
	first := w.waitEvents(api.EventFilter{}, "", time.Minute)
	if !first.Full || messages(first.Items) != "a1 b1" {
		t.Fatalf("%+v", first)
	}
	quiet := w.waitEvents(api.EventFilter{}, first.Cursor, time.Millisecond)
	if quiet.Full || len(quiet.Items) != 0 {
		t.Fatalf("%+v", quiet)
	}
	came := make(chan api.EventChanges, 1)
	go func() { came <- w.waitEvents(api.EventFilter{Account: "acme"}, quiet.Cursor, time.Minute) }()
	w.happen("beta/eu b2")
	w.happen("acme/us a2", "acme/eu a3")
	next := <-came
	if next.Full || messages(next.Items) != "a2 a3" {
		t.Errorf("%+v", next)
	}
	all := w.waitEvents(api.EventFilter{}, first.Cursor, time.Minute)
	if messages(all.Items) != "b2 a2 a3" {
		t.Errorf("after the first cursor: %q", messages(all.Items))
	}
}

func TestWaitEvents_whatIsManyComesInPartsThatLoseNothing(t *testing.T) {
	w := newWorld(t)
	start := w.waitEvents(api.EventFilter{}, "", 0)
	var want []string
	for i := range 40 {
		w.happen(fmt.Sprintf("a%d/eu x%d", i%7, i), fmt.Sprintf("b%d/eu y%d", i%3, i))
		want = append(want, fmt.Sprintf("x%d", i), fmt.Sprintf("y%d", i))
	}
	var got []string
	for cursor := start.Cursor; len(got) < len(want); {
		c := w.waitEvents(api.EventFilter{Limit: 7}, cursor, time.Minute)
		if c.Full || len(c.Items) == 0 || len(c.Items) > 8 {
			t.Fatalf("after %d: full %v, %d events", len(got), c.Full, len(c.Items))
		}
		got, cursor = append(got, strings.Fields(messages(c.Items))...), c.Cursor
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWaitEvents_aCursorOutlivesTheDaemonAndNotTheStore(t *testing.T) {
	w := newWorld(t)
	w.happen("acme/eu a1")
	before := w.waitEvents(api.EventFilter{}, "", 0)
	w.api.Close() // and another one is started on the same store
	next, err := server.New(server.Config{Records: w.records, View: w.view, Environment: w.env, Tokens: w.tokens, Turns: w.turns, Runtimes: w.runtimes, Declare: w.declarer, Audit: w.audit, Now: w.clock.now})
	w.must(next, err)
	defer next.Close()
	ts := httptest.NewServer(next)
	defer ts.Close()
	w.url = ts.URL
	w.client = w.clientWith(w.admin)
	w.happen("acme/eu a2")
	if c := w.waitEvents(api.EventFilter{}, before.Cursor, time.Minute); c.Full || messages(c.Items) != "a2" {
		t.Errorf("%+v", c)
	}
	other := newWorld(t)
	other.happen("acme/eu o1")
	for _, cursor := range []string{other.waitEvents(api.EventFilter{}, "", 0).Cursor, "nonsense"} {
		if c := w.waitEvents(api.EventFilter{Limit: 1}, cursor, time.Minute); !c.Full || messages(c.Items) != "a2" {
			t.Errorf("%s: %+v", cursor, c)
		}
	}
}

func TestWaitEvents_endsWithTheDaemon(t *testing.T) {
	w := newWorld(t)
	start := w.waitEvents(api.EventFilter{}, "", 0)
	done := make(chan api.EventChanges, 1)
	go func() { done <- w.waitEvents(api.EventFilter{}, start.Cursor, time.Minute) }()
	w.api.Close()
	if c := <-done; c.Full || len(c.Items) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestEvents_ofManyServersAreReadFromThoseWithTheNewest(t *testing.T) {
	below := conformance.NewMemory()
	w := newWorldOn(t, below)
	for i := range 60 {
		w.happen(fmt.Sprintf("a%d/eu m%d", i, i))
	}
	got, err := w.client.Events(t.Context(), api.EventFilter{Limit: 3})
	w.must(got, err)
	if messages(got) != "m59 m58 m57" {
		t.Errorf("%q", messages(got))
	}
	w.happen("a7/eu again")
	if got, err = w.client.Events(t.Context(), api.EventFilter{Limit: 2}); messages(got) != "again m59" || err != nil {
		t.Errorf("%q, %v", messages(got), err)
	}
}

// A ring keeps so many events of a server. Whoever lies further behind is told so.
func TestWaitEvents_whatARingHasLostIsSaid(t *testing.T) {
	w := newWorld(t)
	w.happen("acme/eu first", "beta/eu b1")
	start := w.waitEvents(api.EventFilter{}, "", 0)
	burst := func(n int) {
		for i := range n {
			w.happen(fmt.Sprintf("acme/eu x%d", i))
		}
		w.happen("beta/eu b")
		w.viewed()
	}
	burst(store.MaxEvents - 1) // the ring is full, and nothing is lost
	kept := w.waitEvents(api.EventFilter{Limit: 1000}, start.Cursor, 0)
	if kept.Full || len(kept.Items) != store.MaxEvents {
		t.Fatalf("full %v, %d events", kept.Full, len(kept.Items))
	}
	burst(store.MaxEvents + 1)
	lost := w.waitEvents(api.EventFilter{Limit: 1000}, kept.Cursor, 0)
	if !lost.Full || len(lost.Items) != store.MaxEvents+3 || !strings.HasSuffix(messages(lost.Items), " x50 b") {
		t.Errorf("full %v, %d events: %s", lost.Full, len(lost.Items), messages(lost.Items))
	}
	// One who does not ask for that server has lost nothing, and neither has he who goes on from there.
	if c := w.waitEvents(api.EventFilter{Account: "beta"}, kept.Cursor, 0); c.Full || messages(c.Items) != "b" {
		t.Errorf("%+v", c)
	}
	w.happen("acme/eu last")
	if c := w.waitEvents(api.EventFilter{}, lost.Cursor, time.Minute); c.Full || messages(c.Items) != "last" {
		t.Errorf("%+v", c)
	}
}
