package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// lookEvery is how often, at most, the files of a certificate are looked at: at the
// first connection after that time.
const lookEvery = time.Second

// Certificate is the certificate that the API shows. It is read again when its files
// change, without a restart: at a handshake, so that nothing need run for it. Files
// that do not fit together change nothing but the log, once.
type Certificate struct {
	certFile, keyFile string
	log               hclog.Logger
	now               func() time.Time
	// renew makes the files anew where it is time to; nil: somebody else does.
	renew func(now time.Time) error

	mu     sync.Mutex
	shown  *tls.Certificate
	looked time.Time
	fault  string // of the files when they were read last
}

// LoadCertificate reads a certificate with its chain, and its key, from PEM files.
func LoadCertificate(certFile, keyFile string, log hclog.Logger, now func() time.Time) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, now: now}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.shown = &pair
	return c, nil
}

// Secure puts TLS on a listener. HTTP/2 is not spoken: there one connection has many calls under
// way, and whoever takes none of their answers has kurad hold them all, however little each
// connection and each token may have; what is too large is answered so before a handler
// knows of it (G8).
func (c *Certificate) Secure(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.present(), nil },
	})
}

// present returns the certificate to show now.
func (c *Certificate) present() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.look(now)
	}
	return c.shown
}

func (c *Certificate) look(now time.Time) {
	if c.renew != nil {
		if err := c.renew(now); err != nil {
			c.log.Error("the certificate of the API cannot be renewed", "file", c.certFile, "until", c.shown.Leaf.NotAfter, "error", err)
		}
	}
	pair, err := c.read()
	switch {
	case err != nil && err.Error() != c.fault: // said once of what is the same
		c.log.Error("the new certificate of the API cannot be used; the one before stays", "file", c.certFile, "until", c.shown.Leaf.NotAfter, "error", err)
		c.fault = err.Error()
	case err == nil:
		if !pair.Leaf.Equal(c.shown.Leaf) {
			c.log.Info("the API has a new certificate", "file", c.certFile, "until", pair.Leaf.NotAfter)
		}
		c.shown, c.fault = &pair, ""
	}
}

func (c *Certificate) read() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return pair, fmt.Errorf("certificate %s and key %s: %w", c.certFile, c.keyFile, err)
	}
	if c.now().After(pair.Leaf.NotAfter) {
		return pair, fleet.Errorf(fleet.CodeInvalid, "certificate %s expired at %s; put a new one there", c.certFile, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return pair, nil
}
