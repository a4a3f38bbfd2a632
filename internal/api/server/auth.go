package server

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// scopePublic marks the routes that need no token: liveness and readiness.
const scopePublic fleet.Scope = "public"

// subject says which accounts a route is about. It decides what a token may do that is
// limited to the accounts whose ids begin with its prefix.
type subject string

const (
	// ofID and ofAccount: the account that the path names, as {id} or {account}. A limited
	// token may do there what its scope allows, where the account is one of its own.
	ofID      subject = "id"
	ofAccount subject = "account"
	// ofUnlabelled: the account that the path names, and containers or instances that are
	// nobody's, where all accounts' are. Nothing for a limited token.
	ofUnlabelled subject = "unlabelled"
	// ofListed: all accounts. Only reads can be; the handler leaves out what the caller
	// does not see (visible).
	ofListed subject = "listed"
	// ofNone: no account, for what all of them share. A limited token may read it.
	ofNone subject = "none"
	// ofDaemon: the daemon as a whole. Nothing for a limited token.
	ofDaemon subject = "daemon"
)

// check says what the row lacks, without which nobody could tell who may use the route.
func (r route) check() error {
	if r.scope != scopePublic && !r.scope.Covers(fleet.ScopeRead) {
		return fmt.Errorf("route %s declares no scope", r.id)
	}
	named := ofNone // what the path itself says
	switch {
	case strings.Contains(r.path, "{account}"):
		named = ofAccount
	case strings.HasPrefix(r.path, "/v1/accounts/{id}"):
		named = ofID
	}
	switch r.about {
	case ofID, ofAccount:
		if named != r.about {
			return fmt.Errorf("route %s: its path %s has no parameter {%s} that names an account", r.id, r.path, r.about)
		}
	case ofUnlabelled:
		if named != ofAccount {
			return fmt.Errorf("route %s: its path %s has no parameter {account}", r.id, r.path)
		}
	case ofListed:
		if r.method != "GET" || named != ofNone {
			return fmt.Errorf("route %s: only a read of a whole collection can be of listed accounts", r.id)
		}
	case ofNone, ofDaemon:
		if named != ofNone {
			return fmt.Errorf("route %s: its path %s names an account; say so in its row", r.id, r.path)
		}
	default:
		return fmt.Errorf("route %s does not say which accounts it is about", r.id)
	}
	return nil
}

// permits says why a token may not use the route; nil: it may. Param reads the path.
func (r route) permits(token fleet.Token, param func(string) string) error {
	if !token.Scope.Covers(r.scope) {
		return fleet.Errorf(fleet.CodeForbidden, "token %q has scope %s and this needs %s; use a token of that scope (kurad token create --scope %s)", token.Name, token.Scope, r.scope, r.scope)
	}
	if !token.Limited() {
		return nil
	}
	limited := func(format string, args ...any) error {
		return fleet.Errorf(fleet.CodeForbidden, "token %q is limited to accounts whose id begins with %q, and %s; use a token without that limit (kurad token create without --account-prefix)",
			token.Name, token.AccountPrefix, fmt.Sprintf(format, args...))
	}
	switch r.about {
	case ofID, ofAccount:
		if account := param(string(r.about)); !token.Sees(account) {
			return limited("account %q is none of them", account)
		}
		return nil
	case ofListed:
		return nil
	case ofNone:
		if r.method != "GET" {
			return limited("this is shared with all others")
		}
		return nil
	case ofUnlabelled:
		return limited("containers and instances without labels are nobody's: any account's may be among them")
	case ofDaemon:
	}
	return limited("this is about the daemon as a whole")
}

// caller returns the token of the request.
func caller(ctx context.Context) fleet.Token { return callOf(ctx).token }

