package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
)

func TestLogins_tooManyFailuresOfAnAddressAreRefused(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 3 })
	w.viewed()
	bad := strings.TrimSuffix(w.admin, w.admin[len(w.admin)-4:]) + "aaaa"
	for range 3 {
		if p := w.problem("GET", "/v1/version", "", bad); p.Status != 401 {
			t.Fatalf("%+v", p)
		}
	}
	before := len(w.audit.Entries())
	for _, token := range []string{bad, "", "hunter2", "kura_aaaaaaaa_aaaa"} {
		resp, b := w.do("PUT", "/v1/accounts/acme", `{"id":"acme"}`, token)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "20" || !strings.Contains(string(b), `"code":"rate_limited"`) || !strings.Contains(string(b), "try again in 20 seconds") {
			t.Errorf("%q: %d %v %s", token, resp.StatusCode, resp.Header, b)
		}
	}
	if p := w.problem("GET", "/v1/version", "", "", api.HeaderEnvironment, "production"); p.Status != 429 {
		t.Errorf("for another environment: %+v", p)
	}
	if resp, b := w.do("GET", "/v1/version", "", w.admin); resp.StatusCode != 200 {
		t.Errorf("a valid token pays for the failures of others: %d %s", resp.StatusCode, b)
	}
	w.clock.advance(20 * time.Second)
	if p := w.problem("GET", "/v1/version", "", bad); p.Status != 401 {
		t.Errorf("after the wait: %+v", p)
	}
	if p := w.problem("GET", "/v1/version", "", bad); p.Status != 429 {
		t.Errorf("and again: %+v", p)
	}
	// Whoever knocks on does not fill the audit log: the first of a row is in it, and how
	// many followed.
	if s := written(w.audit.Entries()[before:]); s != "429+0 401+4 429+0" {
		t.Errorf("the audit log has %s", s)
	}
}

// statuses sends calls one after the other and returns how they were answered, and the
// lines that the audit log has of them.
func (w *world) statuses(calls ...call) (answers, lines string) {
	w.t.Helper()
	before := len(w.audit.Entries())
	var got []string
	for _, c := range calls {
		resp, _ := w.do(c.method, c.path, c.body, c.token)
		got = append(got, fmt.Sprint(resp.StatusCode))
	}
	return strings.Join(got, " "), written(w.audit.Entries()[before:])
}

type call struct{ method, path, body, token string }

// written tells lines of the audit log by their status and how many calls came before.
func written(lines []audit.Entry) string {
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Status, "+", l.Unwritten))
	}
	return strings.Join(got, " ")
}

// How many calls were refused is told by the next call, whatever it is, once the limit is
// over; it need not be another failed login.
func TestLogins_theNextCallOfAnyKindTellsHowManyWereRefused(t *testing.T) {
	for name, c := range map[string]struct {
		next  call
		lines string
	}{
		"a read":                  {call{"GET", "/v1/version", "", "valid"}, "429+4"},
		"a change":                {call{"PUT", "/v1/accounts/acme", `{"id":"acme"}`, "valid"}, "429+4 200+0"},
		"one that is forbidden":   {call{"POST", "/v1/tokens", "{}", "reader"}, "429+4 403+0"},
		"one without a token":     {call{"GET", "/healthz", "", ""}, "429+4"},
		"another failed login":    {call{"GET", "/v1/version", "", ""}, "401+5"}, // it was refused once itself before
		"for another environment": {call{"GET", "/v1/version", "", "production"}, "421+5"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *server.Config) { c.FailedLogins = 2 })
			reader := w.token("reader", fleet.ScopeRead)
			w.viewed()
			knock := call{"GET", "/v1/accounts", "", "hunter2"}
			w.statuses(knock, knock, knock, knock, knock, knock, knock)
			send := func() string {
				before, next, header := len(w.audit.Entries()), c.next, []string{}
				switch next.token {
				case "valid":
					next.token = w.admin
				case "reader":
					next.token = reader
				case "production":
					next.token, header = "", []string{api.HeaderEnvironment, "production"}
				}
				w.do(next.method, next.path, next.body, next.token, header...)
				return written(w.audit.Entries()[before:])
			}
			if lines := send(); strings.Contains(lines, "+4") || strings.Contains(lines, "+5") {
				t.Errorf("while the limit lasts: %s", lines)
			}
			w.clock.advance(time.Minute)
			// Nothing is lost while the log cannot be written.
			w.audit.Fail(errors.New("no space left on device"))
			w.do("GET", "/v1/version", "", w.admin)
			w.do("GET", "/v1/version", "", "hunter2")
			w.audit.Fail(nil)
			w.clock.advance(time.Minute)
			before := len(w.audit.Entries())
			if lines := send(); lines != c.lines {
				t.Fatalf("the audit log has %s, want %s", lines, c.lines)
			}
			if l := w.audit.Entries()[before]; l.Status == 429 && (l.Event != audit.EventRefused || l.Source != "127.0.0.1" || l.Code != "rate_limited" || l.Time.IsZero() || l.Reason == "") {
				t.Errorf("the line: %+v", l)
			}
			if lines := send(); strings.Contains(lines, "+4") || strings.Contains(lines, "+5") {
				t.Errorf("told twice: %s", lines)
			}
		})
	}
}

