package projection

import (
	"hash/fnv"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Times of the rules.
const (
	maxRetry     = 10 * time.Minute // P9: between attempts
	maxFirst     = time.Minute      // P9: between attempts in the first hour
	minRetry     = time.Second      // P9: after the first one that failed
	minSwap      = time.Minute      // P9: where that took down what serves
	firstTries   = time.Hour
	maxRestart   = time.Minute      // C11: between restarts
	maxTaskRetry = time.Minute      // S5: between tries of one task
	quickExit    = 10 * time.Second // C11
	stableRun    = 10 * time.Second // what ends a crash loop

	triesWhileDown = 3 // of a task that does not succeed while what served is stopped (C14)

	recordedWithin = 30 * time.Second // of a task's deadline its end is stored
)

// startClock counts for a cause; while it counts already, the first cause stays.
func startClock(c *fleet.StallClock, cause fleet.Cause, now time.Time) {
	if c.Cause == "" {
		c.Cause = cause
	}
	if c.Since == nil && !c.Expired {
		c.Since = &now
	}
}

// stopClock keeps what was counted (P10).
func stopClock(c *fleet.StallClock, now time.Time) {
	if c.Since == nil {
		return
	}
	c.Accrued += fleet.Duration(now.Sub(*c.Since))
	c.Since = nil
}

// clockStands reports whether time does not count now: under a hold, and while the ownership
// of what it is to be reached by cannot be read (P10). Of a host that nobody publishes, or
// whose record is encrypted, that was read, and waiting longer than others says so.
func (in Input) clockStands(hs []fleet.Hold) bool {
	return len(hs) > 0 && in.rule(RuleClockHeld) || in.Intent.Deleting == nil && in.unknownOwner()
}

// expiry returns when the clock will have counted to limit; nil while it stands.
func expiry(c fleet.StallClock, limit time.Duration) *time.Time {
	if c.Since == nil {
		return nil
	}
	at := c.Since.Add(limit - c.Accrued.Std())
	return &at
}

// backoff doubles from least to most, spread by up to a fifth so that servers
// that failed together do not come back together.
func backoff(n int, least, most time.Duration, key string) time.Duration {
	d := least
	for i := 1; i < n && d < most; i++ {
		d *= 2
	}
	d = min(d, most)
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return d - d/5*time.Duration(h.Sum32()%100)/100
}

// crashDelay is the pause before a container that ended quickly n times is started
// again (C11); the first exit costs none.
func crashDelay(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	d := time.Second
	for i := 2; i < n && d < maxRestart; i++ {
		d *= 2
	}
	return min(d, maxRestart)
}
