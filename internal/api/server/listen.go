package server

import (
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// HTTPServer returns an http.Server for the handler with every limit set. An answer
// may take as long as the longest wait; a request must arrive quickly.
func HTTPServer(addr string, handler http.Handler, log hclog.Logger) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: 5 * time.Second, // of a TLS handshake as well
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      api.MaxWait + 30*time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       withConnection,
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// Listen opens the daemon's address, and shares its connections out. Unless TLS is put on
// it (Certificate.Secure), that must be a loopback one: a token in the clear is no token.
func Listen(addr string, secure bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "listen address %q: must be host:port, such as 127.0.0.1:7433", addr)
	}
	if ip := net.ParseIP(host); !secure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fleet.Errorf(fleet.CodeInvalid, "listen address %q: without TLS it must be a loopback address such as 127.0.0.1, "+
			"for tokens would cross the network in the clear; give a certificate with --tls-cert and --tls-key, or let kurad make one with --tls-generate", addr)
	}
	return ListenHealth(addr)
}

// ListenHealth opens an address at which nobody shows a token, any there is.
func ListenHealth(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return newConnections(l), nil
}
