package containers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"
	"golang.org/x/sync/semaphore"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// Endpoint is an engine that runs containers of one environment, among others'.
type Endpoint struct {
	cfg     Config
	env     fleet.Environment
	log     hclog.Logger
	engine  *client.Client
	regions func() []fleet.Region // all that are declared; nil: they are not known

	negotiating *semaphore.Weighted // held by who asks for the version of the engine's API
	negotiated  bool                // that is agreed on

	streamBegins, streamIdle time.Duration // of Watch
}

// Open prepares an endpoint. It does not connect: an engine that is not there yet
// shows in List and heals by itself.
func Open(cfg Config, env fleet.Environment, log hclog.Logger) (*Endpoint, error) {
	if log == nil {
		log = hclog.NewNullLogger()
	}
	cfg.Address = cmp.Or(cfg.Address, cfg.ownAddress())
	if _, err := netip.ParseAddr(cfg.Address); err != nil {
		return nil, fmt.Errorf("open container endpoint %q: address: %w", cfg.Name, err)
	}
	engine, err := NewClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("open container endpoint %q: %w", cfg.Name, err)
	}
	return &Endpoint{
		cfg: cfg, env: env, log: log.With("endpoint", cfg.Name), engine: engine,
		negotiating: semaphore.NewWeighted(1), streamBegins: streamBegins, streamIdle: streamIdle,
	}, nil
}

// negotiateWithin bounds how long one call asks for the version of the engine's API while others
// wait for it.
const negotiateWithin = 5 * time.Second

// negotiate agrees with the engine on the version of its API, once. The client would do it at its
// first call, under a lock that heeds no context: one call that hangs would hold up all others
// for ever (G9). So whatever talks to the engine negotiates first.
func (e *Endpoint) negotiate(ctx context.Context) error {
	if err := e.negotiating.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.negotiating.Release(1)
	if e.negotiated {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, negotiateWithin)
	defer cancel()
	_, err := e.engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	e.negotiated = err == nil
	return err
}

// Ports returns the range that assigned host ports come from.
func (e *Endpoint) Ports() PortRange { return e.cfg.Ports }

// Close ends idle connections.
func (e *Endpoint) Close() error { return e.engine.Close() }

func ownerOf(labels map[string]string) runtime.Owner {
	return runtime.Owner{Environment: labels[fleet.LabelEnvironment], Account: labels[fleet.LabelAccount], Region: labels[fleet.LabelRegion]}
}

// ours reports whether o is a server of this environment (C7).
func (e *Endpoint) ours(o runtime.Owner) bool {
	return o.Environment == e.env.Name && o.Account != "" && o.Region != ""
}

// ownerFor is the owner that labels of server key say.
func (e *Endpoint) ownerFor(key fleet.ServerKey) runtime.Owner {
	return runtime.Owner{Environment: e.env.Name, Account: key.Account, Region: key.Region}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
