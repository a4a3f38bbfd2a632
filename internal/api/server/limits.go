package server

import (
	"container/list"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
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

	mu     sync.Mutex
	recent *list.List // of *source, the latest failure first
	by     map[netip.Prefix]*list.Element
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
	return &logins{now: now, limit: limit, recent: list.New(), by: map[netip.Prefix]*list.Element{}}
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
	at, ok := l.by[sourceOf(addr)]
	if !ok {
		return 0
	}
	s := value(at)
	left := s.left.TokensAt(l.now())
	if left >= 1 {
		return 0
	}
	return time.Duration((1 - left) / float64(s.left.Limit()) * float64(time.Second))
}

// fail counts a failure, and returns how many calls were refused since the one before.
func (l *logins) fail(addr string) (unwritten int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := sourceOf(addr)
	at, ok := l.by[from]
	if !ok {
		if l.recent.Len() == maxSources {
			oldest := l.recent.Back()
			delete(l.by, value(oldest).from)
			l.recent.Remove(oldest)
		}
		at = l.recent.PushFront(&source{from: from, left: rate.NewLimiter(rate.Every(time.Minute/time.Duration(l.limit)), l.limit)})
		l.by[from] = at
	}
	l.recent.MoveToFront(at)
	s := value(at)
	s.left.AllowN(l.now(), 1)
	unwritten, s.unwritten, s.refusing = s.unwritten, 0, false
	return unwritten
}

// refused counts a call that was refused for the failures before it. The first of a row
// is to be written, so that nobody can fill the audit log by knocking; the others are
// counted.
func (l *logins) refused(addr string) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.by[sourceOf(addr)]
	if !ok {
		return true
	}
	s := value(at)
	first, s.refusing = !s.refusing, true
	if !first {
		s.unwritten++
	}
	return first
}

func value(e *list.Element) *source {
	s, _ := e.Value.(*source) // nothing else is ever put in
	return s
}

// tooMany refuses a call of an address from which too many logins failed.
func (s *Server) tooMany(c *call, source string, wait time.Duration) error {
	c.retryAfter = int(math.Ceil(wait.Seconds()))
	c.unaudited = !s.logins.refused(source)
	return &fleet.Error{Code: api.CodeRateLimited, Message: fmt.Sprintf(
		"too many logins from this address failed; try again in %d seconds, with a token that is valid (kurad token list shows those there are)", c.retryAfter)}
}
