package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"runtime/debug"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func (s *Server) withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()[:16]
		w.Header().Set(api.HeaderRequestID, id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, &call{id: id})))
	})
}

// withRecover turns a panic into a problem, or, where the answer has begun, into a
// broken connection: a half answer must not look like a whole one.
func (s *Server) withRecover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackedWriter{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			if tracked.begun {
				s.log.Error("request panicked in the middle of its answer", "request", requestID(r.Context()), "panic", p)
				panic(http.ErrAbortHandler)
			}
			s.log.Error("request panicked", "request", requestID(r.Context()), "method", r.Method, "path", withoutSecret(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
			writeProblem(w, r, api.Problem{Status: http.StatusInternalServerError, Code: fleet.CodeInternal,
				Detail: "kurad failed to answer; its log says why under request " + requestID(r.Context())})
		}()
		next.ServeHTTP(tracked, r)
	})
}

// trackedWriter knows whether an answer has begun, and with which status.
type trackedWriter struct {
	http.ResponseWriter
	begun  bool
	status int
}

func (w *trackedWriter) WriteHeader(status int) {
	if !w.begun {
		w.begun, w.status = true, status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun, w.status = true, http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// withEnvironment refuses requests that were made for another environment: nothing is
// read or written by a client that has the wrong daemon before it.
func (s *Server) withEnvironment(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := r.Header.Get(api.HeaderEnvironment)
		if want != "" && want != s.env.Name {
			c := callOf(r.Context())
			if wait := s.logins.wait(r.RemoteAddr); wait > 0 {
				writeProblem(w, r, api.NewProblem(s.tooMany(c, r.RemoteAddr, wait), c.id))
				return
			}
			s.failed(c, r.RemoteAddr)
			writeProblem(w, r, api.Problem{Status: http.StatusMisdirectedRequest, Code: api.CodeWrongEnvironment,
				Detail: "this kurad serves environment \"" + s.env.Name + "\" and the request is for another one; set the endpoint of that environment's kurad, or the environment of this one"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

const tooLarge = "the body is over 1 MiB, which no object of kurad needs; send less"

// withLimits reads the body, so that one which is too large is told apart from one
// that broke off.
func (s *Server) withLimits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
		if _, over := errors.AsType[*http.MaxBytesError](err); over {
			writeProblem(w, r, api.Problem{Status: http.StatusRequestEntityTooLarge, Code: fleet.CodeTooLarge, Detail: tooLarge})
			return
		}
		if err != nil {
			writeProblem(w, r, api.Problem{Status: http.StatusBadRequest, Code: fleet.CodeInvalid, Detail: "the body broke off before its end; send the request again"})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
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
		p := noRoute(r)
		if probe.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", probe.header.Get("Allow"))
			p.Status = http.StatusMethodNotAllowed
			p.Detail = r.URL.Path + " does not take " + r.Method + "; it takes " + probe.header.Get("Allow")
		}
		writeProblem(w, r, p)
	})
}

func noRoute(r *http.Request) api.Problem {
	return api.Problem{Status: http.StatusNotFound, Code: api.CodeNoRoute,
		Detail: "this kurad has no route " + r.Method + " " + r.URL.Path + "; see /v1/openapi.json for those it has"}
}

// discarded keeps the status and the headers of an answer.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
