package api

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-retryablehttp"
)

const (
	retryMax      = 5 // attempts after the first
	retryNobody   = 3 // of them, while nobody has ever answered: 1 to 2 s in all
	retryWaitMin  = 250 * time.Millisecond
	retryWaitMax  = 8 * time.Second
	maxRetryAfter = 60 * time.Second // a daemon that asks for more gets the error returned
)

// repeatable says when a request may be sent again.
type repeatable int

const (
	never repeatable = iota
	// unsent: only where the first attempt certainly changed nothing. A conditional
	// write that did succeed would fail its own condition the second time.
	unsent
	always
)

// attempts are those of one request, which decide whether another follows.
type attempts struct {
	repeat    repeatable
	once      bool         // an attempt that got no answer is the last
	answered  *atomic.Bool // whether anybody has ever answered at the endpoint
	unreached int          // of them, those that found nobody there
}

type attemptsKey struct{}

func retrying(transport http.RoundTripper, timeout time.Duration, log hclog.Logger) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport: transport,
			Timeout:   timeout,
			// A redirect would carry the token to an address nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Logger:       attemptLog{log},
		RetryMax:     retryMax,
		RetryWaitMin: retryWaitMin,
		RetryWaitMax: retryWaitMax,
		CheckRetry:   shouldRetry,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

func shouldRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	k, ok := ctx.Value(attemptsKey{}).(*attempts)
	if !ok {
		return false, nil
	}
	if err == nil {
		k.answered.Store(true)
	}
	switch {
	case k.repeat == never, err != nil && k.once:
		return false, nil
	case err != nil && notSent(err):
		// Who answered before is taken to restart, and is waited for. Where nobody ever
		// did, the address is wrong or nothing runs there: that is to be said at once.
		k.unreached++
		return k.answered.Load() || k.unreached <= retryNobody, nil
	case err != nil:
		return k.repeat == always && !permanent(err), nil
	}
	if retryAfter(resp) > maxRetryAfter {
		return false, nil
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true, nil
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return k.repeat == always, nil
	}
	return false, nil
}

// notSent reports whether err came before a byte of the request left.
func notSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// permanent reports errors that a second attempt would only repeat.
func permanent(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// attemptLog lowers what retryablehttp says of single attempts: the error that ends
// them is returned.
type attemptLog struct{ log hclog.Logger }

func (l attemptLog) Error(msg string, args ...any) { l.log.Debug(msg, args...) }
func (l attemptLog) Warn(msg string, args ...any)  { l.log.Debug(msg, args...) }
func (l attemptLog) Info(msg string, args ...any)  { l.log.Debug(msg, args...) }
func (l attemptLog) Debug(msg string, args ...any) { l.log.Trace(msg, args...) }

func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	if after := retryAfter(resp); after > 0 {
		return after
	}
	wait := most
	if attempt < 16 {
		wait = min(most, least<<attempt)
	}
	return wait/2 + rand.N(wait/2+1)
}

// retryAfter reads the header as seconds or as a date; 0 where there is none.
func retryAfter(resp *http.Response) time.Duration {
	if resp == nil {
		return 0
	}
	h := resp.Header.Get("Retry-After")
	if h == "" {
		return 0
	}
	if s, err := strconv.Atoi(h); err == nil {
		return max(0, time.Duration(min(s, 24*3600))*time.Second)
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
