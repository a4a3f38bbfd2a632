package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/declare"
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
	// Beyond returns a server's status with what came since it was stored; nil: nothing is
	// known of that.
	Beyond(g fleet.Gathered) *fleet.Status
	// Waits says what a server's next try waits for, as far as no record does.
	Waits(key fleet.ServerKey) string
	// Listings returns what is known of the containers of every endpoint, by name.
	Listings() []fleet.Listing
	// KubeListings returns what is known of the KuraInstances of every namespace that a
	// region named, by cluster and namespace.
	KubeListings() []fleet.KubeListing
}

// Runtimes is what this daemon was given to run servers with.
type Runtimes interface {
	// ContainerEndpoints names the endpoints, sorted.
	ContainerEndpoints() []string
	// Clusters names the Kubernetes clusters, sorted.
	Clusters() []string
	// NamespaceUID asks a cluster which namespace bears the name; "" where none does. Any
	// error says that the cluster did not answer about it.
	NamespaceUID(ctx context.Context, cluster, namespace string) (string, error)
}

// Config holds what a Server needs.
type Config struct {
	Records     *store.Records
	View        *store.View
	Environment fleet.Environment
	Tokens      *Tokens
	Turns       Turns
	Runtimes    Runtimes
	Declare     *declare.Declarer
	Declared    DeclaredProbes                  // nil: no declared endpoint is probed
	DNS         DNS                             // nil: this kurad was given no zones
	ZoneNames   []string                        // the domains of those it was given
	DNSModes    []fleet.DNSMode                 // what a region's dns.mode may be with them, besides none
	ZoneTrouble func() (fleet.Reason, []string) // why zones cannot be used as their tokens should allow; nil: nobody knows
	Version     string
	Logger      hclog.Logger
	Audit       Audit
	Now         func() time.Time // nil: the clock
	// FailedLogins is how many logins of one address may fail at once, and then in each
	// minute; 0: 20.
	FailedLogins int
	// Leader says who leads where several kurads share the store; nil: nobody else does.
	Leader Leader
	// PeerTLS is how the leader is asked over https; nil: with the system's authorities.
	PeerTLS *tls.Config
	// Ready says why the daemon cannot serve yet; nil: it always can.
	Ready func(context.Context) error
}

// Server answers the API.
type Server struct {
	Config
	logins   *logins
	forward  http.RoundTripper
	api      huma.API
	handler  http.Handler
	document json.RawMessage // OpenAPI
	public   map[string]bool // patterns of the routes that need no token

	changes *changes
	lists   *lists // of servers, kept for their further pages
	shares  shares
	ended   chan struct{} // closed by Close
	close   sync.Once
}

// New returns the API. It hears of changes from the view until Close.
func New(cfg Config) (*Server, error) {
	if cfg.Audit == nil {
		return nil, errors.New("the API has no audit log")
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Leader == nil {
		cfg.Leader = onlyLeader{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	if cfg.Declared == nil {
		cfg.Declared = unprobed{}
	}
	if cfg.DNS == nil {
		cfg.DNS = noDNS{}
	}
	s := &Server{
		Config: cfg, forward: newForwarder(cfg.PeerTLS), public: map[string]bool{}, changes: follow(cfg.View), lists: &lists{now: cfg.Now},
		logins: newLogins(cfg.FailedLogins, cfg.Now), shares: newShares(), ended: make(chan struct{}),
	}
	return s, s.routes()
}

// Changed says that a server reads otherwise now, though nothing was written: a try that is no
// news has begun or ended (G12).
func (s *Server) Changed(key fleet.ServerKey) { s.changes.note([]fleet.ServerKey{key}, false) }

// Close ends what waits: long polls and fresh looks answer at once, with what there is. It
// writes down what refused calls nobody has told of yet.
func (s *Server) Close() {
	s.changes.close()
	s.close.Do(func() {
		close(s.ended)
		for _, r := range s.logins.all() {
			s.writeForgotten(r)
		}
	})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Health answers what needs no token and nothing else, for a listener of its own (G9).
func (s *Server) Health() http.Handler {
	mux := http.NewServeMux()
	for pattern := range s.public {
		mux.Handle(pattern, s)
	}
	return mux
}

// routes builds the handler: the routes behind everything that each request passes.
func (s *Server) routes() error {
	mux := &verbMux{ServeMux: http.NewServeMux(), verbs: map[string]map[string]http.HandlerFunc{}}
	s.api = humago.New(mux, humaConfig(s.Version))
	s.register()
	document, err := s.describe()
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
	}
	s.document = document
	s.handler = s.withRequestID(s.withAudit(s.withRecover(s.withEnvironment(s.withLogin(mux.ServeMux, s.withRoute(mux.ServeMux))))))
	return nil
}
