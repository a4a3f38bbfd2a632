package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
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
	case "get-server", "list-servers", "list-orphans", "list-endpoints":
		return true
	default:
		return false
	}
}

// newForwarder returns the client with which a follower asks the leader.
func newForwarder(tlsConfig *tls.Config) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http documents the type
	transport.TLSClientConfig = tlsConfig
	transport.Proxy = nil
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// passOn is huma's middleware of a route whose answer the leader knows best. A follower
// asks the leader with the caller's own token, and where that gives no whole answer it
// answers itself: its own reads of the store are as good, but for what the leader remembers.
// A long poll, and a list whose first page was given out here, go on here.
func (s *Server) passOn(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		leads, forwarded := s.leader.Leads(), ctx.Header(headerForwarded) != ""
		if leads && forwarded {
			ctx.SetHeader(headerLeader, "1")
		}
		if !leaderKnows(r.id) || leads || forwarded || ctx.Query("wait") != "" || ctx.Query("after") != "" || s.keepsPage(ctx.Query("page")) {
			next(ctx)
			return
		}
		answer, err := s.askLeader(ctx)
		if err != nil {
			s.log.Debug("the leader does not answer: answering from the store", "request", requestID(ctx.Context()), "error", err)
			next(ctx)
			return
		}
		for _, name := range []string{"Content-Type", "ETag"} {
			if value := answer.header.Get(name); value != "" {
				ctx.SetHeader(name, value)
			}
		}
		ctx.SetStatus(answer.status)
		_, _ = ctx.BodyWriter().Write(answer.body) // who has gone needs no answer
	}
}

// leaderAnswer is a whole answer of the leader.
type leaderAnswer struct {
	status int
	header http.Header
	body   []byte
}

// askLeader asks the leader what the request asks.
func (s *Server) askLeader(ctx huma.Context) (leaderAnswer, error) {
	limit := askLeader
	if ctx.Query("observe") != "" {
		limit += api.MaxObserve
	}
	within, cancel := context.WithCancel(ctx.Context())
	defer cancel()
	timer := time.AfterFunc(limit, cancel)
	defer timer.Stop()
	res, err := s.sendToLeader(within, ctx)
	if err != nil {
		return leaderAnswer{}, err
	}
	defer res.Body.Close()
	if res.Header.Get(headerLeader) == "" {
		return leaderAnswer{}, errors.New("what answers at the leader's address does not lead")
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNotModified {
		return leaderAnswer{}, fmt.Errorf("the leader answers %s", res.Status)
	}
	timer.Reset(askLeader)
	body, err := io.ReadAll(io.LimitReader(res.Body, mostForwarded+1))
	if err == nil && len(body) > mostForwarded {
		err = errors.New("the leader's answer is too large to be passed on")
	}
	return leaderAnswer{res.StatusCode, res.Header, body}, err
}

func (s *Server) sendToLeader(within context.Context, ctx huma.Context) (*http.Response, error) {
	address, err := s.leader.Address(within)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(address)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("nobody leads, or not at a URL: %q", address)
	}
	u := ctx.URL()
	to := strings.TrimSuffix(base.String(), "/") + u.EscapedPath()
	if u.RawQuery != "" {
		to += "?" + u.RawQuery
	}
	req, err := http.NewRequestWithContext(within, ctx.Method(), to, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Authorization", "If-None-Match", api.HeaderEnvironment} {
		if value := ctx.Header(name); value != "" {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set(headerForwarded, "1")
	return s.forward.Do(req)
}
