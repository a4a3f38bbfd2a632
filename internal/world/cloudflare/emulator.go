package cloudflare

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// Plan is what is paid for a zone.
type Plan string

// The plans that differ in what a zone may do.
const (
	PlanFree       Plan = "free"
	PlanPro        Plan = "pro"
	PlanEnterprise Plan = "enterprise"
)

// Zone is one zone and what is paid for it.
type Zone struct {
	Name         string `json:"name"`
	Account      string `json:"account,omitempty"` // name of the account; "main" by default
	Plan         Plan   `json:"plan,omitempty"`    // PlanFree by default
	Unsubscribed bool   `json:"unsubscribed,omitempty"`
	Quota        Quota  `json:"quota"`
}

// Quota bounds what there may be of a kind; 0: any number.
type Quota struct {
	Records   int `json:"records,omitempty"`   // of the zone
	Balancers int `json:"balancers,omitempty"` // of the zone
	Pools     int `json:"pools,omitempty"`     // of its account
}

// Options say what there is. The zero value of each field but Zones is what Cloudflare does.
type Options struct {
	Zones  []Zone
	Tokens []Token
	Limit  Limit
	Seed   uint64           // of all that is drawn: identifiers, the order of listings
	Now    func() time.Time // time.Now by default
	// Socketless: nothing listens. The API is reached by Client, DNS by DNS().Exchange, in a synctest bubble too.
	Socketless bool
}

// Emulator is a Cloudflare of its own.
type Emulator struct {
	url    string
	now    func() time.Time
	api    http.Handler
	server *http.Server // nil: nothing listens
	dns    *world.DNS
	closed chan struct{}
	once   sync.Once

	// One lock for all: nothing is called and nobody is waited for under it.
	mu       sync.Mutex
	rand     *rand.Rand
	ids      int
	zones    []*zone // by name
	pools    map[string]map[string]*Pool
	tokens   []*Token
	limit    Limit
	users    map[string]*budget
	faults   []*Fault
	counters Counters
	history  []Change
	spread   Propagation
	places   Places
}

// New starts an emulator on free ports of the loopback.
func New(options Options) (*Emulator, error) {
	if len(options.Zones) == 0 {
		return nil, errors.New("start a Cloudflare: it has no zone: name one in Options.Zones")
	}
	e := &Emulator{
		now: options.Now, closed: make(chan struct{}), rand: rand.New(rand.NewPCG(options.Seed, 11)),
		pools: map[string]map[string]*Pool{}, users: map[string]*budget{}, limit: options.Limit.orDefault(), counters: newCounters(),
	}
	if e.now == nil {
		e.now = time.Now
	}
	var names []string
	for _, z := range options.Zones {
		if _, known := batchMost[cmp.Or(z.Plan, PlanFree)]; !known || z.Name == "" {
			return nil, fmt.Errorf("start a Cloudflare: zone %q of plan %q: it needs a name, and a plan that there is: free, pro, enterprise", z.Name, z.Plan)
		}
		e.zones = append(e.zones, newZone(z))
		names = append(names, z.Name)
	}
	slices.SortFunc(e.zones, func(a, b *zone) int { return strings.Compare(a.Name, b.Name) })
	for _, token := range options.Tokens {
		e.SetToken(token)
	}
	e.api = e.handler()
	if options.Socketless {
		e.dns, e.url = world.NewDNS(e.resolve, names...), "http://127.0.0.1"+root
		return e, nil
	}
	var err error
	if e.dns, err = world.ServeDNS(e.resolve, names...); err != nil {
		return nil, fmt.Errorf("start a Cloudflare: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a Cloudflare: %w", err), e.dns.Close())
	}
	e.url = "http://" + listener.Addr().String() + root
	e.server = &http.Server{Handler: e.api, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = e.server.Serve(listener) }() // ends by Close
	return e, nil
}

// URL is the API's base, as clients take it: http://127.0.0.1:40001/client/v4.
func (e *Emulator) URL() string { return e.url }

// DNS is the server of all zones: its address, its own faults and how many questions it got.
func (e *Emulator) DNS() *world.DNS { return e.dns }

// Close ends it, and every call that hangs.
func (e *Emulator) Close() error {
	var err error
	e.once.Do(func() {
		close(e.closed)
		if err = e.dns.Close(); e.server != nil {
			err = errors.Join(err, e.server.Close())
		}
	})
	return err
}

// ZoneID returns the identifier of the zone of that name, the same in each emulator.
func ZoneID(name string) string { return identifier("zone", strings.ToLower(name)) }

// AccountID returns the identifier of the account of that name, the same in each emulator.
func AccountID(name string) string { return identifier("account", name) }

// identifier makes the 32 hexadecimal digits that Cloudflare's identifiers are.
func identifier(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return hex.EncodeToString(sum[:16])
}

// newID makes an identifier that nothing had before. Those of things that were deleted do not come back.
func (e *Emulator) newID(kind string) string {
	e.ids++
	return identifier(kind, fmt.Sprintf("%d/%d", e.ids, e.rand.Uint64()))
}
