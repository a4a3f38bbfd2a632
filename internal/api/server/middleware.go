package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func (s *Server) withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()[:16]
		w.Header().Set(api.HeaderRequestID, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		c := &call{id: id}
		defer connectionOf(r.Context()).begins()()
		defer func() {
			for _, leave := range c.leave {
				leave()
			}
		}()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// withRecover turns a panic into a problem, or, where the answer has begun, into a
// broken connection: a half answer must not look like a whole one.
func (s *Server) withRecover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			if callOf(r.Context()).answer.begun {
				s.Logger.Error("request panicked in the middle of its answer", "request", requestID(r.Context()), "panic", p)
				panic(http.ErrAbortHandler)
			}
			s.Logger.Error("request panicked", "request", requestID(r.Context()), "method", r.Method, "path", withoutSecret(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
			writeProblem(w, newProblem(r.Context(), kuradsFault(r.Context())))
		}()
		next.ServeHTTP(w, r)
	})
}

// withEnvironment refuses requests that were made for another environment: nothing is
// read or written by a client that has the wrong daemon before it.
func (s *Server) withEnvironment(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := r.Header.Get(api.HeaderEnvironment)
		if want != "" && want != s.Environment.Name {
			c := callOf(r.Context())
			err := fleet.Errorf(api.CodeWrongEnvironment, "this kurad serves environment %q and the request is for another one; set the endpoint of that environment's kurad, or the environment of this one", s.Environment.Name)
			if wait := s.logins.wait(r.RemoteAddr); wait > 0 {
				err = s.tooMany(c, r.RemoteAddr, wait)
			} else {
				s.failed(c, r.RemoteAddr)
			}
			writeProblem(w, newProblem(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readBody is huma's middleware that reads the body of a call that its route permits: one which
// is too large is told apart from one that broke off. Until the answer the body counts
// against its caller's share.
func (s *Server) readBody(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if !changing(r.Method) || r.Body == nil || r.Body == http.NoBody {
		r.Body = http.NoBody
		next(ctx)
		return
	}
	size := int64(api.MaxBody) // where it does not say
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	if err := s.hold(r.Context(), s.shares.bodies, int(size)); err != nil {
		s.refuse(ctx, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		s.refuse(ctx, fleet.Errorf(fleet.CodeTooLarge, "the body is over 1 MiB, which no object of kurad needs; send less"))
		return
	}
	if err != nil {
		writeProblem(w, newProblem(r.Context(), fleet.Errorf(fleet.CodeInvalid, "the body broke off before its end; send the request again")).as(http.StatusBadRequest))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	next(ctx)
}

// countList is huma's middleware of a list, and of the document that is as long as one: until it
// is sent it counts against its caller's share. Long polls have one of their own, unless they turn out to list everything.
func (s *Server) countList(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if (strings.HasPrefix(r.id, "list-") || r.id == "openapi") && ctx.Query("wait") == "" && ctx.Query("after") == "" {
			if err := s.await(ctx.Context(), s.shares.answers, answerTakes, queueFor); err != nil {
				s.refuse(ctx, err)
				return
			}
		}
		next(ctx)
	}
}

// withRoute answers what no route does. Its 404 is not that of an object: a client must
// never take a daemon without the route for one without the object.
func (s *Server) withRoute(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := &discarded{header: http.Header{}}
		mux.ServeHTTP(probe, r)
		if probe.status != http.StatusMethodNotAllowed {
			writeProblem(w, noRoute(r))
			return
		}
		allowed := probe.header.Get("Allow")
		w.Header().Set("Allow", allowed)
		writeProblem(w, newProblem(r.Context(), fleet.Errorf(api.CodeNoRoute, "%s does not take %s; it takes %s", r.URL.Path, r.Method, allowed)).as(probe.status))
	})
}

func noRoute(r *http.Request) *problem {
	return newProblem(r.Context(), fleet.Errorf(api.CodeNoRoute, "this kurad has no route %s %s; see /v1/openapi.json for those it has", r.Method, r.URL.Path))
}

// discarded keeps the status and the headers of an answer.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
