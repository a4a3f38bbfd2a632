package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	roundPending = 30 * time.Second // between listings while something waits for what they show
	roundSteady  = 50 * time.Second // for each call that a listing takes: under 12 calls in five minutes (D7)
	roundSlowest = 5 * time.Minute
	listWithin   = 2 * time.Minute  // a listing of all pages, the waits that a rate limit asks for included
	kickedAfter  = 3 * time.Second  // after the begin of the one before, at least, whoever asks
	failedAtMost = time.Minute      // after one that failed
	mayWithin    = 30 * time.Second // what a token may is found out
	mayAgain     = 10 * time.Minute // where it lacks something; else within mayEver
	mayEver      = time.Hour
	perPage      = 5000 // records (Cloudflare's API documentation)
)

// rounds list one zone again and again, and keep what was read of servers' hosts in it.
type rounds struct {
	zone        Zone
	api         API
	environment fleet.Environment
	zones       int // with a token: they share what may be called
	changed     func(fleet.ServerKey)
	clock       func() time.Time
	log         hclog.Logger
	kicked      chan struct{}

	mu      sync.Mutex
	wishes  map[fleet.ServerKey]fleet.HostsWish // of hosts in this zone
	reads   map[fleet.ServerKey]fleet.HostsRead
	waiting map[fleet.ServerKey]time.Time // for a listing that begins since
	waiters []chan struct{}               // for one that begins from now on
	index   *Index                        // of the last listing that answered; nil: none has
	calls   int                           // that a listing takes
	begun   time.Time                     // the last one's begin
	failure *fleet.ReadFailure
	pooling *fleet.ReadFailure // why load balancers could not be read, where records could
	after   time.Time          // the provider wants no call before
	lacks   []string           // that the token may not
	checked time.Time          // when that was asked; zero: it is to be
}

func newRounds(z Zone, api API, cfg WatchConfig, zones int) *rounds {
	return &rounds{
		zone: z, api: api, environment: cfg.Environment, zones: zones, changed: cfg.Changed, clock: cfg.Now, log: cfg.Log.With("zone", z.Name),
		kicked: make(chan struct{}, 1), wishes: map[fleet.ServerKey]fleet.HostsWish{}, reads: map[fleet.ServerKey]fleet.HostsRead{},
		waiting: map[fleet.ServerKey]time.Time{}, calls: 1,
	}
}

// run lists until ctx ends. A zone of which nobody follows a host is not listed, but that it is
// there, and what its token may, is known.
func (r *rounds) run(ctx context.Context) {
	r.idle(ctx)
	for ctx.Err() == nil {
		timer := time.NewTimer(r.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.kicked: // what is due may be another time by now
			timer.Stop()
		case <-timer.C:
			r.list(ctx)
		}
	}
}

// kick has the time looked at again when the next listing is due.
func (r *rounds) kick() {
	select {
	case r.kicked <- struct{}{}:
	default:
	}
}

// pause returns how long until the next listing is due.
func (r *rounds) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	if len(r.wishes) == 0 && len(r.waiters) == 0 {
		return roundSlowest
	}
	due := r.begun.Add(r.pace())
	return max(0, due.Sub(now), r.after.Sub(now))
}

// pace is the time from one begin to the next; the lock is held. In a steady fleet all zones take
// less than 12 calls in five minutes (D7).
func (r *rounds) pace() time.Duration {
	kicked := max(kickedAfter, time.Duration(r.calls)*time.Second)
	switch {
	case r.begun.IsZero():
		return 0
	case len(r.waiters) > 0:
		return kicked
	case r.failure != nil:
		return min(kickedAfter<<min(r.failure.Count, 5), failedAtMost)
	case len(r.waiting) > 0:
		return kicked
	}
	steady := r.steady()
	for _, wish := range r.wishes {
		if wish.Pending {
			steady = roundPending
			break
		}
	}
	return steady + rand.N(steady/10) // so that kurads of one account do not list together
}

// steady is pace where nothing waits; the lock is held.
func (r *rounds) steady() time.Duration {
	return min(time.Duration(r.calls*r.zones)*roundSteady, roundSlowest)
}

// set says what is read of a server in this zone; without hosts nothing is.
func (r *rounds) set(key fleet.ServerKey, wish fleet.HostsWish) {
	if r.follow(key, wish) {
		r.changed(key)
	}
}

