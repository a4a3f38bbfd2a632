package readiness

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testHost = "acme-eu.kura.test"

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// outside is what a probe meets: an authority, DNS and servers.
type outside struct {
	t   testing.TB
	ca  *world.CA
	dns *world.DNS
}

func newOutside(t testing.TB) *outside {
	t.Helper()
	ca, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	server, err := world.StartDNS("kura.test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	server.SetWildcard(netip.MustParseAddr("127.0.0.1"))
	return &outside{t, ca, server}
}

// prober returns one that trusts the outside's authority and may use loopback.
func (o *outside) prober() *Prober {
	return NewProber(Config{Resolver: o.dns.Addr(), AllowCIDR: loopback, RootCAs: o.ca.Pool()})
}

// certificate returns a valid one for hosts.
func (o *outside) certificate(from, to time.Time, hosts ...string) tls.Certificate {
	o.t.Helper()
	issued, err := o.ca.IssueFor(from, to, hosts...)
	if err != nil {
		o.t.Fatal(err)
	}
	certificate, err := issued.TLS()
	if err != nil {
		o.t.Fatal(err)
	}
	return certificate
}

func (o *outside) serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{
		o.certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour), testHost, "127.0.0.1", "::1"),
	}}
}

// listen opens a free port of the address and closes it with the test.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func portOf(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }

// serveHTTP answers by handler, over TLS where config is set, and returns the port.
func serveHTTP(t testing.TB, listener net.Listener, config *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	port := portOf(listener)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Close(); done.Wait() })
	return port
}

// serveRaw gives each connection to handle, over TLS where config is set, and
// returns the port.
func serveRaw(t testing.TB, config *tls.Config, handle func(net.Conn)) string {
	t.Helper()
	listener := listen(t, "127.0.0.1")
	port := portOf(listener)
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() { listener.Close(); done.Wait() })
	return port
}

// say reads the request's beginning, writes text and closes.
func say(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, text)
	}
}

// sayAndStay writes text and keeps the connection until the other side leaves.
func sayAndStay(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, text)
		_, _ = io.Copy(io.Discard, conn)
	}
}
