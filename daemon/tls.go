package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
)

// tlsFolder is where, in the data directory, kurad keeps a certificate authority of its
// own. The other commands find its certificate there.
const tlsFolder = "tls"

// tlsOptions say how the API is secured; the zero value: not at all.
type tlsOptions struct {
	cert, key string
	generate  bool
	hosts     []string
}

func (o *tlsOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.cert, "tls-cert", "", "PEM file of the API's certificate, with its chain; it is read again when it changes")
	f.StringVar(&o.key, "tls-key", "", "PEM file of the key of --tls-cert")
	f.BoolVar(&o.generate, "tls-generate", false, "make a certificate authority below <data-dir>/tls, and from it a certificate for --tls-host and loopback, renewed in time; clients need <data-dir>/tls/"+server.CAFile)
	f.StringArrayVar(&o.hosts, "tls-host", nil, "name or address by which clients reach this daemon, for --tls-generate; repeatable")
}

// on reports whether the API answers over TLS.
func (o tlsOptions) on() bool { return o.generate || o.cert != "" }

// check refuses flags that do not go together.
func (o tlsOptions) check(listen string) error {
	host, _, _ := net.SplitHostPort(listen)
	switch {
	case (o.cert == "") != (o.key == ""):
		return errors.New("--tls-cert and --tls-key go together: give both, or neither")
	case o.generate && o.cert != "":
		return errors.New("--tls-generate makes the certificate that --tls-cert names already: leave one of them out")
	case !o.generate && len(o.hosts) > 0:
		return errors.New("--tls-host is for the certificate that --tls-generate makes: add that, or leave it out")
	case o.generate && len(o.hosts) == 0 && (host == "" || net.ParseIP(host).IsUnspecified()):
		return fmt.Errorf("--listen %s is every address of this machine, so the certificate cannot be made for it: add --tls-host with each name or address that clients use", listen)
	}
	for _, h := range o.hosts {
		if h == "" || strings.ContainsAny(h, " /:@") && net.ParseIP(h) == nil {
			return fmt.Errorf("--tls-host %q is no name and no address: give one such as kurad.example.dev or 10.0.0.7, without scheme and port", h)
		}
	}
	return nil
}

// secure puts TLS on a listener, where it is on.
func (o tlsOptions) secure(l net.Listener, listen, dataDir string, log hclog.Logger) (net.Listener, error) {
	var cert *server.Certificate
	var err error
	switch {
	case o.generate:
		hosts := o.hosts
		if host, _, _ := net.SplitHostPort(listen); host != "" && !net.ParseIP(host).IsUnspecified() {
			hosts = append(hosts, host)
		}
		cert, err = server.GenerateCertificate(filepath.Join(dataDir, tlsFolder), hosts, log, time.Now)
	case o.cert != "":
		cert, err = server.LoadCertificate(o.cert, o.key, log, time.Now)
	default:
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("TLS: %w", err)
	}
	return cert.Secure(l), nil
}

// urlOf is where a listener answers on this machine.
func (o tlsOptions) urlOf(addr net.Addr) string {
	scheme, at := "http://", addr.String()
	if o.on() {
		scheme = "https://"
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		loopback := "127.0.0.1"
		if tcp.IP.To4() == nil {
			loopback = "::1"
		}
		at = net.JoinHostPort(loopback, fmt.Sprint(tcp.Port))
	}
	return scheme + at
}