// follow reports whether something is known of what nobody asked for so far.
func (r *rounds) follow(key fleet.ServerKey, wish fleet.HostsWish) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.wishes[key]
	if len(wish.Hosts) == 0 {
		delete(r.wishes, key)
		delete(r.reads, key)
		delete(r.waiting, key)
		return false
	}
	if len(r.wishes) == 0 && r.clock().Sub(r.begun) > roundSlowest {
		r.index = nil // nobody listed while nobody followed a host
	}
	r.wishes[key] = wish
	another := !known || before.Owner != wish.Owner || before.Resource != wish.Resource || before.Global != wish.Global || !slices.Equal(before.Hosts, wish.Hosts)
	if news = another && r.index != nil; news {
		r.reads[key] = r.judge(key, wish)
	}
	if _, waits := r.waiting[key]; !waits && (wish.Fresh || r.index == nil || wish.Pending && (another || !before.Pending)) {
		r.waiting[key] = r.clock()
		r.kick()
	}
	return news
}

// judge says what the last listing has of a server; the lock is held.
func (r *rounds) judge(key fleet.ServerKey, wish fleet.HostsWish) fleet.HostsRead {
	read := fleet.HostsRead{Hosts: map[string]fleet.HostRead{}}
	for _, host := range append(r.index.Of(wish.Resource), wish.Hosts...) {
		if _, done := read.Hosts[host]; !done {
			read.Hosts[host] = r.index.Host(host, wish.Owner)
		}
	}
	read.Pool = r.index.Pool(wish.Global, wish.Owner, key) // also of who has a global host no more
	return read
}

// list makes one listing and tells whom it is news for.
func (r *rounds) list(ctx context.Context) {
	r.mu.Lock()
	followed := len(r.wishes) > 0 || len(r.waiters) > 0
	r.mu.Unlock()
	if !followed {
		r.idle(ctx)
		return
	}
	_ = r.may(ctx) // the listing says the same
	r.mu.Lock()
	begun, waiters := r.clock(), r.waiters
	r.begun, r.waiters = begun, nil
	// Balancers are read where one is declared, and else if the token may: they shadow records.
	parts := Parts{Records: true, Balancers: !r.checked.IsZero() && len(r.lacks) == 0}
	for _, wish := range r.wishes {
		parts.Balancers = parts.Balancers || wish.Global != ""
	}
	r.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, listWithin)
	l, unpooled, err := r.read(within, parts)
	cancel()
	if ctx.Err() != nil {
		return // one that was cut short says nothing
	}
	l.Begun = begun
	var keys []fleet.ServerKey
	if err != nil {
		keys = r.failed(begun, err)
	} else {
		keys = r.listed(l, parts, unpooled)
	}
	for _, w := range waiters {
		close(w)
	}
	for _, key := range keys {
		r.changed(key)
	}
}

// read lists what is asked for; where load balancers are what cannot be read, the records alone:
// those are a layer of their own, and what was read of them before stays (D2, D5).
func (r *rounds) read(ctx context.Context, parts Parts) (l Listing, unpooled, err error) {
	l, err = r.api.List(ctx, parts)
	if e, ok := errors.AsType[*Error](err); !parts.Balancers || !ok || e.Reason == fleet.ReasonRateLimited {
		return l, nil, err
	}
	alone, failed := r.api.List(ctx, Parts{Records: true})
	if failed != nil {
		return l, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.index != nil {
		alone.Balancers = slices.Concat(slices.Collect(maps.Values(r.index.balancers))...)
		alone.Pools = r.index.Pools()
	}
	return alone, err, nil
}

// may finds out what the token may not, at the start and now and then, and says so once.
func (r *rounds) may(ctx context.Context) error {
	r.mu.Lock()
	asked, before := r.checked, r.lacks
	age := r.clock().Sub(asked)
	r.mu.Unlock()
	if !asked.IsZero() && (age < mayAgain || len(before) == 0 && age < mayEver) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mayWithin)
	defer cancel()
	lacks, err := r.api.Permissions(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.checked, r.lacks = r.clock(), lacks
	r.mu.Unlock()
	switch {
	case len(lacks) > 0 && !slices.Equal(lacks, before):
		r.log.Warn("the token of a zone lacks permissions", "missing", strings.Join(lacks, "; "))
	case len(lacks) == 0 && len(before) > 0:
		r.log.Info("the token of a zone has all permissions now")
	}
	return nil
}

// idle looks after a zone of which nobody follows a host.
func (r *rounds) idle(ctx context.Context) {
	err := r.may(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.failed(r.clock(), err)
	default:
		r.mu.Lock()
		r.failure = nil
		r.mu.Unlock()
	}
}

// trouble says why the zone cannot be used as its token should allow; "": it can.
func (r *rounds) trouble() (reason fleet.Reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failure != nil:
		return r.failure.Reason, r.failure.Message
	case len(r.lacks) > 0:
		return fleet.ReasonZoneForbidden, "zone " + r.zone.Name + ": its token lacks " + strings.Join(r.lacks, "; ")
	case r.pooling != nil:
		return r.pooling.Reason, r.pooling.Message
	}
	return "", ""
}

