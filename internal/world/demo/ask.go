package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// asker asks servers whether they are up, as a client of theirs would: by the names and
// with the certificate authorities that kurad's probes know, and through no proxy.
type asker struct {
	roots    []string
	resolver *net.Resolver
	named    bool // a resolver other than the system's
	client   *http.Client
}

// newAsker reads from the flags of kurad serve how its probes reach the servers.
func newAsker(serve []string) (*asker, error) {
	a := &asker{roots: values(serve, "--probe-ca"), resolver: net.DefaultResolver}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(a.roots) > 0 {
		var err error
		if config.RootCAs, err = x509.SystemCertPool(); err != nil { // a machine without any
			config.RootCAs = x509.NewCertPool()
		}
	}
	for _, file := range a.roots {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read --probe-ca: %w", err)
		}
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--probe-ca %s holds no certificate in PEM form", file)
		}
	}
	if named := values(serve, "--resolver"); len(named) > 0 {
		address := named[len(named)-1]
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), "53")
		}
		a.named = true
		a.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Resolver: a.resolver}
	a.client = &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config, DisableKeepAlives: true},
	}
	return a, nil
}

// up returns what the server says whose url was published.
func (a *asker) up(ctx context.Context, published string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, published+"/up", nil)
	if err != nil {
		return "", err
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s/up: %w", published, err)
	}
	said := strings.TrimSpace(string(text))
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s/up answered %s: %s", published, answer.Status, said)
	}
	return said, nil
}

// curl is what a person would type for up.
func (a *asker) curl(ctx context.Context, published string) (string, error) {
	u, err := url.Parse(published)
	if err != nil {
		return "", err
	}
	command := []string{"curl"}
	for _, file := range a.roots {
		command = append(command, "--cacert", file)
	}
	if a.named { // few curls know --dns-servers
		found, err := a.resolver.LookupHost(ctx, u.Hostname())
		if err != nil {
			return "", err
		}
		command = append(command, "--resolve", u.Hostname()+":"+cmp.Or(u.Port(), "443")+":"+found[0])
	}
	return strings.Join(append(command, published+"/up"), " "), nil
}

// values are those of a flag that may be given more than once.
func values(args []string, flag string) []string {
	var found []string
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			found = append(found, v)
		} else if arg == flag && i+1 < len(args) {
			found = append(found, args[i+1])
		}
	}
	return found
}
