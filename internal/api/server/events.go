package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// maxRings is how many servers' events one answer to a long poll is put together from. A
// cursor that more of them have passed gets the newest events instead.
const maxRings = 4096

type eventsInput struct {
	Account string `query:"account" maxLength:"63"`
	Region  string `query:"region" maxLength:"63"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The newest so many; of a long poll's changes the oldest, and as many more as belong to the same write."`
	Wait    string `query:"wait" doc:"Long poll: how long to wait for an event after the cursor, 60s at most. The answer is {full, items, cursor}, the oldest event first." example:"30s"`
	After   string `query:"after" maxLength:"1024" doc:"Long poll: the cursor of the answer before; empty answers at once with the newest events."`
}

// eventsBody is a list, or what happened after a cursor where the request waits.
type eventsBody = oneOf[api.List[fleet.Event], api.EventChanges]

// happened is an event with its place among all: first by the revision that stored it.
type happened = store.Versioned[fleet.Event]

func inOrder(a, b happened) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Value.At.Compare(b.Value.At), cmp.Compare(a.Generation, b.Generation))
}

func (s *Server) listEvents(ctx context.Context, in *eventsInput) (eventsBody, error) {
	visible := visible(ctx)
	of := func(k fleet.ServerKey) bool {
		return visible(k.Account) && (in.Account == "" || k.Account == in.Account) && (in.Region == "" || k.Region == in.Region)
	}
	if in.Wait != "" || in.After != "" {
		changes, err := s.waitEvents(ctx, in, of)
		return eventsBody{changes}, err
	}
	events, _, err := s.newestEvents(ctx, in.Limit, of)
	slices.Reverse(events)
	return eventsBody{api.List[fleet.Event]{Items: values(events)}}, err
}

// waitEvents answers the long poll of events. A cursor is a revision of the store, so it
// outlives the daemon: whoever follows loses and repeats nothing at its restart.
func (s *Server) waitEvents(ctx context.Context, in *eventsInput, of func(fleet.ServerKey) bool) (out api.EventChanges, err error) {
	limit, err := parseWait(in.Wait)
	if err != nil {
		return out, err
	}
	after, known := s.parsePoint(in.After, byRevision)
	if known && after > s.View.Revision() { // of a replica that is further than this one
		if err := s.catchUp(ctx); err != nil {
			return out, err
		}
		known = after <= s.View.Revision()
	}
	if known {
		if err := s.hold(ctx, s.shares.polls, 1); err != nil {
			return out, err
		}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for known {
		news := s.changes.nextEvent() // asked for before what there is: none falls in between
		events, at, ok, err := s.eventsAfter(ctx, after, in.Limit, of)
		if err != nil {
			return out, err
		}
		if !ok {
			break
		}
		out = api.EventChanges{Items: values(events), Cursor: s.pointCursor(byRevision, at)}
		if len(events) > 0 || s.changes.done() {
			return out, nil
		}
		select {
		case <-news:
		case <-timer.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	if err := s.await(ctx, s.shares.answers, answerTakes, queueFor); err != nil {
		return out, err
	}
	events, at, err := s.newestEvents(ctx, in.Limit, of)
	return api.EventChanges{Full: true, Items: values(events), Cursor: s.pointCursor(byRevision, at)}, err
}

// newestEvents returns the newest events, the oldest of them first, and the revision that
// they are of. It reads the events of few more servers than it returns events.
func (s *Server) newestEvents(ctx context.Context, limit int, of func(fleet.ServerKey) bool) ([]happened, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := s.catchUp(ctx); err != nil {
		return nil, 0, err
	}
	keys, newest, at := s.View.EventsAfter(0, of)
	var events []happened
	for _, k := range keys {
		if len(events) == limit && newest(k) < events[0].Revision {
			break // this one's newest, and those of all that follow, are older
		}
		ring, _, err := s.ring(ctx, k, 0, at)
		if err != nil {
			return nil, 0, err
		}
		events = append(events, ring...)
		slices.SortFunc(events, inOrder)
		events = events[max(0, len(events)-limit):]
	}
	return events, at, nil
}

// eventsAfter returns the oldest events after a revision and how far they reach. Those of
// one write stay together, for a cursor cannot part them. ok is false where too many servers
// are concerned, or some of the events may not be kept any more.
func (s *Server) eventsAfter(ctx context.Context, after int64, limit int, of func(fleet.ServerKey) bool) (events []happened, at int64, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	keys, _, at := s.View.EventsAfter(after, of)
	if len(keys) > maxRings {
		return nil, at, false, nil
	}
	for _, k := range keys {
		ring, lost, err := s.ring(ctx, k, after, at)
		if err != nil || lost {
			return nil, at, false, err
		}
		events = append(events, ring...)
	}
	slices.SortFunc(events, inOrder)
	if len(events) > limit {
		for limit < len(events) && events[limit].Revision == events[limit-1].Revision {
			limit++
		}
		if events = events[:limit]; limit > 0 {
			at = events[limit-1].Revision
		}
	}
	return events, at, true, nil
}

// ring returns the kept events of a server that are newer than one revision and no newer
// than another. lost says that newer ones may have taken the place of some of them: there were
// events before the oldest that is kept, and even that one is newer than the revision.
func (s *Server) ring(ctx context.Context, k fleet.ServerKey, after, upTo int64) (events []happened, lost bool, err error) {
	l, err := s.Records.Events(ctx, k)
	if err != nil {
		return nil, false, err
	}
	for _, p := range l.Problems {
		s.Logger.Error("a stored record cannot be read and is left out of a list", "record", p.What, "key", p.Key, "error", p.Err)
	}
	lost = len(l.Items) > 0 && l.Items[0].Generation > 1 && l.Items[0].Revision > after
	return slices.DeleteFunc(l.Items, func(e happened) bool { return e.Revision <= after || e.Revision > upTo }), lost, nil
}

func values(events []happened) []fleet.Event {
	list := make([]fleet.Event, 0, len(events))
	for _, e := range events {
		list = append(list, e.Value)
	}
	return list
}

// byRevision is the order of cursors of events: a cursor is the revision that it has come to.
const byRevision = "events"