// An address that is forgotten for others takes no count along.
func TestLogins_whatWasRefusedIsToldWhenItsAddressIsForgotten(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 1 })
	w.viewed()
	from := func(addr string) int {
		r := httptest.NewRequest("GET", "/v1/version", nil)
		r.RemoteAddr = addr
		got := httptest.NewRecorder()
		w.api.ServeHTTP(got, r)
		return got.Code
	}
	var got []int
	for range 5 {
		got = append(got, from("[2001:db8:1:2::3]:1000"))
	}
	if fmt.Sprint(got) != "[401 429 429 429 429]" {
		t.Fatalf("answers %v", got)
	}
	before := len(w.audit.Entries())
	for i := range 8192 { // maxSources
		from(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	var told []audit.Entry
	for _, l := range w.audit.Entries()[before:] {
		if l.Event == audit.EventRefused {
			told = append(told, l)
		}
	}
	if len(told) != 1 || told[0].Source != "2001:db8:1:2::/64" || told[0].Unwritten != 3 {
		t.Errorf("the audit log has %+v", told)
	}
}

// A token that ended is one more failed login: it is no way round the limit.
func TestLogins_aRevokedTokenIsRefusedEvenWhileItsAddressIsLimited(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 2 })
	revoked := w.token("revoked", fleet.ScopeRead)
	w.must(nil, w.tokens.Revoke(t.Context(), strings.Split(revoked, "_")[1]))
	_, expired, err := w.tokens.Create(t.Context(), "test", api.TokenRequest{Name: "expired", Scope: fleet.ScopeRead, ExpiresIn: fleet.Duration(time.Hour)})
	w.must(nil, err)
	w.clock.advance(time.Hour)
	w.viewed()
	for _, token := range []string{revoked, expired.Reveal()} {
		c := call{"GET", "/v1/version", "", token}
		if answers, lines := w.statuses(c, c, c, c, c); answers != "401 401 429 429 429" || !strings.HasPrefix(lines, "401+") || !strings.HasSuffix(lines, " 401+0 429+0") {
			t.Errorf("answers %s, lines %s", answers, lines)
		}
		w.clock.advance(time.Minute)
	}
}

