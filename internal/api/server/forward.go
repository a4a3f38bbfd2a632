package server

import (
	"context"
	"crypto/tls"
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

// headerForwarded marks a request that a follower passes on, so that it goes no further.
const headerForwarded = "Kura-Forwarded"

const (
	// askLeader bounds how long a read waits for the leader before the follower answers
	// from the store, without what only the leader remembers.
	askLeader = 2 * time.Second
	// dialLeader bounds the connection to it.
	dialLeader = time.Second
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
	transport.TLSHandshakeTimeout = dialLeader
	transport.Proxy = nil
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// passOn is huma's middleware of a route whose answer the leader knows best. A follower
// asks the leader with the caller's own token, and where that gives no answer it answers
// itself. A long poll is answered here: its cursor is this process's own.
func (s *Server) passOn(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if !leaderKnows(r.id) || s.leader.Leads() || ctx.Header(headerForwarded) != "" || ctx.Query("wait") != "" || ctx.Query("after") != "" {
			next(ctx)
			return
		}
		answer, cancel, err := s.askLeader(ctx)
		defer cancel()
		if err != nil {
			s.log.Debug("the leader does not answer: answering from the store", "request", requestID(ctx.Context()), "error", err)
			next(ctx)
			return
		}
		defer answer.Body.Close()
		for _, name := range []string{"Content-Type", "ETag", "Retry-After"} {
			if value := answer.Header.Get(name); value != "" {
				ctx.SetHeader(name, value)
			}
		}
		ctx.SetStatus(answer.StatusCode)
		if _, err := io.Copy(ctx.BodyWriter(), answer.Body); err != nil {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
	}
}

func (s *Server) askLeader(ctx huma.Context) (*http.Response, context.CancelFunc, error) {
	limit := askLeader
	if ctx.Query("observe") != "" {
		limit += api.MaxObserve
	}
	within, cancel := context.WithCancel(ctx.Context())
	// The limit is for the answer to begin; a long list may take longer to arrive.
	timer := time.AfterFunc(limit, cancel)
	defer timer.Stop()
	answer, err := s.sendToLeader(within, ctx)
	if err == nil && answer.StatusCode >= http.StatusInternalServerError {
		err = fmt.Errorf("the leader answers %s", answer.Status)
		_ = answer.Body.Close()
	}
	return answer, cancel, err
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
