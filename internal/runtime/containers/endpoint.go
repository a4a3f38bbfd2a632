package containers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Endpoint is an engine that runs containers of one environment, among others'.
type Endpoint struct {
	cfg     Config
	env     fleet.Environment
	log     hclog.Logger
	engine  *client.Client
	met     atomic.Bool           // the version of the engine's API is agreed on
	meeting chan struct{}         // holds who is about to agree on it
	regions func() []fleet.Region // all that are declared; nil: they are not known

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
		meeting: make(chan struct{}, 1), streamBegins: streamBegins, streamIdle: streamIdle,
	}, nil
}

// negotiateWithin bounds how long one call asks for the version of the engine's API while others
// wait for it.
const negotiateWithin = 5 * time.Second

// negotiate agrees with the engine on the version of its API, once. The client would do it at its
// first call, under a lock that heeds no context: one call that hangs would hold up all others
// for ever (G9). So whatever talks to the engine meets it first.
func (e *Endpoint) negotiate(ctx context.Context) error {
	if e.met.Load() {
		return nil
	}
	select {
	case e.meeting <- struct{}{}:
		defer func() { <-e.meeting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.met.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, negotiateWithin)
	defer cancel()
	if _, err := e.engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return err
	}
	e.met.Store(true)
	return nil
}

// Name returns the endpoint's name.
func (e *Endpoint) Name() string { return e.cfg.Name }

// Address returns the IP address where published ports are reached.
func (e *Endpoint) Address() string { return e.cfg.Address }

// Ports returns the range that assigned host ports come from.
func (e *Endpoint) Ports() PortRange { return e.cfg.Ports }

// Close ends idle connections.
func (e *Endpoint) Close() error { return e.engine.Close() }

// owner tells whose a container or a volume is, by its labels.
type owner struct{ environment, account, region string }

func ownerOf(labels map[string]string) owner {
	return owner{labels[fleet.LabelEnvironment], labels[fleet.LabelAccount], labels[fleet.LabelRegion]}
}

// String names the owner for a person.
func (o owner) String() string {
	switch {
	case o == owner{}:
		return fleet.NotByKurad
	case o.environment == "":
		return fmt.Sprintf("labelled for account %q, region %q and no environment", o.account, o.region)
	case o.account == "" || o.region == "":
		return "of no server of environment " + o.environment
	default:
		return fmt.Sprintf("server %s/%s of environment %s", o.account, o.region, o.environment)
	}
}

// ours reports whether o is a server of this environment (C7).
func (e *Endpoint) ours(o owner) bool {
	return o.environment == e.env.Name && o.account != "" && o.region != ""
}

// ownerFor is the owner that labels of server key say.
func (e *Endpoint) ownerFor(key fleet.ServerKey) owner {
	return owner{e.env.Name, key.Account, key.Region}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
