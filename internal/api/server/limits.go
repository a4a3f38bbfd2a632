package server

import (
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	// maxFailedLogins is how many logins from one address may fail at once, and then in
	// each minute.
	maxFailedLogins = 20
	// maxSources bounds the addresses that are remembered; the one that failed longest ago
	// is forgotten first.
	maxSources = 8192
)

// logins counts failed logins by the address that they come from: one of IPv4, or a /64
// of IPv6, which is what one customer gets.
type logins struct {
	now   func() time.Time
	limit int

	mu sync.Mutex
	by *simplelru.LRU[netip.Prefix, *source] // the one that failed longest ago first
}

type source struct {
	from      netip.Prefix
	left      *rate.Limiter
	unwritten int // refusals since the last that is in the audit log
	refusing  bool
}

// newLogins returns a count that lets so many logins of an address fail; 0: the default.
func newLogins(limit int, now func() time.Time) *logins {
	if limit <= 0 {
		limit = maxFailedLogins
	}
	by, _ := simplelru.NewLRU[netip.Prefix, *source](maxSources, nil) // it refuses sizes below 1
	return &logins{now: now, limit: limit, by: by}
}

// sourceOf returns the network that an address and port count for; the zero one for
// what is no address.
func sourceOf(addr string) netip.Prefix {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(ip, bits).Masked()
}

// wait returns how long the address must wait before it may try again; 0: not at all.
func (l *logins) wait(addr string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.by.Peek(sourceOf(addr)); ok {
		return s.wait(l.now())
	}
	return 0
}

func (s *source) wait(now time.Time) time.Duration {
	missing := max(0, 1-s.left.TokensAt(now))
	return time.Duration(missing / float64(s.left.Limit()) * float64(time.Second))
}

// refusals are calls of an address that were refused and are in no line of the audit log.
type refusals struct {
	from  netip.Prefix
	count int
}

// takeRefusals returns the refusals of an address, once.
func (s *source) takeRefusals() refusals {
	r := refusals{s.from, s.unwritten}
	s.unwritten = 0
	return r
}

// fail counts a failure, and returns the calls that were refused since the one before; and
// of the address that is forgotten in its place, those that are written nowhere.
func (l *logins) fail(addr string) (before, forgotten refusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := sourceOf(addr)
	s, ok := l.by.Get(from)
	if !ok {
		if l.by.Len() == maxSources {
			_, old, _ := l.by.RemoveOldest()
			forgotten = old.takeRefusals()
		}
		s = &source{from: from, left: rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.limit)), l.limit)}
		l.by.Add(from, s)
	}
	s.left.AllowN(l.now(), 1)
	s.refusing = false
	return s.takeRefusals(), forgotten
}

// ended returns the refusals of an address whose limit is over, once.
func (l *logins) ended(addr string) (r refusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.by.Peek(sourceOf(addr)); ok && s.wait(l.now()) == 0 {
		r = s.takeRefusals()
	}
	return r
}

// all returns the refusals of every address, once.
func (l *logins) all() (list []refusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.by.Values() {
		list = append(list, s.takeRefusals())
	}
	return list
}

// again counts refusals that could not be written.
func (l *logins) again(r refusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.by.Peek(r.from); ok {
		s.unwritten += r.count
	}
}

// refused counts a call that was refused for the failures before it. The first of a row
// is to be written, so that nobody can fill the audit log by knocking; the others are
// counted.
func (l *logins) refused(addr string) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.by.Peek(sourceOf(addr))
	if !ok {
		return true
	}
	first, s.refusing = !s.refusing, true
	if !first {
		s.unwritten++
	}
	return first
}

// failed counts a failed login of a call, whose line tells the refusals before it.
func (s *Server) failed(c *call, source string) {
	before, forgotten := s.logins.fail(source)
	c.unwritten = before.count
	s.writeForgotten(forgotten)
}

// writeForgotten writes refusals down that nobody counts any more.
func (s *Server) writeForgotten(r refusals) {
	if err := s.writeRefusals(r); err != nil {
		s.Logger.Warn("refused calls of an address are not in the audit log", "source", r.String(), "calls", r.count, "error", err)
	}
}

// writeEnded writes down the refusals of an address whose limit is over, before a call of it
// that is no failed login and perhaps has no line.
func (s *Server) writeEnded(source string) {
	ended := s.logins.ended(source)
	if err := s.writeRefusals(ended); err != nil {
		s.logins.again(ended)
	}
}

// writeRefusals gives refusals a line of their own in the audit log.
func (s *Server) writeRefusals(r refusals) error {
	if r.count == 0 {
		return nil
	}
	return s.Audit.Write(audit.Entry{Time: s.Now().UTC(), Event: audit.EventRefused, Source: r.String(), Status: http.StatusTooManyRequests, Code: string(api.CodeRateLimited),
		Reason: "too many logins from there had failed", Unwritten: r.count}, false)
}

// String is the address of IPv4, or the network of IPv6; "" for what is no address.
func (r refusals) String() string {
	switch {
	case !r.from.IsValid():
		return ""
	case r.from.IsSingleIP():
		return r.from.Addr().String()
	}
	return r.from.String()
}

// tooMany refuses a call of an address from which too many logins failed.
func (s *Server) tooMany(c *call, source string, wait time.Duration) *fleet.Error {
	c.retryAfter = int(math.Ceil(wait.Seconds()))
	c.unaudited = !s.logins.refused(source)
	return fleet.Errorf(api.CodeRateLimited, "too many logins from this address failed; try again in %d seconds, with a token that is valid (kurad token list shows those there are)", c.retryAfter)
}
