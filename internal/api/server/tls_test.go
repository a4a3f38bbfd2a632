package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// secured serves over TLS and returns the address.
func secured(t *testing.T, c *server.Certificate, h http.Handler) string {
	t.Helper()
	l, err := server.Listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	s := newHTTPServer(h)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(c.Secure(l)) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return l.Addr().String()
}

func generate(t *testing.T, dir string, now func() time.Time, hosts ...string) *server.Certificate {
	t.Helper()
	c, err := server.GenerateCertificate(dir, hosts, hclog.NewNullLogger(), now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// shown returns the certificate that an address shows to a client that trusts ca and
// asks for name.
func shown(t *testing.T, addr, name, ca string) (*x509.Certificate, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca))
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: name})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

func TestTLS_theClientTrustsTheGeneratedAuthority(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	addr := secured(t, generate(t, dir, time.Now, "kurad.example.dev", "10.0.0.7"), w.api)
	ca := readFile(t, dir, server.CAFile)
	for name, mode := range map[string]os.FileMode{server.CAFile: 0o644, "cert.pem": 0o644, "ca-key.pem": 0o600, "key.pem": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %o", name, info, err, mode)
		}
	}
	_, port, _ := net.SplitHostPort(addr)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		c, err := api.New(api.Config{Endpoint: "https://" + net.JoinHostPort(host, port), Token: api.NewSecret(w.admin), CACertificate: ca})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Version(t.Context()); err != nil || v.Environment != "staging" {
			t.Errorf("%s: %+v, %v", host, v, err)
		}
	}
	for name, good := range map[string]bool{"kurad.example.dev": true, "10.0.0.7": true, "::1": true, "other.example.dev": false} {
		if _, err := shown(t, addr, name, ca); (err == nil) != good {
			t.Errorf("for %s: %v", name, err)
		}
	}
	// Without the authority, and in the clear, there is no answer.
	for _, endpoint := range []string{"https://" + addr, "http://" + addr} {
		c, err := api.New(api.Config{Endpoint: endpoint, Token: api.NewSecret(w.admin)})
		if err == nil {
			_, err = c.Version(t.Context())
		}
		if err == nil {
			t.Errorf("%s answers a client that does not know its authority", endpoint)
		}
	}
	if conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err != nil {
		t.Errorf("TLS 1.2: %v", err)
	} else {
		conn.Close()
	}
}

// Of HTTP/2 one connection has as many calls under way as it likes, and takes none of the answers.
func TestG8_aConnectionHasOneCallUnderWay(t *testing.T) {
	w := newWorld(t)
	addr := secured(t, generate(t, t.TempDir(), time.Now), w.api)
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if spoken := conn.ConnectionState().NegotiatedProtocol; spoken != "http/1.1" {
		t.Errorf("kurad speaks %q", spoken)
	}
}

func TestTLS_theGeneratedCertificateIsRenewedInTimeAndByTheSameAuthority(t *testing.T) {
	dir := t.TempDir()
	// Clients have the machine's clock, so the daemon's begins in the past.
	clock := &clock{at: time.Now().Add(-80 * 24 * time.Hour)}
	c := generate(t, dir, clock.now, "kurad.example.dev")
	addr, ca := secured(t, c, http.NotFoundHandler()), readFile(t, dir, server.CAFile)
	first, err := shown(t, addr, "kurad.example.dev", ca)
	if err != nil {
		t.Fatal(err)
	}
	clock.advance(59 * 24 * time.Hour)
	if same, err := shown(t, addr, "kurad.example.dev", ca); err != nil || !same.Equal(first) {
		t.Errorf("it was renewed 31 days before it expires (%v)", err)
	}
	clock.advance(21 * 24 * time.Hour)
	next, err := shown(t, addr, "kurad.example.dev", ca)
	if err != nil || next.Equal(first) || next.NotAfter.Before(time.Now().Add(89*24*time.Hour)) {
		t.Fatalf("it was not renewed: %v", err)
	}
	// A restart changes nothing, another host does.
	again := secured(t, generate(t, dir, clock.now, "kurad.example.dev"), http.NotFoundHandler())
	if same, err := shown(t, again, "localhost", ca); err != nil || !same.Equal(next) {
		t.Errorf("a restart made a new certificate (%v)", err)
	}
	other := secured(t, generate(t, dir, clock.now, "other.example.dev"), http.NotFoundHandler())
	if _, err := shown(t, other, "other.example.dev", ca); err != nil {
		t.Error(err)
	}
	if readFile(t, dir, server.CAFile) != ca {
		t.Error("the authority was replaced")
	}
}

