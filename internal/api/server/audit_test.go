package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// audited checks that a refusal is in the audit log, as the line after so many.
func (w *world) audited(before int, method, path string, p api.Problem) {
	w.t.Helper()
	lines := w.audit.Entries()[before:]
	if len(lines) != 1 {
		w.t.Errorf("%s %s: %d lines in the audit log, want one: %+v", method, path, len(lines), lines)
		return
	}
	l := lines[0]
	got := audit.Entry{Event: l.Event, RequestID: l.RequestID, Method: l.Method, Path: l.Path, Status: l.Status, Code: l.Code, Reason: l.Reason}
	want := audit.Entry{Event: audit.EventCall, RequestID: p.RequestID, Method: method, Path: path, Status: p.Status, Code: string(p.Code), Reason: p.Detail}
	if d := cmp.Diff(want, got); d != "" || l.Time.IsZero() || !strings.HasPrefix(l.Source, "127.0.0.1:") {
		w.t.Errorf("%s %s: the audit log (-want +got):\n%s%+v", method, path, d, l)
	}
}

func TestAudit_aChangeIsWrittenDownBeforeItsAnswer(t *testing.T) {
	w := newWorld(t)
	token := w.token("writer", fleet.ScopeWrite)
	before := len(w.audit.Entries())
	w.do("GET", "/v1/accounts", "", token)
	w.do("PUT", "/v1/accounts/acme?dry_run=true", `{"id":"acme"}`, token)
	w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, token)
	w.do("PUT", "/v1/accounts/acme", `{"id":"other"}`, token)
	w.do("POST", "/v1/nowhere", "", token)
	var got []string
	for _, l := range w.audit.Entries()[before:] {
		got = append(got, fmt.Sprint(l.TokenName, " ", l.Scope, " ", l.Method, " ", l.Path, " ", l.DryRun, " ", l.Status, " ", l.Code, " ", l.Reason))
	}
	want := []string{
		"writer write PUT /v1/accounts/acme true 200  ",
		"writer write PUT /v1/accounts/acme false 201  ",
		"writer write PUT /v1/accounts/acme false 422 invalid ",
		"writer write POST /v1/nowhere false 404 no_such_route ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the audit log (-want +got):\n%s", d)
	}
}

func TestAudit_withoutItsLineNothingIsChangedAndNothingIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.audit.Fail(errors.New("no space left on device"))
	// Not even a refusal leaves without its line.
	for _, c := range []struct{ method, path, body, token string }{
		{"PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin}, {"DELETE", "/v1/accounts/acme", "", ""}, {"GET", "/v1/accounts", "", "wrong"},
	} {
		p := w.problem(c.method, c.path, c.body, c.token)
		if p.Status != 503 || p.Code != fleet.CodeUnavailable || !strings.Contains(p.Detail, "audit log: no space left on device") || !strings.Contains(p.Detail, "--audit-log") {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
	if resp, _ := w.do("GET", "/v1/accounts", "", w.admin); resp.StatusCode != 200 {
		t.Errorf("reads: %d", resp.StatusCode)
	}
	w.audit.Fail(nil)
	if p := w.problem("GET", "/v1/accounts/acme", "", w.admin); p.Status != 404 {
		t.Errorf("it was made: %+v", p)
	}
	if resp, b := w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// What was refused was not done, whatever became of its line.
func TestAudit_aRefusalWithoutItsLineDoesNotSayThatItMayHaveBeenDone(t *testing.T) {
	w := newWorld(t)
	reader := w.token("reader", fleet.ScopeRead)
	w.audit.Fail(errors.New("no space left on device"))
	for _, c := range []struct{ method, path, token string }{
		{"GET", "/v1/accounts", "wrong"}, {"GET", "/v1/accounts", ""}, {"GET", "/v1/tokens", reader},
	} {
		p := w.problem(c.method, c.path, "", c.token)
		if p.Status != 503 || strings.Contains(p.Detail, "may have been done") || !strings.Contains(p.Detail, "was refused, and nothing was changed") {
			t.Errorf("%s %s: %+v", c.method, c.path, p)
		}
	}
}

// breaking fails at the line of a change, as a disk that fills up does.
type breaking struct{ *auditMemory }

func (b breaking) Write(e audit.Entry, changed bool) error {
	if changed {
		return errors.New("no space left on device")
	}
	return b.auditMemory.Write(e, changed)
}

func TestAudit_aChangeWhoseLineCannotBeWrittenIsNotAcknowledged(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.Audit = breaking{&auditMemory{}} })
	resp, b := w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin)
	if resp.StatusCode != 503 || !strings.Contains(string(b), "may have been done") || resp.Header.Get("Content-Type") != api.ContentTypeProblem || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, b)
	}
}

