package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// StartTLSProxy listens on a free loopback port, where it is the server that certificate
// names and asks for a client certificate of clients, and hands on to target without TLS
// (network "unix" or "tcp"): a container engine's socket as it is reached from elsewhere.
// It handles bytes, so that streams and hijacked connections pass.
func StartTLSProxy(certificate Certificate, clients *CA, network, target string) (*Proxy, error) {
	pair, err := certificate.TLS()
	if err != nil {
		return nil, fmt.Errorf("start a TLS proxy: %w", err)
	}
	p := &Proxy{network: "tcp", target: [2]string{network, target}, tls: &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}}
	return p, p.start()
}

// IssueClient signs a client's certificate, valid from an hour ago for a day.
func (c *CA) IssueClient(name string) (Certificate, error) {
	fail := func(err error) (Certificate, error) {
		return Certificate{}, fmt.Errorf("issue a client certificate for %s: %w", name, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fail(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c.cert, key.Public(), c.key)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	return Certificate{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}
