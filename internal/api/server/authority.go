package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Files of the certificate authority that kurad makes for itself. CAFile is for its
// clients, the keys are for nobody else.
const (
	CAFile      = "ca.pem"
	caKeyFile   = "ca-key.pem"
	certFile    = "cert.pem"
	certKeyFile = "key.pem"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 90 * 24 * time.Hour
	renewBefore     = 30 * 24 * time.Hour // it expires
	clockSkew       = time.Hour           // of clients whose clocks are behind
)

// authority makes the API's certificate with a certificate authority of its own.
type authority struct {
	dir   string
	hosts []string // names and addresses, sorted
	log   hclog.Logger
	now   func() time.Time
}

// GenerateCertificate returns a certificate for the hosts (names and addresses) and for
// this machine's loopback, from a certificate authority below dir that is made where
// there is none. It is renewed 30 days before it expires, and at once for other hosts.
func GenerateCertificate(dir string, hosts []string, log hclog.Logger, now func() time.Time) (*Certificate, error) {
	all := slices.Concat(hosts, []string{"localhost", "127.0.0.1", "::1"})
	slices.Sort(all)
	a := &authority{dir: dir, hosts: slices.Compact(all), log: log, now: now}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := a.renew(now()); err != nil {
		return nil, err
	}
	c, err := LoadCertificate(a.path(certFile), a.path(certKeyFile), log, now)
	if err != nil {
		return nil, err
	}
	c.renew = a.renew
	return c, nil
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// renew makes a new certificate where the present one will not do for long.
func (a *authority) renew(now time.Time) error {
	ca, err := a.load(now)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(a.path(certFile), a.path(certKeyFile))
	if err == nil && pair.Leaf != nil && now.Before(pair.Leaf.NotAfter.Add(-renewBefore)) && !now.Before(pair.Leaf.NotBefore) &&
		pair.Leaf.CheckSignatureFrom(ca.Leaf) == nil && slices.Equal(hostsOf(pair.Leaf), a.hosts) {
		return nil
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "kurad"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range a.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(certKeyFile, certFile, &ca, template)
}

func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	slices.Sort(hosts)
	return hosts
}

// load reads the authority, or makes it. One that clients may know already is replaced
// only where it is about to end: they would no longer trust this daemon.
func (a *authority) load(now time.Time) (tls.Certificate, error) {
	ca, err := tls.LoadX509KeyPair(a.path(CAFile), a.path(caKeyFile))
	if err == nil && ca.Leaf != nil && now.Before(ca.Leaf.NotAfter.Add(-certificateLife)) {
		return ca, nil
	}
	if _, there := os.Stat(a.path(CAFile)); err != nil && !errors.Is(there, fs.ErrNotExist) {
		return ca, fmt.Errorf("the certificate authority in %s cannot be used: %w; put its files back, or remove the folder and give clients the new %s", a.dir, err, CAFile)
	}
	if err := a.issue(caKeyFile, CAFile, nil, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "kurad certificate authority " + rand.Text()[:8]},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, MaxPathLenZero: true,
	}); err != nil {
		return ca, err
	}
	a.log.Info("kurad made a certificate authority for its API; its clients need the file", "file", a.path(CAFile), "until", now.Add(authorityLife))
	return tls.LoadX509KeyPair(a.path(CAFile), a.path(caKeyFile))
}

// issue makes a key and its certificate, which the authority signs; nil: it signs itself. The key
// is written first: a crash in between leaves an authority that nobody knows yet.
func (a *authority) issue(keyName, certName string, ca *tls.Certificate, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.BasicConstraintsValid = true // x509 chooses the serial number
	parent, signer := template, crypto.PrivateKey(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", strings.Join(a.hosts, ", "), err)
	}
	return a.write(keyName, certName, key, der)
}

// write leaves a key, readable by kurad's user only, and then its certificate, readable
// by all.
func (a *authority) write(keyName, certName string, key *ecdsa.PrivateKey, cert []byte) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeFile(a.path(keyName), 0o600, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))); err != nil {
		return err
	}
	return writeFile(a.path(certName), 0o644, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
}
