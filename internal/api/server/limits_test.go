package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestLogins_tooManyFailuresOfAnAddressAreRefused(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 3 })
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
	var got []string
	for _, l := range w.audit.Entries()[before:] {
		got = append(got, fmt.Sprint(l.Status, "+", l.Unwritten))
	}
	if s := strings.Join(got, " "); s != "429+0 401+4 429+0" {
		t.Errorf("the audit log has %s", s)
	}
}

func TestLogins_aRevokedTokenIsRefusedEvenWhileItsAddressIsLimited(t *testing.T) {
	w := newWorld(t, func(c *server.Config) { c.FailedLogins = 1 })
	token := w.token("gone", fleet.ScopeRead)
	w.must(nil, w.tokens.Revoke(t.Context(), strings.Split(token, "_")[1]))
	for range 3 {
		if p := w.problem("GET", "/v1/version", "", token); p.Status != 401 && p.Status != 429 {
			t.Errorf("%+v", p)
		}
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
