package server

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// scopePublic marks the routes that need no token: liveness and readiness.
const scopePublic fleet.Scope = "public"

type tokenKey struct{}

// caller returns the token of the request.
func caller(ctx context.Context) fleet.Token {
	t, _ := ctx.Value(tokenKey{}).(fleet.Token)
	return t
}

// authorize is huma's middleware of a route that needs scope. Writes and refusals are
// audited.
func (s *Server) authorize(need fleet.Scope) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if need == scopePublic {
			next(ctx)
			return
		}
		token, err := s.authenticate(ctx.Context(), ctx.Header("Authorization"))
		if err == nil && !token.Scope.Covers(need) {
			err = fleet.Errorf(fleet.CodeForbidden, "token %q has scope %s and this needs %s; use a token of that scope (kurad token create --scope %s)", token.Name, token.Scope, need, need)
		}
		if err != nil {
			if code := fleet.CodeOf(err); code == fleet.CodeUnauthorized || code == fleet.CodeForbidden {
				s.record(ctx, token, "denied", err.Error())
			}
			s.refuse(ctx, err)
			return
		}
		next(huma.WithValue(ctx, tokenKey{}, token))
		if ctx.Method() != http.MethodGet {
			s.record(ctx, token, "done", "")
		}
	}
}

// record writes a line of the audit log. Of the query only what changes the meaning of a
// write is in it: a token that somebody sent there by mistake must not be.
func (s *Server) record(ctx huma.Context, token fleet.Token, what, why string) {
	u := ctx.URL()
	dry, _ := strconv.ParseBool(u.Query().Get("dry_run"))
	s.audit.Info(what, "request", requestID(ctx.Context()), "token", token.ID, "token_name", token.Name, "scope", token.Scope,
		"source", ctx.RemoteAddr(), "method", ctx.Method(), "path", withoutSecret(u.Path), "dry_run", dry, "status", ctx.Status(), "reason", why)
}

var secretFormat = regexp.MustCompile("(" + tokenPrefix + "_[a-z2-7]+_)[a-z2-7]+")

// withoutSecret leaves of a token in a text only what names it: somebody may send one
// where its id belongs.
func withoutSecret(s string) string { return secretFormat.ReplaceAllString(s, "${1}***") }

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

// authenticate returns the token that an Authorization header bears.
func (s *Server) authenticate(ctx context.Context, header string) (fleet.Token, error) {
	const how = "send the header Authorization: Bearer kura_…; the first admin token is in <data-dir>/token"
	scheme, bearer, ok := strings.Cut(header, " ")
	switch {
	case header == "":
		return fleet.Token{}, fleet.Errorf(fleet.CodeUnauthorized, "no token was sent; %s", how)
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return fleet.Token{}, fleet.Errorf(fleet.CodeUnauthorized, "the Authorization header is no bearer token; %s", how)
	}
	return s.tokens.Authenticate(ctx, strings.TrimSpace(bearer))
}
