package server

import (
	"context"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// waitServers answers the long poll of a region; "": of all.
func (s *Server) waitServers(ctx context.Context, region, wait, after string) (api.ServerChanges, error) {
	visible := visible(ctx)
	of := func(k fleet.ServerKey) bool { return (region == "" || k.Region == region) && visible(k.Account) }
	keys, at, known, err := s.wait(ctx, wait, after, of)
	if err != nil {
		return api.ServerChanges{}, err
	}
	out := api.ServerChanges{Full: !known, Items: []fleet.ServerView{}, Cursor: s.pointCursor(s.changes.id, at)}
	if !known {
		if err := s.await(ctx, s.shares.answers, answerTakes, queueFor); err != nil {
			return api.ServerChanges{}, err
		}
	}
	size, held := 0, answerTakes
	put := func(g fleet.Gathered) error {
		view := s.show(g)
		out.Items = append(out.Items, view)
		if size += sizeOf(view); size > maxWhole {
			return fleet.Errorf(fleet.CodeTooLarge, "what changed takes more than %d MiB, the most for one long poll; wait for one region or server, or list in pages", maxWhole>>20)
		}
		if size <= held {
			return nil
		}
		held += answerTakes
		return s.hold(ctx, s.shares.answers, answerTakes)
	}
	if !known {
		list, _ := s.View.Servers(of)
		for _, g := range list {
			if err := put(g); err != nil {
				return api.ServerChanges{}, err
			}
		}
		return out, nil
	}
	for _, k := range keys {
		if g, ok := s.View.Server(k); ok {
			if err := put(g); err != nil {
				return api.ServerChanges{}, err
			}
			continue
		}
		// The view leaves out what it cannot read as well: only the store's own word
		// makes a server gone.
		_, err := s.gather(ctx, k)
		switch code := fleet.CodeOf(err); {
		case code == fleet.CodeNotFound:
			out.Gone = append(out.Gone, k)
		case code == fleet.CodeUnavailable || ctx.Err() != nil:
			return api.ServerChanges{}, err
		}
	}
	return out, nil
}

// waitServer answers the long poll of one server. An absence is confirmed by the store
// itself.
func (s *Server) waitServer(ctx context.Context, key fleet.ServerKey, wait, after string) (api.ServerChange, error) {
	keys, at, known, err := s.wait(ctx, wait, after, func(k fleet.ServerKey) bool { return k == key })
	if err != nil {
		return api.ServerChange{}, err
	}
	out := api.ServerChange{Changed: !known || len(keys) > 0, Cursor: s.pointCursor(s.changes.id, at)}
	g, err := s.gather(ctx, key)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return out, nil
	}
	if err != nil {
		return api.ServerChange{}, err
	}
	view := s.show(g)
	out.Server = &view
	return out, nil
}

// wait returns which servers changed after the cursor, waiting for one to do so. known
// is false where that cannot be said: for no cursor, one of another store or another
// life of the daemon, or one from too long ago. Then it does not wait, and the view shows every acknowledged write.
func (s *Server) wait(ctx context.Context, wait, after string, of func(fleet.ServerKey) bool) (keys []fleet.ServerKey, at int64, known bool, err error) {
	limit, err := parseWait(wait)
	if err != nil {
		return nil, 0, false, err
	}
	point, ok := s.parsePoint(after, s.changes.id)
	if !ok {
		return nil, s.changes.now(), false, s.catchUp(ctx)
	}
	if err := s.hold(ctx, s.shares.polls, 1); err != nil {
		return nil, 0, false, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		keys, at, known, moved := s.changes.since(point, of)
		if !known {
			return nil, at, false, s.catchUp(ctx)
		}
		if len(keys) > 0 || s.changes.done() {
			return keys, at, true, nil
		}
		select {
		case <-moved:
		case <-timer.C:
			return nil, at, true, nil
		case <-ctx.Done():
			return nil, at, true, ctx.Err()
		}
	}
}

func parseWait(wait string) (time.Duration, error) {
	if wait == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(wait)
	if err != nil || d < 0 {
		return 0, fleet.Errorf(fleet.CodeInvalid, "wait %q is not a duration such as \"30s\"", wait)
	}
	return min(d, api.MaxWait), nil
}
