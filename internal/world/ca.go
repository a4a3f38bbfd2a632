package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CA is a certificate authority that nobody but a test trusts.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// NewCA makes an authority that is valid for a day.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "Kura test CA"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	return &CA{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// PEM returns the authority's certificate.
func (c *CA) PEM() []byte { return c.pem }

// Pool returns a pool that trusts this authority alone.
func (c *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// Certificate is a certificate, of a server or a client, and its key in PEM form.
type Certificate struct{ Cert, Key []byte }

// Issue signs a certificate for host names, wildcards and addresses, valid from
// an hour ago for a day.
func (c *CA) Issue(hosts ...string) (Certificate, error) {
	return c.IssueFor(time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour), hosts...)
}

// IssueWildcard signs a certificate for every host one label under zone.
func (c *CA) IssueWildcard(zone string) (Certificate, error) { return c.Issue("*."+zone, zone) }

// IssueFor is Issue with the time of validity.
func (c *CA) IssueFor(from, to time.Time, hosts ...string) (Certificate, error) {
	if len(hosts) == 0 {
		return Certificate{}, errors.New("issue a certificate: name a host")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, fmt.Errorf("issue a certificate for %s: %w", hosts[0], err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Certificate{}, fmt.Errorf("issue a certificate for %s: %w", hosts[0], err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Kura test"},
		NotBefore:    from,
		NotAfter:     to,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		return Certificate{}, fmt.Errorf("issue a certificate for %s: %w", hosts[0], err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Certificate{}, fmt.Errorf("issue a certificate for %s: %w", hosts[0], err)
	}
	return Certificate{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}

// TLS returns the certificate as a server in this process uses it.
func (c Certificate) TLS() (tls.Certificate, error) { return tls.X509KeyPair(c.Cert, c.Key) }

// Files are the paths of what WriteFiles wrote.
type Files struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// WriteFiles writes ca.pem, server.pem and server-key.pem into dir, which it makes
// where it is missing. All of them can be read by everyone: containers that mount
// dir run as users that this process does not know, and the key is worth nothing
// outside a test.
func (c *CA) WriteFiles(dir string, certificate Certificate) (Files, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Files{}, fmt.Errorf("write certificates: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Files{}, fmt.Errorf("write certificates: %w", err)
	}
	files := Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server-key.pem")}
	for path, content := range map[string][]byte{files.CA: c.pem, files.Cert: certificate.Cert, files.Key: certificate.Key} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return Files{}, fmt.Errorf("write certificates: %w", err)
		}
		if err := os.Chmod(path, 0o644); err != nil { // whatever the umask is
			return Files{}, fmt.Errorf("write certificates: %w", err)
		}
	}
	return files, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
