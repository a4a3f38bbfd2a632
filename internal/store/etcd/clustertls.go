package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// check refuses options that cannot work, and returns the endpoints and what TLS they
// need; nil: none.
func (o ClusterOptions) check() ([]string, *tls.Config, error) {
	if len(o.Endpoints) == 0 {
		return nil, nil, errors.New("no store endpoint is given: set --store-endpoints to the client URLs of the etcd members, such as https://etcd-1.example:2379")
	}
	endpoints := make([]string, 0, len(o.Endpoints))
	scheme := ""
	for _, text := range o.Endpoints {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" {
			return nil, nil, fmt.Errorf("store endpoint %q: must be the client URL of an etcd member, such as https://etcd-1.example:2379", text)
		}
		if scheme != "" && u.Scheme != scheme {
			return nil, nil, fmt.Errorf("store endpoint %q: all must be http:// or all https://, and %s is not", text, o.Endpoints[0])
		}
		scheme = u.Scheme
		endpoints = append(endpoints, u.Scheme+"://"+u.Host)
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, nil, errors.New("a client certificate needs its key: give both --store-cert and --store-key, or neither")
	}
	if scheme == "http" {
		if o.CAFile+o.CertFile != "" {
			return nil, nil, fmt.Errorf("store endpoint %s is not encrypted, so there is no use for --store-ca and --store-cert: begin it with https://, or leave them out", endpoints[0])
		}
		return endpoints, nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, nil, fmt.Errorf("--store-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, fmt.Errorf("--store-ca: %s holds no certificate in PEM", o.CAFile)
		}
	}
	if o.CertFile != "" {
		load := func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("--store-cert %s, --store-key %s: %w", o.CertFile, o.KeyFile, err)
			}
			return &cert, nil
		}
		if _, err := load(); err != nil {
			return nil, nil, err
		}
		// Read anew for each connection: whoever renews them need not restart kurad.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return endpoints, config, nil
}
