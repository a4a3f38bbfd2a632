package containers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/moby/moby/client"
)

// TLSFiles are the PEM files of a connection to an engine; the zero value is none.
type TLSFiles struct {
	CA   string // who signed the engine's certificate
	Cert string // the client's certificate, where the engine asks for one
	Key  string // and its key
}

// Bounds of a connection to an engine over TCP. What an answer may take is bounded by
// its caller.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	tcpKeepAlive     = 15 * time.Second // a peer that is gone ends an event stream in a few of them
	idleConnections  = 90 * time.Second
)

// host names the engine as its client does.
func (c Config) host() string {
	if c.TCP != "" {
		return "tcp://" + c.TCP
	}
	return "unix://" + c.Socket
}

// ownAddress is where ports are reached as far as the engine's address tells, "" where
// it does not.
func (c Config) ownAddress() string {
	if c.TCP == "" {
		return "127.0.0.1"
	}
	if addr, ok := c.tcpAddr(); ok {
		return addr.String()
	}
	return ""
}

// tcpAddr is the IP address of TCP; ok is false where that is a name.
func (c Config) tcpAddr() (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(c.TCP)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	return addr, err == nil
}

// remote reports whether the engine may run on another machine, whose files kurad does
// not see.
func (c Config) remote() bool {
	addr, ok := c.tcpAddr()
	return c.TCP != "" && (!ok || !addr.IsLoopback())
}

// checkTCP says what a connection by TCP lacks.
func (c Config) checkTCP() error {
	f := c.TLS
	switch {
	case c.TCP == "" && f != (TLSFiles{}):
		return errors.New("ca, cert and key are for tcp://, and this is a unix socket")
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("cert and key belong together: give both, or neither")
	case f.Cert != "" && f.CA == "":
		return errors.New("ca is missing: the certificate authority that signed the engine's certificate")
	case f == (TLSFiles{}) && c.remote():
		return fmt.Errorf("tcp://%s is no loopback address and has no TLS: give ca, cert and key", c.TCP)
	}
	return nil
}

// NewClient returns a client of the engine's API. It does not connect; files that
// cannot be used are an error.
func NewClient(c Config) (*client.Client, error) {
	opts := []client.Opt{client.WithHost(c.host()), client.WithUserAgent("kurad")}
	if c.TCP != "" {
		if err := c.checkTCP(); err != nil {
			return nil, err
		}
		transport, err := c.transport()
		if err != nil {
			return nil, err
		}
		opts = append(opts, client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}))
	}
	// The API's version is negotiated with the first answer, not now.
	return client.New(opts...)
}

// transport is the client's own, so that no proxy of the environment comes between and
// an engine that hangs is noticed.
func (c Config) transport() (*http.Transport, error) {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: tcpKeepAlive}).DialContext,
		TLSHandshakeTimeout: handshakeTimeout,
		IdleConnTimeout:     idleConnections,
		MaxIdleConnsPerHost: 6,
	}
	if c.TLS == (TLSFiles{}) {
		return t, nil
	}
	pem, err := os.ReadFile(c.TLS.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca: %s holds no PEM certificate", c.TLS.CA)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if c.TLS.Cert == "" {
		return t, nil
	}
	if _, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key); err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	// Read at each handshake: a certificate that is renewed on disk needs no restart.
	t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate of endpoint %q: %w", c.Name, err)
		}
		return &pair, nil
	}
	return t, nil
}
