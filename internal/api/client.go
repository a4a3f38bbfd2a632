package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Defaults of a Config.
const (
	DefaultEndpoint       = "http://127.0.0.1:7433"
	DefaultRequestTimeout = 30 * time.Second
	DefaultMaxConcurrent  = 16
)

// Config says how to reach a daemon. Zero values take the defaults above.
type Config struct {
	Endpoint      string // http(s)://host:port or unix:///path
	Token         Secret
	CACertificate string // PEM; empty: the system's
	// Environment, where it is set, makes a daemon of any other environment refuse
	// every request.
	Environment    string
	RequestTimeout time.Duration // of one attempt, waits not counted
	MaxConcurrent  int           // requests at once; long polls are not counted
	// Impatient returns the error of an attempt that got no answer instead of trying again:
	// for those who do that by themselves, and show it.
	Impatient bool
	UserAgent string
	Logger    hclog.Logger
}

// Client calls one kurad. It is safe for concurrent use.
type Client struct {
	cfg      Config
	base     *url.URL
	slots    chan struct{}
	quick    *retryablehttp.Client
	patient  *retryablehttp.Client // for answers that wait: long polls, observe=now
	answered atomic.Bool           // somebody has, at the endpoint
}

// New returns a client; it does not connect.
func New(cfg Config) (*Client, error) {
	cfg.Endpoint = cmp.Or(cfg.Endpoint, DefaultEndpoint)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "kura-client")
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if cfg.MaxConcurrent <= 0 {
		cfg.MaxConcurrent = DefaultMaxConcurrent
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	base, transport, err := dial(cfg)
	if err != nil {
		return nil, err
	}
	return newClient(cfg, base, transport), nil
}

func newClient(cfg Config, base *url.URL, transport http.RoundTripper) *Client {
	return &Client{
		cfg: cfg, base: base,
		slots:   make(chan struct{}, cfg.MaxConcurrent),
		quick:   retrying(transport, cfg.RequestTimeout, cfg.Logger),
		patient: retrying(transport, cfg.RequestTimeout+MaxWait, cfg.Logger),
	}
}

// dial turns an endpoint into the base of every URL and the transport to it.
func dial(cfg Config) (*url.URL, http.RoundTripper, error) {
	bad := func(format string, args ...any) error {
		return &Error{Err: fleet.Errorf(fleet.CodeInvalid, "endpoint %q: %s", cfg.Endpoint, fmt.Sprintf(format, args...))}
	}
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, nil, bad("is not a URL; write it like %s or unix:///run/kurad.sock", DefaultEndpoint)
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        60 * time.Second,
		MaxIdleConnsPerHost:    cfg.MaxConcurrent,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	switch u.Scheme {
	case "unix":
		if u.Host != "" || u.Path == "" {
			return nil, nil, bad("a socket needs three slashes and an absolute path, like unix:///run/kurad.sock")
		}
		path := u.Path
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "unix", path)
		}
		return &url.URL{Scheme: "http", Host: "kurad"}, transport, nil
	case "http":
		if u.Host == "" {
			return nil, nil, bad("names no host; write it like %s", DefaultEndpoint)
		}
		if !loopback(u.Hostname()) && !cfg.Token.Empty() {
			return nil, nil, bad("the token would cross the network in the clear; use https, or a loopback address")
		}
	case "https":
		if u.Host == "" {
			return nil, nil, bad("names no host; write it like https://kurad.example.dev:7433")
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS13}
		if cfg.CACertificate != "" {
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM([]byte(cfg.CACertificate)) {
				return nil, nil, &Error{Err: fleet.Errorf(fleet.CodeInvalid, "ca_certificate holds no PEM certificate; give the text of the file, from -----BEGIN CERTIFICATE----- on")}
			}
			transport.TLSClientConfig.RootCAs = pool
		}
	default:
		return nil, nil, bad("scheme must be https, http or unix; write it like %s", DefaultEndpoint)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, nil, bad("must hold nothing but scheme, host, port and path; the token goes into token or token_file")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, transport, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// noAnswer describes an attempt that ended without an answer.
func (c *Client) noAnswer(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the method and URL, which what already names
	}
	return &Error{Err: &fleet.Error{
		Code:    fleet.CodeUnavailable,
		Message: fmt.Sprintf("%s: kurad at %s does not answer (is it running, and is the endpoint right?)", what, c.cfg.Endpoint),
		Err:     err,
	}}
}
