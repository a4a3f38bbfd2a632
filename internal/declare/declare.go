package declare

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Runtimes is what a declaration asks of what this daemon was given to run servers with.
type Runtimes interface {
	// Region says what in the region's runtime this daemon does not have or does not
	// allow: unknown endpoints, clusters and variable sets, host paths (C10).
	Region(r fleet.Region) error
	// PortRange returns the ports that may be assigned on the region's endpoint; ok is
	// false where there are none.
	PortRange(r fleet.Region) (first, last int, ok bool)
	// Containers lists an endpoint now, unless it was within maxAge; one that does not
	// answer shows as unreadable.
	Containers(ctx context.Context, endpoint string, maxAge time.Duration) fleet.Listing
	// Instance asks a cluster for the KuraInstance that bears a server's name, compared with
	// the document, which names cluster, namespace and instance; nil: there is none. Any
	// error says that the cluster did not answer about it.
	Instance(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error)
	// NamespaceUID asks a cluster which namespace bears the name; "" where none does. Any
	// error says that the cluster did not answer about it.
	NamespaceUID(ctx context.Context, cluster, namespace string) (string, error)
	// Adoptable says, with CodeInvalid, what the engine does by itself with a container of
	// the endpoint that kurad is to run: such a one is not adopted.
	Adoptable(ctx context.Context, endpoint, id string) error
}

// Zones is what a declaration asks of the DNS zones that this daemon was given.
type Zones interface {
	// Has returns the domain of the zone that has the host, "" where none has, and whether it was
	// given with a token.
	Has(host string) (domain string, token bool)
	Domains() []string
}

// noZones is a daemon that was given none.
type noZones struct{}

func (noZones) Has(string) (domain string, token bool) { return "", false }
func (noZones) Domains() []string                      { return nil }

// Turns is what a declaration asks of the reconciler.
type Turns interface {
	// KubeListings returns what is known of the KuraInstances of every namespace that a
	// region named, by cluster and namespace.
	KubeListings() []fleet.KubeListing
	// Beyond returns a server's status with what came since it was stored; nil: nothing is
	// known of that.
	Beyond(g fleet.Gathered) *fleet.Status
}

// Config holds what a Declarer needs.
type Config struct {
	Records     *store.Records
	View        *store.View
	Environment fleet.Environment
	Runtimes    Runtimes
	Zones       Zones // nil: none
	Turns       Turns
	Hosts       Hosts // nil: nothing is known of any
	Logger      hclog.Logger
	Now         func() time.Time
	// AliasPeriod is for how long an old host stays routed of a server whose record was lost
	// (H8), and a name or a host its account's that gave it up (H10); 0: 7 days.
	AliasPeriod time.Duration
	// Render renders a server; nil: fleet.Render.
	Render func(fleet.Environment, fleet.Gathered) (fleet.Desired, error)
}

// Declarer stores what users declare.
type Declarer struct {
	records  *store.Records
	view     *store.View
	env      fleet.Environment
	runtimes Runtimes
	zones    Zones
	turns    Turns
	hosts    Hosts
	log      hclog.Logger
	now      func() time.Time
	aliases  time.Duration // for how long what was given up stays its account's
	render   func(fleet.Environment, fleet.Gathered) (fleet.Desired, error)
	occupied occupiedPorts
	// turn is had alone by writes of accounts, templates and regions, and beside others by
	// writes of servers: within this process nobody need ask the store again and again for it.
	turn *turn
}

// New returns a Declarer.
func New(cfg Config) *Declarer {
	d := &Declarer{
		records: cfg.Records, view: cfg.View, env: cfg.Environment, runtimes: cfg.Runtimes, zones: cfg.Zones, turns: cfg.Turns,
		log: cfg.Logger, now: cfg.Now, aliases: cmp.Or(cfg.AliasPeriod, 7*24*time.Hour), render: cfg.Render, turn: newTurn(cfg.Now),
	}
	if d.render == nil {
		d.render = fleet.Render
	}
	if d.hosts = cfg.Hosts; d.hosts == nil {
		d.hosts = nothingKnown{}
	}
	if d.zones == nil {
		d.zones = noZones{}
	}
	return d
}

// Stalled returns for how long no write has ended although one is under way, where that is
// longer than any may take.
func (d *Declarer) Stalled() (time.Duration, bool) { return d.turn.stalled() }

// Desired renders a server; what does not render reads without its hosts, and its turn
// says why.
func (d *Declarer) Desired(g fleet.Gathered) fleet.Desired {
	if g.Account == nil || g.Region == nil {
		return fleet.Desired{}
	}
	desired, err := d.render(d.env, g)
	if err != nil {
		return fleet.Desired{}
	}
	return desired
}

// catchUp waits until the view shows every write that was acknowledged before.
func (d *Declarer) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return d.view.CatchUp(ctx)
}

// readTimeout bounds how long a write waits for what it reads.
const readTimeout = 10 * time.Second

// Request is what comes with a declaration.
type Request struct {
	By         fleet.Token // no answer names what he may not know of
	Generation int64       // that the object must have; 0: any
	New        bool        // an object that exists is a conflict
	Again      bool        // a server's version that came to nothing is tried again (P12)
	DryRun     bool        // say what would be written, write nothing
}

// check compares what is asked for with the present generation, 0 where there is no object.
func (r Request) check(what string, generation int64) error {
	switch {
	case r.New && generation != 0:
		return fleet.Errorf(fleet.CodeConflict, "%s exists already, at generation %d; import it, or choose another name", what, generation)
	case r.Generation == 0 || r.Generation == generation:
		return nil
	case generation == 0:
		return fleet.Errorf(fleet.CodePrecondition, "%s does not exist, so it has no generation %d; somebody deleted it meanwhile: read it again", what, r.Generation)
	}
	return fleet.Errorf(fleet.CodePrecondition, "%s is at generation %d, not %d: somebody changed it meanwhile; read it again (refresh, plan) and decide anew", what, generation, r.Generation)
}

// invalid is the error of a declaration in which one thing is wrong.
func invalid(what, pointer, format string, args ...any) error {
	var v fleet.Invalid
	v.Add(pointer, format, args...)
	return v.Err(what)
}

// Result is what was stored, or, of a dry run, what would be.
type Result[T any] struct {
	Object   T
	Created  bool
	Changed  bool // false: the declaration was equal and nothing was written
	Warnings []fleet.Warning
}

// present makes a missing record the zero one, which stands for it.
func present[T any](v store.Versioned[T], err error) (store.Versioned[T], error) {
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return store.Versioned[T]{}, nil
	}
	return v, err
}

// equal compares two declarations as they are written.
func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
