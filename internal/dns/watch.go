package dns

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Question asks for one host of one server: of a zone without a token, whose hosts are read one by
// one.
type Question struct {
	Host, Owner, Resource string
	Zone                  string // its domain
}

// Name implements readiness.Question.
func (q Question) Name() string { return q.Host }

// Queries asks questions again and again, at the pace that their answers ask for, and keeps the
// newest (readiness.Watcher).
type Queries interface {
	Run(ctx context.Context)
	Set(key fleet.ServerKey, questions []Question, pending bool)
	Latest(key fleet.ServerKey, host string) (fleet.HostRead, bool)
	Now(ctx context.Context, key fleet.ServerKey) error
}

// WatchConfig is what a Watch works with.
type WatchConfig struct {
	Environment fleet.Environment
	Zones       Zones
	APIs        map[string]API // by domain: of every zone with a token
	// Read reads a host of a zone without one (Querier.Read).
	Read func(ctx context.Context, z Zone, host string) ([]fleet.DNSRecord, error)
	// Queries returns what asks by ask, and calls changed when there may be news of a server.
	Queries func(ask func(context.Context, Question) fleet.HostRead, changed func(fleet.ServerKey)) Queries
	Changed func(fleet.ServerKey) // hears of news of a server, without a lock and from any goroutine
	Now     func() time.Time
	Log     hclog.Logger
}

// Watch keeps the newest reads of the hosts of servers. Zones with a token are listed as a whole
// (rounds), the hosts of others are asked for one by one (D3).
type Watch struct {
	cfg     WatchConfig
	rounds  map[string]*rounds // by domain
	queries Queries

	mu     sync.Mutex
	wishes map[fleet.ServerKey]fleet.HostsWish
	reads  map[Question]fleet.HostRead // newest answers: what was read stays while none comes
	told   map[fleet.ServerKey]string  // what was the news of hosts that are asked for
}

// NewWatch returns a Watch that Run starts.
func NewWatch(cfg WatchConfig) *Watch {
	w := &Watch{
		cfg: cfg, rounds: map[string]*rounds{}, wishes: map[fleet.ServerKey]fleet.HostsWish{},
		reads: map[Question]fleet.HostRead{}, told: map[fleet.ServerKey]string{},
	}
	for _, z := range cfg.Zones {
		if api := cfg.APIs[z.Domain]; api != nil {
			w.rounds[z.Domain] = newRounds(z, api, cfg, len(cfg.APIs))
		}
	}
	w.queries = cfg.Queries(w.ask, w.answered)
	return w
}

// Run reads until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { w.queries.Run(ctx) })
	for _, r := range w.rounds {
		running.Go(func() { r.run(ctx) })
	}
	running.Wait()
}

// Set implements reconcile.Hosts.
func (w *Watch) Set(key fleet.ServerKey, wish fleet.HostsWish) {
	var questions []Question
	listed := map[string]fleet.HostsWish{} // by domain
	for _, host := range wish.Hosts {
		z, ok := w.cfg.Zones.Of(host)
		switch {
		case !ok:
		case w.rounds[z.Domain] != nil:
			part, begun := listed[z.Domain]
			if !begun {
				part = wish
				part.Hosts, part.Global = nil, ""
			}
			if host == wish.Global {
				part.Global = host
			}
			part.Hosts = append(part.Hosts, host)
			listed[z.Domain] = part
		case host == wish.Global: // a load balancer answers, of which only the API tells
		default:
			questions = append(questions, Question{Host: host, Owner: wish.Owner, Resource: wish.Resource, Zone: z.Domain})
		}
	}
	w.mu.Lock()
	before := w.wishes[key]
	if w.wishes[key] = wish; len(wish.Hosts) == 0 {
		delete(w.wishes, key)
		delete(w.told, key)
	}
	for _, host := range before.Hosts {
		z, _ := w.cfg.Zones.Of(host)
		if q := (Question{host, before.Owner, before.Resource, z.Domain}); !slices.Contains(questions, q) {
			delete(w.reads, q)
		}
	}
	w.mu.Unlock()
	w.queries.Set(key, questions, wish.Pending)
	for domain, r := range w.rounds {
		r.set(key, listed[domain])
	}
}

