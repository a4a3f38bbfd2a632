package cloudflare

import (
	"fmt"
	"math"
	"net/http"
	"time"
)

// LimitForm is how the API says that somebody called too often.
type LimitForm string

// The forms that are known: the API documentation's, and two of older answers (issues 2135 of external-dns and 153
// of cloud-inquisitor), whose status is any 4xx and which do not say when to come back.
const (
	FormRetryAfter LimitForm = "429"   // 429 with Retry-After
	Form10100      LimitForm = "10100" // 400 with code 10100
	Form10300      LimitForm = "10300" // 403 with code 10300
)

// Limit is the budget of a user, over all of the user's tokens.
type Limit struct {
	Calls  int           `json:"calls"` // 1,200 by default; below 0: any number
	Window time.Duration `json:"-"`     // 5 minutes by default
	Form   LimitForm     `json:"form"`  // FormRetryAfter by default
}

func (l Limit) orDefault() Limit {
	if l.Calls == 0 {
		l.Calls = 1200
	}
	if l.Window == 0 {
		l.Window = 5 * time.Minute
	}
	if l.Form == "" {
		l.Form = FormRetryAfter
	}
	return l
}

// SetLimit changes the budget; windows that have begun go on.
func (e *Emulator) SetLimit(limit Limit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.limit = limit.orDefault()
}

// budget is what a user has used of one window.
type budget struct {
	until time.Time
	calls int
}

// spend takes one call from the user's budget. Who exceeds it is blocked for the whole window that follows, not
// until the old one ends: "all API calls for the next five minutes will be blocked" (API documentation, rate limits).
// The headers are those of the IETF draft: they come with every answer, Retry-After only with a refusal
// (Cloudflare's changelog of 2025-09-03).
func (e *Emulator) spend(user string, header http.Header) *failure {
	if e.limit.Calls < 0 {
		return nil
	}
	now := e.now()
	b := e.users[user]
	if b == nil || !now.Before(b.until) {
		b = &budget{until: now.Add(e.limit.Window)}
		e.users[user] = b
	}
	b.calls++
	if b.calls == e.limit.Calls+1 {
		b.until = now.Add(e.limit.Window)
	}
	left := int(math.Ceil(b.until.Sub(now).Seconds()))
	header.Set("Ratelimit", fmt.Sprintf(`"default";r=%d;t=%d`, max(0, e.limit.Calls-b.calls), left))
	header.Set("Ratelimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, e.limit.Calls, int(e.limit.Window.Seconds())))
	if b.calls <= e.limit.Calls {
		return nil
	}
	e.counters.Limited++
	return limited(e.limit.Form, left, header)
}

// limited is a refusal in one of its forms; left are the seconds until more is allowed.
func limited(form LimitForm, left int, header http.Header) *failure {
	switch form {
	case Form10100:
		return &failure{status: http.StatusBadRequest, Code: 10100, Message: "More than 1200 requests per 300 seconds reached. Please wait and consider throttling your request speed"}
	case Form10300:
		return &failure{status: http.StatusForbidden, Code: 10300, Message: "rate limit exceeded"}
	case FormRetryAfter:
	}
	header.Set("Retry-After", fmt.Sprint(left))
	return &failure{status: http.StatusTooManyRequests, Code: 971, Message: "Please wait and consider throttling your request speed"}
}