// Whatever a call without a valid token asks for, it is a failed login and nothing else.
func TestLogins_whatIsRefusedWithoutATokenCannotFillTheAuditLog(t *testing.T) {
	large := strings.Repeat("x", api.MaxBody+1)
	for _, c := range []call{
		{"POST", "/x", "", ""}, {"POST", "/x", "", "hunter2"}, {"PATCH", "/v1/accounts/a", "", ""}, {"PUT", "/v1/accounts/a", large, ""},
		{"PUT", "/v1/accounts/a", "{}", "kura_aaaaaaaa_aaaa"}, {"POST", "/healthz", "", ""}, {"POST", "//healthz", "", ""}, {"GET", "/x", "", ""},
		{"POST", "/v1/servers/a/b:explode", "", ""}, {"OPTIONS", "/v1/accounts", "", ""},
	} {
		w := newWorld(t, func(c *server.Config) { c.FailedLogins = 2 })
		if answers, lines := w.statuses(c, c, c, c, c); answers != "401 401 429 429 429" || lines != "401+0 401+0 429+0" {
			t.Errorf("%s %s with %q: answers %s, lines %s", c.method, c.path, c.token, answers, lines)
		}
	}
}

// A store that does not answer lets nobody past the limit whom nothing vouches for.
func TestLogins_countWhatTheStoreCannotTell(t *testing.T) {
	below := &silent{Store: conformance.NewMemory()}
	w := newWorldOn(t, below, func(c *server.Config) { c.FailedLogins = 2 })
	w.viewed()
	below.off.Store(true)
	unknown := call{"POST", "/x", "", "kura_aaaaaaaa_aaaa"}
	if answers, lines := w.statuses(unknown, unknown, unknown, unknown); answers != "503 503 429 429" || lines != "503+0 503+0 429+0" {
		t.Errorf("answers %s, lines %s", answers, lines)
	}
	valid := call{"GET", "/v1/version", "", w.admin}
	if answers, _ := w.statuses(valid, valid, valid); answers != "503 503 503" {
		t.Errorf("a token of the view: %s", answers)
	}
}

// The body is large enough for the server not to wait for it before it answers.
func TestG8_nothingIsReadOfABodyThatIsNotPermitted(t *testing.T) {
	w := newWorld(t)
	reader, limited := w.token("reader", fleet.ScopeRead), w.limited("team-a", fleet.ScopeWrite, "team-a-")
	w.viewed()
	for request, want := range map[string]string{
		"PUT /v1/accounts/a HTTP/1.1\r\n":                                          " 401 ",
		"PUT /v1/accounts/a HTTP/1.1\r\nAuthorization: Bearer kura_a_b\r\n":        " 401 ",
		"PUT /v1/accounts/a HTTP/1.1\r\nAuthorization: Bearer " + reader + "\r\n":  " 403 ",
		"PUT /v1/accounts/a HTTP/1.1\r\nAuthorization: Bearer " + limited + "\r\n": " 403 ",
		"GET /v1/accounts HTTP/1.1\r\nAuthorization: Bearer " + reader + "\r\n":    " 200 ",
		"POST /x HTTP/1.1\r\nAuthorization: Bearer " + w.admin + "\r\n":            " 404 ",
		"POST /x HTTP/1.1\r\n":      " 401 ",
		"GET /healthz HTTP/1.1\r\n": " 200 ",
		"GET /healthz HTTP/1.1\r\nAuthorization: Bearer " + w.admin + "\r\n":      " 200 ",
		"PUT /v1/accounts/a HTTP/1.1\r\n" + api.HeaderEnvironment + ": other\r\n": " 421 ",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request+"Host: k\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, want) {
			t.Errorf("%q: %q, %v; want %s", request, line, err, want)
		}
		conn.Close()
	}
}

func TestServer_withoutAnAuditLogThereIsNone(t *testing.T) {
	if s, err := server.New(server.Config{}); err == nil || !strings.Contains(err.Error(), "audit") {
		t.Errorf("%v, %v", s, err)
	}
}

