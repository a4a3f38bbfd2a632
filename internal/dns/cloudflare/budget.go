package cloudflare

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// share is what part of the budget a call uses.
type share int

const (
	changes     share = iota // changes, and what is read for them
	observation              // rounds of listings
)

// Cloudflare's limits, until an answer says otherwise (API documentation, rate limits).
const (
	defaultQuota  = 1200 // calls of a user in a window, over all tokens
	defaultWindow = 5 * time.Minute
	// spacing between two calls of a share keeps a burst below 200 calls a second of one address.
	spacing = 10 * time.Millisecond
)

const (
	// blindPause is how long nothing is called after a rate limit that does not say for how long:
	// Cloudflare blocks for five minutes, others on its way for less.
	blindPause = time.Minute
	maxPause   = time.Hour // what an answer can ask for
)

// budget is how often a token may be used. What it promises: in every window that lasts as long as
// Cloudflare's, wherever it begins, at most four fifths of the quota are used.
type budget struct {
	mu     sync.Mutex
	quota  int
	window time.Duration
	sent   [2][]time.Time // when the calls of each share were let go, or will be; ascending
	held   time.Time      // nothing is let go before
}

func newBudget() *budget { return &budget{quota: defaultQuota, window: defaultWindow} }

// places is how many calls a share has in a window.
func (b *budget) places(s share) int {
	ours := b.quota * 4 / 5
	if s == observation {
		return max(1, ours/4)
	}
	return max(1, ours-ours/4)
}

// reserve takes the next place of the share. It takes none where that is after latest.
func (b *budget) reserve(s share, now, latest time.Time) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sent, at := b.sent[s], later(now, b.held)
	for len(sent) > 0 && sent[0].Add(b.window).Before(now) {
		sent = sent[1:]
	}
	if n := b.places(s); len(sent) >= n {
		at = later(at, sent[len(sent)-n].Add(b.window))
	}
	if len(sent) > 0 {
		at = later(at, sent[len(sent)-1].Add(spacing))
	}
	if at.After(latest) {
		return at, false
	}
	b.sent[s] = append(sent, at)
	return at, true
}

// wait lets the caller go when it is its turn. Where that is after ctx's deadline, it returns at once
// in how long it would be.
func (b *budget) wait(ctx context.Context, s share) (after time.Duration, ok bool) {
	latest, limited := ctx.Deadline()
	if !limited {
		latest = time.Now().Add(callWithin)
	}
	at, ok := b.reserve(s, time.Now(), latest)
	for ok && time.Until(at) > 0 {
		turn := time.NewTimer(time.Until(at))
		select {
		case <-turn.C:
		case <-ctx.Done():
			turn.Stop()
			return max(0, time.Until(at)), false
		}
		at = b.heldUntil() // by an answer that came meanwhile
		ok = !at.After(latest)
	}
	return max(0, time.Until(at)), ok
}

func (b *budget) heldUntil() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

func (b *budget) hold(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = later(b.held, until)
}

// heard takes an answer's account of the budget: Ratelimit-Policy `"default";q=1200;w=300` and
// Ratelimit `"default";r=50;t=30` (draft-ietf-httpapi-ratelimit-headers). When others have used so
// much that only their fifth is left, nothing is called until the window ends.
func (b *budget) heard(h http.Header, now time.Time) {
	for policy := range strings.SplitSeq(h.Get("Ratelimit-Policy"), ",") {
		p := params(policy)
		if quota, window := p["q"], time.Duration(p["w"])*time.Second; quota > 0 && window > 0 && window <= maxPause {
			b.mu.Lock()
			b.quota, b.window = quota, window
			b.mu.Unlock()
		}
	}
	for state := range strings.SplitSeq(h.Get("Ratelimit"), ",") {
		p := params(state)
		left, counted := p["r"]
		b.mu.Lock()
		theirs := b.quota - b.quota*4/5
		b.mu.Unlock()
		if counted && left < theirs {
			b.hold(now.Add(pause(p["t"])))
		}
	}
}

// limited notes that Cloudflare refused a call for the rate, and returns when the next one may be.
func (b *budget) limited(h http.Header, now time.Time) time.Duration {
	after := blindPause
	text := h.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		after = min(max(time.Second, at.Sub(now)), maxPause)
	} else if seconds, err := strconv.Atoi(text); err == nil {
		after = pause(max(1, seconds))
	}
	b.hold(now.Add(after))
	return after
}

// params reads the numbers of an item of a structured header: "name";a=1;b=2.
func params(item string) map[string]int {
	found := map[string]int{}
	for part := range strings.SplitSeq(item, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && n <= 1e9 {
			found[name] = n
		}
	}
	return found
}

func pause(seconds int) time.Duration {
	return time.Duration(min(max(0, seconds), int(maxPause/time.Second))) * time.Second
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
