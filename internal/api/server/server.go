package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Turns is what the API asks of the reconciler.
type Turns interface {
	// ObserveNow waits for one turn of the server that began after the call, with a
	// fresh read and probe.
	ObserveNow(ctx context.Context, key fleet.ServerKey) error
	// Memory returns what is known of the server's reads and is not stored.
	Memory(key fleet.ServerKey) (lastObserved time.Time, failedReads int)
}

// Runtimes is what this daemon was given to run servers with.
type Runtimes interface {
	// Region says what in the region's runtime this daemon does not have or does not
	// allow: unknown endpoints, clusters and variable sets, host paths (C10).
	Region(r fleet.Region) error
	// PortRange returns the ports that may be assigned on the region's endpoint; ok is
	// false where there are none.
	PortRange(r fleet.Region) (first, last int, ok bool)
	// ContainerEndpoints names the endpoints, sorted.
	ContainerEndpoints() []string
}

// Config holds what a Server needs.
type Config struct {
	Records     *store.Records
	View        *store.View
	Environment fleet.Environment
	Tokens      *Tokens
	Turns       Turns
	Runtimes    Runtimes
	Version     string
	Logger      hclog.Logger
	Now         func() time.Time // nil: the clock
	// Ready says why the daemon cannot serve yet; nil: it always can.
	Ready func(context.Context) error
}

// Server answers the API.
type Server struct {
	records  *store.Records
	view     *store.View
	env      fleet.Environment
	tokens   *Tokens
	turns    Turns
	runtimes Runtimes
	version  string
	log      hclog.Logger
	audit    hclog.Logger
	now      func() time.Time
	ready    func(context.Context) error
	api      huma.API
	handler  http.Handler
	document json.RawMessage // OpenAPI

	changes   *changes
	snapshots *snapshots
	waiters   chan struct{}
	ended     chan struct{} // closed by Close
	close     sync.Once

	// neighbours is held for writing by writes of accounts, templates and regions,
	// and for reading by writes of servers.
	neighbours sync.RWMutex
}

// New returns the API. It hears of changes from the view until Close.
func New(cfg Config) (*Server, error) {
	s := &Server{
		records: cfg.Records, view: cfg.View, env: cfg.Environment, tokens: cfg.Tokens, turns: cfg.Turns,
		runtimes: cfg.Runtimes, version: cfg.Version, log: cfg.Logger, now: cfg.Now, ready: cfg.Ready,
	}
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	s.audit = s.log.Named("audit")
	if s.now == nil {
		s.now = time.Now
	}
	if s.ready == nil {
		s.ready = func(context.Context) error { return nil }
	}
	s.changes = follow(s.view)
	s.snapshots = &snapshots{now: s.now}
	s.waiters = make(chan struct{}, maxWaiters)
	s.ended = make(chan struct{})
	return s, s.routes()
}

// Close ends what waits: long polls and fresh looks answer at once, with what there is.
func (s *Server) Close() {
	s.changes.close()
	s.close.Do(func() { close(s.ended) })
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// routes builds the handler: the routes behind everything that each request passes.
func (s *Server) routes() error {
	mux := &verbMux{ServeMux: http.NewServeMux(), verbs: map[string]map[string]http.HandlerFunc{}}
	s.api = humago.New(mux, humaConfig(s.version))
	s.register()
	document, err := s.describe()
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	s.document = document
	s.handler = s.withRequestID(s.withRecover(s.withEnvironment(s.withLimits(s.withRoute(mux.ServeMux)))))
	return nil
}

// HTTPServer returns an http.Server for the handler with every timeout set. An answer
// may take as long as the longest wait; a request must arrive quickly.
func HTTPServer(addr string, handler http.Handler, log hclog.Logger) *http.Server {
	return &http.Server{
		Addr: addr, Handler: handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      api.MaxWait + 30*time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// Listen opens the daemon's address. Without TLS that must be a loopback one: a token
// in the clear is no token.
func Listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "listen address %q: must be host:port, such as 127.0.0.1:7433", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fleet.Errorf(fleet.CodeInvalid, "listen address %q: without TLS it must be a loopback address such as 127.0.0.1", addr)
	}
	return net.Listen("tcp", addr)
}