// withLogin lets nobody further without a valid token, but to the public routes. It comes
// before everything that a call could cost or be answered, so that whatever is refused without
// a token is a failed login: no body of such a call is read.
func (s *Server) withLogin(mux *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); s.public[pattern] {
			s.writeEnded(r.RemoteAddr)
			r.Body = http.NoBody
			if connectionOf(r.Context()).isNewcomer() { // keeps no connection (G8)
				w.Header().Set("Connection", "close")
			}
			next.ServeHTTP(w, r)
			return
		}
		err := s.login(r.Context(), callOf(r.Context()), r.RemoteAddr, r.Header.Get("Authorization"))
		if err == nil {
			s.writeEnded(r.RemoteAddr)
			err = s.over(r.Context(), connectionOf(r.Context()).show(caller(r.Context())))
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			writeProblem(w, s.fail(r.Context(), err))
			return
		}
		if err := s.hold(r.Context(), s.shares.requests, 1); err != nil {
			writeProblem(w, s.fail(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorize is huma's middleware that lets nobody in but those whom the route permits.
func (s *Server) authorize(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if r.scope == scopePublic {
			next(ctx)
			return
		}
		c := callOf(ctx.Context())
		if err := r.permits(c.token, ctx.Param); err != nil {
			s.refuse(ctx, err)
			return
		}
		c.permitted = true
		next(ctx)
	}
}

// hold gives the caller of a request n more of what a pool shares out, until it was answered.
func (s *Server) hold(ctx context.Context, p *pool, n int) error { return s.await(ctx, p, n, 0) }

// await is hold for who waits so long for it.
func (s *Server) await(ctx context.Context, p *pool, n int, wait time.Duration) error {
	leave, err := p.take(ctx, caller(ctx), n, wait)
	if err != nil {
		return s.over(ctx, err)
	}
	c := callOf(ctx)
	c.leave = append(c.leave, leave)
	return nil
}

// over notes with a call that a share is used up: it is to come back soon, and is denied,
// wherever the route had let it in.
func (s *Server) over(ctx context.Context, err error) error {
	if err != nil {
		c := callOf(ctx)
		c.retryAfter, c.permitted = 1, false
	}
	return err
}

// login finds the token of a call. Failures count against the address they come from.
// Whoever has a valid token is not held up by those of others: what a limited address
// presents is looked up in memory, and only what is valid there is looked at further, so
// that neither guessing nor a token that ended costs the store anything.
func (s *Server) login(ctx context.Context, c *call, source, header string) error {
	bearer, err := bearerOf(header)
	valid := err == nil && s.Tokens.valid(s.View, bearer)
	if wait := s.logins.wait(source); wait > 0 && !valid {
		return s.tooMany(c, source, wait)
	}
	if err == nil {
		c.token, err = s.Tokens.Authenticate(ctx, bearer)
	}
	// A store that does not answer is no failure of whoever has a valid token.
	if err != nil && (!valid || fleet.CodeOf(err) == fleet.CodeUnauthorized) {
		s.failed(c, source)
	}
	return err
}

func bearerOf(header string) (string, error) {
	const how = "send the header Authorization: Bearer kura_…; the first admin token is in <data-dir>/token"
	scheme, bearer, ok := strings.Cut(header, " ")
	switch {
	case header == "":
		return "", fleet.Errorf(fleet.CodeUnauthorized, "no token was sent; %s", how)
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", fleet.Errorf(fleet.CodeUnauthorized, "the Authorization header is no bearer token; %s", how)
	}
	return strings.TrimSpace(bearer), nil
}

// refuse answers with a problem before any handler runs.
func (s *Server) refuse(ctx huma.Context, err error) {
	p := s.fail(ctx.Context(), err)
	for name, values := range p.GetHeaders() {
		ctx.SetHeader(name, strings.Join(values, ", "))
	}
	ctx.SetHeader("Content-Type", api.ContentTypeProblem)
	ctx.SetStatus(p.Status)
	_ = s.api.Marshal(ctx.BodyWriter(), "application/json", p.Problem)
}

var secretFormat = regexp.MustCompile("(" + tokenPrefix + "_[a-z2-7]+_)[a-z2-7]+")

// withoutSecret leaves of a token in a text only what names it: somebody may send one
// where its id belongs.
func withoutSecret(s string) string { return secretFormat.ReplaceAllString(s, "${1}***") }