// Whoever fills the disk may be the one that is to be locked out.
func TestG10_aTokenIsRevokedThoughTheAuditLogCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	evil, writer := w.token("evil", fleet.ScopeWrite), w.token("writer", fleet.ScopeWrite)
	id := strings.Split(evil, "_")[1]
	w.audit.Fail(errors.New("no space left on device"))
	if resp, b := w.do("DELETE", "/v1/tokens/"+id, "", writer); resp.StatusCode != 503 { // not let through: as before
		t.Errorf("by a writer: %d %s", resp.StatusCode, b)
	}
	if resp, _ := w.do("GET", "/v1/accounts", "", evil); resp.StatusCode != 200 {
		t.Errorf("before: %d", resp.StatusCode)
	}
	if resp, b := w.do("DELETE", "/v1/tokens/"+id, "", w.admin); resp.StatusCode != 204 || len(b) != 0 {
		t.Errorf("revoke: %d %s", resp.StatusCode, b)
	}
	if resp, b := w.do("DELETE", "/v1/tokens/nobodys00", "", w.admin); resp.StatusCode != 404 {
		t.Errorf("revoke another: %d %s", resp.StatusCode, b)
	}
	w.viewed()
	if p := w.problem("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin); p.Status != 503 {
		t.Errorf("another change: %+v", p)
	}
	w.audit.Fail(nil)
	if p := w.problem("GET", "/v1/accounts", "", evil); p.Status != 401 || !strings.Contains(p.Detail, "was revoked") {
		t.Errorf("afterwards: %+v", p)
	}
	if got := w.logged.String(); !strings.Contains(got, "a token was to be revoked while the audit log cannot be written") {
		t.Errorf("the log does not say it:\n%s", got)
	}
}

// A call that is over its caller's share is denied, and counted among those: not with the
// changes, which it must not rotate away.
func TestG10_aCallOverItsShareIsInTheAuditLogAsADeniedOne(t *testing.T) {
	w := newWorld(t)
	token := w.token("greedy", fleet.ScopeWrite)
	w.viewed()
	dial := w.listens()
	for range 4 { // mebibytes
		if _, err := fmt.Fprintf(dial(), "PUT /v1/accounts/a HTTP/1.1\r\nHost: k\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{", token, api.MaxBody); err != nil {
			t.Fatal(err)
		}
	}
	for {
		before, changes := len(w.audit.Entries()), w.audit.Changes()
		resp, b := w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, token)
		if resp.StatusCode < 300 { // not all of them are there
			continue
		}
		var p api.Problem
		if err := json.Unmarshal(b, &p); err != nil || p.Status != 429 || p.Code != api.CodeRateLimited || !strings.Contains(p.Detail, "bytes of bodies") || resp.Header.Get("Retry-After") != "1" {
			t.Fatalf("%d %s", resp.StatusCode, b)
		}
		w.audited(before, "PUT", "/v1/accounts/acme", p)
		if w.audit.Changes() != changes {
			t.Error("it is among the changes")
		}
		return
	}
}