// Latest implements reconcile.Hosts.
func (w *Watch) Latest(key fleet.ServerKey) fleet.HostsRead {
	w.mu.Lock()
	wish := w.wishes[key]
	w.mu.Unlock()
	read := fleet.HostsRead{Hosts: map[string]fleet.HostRead{}}
	for _, host := range wish.Hosts {
		z, ok := w.cfg.Zones.Of(host)
		switch {
		case !ok:
			read.Hosts[host] = lacking(host, fmt.Sprintf("this kurad was given no zone that has %s (it has: %s); start it with --zone, or set dns.mode = \"none\" in the region", host, orNone(w.cfg.Zones.Domains())))
		case w.rounds[z.Domain] != nil:
		case host == wish.Global:
			read.Hosts[host] = lacking(host, fmt.Sprintf("zone %s was given without a token, and queries show no load balancer; add cloudflare= to its --zone", z.Name))
			read.Pool.Host, read.Pool.Failure = host, read.Hosts[host].Failure
		default:
			if r, known := w.queries.Latest(key, host); known {
				read.Hosts[host] = r
			}
		}
	}
	for _, r := range w.rounds {
		r.add(key, &read)
	}
	return read
}

// Trouble says why zones cannot be read or written as their tokens should allow, and the first
// one's reason; "": they can.
func (w *Watch) Trouble() (reason fleet.Reason, messages []string) {
	for _, z := range w.cfg.Zones {
		if r := w.rounds[z.Domain]; r != nil {
			if why, message := r.trouble(); why != "" {
				reason, messages = cmp.Or(reason, why), append(messages, message)
			}
		}
	}
	return reason, messages
}

// lacking is the read of a host for which kurad was not given what it takes: nothing is known of
// it, and it is not taken for absent.
func lacking(host, why string) fleet.HostRead {
	return fleet.HostRead{Host: host, Ownership: fleet.OwnershipUnknown, Failure: &fleet.ReadFailure{Reason: fleet.ReasonZoneUnreachable, Message: why, Count: 1}}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Now implements reconcile.Hosts.
func (w *Watch) Now(ctx context.Context, key fleet.ServerKey) error {
	for _, r := range w.rounds {
		if err := r.now(ctx, key); err != nil {
			return err
		}
	}
	w.mu.Lock()
	asked := slices.ContainsFunc(w.wishes[key].Hosts, func(host string) bool {
		z, ok := w.cfg.Zones.Of(host)
		return ok && w.rounds[z.Domain] == nil
	})
	w.mu.Unlock()
	if !asked {
		return nil
	}
	return w.queries.Now(ctx, key)
}

// ask reads the host of a question. What was read before stays where nobody answers (P2, D5).
func (w *Watch) ask(ctx context.Context, q Question) fleet.HostRead {
	begun := w.cfg.Now()
	z, _ := w.cfg.Zones.Of(q.Host)
	records, err := w.cfg.Read(ctx, z, q.Host)
	w.mu.Lock()
	defer w.mu.Unlock()
	read, before := w.reads[q]
	if err != nil {
		if !before {
			read = fleet.HostRead{Host: q.Host, Ownership: fleet.OwnershipUnknown}
		}
		read.Failure = fails(read.Failure, begun, fleet.ReasonZoneUnreachable, err.Error())
	} else {
		read = Judge(q.Host, q.Owner, Listing{Begun: begun, Records: records}, z, w.cfg.Environment)
	}
	w.reads[q] = read
	return read
}

// fails counts one more failure.
func fails(before *fleet.ReadFailure, now time.Time, reason fleet.Reason, message string) *fleet.ReadFailure {
	f := fleet.ReadFailure{Since: now}
	if before != nil {
		f = *before
	}
	f.Reason, f.Message = reason, message
	f.Count++
	return &f
}

// answered hears of answers to the questions of a server. One that says the same again is no news,
// though its gate waits.
func (w *Watch) answered(key fleet.ServerKey) {
	read := w.Latest(key)
	now := newsOf(read)
	w.mu.Lock()
	was, before := w.told[key]
	if _, still := w.wishes[key]; still {
		w.told[key] = now
	}
	w.mu.Unlock()
	if !before || was != now {
		w.cfg.Changed(key)
	}
}

// newsOf is all of a read that is news when it differs: neither when it began nor how often it failed.
func newsOf(read fleet.HostsRead) string {
	var b strings.Builder
	reason := func(f *fleet.ReadFailure) fleet.Reason {
		if f == nil {
			return ""
		}
		return f.Reason
	}
	hosts := make([]string, 0, len(read.Hosts))
	for host := range read.Hosts {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	for _, host := range hosts {
		r := read.Hosts[host]
		fmt.Fprintln(&b, host, r.Ownership, r.Owners, r.Resource, r.Records, r.Begun.IsZero(), reason(r.Failure))
	}
	p := read.Pool
	fmt.Fprintln(&b, p.Host, p.Joined, p.Foreign, p.Elsewhere, p.Drift, p.Begun.IsZero(), reason(p.Failure))
	if p.Is != nil {
		fmt.Fprintln(&b, *p.Is)
	}
	return b.String()
}