func TestTLS_anAuthorityThatIsHalfGoneIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	generate(t, dir, time.Now)
	ca := readFile(t, dir, server.CAFile)
	if err := os.Remove(filepath.Join(dir, "ca-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.GenerateCertificate(dir, nil, hclog.NewNullLogger(), time.Now); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "remove the folder") {
		t.Errorf("%v", err)
	}
	if readFile(t, dir, server.CAFile) != ca {
		t.Error("clients would no longer trust it")
	}
}

func TestTLS_aNewPairIsShownWithoutARestartAndABrokenOneIsNot(t *testing.T) {
	one, two, dir := t.TempDir(), t.TempDir(), t.TempDir()
	generate(t, one, time.Now, "one.test")
	generate(t, two, time.Now, "two.test")
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("cert.pem", readFile(t, one, "cert.pem"))
	put("key.pem", readFile(t, one, "key.pem"))
	clock, said := &clock{at: time.Now()}, &lockedBuffer{}
	c, err := server.LoadCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), hclog.New(&hclog.LoggerOptions{Output: said}), clock.now)
	if err != nil {
		t.Fatal(err)
	}
	addr := secured(t, c, http.NotFoundHandler())
	shows := func(when, name string) {
		t.Helper()
		clock.advance(time.Second)
		for range 3 {
			if _, err := shown(t, addr, name+".test", readFile(t, map[string]string{"one": one, "two": two}[name], server.CAFile)); err != nil {
				t.Errorf("%s it does not show %s: %v", when, name, err)
			}
			clock.advance(time.Second)
		}
	}
	shows("at first", "one")
	put("cert.pem", readFile(t, two, "cert.pem"))
	shows("while the key is the old one", "one")
	if n := strings.Count(said.String(), "cannot be used; the one before stays"); n != 1 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
	put("key.pem", readFile(t, two, "key.pem"))
	shows("with both new", "two")
	put("cert.pem", "garbage")
	shows("with garbage", "two")
	if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	shows("without a file", "two")
	if n := strings.Count(said.String(), "cannot be used; the one before stays"); n != 3 {
		t.Errorf("said %d times:\n%s", n, said.String())
	}
	if strings.Contains(said.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
}

func TestTLS_aPairThatCannotBeUsedIsRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	clock := &clock{at: time.Now().Add(-100 * 24 * time.Hour)}
	generate(t, dir, clock.now)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct{ cert, key, want string }{
		{path("cert.pem"), path("key.pem"), "expired at"}, {path("cert.pem"), path("ca-key.pem"), "private key does not match"},
		{path("missing.pem"), path("key.pem"), "missing.pem"}, {path("key.pem"), path("key.pem"), "key.pem"},
	} {
		_, err := server.LoadCertificate(c.cert, c.key, hclog.NewNullLogger(), time.Now)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "PRIVATE KEY-----\n") {
			t.Errorf("%s %s: %v, want %q", c.cert, c.key, err, c.want)
		}
	}
}

func TestListen_withoutTLSTheNextStepIsSaid(t *testing.T) {
	_, err := server.Listen("0.0.0.0:0", false)
	if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), "--tls-cert") || !strings.Contains(err.Error(), "--tls-generate") {
		t.Errorf("%v", err)
	}
}
