package kubernetes

import (
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
)

// A connection that no longer leads anywhere is given up after idlePing and pongWithin:
// client-go's own 45 s are longer than a change in the cluster may stay unseen. Over
// HTTP/1.1 the system's keep-alives notice in the same time a peer that is gone.
const (
	idlePing     = 8 * time.Second
	pongWithin   = 5 * time.Second
	dialWithin   = 8 * time.Second
	keptIdle     = 90 * time.Second
	idleConnsMax = 25
)

// newHTTPClient returns a client with the credentials of cfg, and what ends its
// connections.
func newHTTPClient(cfg *rest.Config) (*http.Client, func(), error) {
	tc, err := cfg.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, nil, err
	}
	dial := (&net.Dialer{
		Timeout:         dialWithin,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idlePing, Interval: pongWithin / 3, Count: 3},
	}).DialContext
	if tc.DialHolder != nil {
		dial = tc.DialHolder.Dial
	}
	conns := connrotation.NewDialer(dial)
	proxy := http.ProxyFromEnvironment
	if tc.Proxy != nil {
		proxy = tc.Proxy
	}
	base := &http.Transport{
		Proxy:               proxy,
		DialContext:         conns.DialContext,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: dialWithin,
		IdleConnTimeout:     keptIdle,
		MaxIdleConnsPerHost: idleConnsMax,
		DisableCompression:  tc.DisableCompression,
		ForceAttemptHTTP2:   len(tc.TLS.NextProtos) == 0 || slices.Contains(tc.TLS.NextProtos, "h2"),
		HTTP2:               &http.HTTP2Config{SendPingTimeout: idlePing, PingTimeout: pongWithin},
	}
	answers := &answers{next: base}
	if tc.HasCertAuth() {
		answers.unauthorized = conns.CloseAll
	}
	rt, err := transport.HTTPWrappersForConfig(tc, answers)
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: rt}, conns.CloseAll, nil
}

// answers hands on what the server answers.
type answers struct {
	next http.RoundTripper
	// unauthorized ends all connections: a client certificate that has been renewed is
	// shown on new ones only.
	unauthorized func()
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	// client-go would wait and repeat by itself up to ten times, and nobody would see
	// meanwhile that nothing answers. The watch and the plan repeat, with backoff.
	resp.Header.Del("Retry-After")
	if resp.StatusCode == http.StatusUnauthorized && a.unauthorized != nil {
		defer a.unauthorized()
	}
	return resp, nil
}
