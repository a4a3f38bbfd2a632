package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// dialled is a connection to the API as it stands.
type dialled struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

// listens serves the world's API with all its limits, and returns what dials it.
func (w *world) listens() (dial func() *dialled) {
	w.t.Helper()
	l, err := server.Listen("127.0.0.1:0", false)
	if err != nil {
		w.t.Fatal(err)
	}
	s := newHTTPServer(w.api)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	w.t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			w.t.Error(err)
		}
	})
	return func() *dialled {
		w.t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			w.t.Fatal(err)
		}
		return &dialled{c, w.t, bufio.NewReader(c)}
	}
}

// get asks for a path and returns the status, 0 where the connection was closed, and whether
// it stays open.
func (d *dialled) get(path, token string) (status int, stays bool) {
	d.t.Helper()
	header := ""
	if token != "" {
		header = "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := fmt.Fprintf(d, "GET %s HTTP/1.1\r\nHost: k\r\n%s\r\n", path, header); err != nil {
		return 0, false
	}
	res, err := http.ReadResponse(d.in, nil)
	if err != nil {
		return 0, false
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		d.t.Error(err)
	}
	return res.StatusCode, !res.Close
}

// closed reports whether the other side has closed the connection.
func (d *dialled) closed() bool {
	d.t.Helper()
	if err := d.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		d.t.Fatal(err)
	}
	_, err := d.in.Peek(1)
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

func TestG8_whoHasNoTokenKeepsNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.viewed()
	dial := w.listens()
	member := dial()
	if status, stays := member.get("/v1/version", w.admin); status != 200 || !stays {
		t.Fatalf("with a token: %d, stays open: %t", status, stays)
	}
	if status, stays := member.get("/healthz", ""); status != 200 || !stays {
		t.Errorf("healthz on a token's connection: %d, stays open: %t", status, stays)
	}
	if status, stays := dial().get("/healthz", ""); status != 200 || stays {
		t.Errorf("healthz without a token: %d, stays open: %t", status, stays)
	}
	if status, stays := dial().get("/v1/version", "hunter2"); status != 401 || stays {
		t.Errorf("a failed login: %d, stays open: %t", status, stays)
	}
	// So many connections that say nothing, or not enough.
	var silent []*dialled
	for i := range server.Newcomers + 500 {
		d := dial()
		if i%2 == 0 {
			if _, err := io.WriteString(d, "GET /healthz HTTP/1.1\r\nHost: k\r\nX-Slow: "); err != nil {
				t.Fatal(err)
			}
		}
		silent = append(silent, d)
	}
	if status, _ := dial().get("/healthz", ""); status != 200 {
		t.Errorf("healthz beside them: %d", status)
	}
	if status, _ := dial().get("/v1/version", w.admin); status != 200 {
		t.Errorf("a new connection with a token beside them: %d", status)
	}
	if status, stays := member.get("/v1/version", w.admin); status != 200 || !stays {
		t.Errorf("one that was there before: %d, stays open: %t", status, stays)
	}
	open := 0
	for _, d := range silent {
		if !d.closed() {
			open++
		}
	}
	if open > server.Newcomers {
		t.Errorf("%d of them are open, want %d at most", open, server.Newcomers)
	}
}

func TestG8_theConnectionsOfATokenAreItsOwnMatter(t *testing.T) {
	w := newWorld(t)
	greedy, other := w.token("greedy", fleet.ScopeRead), w.token("other", fleet.ScopeRead)
	w.viewed()
	dial := w.listens()
	theirs := dial()
	theirs.get("/v1/version", other)
	var mine []*dialled
	for range server.ShareOfConnections + 10 {
		d := dial()
		if status, _ := d.get("/v1/version", greedy); status != 200 {
			t.Fatalf("it gets another one for an idle one, and %d", status)
		}
		mine = append(mine, d)
	}
	open := 0
	for _, d := range mine {
		if !d.closed() {
			open++
		}
	}
	if open != server.ShareOfConnections {
		t.Errorf("%d of its connections are open, want %d", open, server.ShareOfConnections)
	}
	if theirs.closed() {
		t.Error("somebody else's is closed")
	}
}
