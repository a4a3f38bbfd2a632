package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// readTimeout bounds how long a read waits for the store.
const readTimeout = 10 * time.Second

// KeyPath names a server.
type KeyPath struct {
	Account string `path:"account" maxLength:"63"`
	Region  string `path:"region" maxLength:"63"`
}

func (p KeyPath) key() fleet.ServerKey {
	return fleet.ServerKey{Account: p.Account, Region: p.Region}
}

// show composes how a server reads.
func (s *Server) show(g fleet.Gathered) fleet.ServerView {
	if st := s.Turns.Beyond(g); st != nil {
		g.Status = st
	} else if g.Try != nil {
		st := g.Status.Counting(*g.Try)
		g.Status = &st
	}
	v := fleet.NewServerView(g.Intent, s.Declare.Desired(g), g.Status, g.Latest)
	if g.Region != nil {
		v.Ports = shownPorts(*g.Region, g.Intent)
	}
	v.Waits(s.Turns.Waits(g.Intent.Key()))
	if at, failed := s.Turns.Memory(g.Intent.Key()); !at.IsZero() || failed > 0 {
		if v.FailedReads = failed; !at.IsZero() {
			v.LastObservedAt = &at
		}
	}
	return v
}

// shownPorts are the host ports that a server has now, by "<service>/<port name>".
func shownPorts(r fleet.Region, in fleet.Intent) map[string]int {
	ports := map[string]int{}
	for _, need := range fleet.PortNeeds(r) {
		if port := cmp.Or(need.Fixed, in.Ports[need.Key()]); port != 0 {
			ports[need.Key()] = port
		}
	}
	return ports
}

// catchUp waits until the view shows every write that was acknowledged before.
func (s *Server) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.View.CatchUp(ctx)
}

type getServerInput struct {
	KeyPath
	Observe     string `query:"observe" enum:"now" doc:"now: answer after one turn begun after the request, with a fresh read and probe; 10 s at most, stale is set where it took longer."`
	Wait        string `query:"wait" doc:"Long poll: how long to wait for a change after the cursor, 60s at most. The answer is {changed, server, cursor}." example:"30s"`
	After       string `query:"after" maxLength:"1024" doc:"Long poll: the cursor of the answer before; empty answers at once."`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024" doc:"ETag of a representation that the client has: 304 while it is the same."`
}

// oneOf is a body that is an A, or a B where the request waits.
type oneOf[A, B any] struct{ value any }

// Schema implements huma.SchemaProvider.
func (oneOf[A, B]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[A](), true, ""), r.Schema(reflect.TypeFor[B](), true, "")}}
}

// MarshalJSON implements json.Marshaler.
func (b oneOf[A, B]) MarshalJSON() ([]byte, error) { return json.Marshal(b.value) }

type (
	serverBody  = oneOf[fleet.ServerView, api.ServerChange]
	serversBody = oneOf[api.List[fleet.ServerView], api.ServerChanges]
)

type getServerOutput struct {
	Status int
	ETag   string `header:"ETag"`
	Body   serverBody
}

func (s *Server) getServer(ctx context.Context, in *getServerInput) (*getServerOutput, error) {
	if in.Wait != "" || in.After != "" {
		if in.Observe != "" {
			return nil, fleet.Errorf(fleet.CodeInvalid, "observe and wait exclude each other; send one of them")
		}
		change, err := s.waitServer(ctx, in.key(), in.Wait, in.After)
		if err != nil {
			return nil, err
		}
		return &getServerOutput{Status: http.StatusOK, Body: serverBody{change}}, nil
	}
	view, err := s.readServer(ctx, in.key(), in.Observe == "now")
	if err != nil {
		return nil, err
	}
	tag, err := etag(view)
	if err != nil {
		return nil, err
	}
	if matches(in.IfNoneMatch, tag) {
		return &getServerOutput{Status: http.StatusNotModified, ETag: tag}, nil
	}
	return &getServerOutput{Status: http.StatusOK, ETag: tag, Body: serverBody{view}}, nil
}