// failed keeps what was read (P2, D5). Servers hear of it when it has failed twice, for one
// failure between two answers is none of theirs.
func (r *rounds) failed(begun time.Time, err error) []fleet.ServerKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.shownReason()
	reason, message := fleet.ReasonZoneUnreachable, err.Error()
	if e, ok := errors.AsType[*Error](err); ok {
		reason = cmp.Or(e.Reason, reason)
		if e.After > 0 {
			r.after = r.clock().Add(e.After)
		}
	}
	r.failure = fails(r.failure, begun, reason, "zone "+r.zone.Name+": "+message)
	if r.failure.Count == 1 || r.failure.Reason != was {
		r.log.Warn("a zone cannot be listed", "reason", reason, "error", err)
	}
	clear(r.waiting)
	if reason == fleet.ReasonZoneForbidden && r.clock().Sub(r.checked) > failedAtMost {
		r.checked = time.Time{} // it is another token by now, or another zone
	}
	if r.shownReason() == was {
		return nil
	}
	return slices.Collect(maps.Keys(r.wishes))
}

// shownReason is why the zone cannot be read, as servers hear it; the lock is held.
func (r *rounds) shownReason() fleet.Reason {
	if r.failure == nil || r.failure.Count < 2 && r.index != nil {
		return ""
	}
	return r.failure.Reason
}

// listed takes a listing, and returns whom it is news for, or who waited for it.
func (r *rounds) listed(l Listing, parts Parts, unpooled error) (keys []fleet.ServerKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	healed := r.shownReason() != "" || (unpooled == nil) != (r.pooling == nil)
	if unpooled == nil {
		r.pooling = nil
	} else {
		if e := failure(unpooled); r.pooling == nil {
			r.log.Warn("the load balancers of a zone cannot be listed", "reason", e.Reason, "error", e)
		}
		r.pooling = fails(r.pooling, l.Begun, failure(unpooled).Reason, "load balancers of zone "+r.zone.Name+": "+unpooled.Error())
	}
	if r.failure != nil {
		r.log.Info("a zone can be listed again", "after", r.failure.Count, "since", r.failure.Since)
		r.failure = nil
	}
	r.calls = 1 + len(l.Records)/perPage
	if parts.Balancers {
		r.calls += 2 + len(l.Balancers)/perPage + len(l.Pools)/perPage
	}
	r.index = NewIndex(l, r.zone, r.environment)
	for key, wish := range r.wishes {
		read := r.judge(key, wish)
		since, waited := r.waiting[key]
		waited = waited && !l.Begun.Before(since)
		if waited {
			delete(r.waiting, key)
		}
		if waited || healed || newsOf(read) != newsOf(r.reads[key]) {
			keys = append(keys, key)
		}
		r.reads[key] = read
	}
	return keys
}

// add adds what is known of a server in this zone.
func (r *rounds) add(key fleet.ServerKey, out *fleet.HostsRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wish := r.wishes[key]
	failure := r.failure
	if r.shownReason() == "" {
		failure = nil
	}
	known := r.reads[key]
	for _, host := range wish.Hosts {
		if _, ok := known.Hosts[host]; !ok && failure != nil {
			out.Hosts[host] = fleet.HostRead{Host: host, Ownership: fleet.OwnershipUnknown, Failure: failure}
		}
	}
	for host, read := range known.Hosts {
		read.Failure = failure
		out.Hosts[host] = read
	}
	elsewhere := slices.Sorted(slices.Values(append(out.Pool.Elsewhere, known.Pool.Elsewhere...)))
	if wish.Global != "" || out.Pool.Host == "" && known.Pool.Is != nil {
		out.Pool = known.Pool
		out.Pool.Host, out.Pool.Failure = wish.Global, cmp.Or(failure, r.pooling)
		if read, ok := out.Hosts[wish.Global]; ok { // its balancer answers
			read.Failure = out.Pool.Failure
			out.Hosts[wish.Global] = read
		}
	}
	out.Pool.Elsewhere = elsewhere
}

// now waits for a listing that begins from now on, if the server has hosts in the zone.
func (r *rounds) now(ctx context.Context, key fleet.ServerKey) error {
	r.mu.Lock()
	_, follows := r.wishes[key]
	r.mu.Unlock()
	if !follows {
		return nil
	}
	select {
	case <-r.await():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("zone %s was not listed in time: %w", r.zone.Name, ctx.Err())
	}
}
