package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Leader says which of several kurads on one store leads: it alone looks at runtimes and
// endpoints, so it alone knows what was seen when.
type Leader interface {
	// Leads reports whether this process does.
	Leads() bool
	// Address returns the URL of the leader's API, "" while nobody leads.
	Address(ctx context.Context) (string, error)
}

// onlyLeader is the Leader of a daemon that shares its store with nobody.
type onlyLeader struct{}

func (onlyLeader) Leads() bool                             { return true }
func (onlyLeader) Address(context.Context) (string, error) { return "", nil }

// headerForwarded marks a request that a follower passes on, so that it goes no further,
// and headerLeader the answer of one that leads: whoever else answers at that address is
// not believed.
const (
	headerForwarded = "Kura-Forwarded"
	headerLeader    = "Kura-Leader"
)

const (
	// askLeader bounds how long a read waits for the leader to begin its answer, and then
	// to end it, before the follower answers from the store, without what only the leader
	// remembers.
	askLeader = 2 * time.Second
	// mostForwarded is how much of an answer a follower holds until it is whole.
	mostForwarded = 64 << 20
)

// leaderKnows reports whether a part of the route's answer is kept in the leader's memory
// alone: the time of the last observation, a fresh look, what endpoints list.
func leaderKnows(id string) bool {
	switch id {
	case "get-server", "list-servers", "list-orphans", "list-endpoints", "list-dns-audit":
		return true
	default:
		return false
	}
}

// leaderDoes reports whether the leader alone does what the route is for: it knows what it does
// in the zones besides.
func leaderDoes(id string) bool { return id == "prune-dns" || id == "take-host" }

// newForwarder returns how a follower reaches the leader.
func newForwarder(tlsConfig *tls.Config) http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http documents the type
	transport.TLSClientConfig = tlsConfig
	transport.Proxy = nil
	return transport
}

// passOn is huma's middleware of a route whose answer the leader knows best. A follower
// asks the leader with the caller's own token, and where that gives no whole answer it
// answers itself: its own reads of the store are as good, but for what the leader remembers.
// A long poll, and a list whose first page was given out here, go on here.
func (s *Server) passOn(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		leads, forwarded := s.Leader.Leads(), ctx.Header(headerForwarded) != ""
		if leads && forwarded {
			ctx.SetHeader(headerLeader, "1")
		}
		does := leaderDoes(r.id)
		if forwarded && !leads && does {
			s.refuse(ctx, notDone(errors.New("the one that was asked leads no more")))
			return
		}
		if !does && !leaderKnows(r.id) || leads || forwarded || ctx.Query("wait") != "" || ctx.Query("after") != "" || s.keepsPage(ctx.Query("page")) {
			next(ctx)
			return
		}
		limit := askLeader
		if ctx.Query("observe") != "" {
			limit += api.MaxObserve
		}
		if does {
			limit += zonesWithin
		}
		within, cancel := context.WithCancel(ctx.Context())
		defer cancel()
		timer := time.AfterFunc(limit, cancel)
		defer timer.Stop()
		here := func(_ http.ResponseWriter, _ *http.Request, err error) {
			if does {
				s.refuse(ctx, notDone(err))
				return
			}
			s.Logger.Debug("the leader does not answer: answering from the store", "request", requestID(ctx.Context()), "error", err)
			next(ctx)
		}
		req, w := humago.Unwrap(ctx)
		leader, err := s.leaderURL(within)
		if err != nil {
			here(w, req, err)
			return
		}
		proxy := httputil.ReverseProxy{
			Transport:    s.forward,
			ErrorHandler: here,
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(leader)
				p.Out.Header = only(p.In.Header, "Authorization", "If-None-Match", "Content-Type", api.HeaderEnvironment)
				p.Out.Header.Set(headerForwarded, "1")
			},
			ModifyResponse: func(res *http.Response) error {
				timer.Reset(askLeader)
				return whole(res, does)
			},
		}
		proxy.ServeHTTP(w, req.WithContext(within))
	}
}

// notDone says that the leader did not answer a call that it alone can do.
func notDone(err error) error {
	return fleet.Errorf(fleet.CodeUnavailable, "only the kurad that leads changes DNS zones, and it did not answer: %v; what was asked for may have been done: ask again, what is done is not done twice", err)
}

func (s *Server) leaderURL(ctx context.Context) (*url.URL, error) {
	address, err := s.Leader.Address(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("nobody leads, or not at a URL: %q", address)
	}
	return u, nil
}

// only returns some of the headers.
func only(from http.Header, names ...string) http.Header {
	h := http.Header{}
	for _, name := range names {
		if value := from.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// whole refuses what is no whole answer of the leader, before a byte of it is passed on; problems
// are answers where the leader alone can give any.
func whole(res *http.Response, problems bool) error {
	if res.Header.Get(headerLeader) == "" {
		return errors.New("what answers at the leader's address does not lead")
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNotModified && !problems {
		return fmt.Errorf("the leader answers %s", res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, mostForwarded+1))
	if err != nil {
		return err
	}
	if len(body) > mostForwarded {
		return errors.New("the leader's answer is too large to be passed on")
	}
	res.Header, res.Body = only(res.Header, "Content-Type", "ETag", "Retry-After"), io.NopCloser(bytes.NewReader(body))
	return nil
}