// readServer reads one server from the store itself: both the answer and its absence
// are linearizable.
func (s *Server) readServer(ctx context.Context, key fleet.ServerKey, observe bool) (fleet.ServerView, error) {
	stale := false
	if observe {
		if _, err := s.gather(ctx, key); err != nil {
			return fleet.ServerView{}, err
		}
		within, cancel := context.WithTimeout(ctx, api.MaxObserve)
		defer cancel()
		go func() { // a look under way does not keep a daemon that ends
			select {
			case <-s.ended:
				cancel()
			case <-within.Done():
			}
		}()
		if err := s.Turns.ObserveNow(within, key); err != nil {
			if ctx.Err() != nil {
				return fleet.ServerView{}, err
			}
			stale = true
		}
	}
	g, err := s.gather(ctx, key)
	if err != nil {
		return fleet.ServerView{}, err
	}
	view := s.show(g)
	view.Stale = stale
	return view, nil
}

func (s *Server) gather(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, error) {
	if err := plainName("server "+key.String(), key.Account, key.Region); err != nil {
		return fleet.Gathered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.Records.Gather(ctx, key)
}

// plainName says that nothing can have a name that no key can hold.
func plainName(what string, names ...string) error {
	if slices.ContainsFunc(names, func(n string) bool { return n == "" || strings.Contains(n, "/") }) {
		return fleet.Errorf(fleet.CodeNotFound, "%s does not exist", what)
	}
	return nil
}

// etag names a representation. What is only kept in memory is not part of it: a client
// that polls hears of changes, not of every look.
func etag(v fleet.ServerView) (string, error) {
	v.LastObservedAt, v.FailedReads = nil, 0
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return `W/"` + hex.EncodeToString(h[:16]) + `"`, nil
}

// matches implements the weak comparison of If-None-Match.
func matches(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); t == "*" || t != "" && strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

type listServersInput struct {
	PageInput
	Account string        `query:"account" maxLength:"63"`
	Region  string        `query:"region" maxLength:"63"`
	Verdict fleet.Verdict `query:"verdict" enum:"destroying,unobserved,stalled,failed,converged,absent,drifted,held,progressing"`
	Wait    string        `query:"wait" doc:"Long poll of a region, or of all: how long to wait for a change after the cursor, 60s at most. The answer is {full, items, gone, cursor}." example:"30s"`
	After   string        `query:"after" maxLength:"1024" doc:"Long poll: the cursor of the answer before; empty answers at once with everything."`
}

func (s *Server) listServers(ctx context.Context, in *listServersInput) (body serversBody, err error) {
	if in.Wait != "" || in.After != "" {
		if in.Account != "" || in.Verdict != "" || in.Page != "" {
			return body, fleet.Errorf(fleet.CodeInvalid, "a long poll is of one region, or of all: send region or nothing, no other filter, and no page")
		}
		changes, err := s.waitServers(ctx, in.Region, in.Wait, in.After)
		return serversBody{changes}, err
	}
	out := api.List[fleet.ServerView]{Items: []fleet.ServerView{}}
	out.Next, err = s.pageOfServers(ctx, in.PageInput, func() ([]fleet.Gathered, error) {
		if err := s.catchUp(ctx); err != nil {
			return nil, err
		}
		visible := visible(ctx)
		list, _ := s.View.Servers(func(k fleet.ServerKey) bool {
			return visible(k.Account) && (in.Account == "" || k.Account == in.Account) && (in.Region == "" || k.Region == in.Region)
		})
		if in.Verdict == "" {
			return list, nil
		}
		return slices.DeleteFunc(list, func(g fleet.Gathered) bool {
			return fleet.NewServerView(g.Intent, fleet.Desired{}, g.Status, g.Latest).Verdict != in.Verdict
		}), nil
	}, func(g fleet.Gathered) int {
		view := s.show(g)
		out.Items = append(out.Items, view)
		return sizeOf(view)
	})
	return serversBody{out}, err
}