// A client that sends its header or its body a byte at a time is cut off.
func TestHTTPServer_slowClientsAreCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		send   string
		within time.Duration
	}{
		"nothing":     {"", 5 * time.Second},
		"a header":    {"GET /healthz HTTP/1.1\r\nHost: k\r\nX: ", 5 * time.Second},
		"a body":      {"PUT /v1/accounts/a HTTP/1.1\r\nHost: k\r\nContent-Length: 100\r\n\r\n{", 30 * time.Second},
		"idle behind": {"GET /healthz HTTP/1.1\r\nHost: k\r\n\r\n", 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b := make([]byte, 1000)
					for {
						if _, err := r.Body.Read(b); err != nil {
							return
						}
					}
				}))
				near, far := net.Pipe()
				go func() { _ = s.Serve(&oneConn{conn: far, ended: make(chan struct{})}) }()
				defer s.Close()
				start, sent := time.Now(), make(chan struct{})
				go func() {
					defer close(sent)
					if _, err := near.Write([]byte(c.send)); err != nil {
						return
					}
					for name != "idle behind" && name != "nothing" { // on and on, slowly
						time.Sleep(time.Second) // the bubble's
						if _, err := near.Write([]byte("x")); err != nil {
							return
						}
					}
				}()
				in := bufio.NewReader(near)
				for {
					if _, err := in.ReadByte(); err != nil {
						break
					}
				}
				if took := time.Since(start); took < c.within || took > c.within+2*time.Second {
					t.Errorf("cut off after %s, want %s", took, c.within)
				}
				near.Close()
				<-sent
			})
		})
	}
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn  net.Conn
	ended chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.ended)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestHTTPServer_aHeaderThatIsTooLargeIsRefused(t *testing.T) {
	w := newWorld(t)
	l, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	s := newHTTPServer(w.api)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	w.url = "http://" + l.Addr().String()
	// No more than the server reads before it refuses: what it leaves unread would reset the
	// connection before its answer is read.
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, ("GET /healthz HTTP/1.1\r\nX-Large: " + strings.Repeat("x", 64<<10))[:32<<10+4096]); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 431 ") {
		t.Errorf("a header over 32 KiB: %q, %v", line, err)
	}
	if resp, _ := w.do("GET", "/healthz", "", "", "X-Large", strings.Repeat("x", 16<<10)); resp.StatusCode != 200 {
		t.Errorf("a header of 16 KiB: %d", resp.StatusCode)
	}
	if p := w.problem("PUT", "/v1/accounts/a", strings.Repeat("x", api.MaxBody+1), w.admin); p.Status != 413 || p.Code != fleet.CodeTooLarge {
		t.Errorf("a body over 1 MiB: %+v", p)
	}
}

// deadlined records what deadlines a handler puts on its connection.
type deadlined struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error { d.set = append(d.set, at); return nil }

// The body has been read when a handler begins. A deadline on the connection would then end
// the request's context: a write that takes longer would be told that its client went away.
func TestLimits_aWriteMayTakeLongerThanItsBodyMayTakeToArrive(t *testing.T) {
	w := newWorld(t)
	for _, call := range []struct{ method, path, body string }{
		{"PUT", "/v1/accounts/acme", `{"id":"acme"}`},
		{"POST", "/v1/tokens", `{"name":"ci","scope":"read"}`},
	} {
		r := httptest.NewRequest(call.method, call.path, strings.NewReader(call.body))
		r.Header.Set("Authorization", "Bearer "+w.admin)
		r.Header.Set("Content-Type", "application/json")
		got := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		w.api.ServeHTTP(got, r)
		if got.Code != http.StatusCreated {
			t.Errorf("%s %s: %d %s", call.method, call.path, got.Code, got.Body)
		}
		for _, at := range got.set {
			if !at.IsZero() {
				t.Errorf("%s %s ends at %s", call.method, call.path, at)
			}
		}
	}
}

func TestLogins_whatWasRefusedIsToldAtTheEnd(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 2 })
	w.viewed()
	knock := call{"GET", "/v1/accounts", "", "hunter2"}
	w.statuses(knock, knock, knock, knock, knock)
	before := len(w.audit.Entries())
	w.api.Close()
	w.api.Close()
	if s := written(w.audit.Entries()[before:]); s != "429+2" {
		t.Errorf("the audit log has %s", s)
	}
}
