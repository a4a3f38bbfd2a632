package server

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Audit is where the calls are written down that could change something or were denied.
type Audit interface {
	// Write returns once the entry is kept. Where it fails for a call that may have changed
	// something, the entry is kept as soon as that is possible.
	Write(e audit.Entry, changed bool) error
	// Ready returns an error while entries cannot be kept.
	Ready() error
}

type callKey struct{}

// call is what is learnt about a request on its way to its answer.
type call struct {
	id         string
	token      fleet.Token // as far as it was recognised
	permitted  bool        // the route let it in
	code       fleet.Code  // of the problem that was answered
	detail     string
	retryAfter int      // seconds
	unwritten  int      // refusals before it that are not in the audit log
	unaudited  bool     // it is one of those
	leave      []func() // gives back what it holds of shares
	answer     *heldWriter
}

// callOf returns the call of a request, an empty one outside of any.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// requestID returns the id of the request, "" outside of one.
func requestID(ctx context.Context) string { return callOf(ctx).id }

// denied reports whether an answer says no for who asks, not for what is asked.
func denied(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		return true
	}
	return false
}

func changing(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// withAudit writes a line for each call that could change something and for each that
// is denied, before its answer leaves. While lines cannot be written nothing is changed.
func (s *Server) withAudit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := &heldWriter{ResponseWriter: w, held: changing(r.Method), status: http.StatusOK}
		callOf(r.Context()).answer = held
		before := w.Header().Clone()
		if held.held {
			if err := s.Audit.Ready(); err != nil && !revokes(r) {
				writeProblem(w, newProblem(r.Context(), unwritable(err, "nothing was changed")))
				return
			}
		}
		ended := false
		defer func() {
			if !ended && held.held { // the answer breaks off; the panic goes on
				held.status = http.StatusInternalServerError
				_ = s.writeDown(r, held.status)
			}
		}()
		next.ServeHTTP(held, r)
		ended = true
		if !held.held {
			return
		}
		if err := s.writeDown(r, held.status); err != nil && !s.revoked(r, held.status) {
			clear(w.Header())
			maps.Copy(w.Header(), before)
			c, what := callOf(r.Context()), "what was asked for was refused, and nothing was changed"
			if mayHaveChanged(c, r) {
				what = "what was asked for may have been done; read it again"
			} else {
				s.logins.again(refusals{sourceOf(r.RemoteAddr), c.unwritten}) // the line that would have told them is lost
			}
			writeProblem(w, newProblem(r.Context(), unwritable(err, what)))
			return
		}
		held.release()
	})
}

// revokes reports whether a call ends a token: that must be possible while nothing else
// may be changed, for whoever fills the disk may be the one that is to be locked out.
func revokes(r *http.Request) bool {
	return r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/v1/tokens/")
}

// revoked reports whether a call that may have ended a token is answered without its line,
// which follows when there is room (G10).
func (s *Server) revoked(r *http.Request, status int) bool {
	c := callOf(r.Context())
	if !revokes(r) || !mayHaveChanged(c, r) {
		return false
	}
	s.Logger.Error("a token was to be revoked while the audit log cannot be written; the line follows once it can", "request", c.id, "token", c.token.ID, "path", withoutSecret(r.URL.Path), "status", status)
	return true
}

func unwritable(err error, what string) error {
	return fleet.Errorf(fleet.CodeUnavailable, "kurad cannot write its audit log: %v; %s. Free the disk, or start kurad with another --audit-log", err, what)
}

// writeDown writes the line of a call. Of the query only what changes the meaning of a
// write is in it: a token that somebody sent there by mistake must not be.
func (s *Server) writeDown(r *http.Request, status int) error {
	c := callOf(r.Context())
	if c.unaudited {
		return nil
	}
	dry, _ := strconv.ParseBool(r.URL.Query().Get("dry_run"))
	e := audit.Entry{
		Time: s.Now().UTC(), Event: audit.EventCall, RequestID: c.id,
		TokenID: c.token.ID, TokenName: withoutSecret(c.token.Name), Scope: string(c.token.Scope), AccountPrefix: c.token.AccountPrefix,
		Source: r.RemoteAddr, Method: withoutSecret(r.Method), Path: withoutSecret(r.URL.Path), DryRun: dry,
		Status: status, Code: string(c.code), Unwritten: c.unwritten,
	}
	if denied(status) {
		// Of other problems the text may quote what was sent, which is nobody's business here.
		e.Reason = withoutSecret(c.detail)
	}
	return s.Audit.Write(e, mayHaveChanged(c, r))
}

// mayHaveChanged reports whether a call was let through to where things are changed.
func mayHaveChanged(c *call, r *http.Request) bool { return c.permitted && changing(r.Method) }

// heldWriter keeps an answer back until it is released: all of one that is held, and of
// any other those that deny.
type heldWriter struct {
	http.ResponseWriter
	held   bool
	begun  bool
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (w *heldWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun, w.status = true, status
	if w.held = w.held || denied(status); !w.held {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *heldWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.held {
		return w.body.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// FlushError serves http.ResponseController: what is held does not leave early.
func (w *heldWriter) FlushError() error {
	if w.held {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (w *heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// release sends what was held.
func (w *heldWriter) release() {
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(w.body.Bytes())
}
