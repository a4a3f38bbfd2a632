package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// problem is an api.Problem as huma writes errors.
type problem struct {
	api.Problem
	retryAfter int // seconds; 0: not said
}

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) ContentType(string) string { return api.ContentTypeProblem }

// GetHeaders implements huma.HeadersError: who is told to come back learns when.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	switch {
	case p.retryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	case p.Status == http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="kura"`)
	}
	return h
}

// fail turns an error of a handler into its problem. A fault of kurad is logged here,
// and only here: the answer names the request under which it was.
func (s *Server) fail(ctx context.Context, err error) *problem {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = fleet.Errorf(fleet.CodeUnavailable, "the client went away")
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = fleet.Errorf(fleet.CodeUnavailable, "kurad's store did not answer in time; try again")
	} else if fleet.CodeOf(err) == fleet.CodeInternal {
		s.Logger.Error("request failed", "request", requestID(ctx), "error", err)
		err = kuradsFault(ctx)
	}
	return newProblem(ctx, err)
}

// kuradsFault is all that is said of a fault of kurad.
func kuradsFault(ctx context.Context) error {
	return fleet.Errorf(fleet.CodeInternal, "kurad failed to answer; its log says why under request %s", requestID(ctx))
}

// maxDetail bounds the text of a problem, in bytes (G8).
const maxDetail = 4 << 10

// newProblem returns what a call is answered, and notes it with the call.
func newProblem(ctx context.Context, err error) *problem {
	c := callOf(ctx)
	p := &problem{api.NewProblem(err, c.id), c.retryAfter}
	p.Detail = fleet.Cut(p.Detail, maxDetail) // it may quote what was sent
	c.code, c.detail = p.Code, p.Detail
	return p
}

// as gives a problem another status than that of its code.
func (p *problem) as(status int) *problem {
	p.Status, p.Title = status, http.StatusText(status)
	return p
}

// asProblem is a huma transformer: what huma itself finds wrong with a request
// (parameters, media types, sizes) becomes a problem like every other.
func asProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	code := fleet.CodeInvalid
	switch {
	case m.Status == http.StatusRequestEntityTooLarge:
		code = fleet.CodeTooLarge
	case m.Status >= 500:
		code = fleet.CodeInternal
	}
	detail := m.Detail
	if len(m.Errors) > 0 {
		detail = "the request is not valid: " + describe(m.Errors)
	}
	return newProblem(ctx.Context(), &fleet.Error{Code: code, Message: detail}).as(m.Status).Problem, nil
}

// describe says of parameters, which no JSON pointer can name, what is wrong.
func describe(details []*huma.ErrorDetail) string {
	var parts []string
	for _, d := range details {
		if d == nil {
			continue
		}
		where, name, named := strings.Cut(d.Location, ".")
		switch {
		case named:
			parts = append(parts, fmt.Sprintf("%s parameter %q: %s", where, name, d.Message))
		default:
			parts = append(parts, d.Message)
		}
	}
	return strings.Join(parts, "; ")
}

// writeProblem answers outside of any route.
func writeProblem(w http.ResponseWriter, p *problem) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", api.ContentTypeProblem)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p.Problem)
}
