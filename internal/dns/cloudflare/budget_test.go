package cloudflare

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// let lets calls of both shares go as fast as the budget allows, for so long, and returns when.
func let(b *budget, begin time.Time, d time.Duration) (all []time.Time) {
	for _, s := range []share{changes, observation} {
		for at, ok := b.reserve(s, begin, begin.Add(d)); ok; at, ok = b.reserve(s, at, begin.Add(d)) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func TestD7_noWindowHasMoreThanFourFifthsOfTheQuota(t *testing.T) {
	b, begin := newBudget(), time.Now()
	all := let(b, begin, 3*defaultWindow)
	for i := range all {
		if j := i + 960; j < len(all) && all[j].Sub(all[i]) < defaultWindow {
			t.Fatalf("961 calls within %s", all[j].Sub(all[i]))
		}
	}
	if len(all) < 3*960 {
		t.Errorf("%d calls in three windows: the budget is not used", len(all))
	}
	for i := 1; i < len(all); i++ {
		if n := i - 200; n >= 0 && all[i].Sub(all[n]) < time.Second {
			t.Fatal("more than 200 calls a second")
		}
	}
}

func TestD7_aShareThatIsUsedUpLeavesTheOther(t *testing.T) {
	for _, greedy := range []share{changes, observation} {
		b, now := newBudget(), time.Now()
		for at, ok := now, true; ok; at, ok = b.reserve(greedy, at, now.Add(defaultWindow-time.Second)) {
		}
		if at, ok := b.reserve(1-greedy, now.Add(time.Minute), now.Add(time.Minute)); !ok {
			t.Errorf("share %d waits until %s", 1-greedy, at.Sub(now))
		}
	}
}

func TestBudget_followsWhatAnswersSay(t *testing.T) {
	b, now := newBudget(), time.Now()
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	b.heard(header("Ratelimit-Policy", `"burst";q=100;w=60`, "Ratelimit", `"burst";r=20;t=30`), now)
	if b.quota != 100 || b.window != time.Minute || b.places(changes)+b.places(observation) != 80 {
		t.Errorf("a policy of 100 in 60 s: %d places in %s", b.places(changes)+b.places(observation), b.window)
	}
	if b.held.After(now) {
		t.Error("with the others' fifth left and all of ours used, nothing is held")
	}
	b.heard(header("Ratelimit", `"burst";r=19;t=30`), now)
	if got := b.held.Sub(now); got != 30*time.Second {
		t.Errorf("into the others' fifth: held for %s, want 30s", got)
	}
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": time.Second, "": blindPause, "x": blindPause, "999999999": maxPause, "-5": time.Second,
		now.Add(90 * time.Second).UTC().Format(http.TimeFormat): 90 * time.Second,
	} {
		if got := b.limited(header("Retry-After", text), now); got > want || got < want-time.Second {
			t.Errorf("Retry-After %q: %s, want %s", text, got, want)
		}
	}
	for _, lie := range []string{`"a";q=-1;w=5`, `"a";q=5;w=0`, `"a";q=5;w=99999999999999`, ";;=;q;w=", `"a";q=0;w=0`} {
		b.heard(header("Ratelimit-Policy", lie), now)
		if b.quota != 100 || b.window != time.Minute {
			t.Errorf("believed %q", lie)
		}
	}
}

func TestBudget_whoCannotBeServedBeforeTheDeadlineIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, begin := newBudget(), time.Now()
		b.hold(begin.Add(time.Minute))
		short, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		if after, ok := b.wait(short, changes); ok || after != time.Minute || time.Since(begin) != 0 {
			t.Errorf("got %v after %s, %s to wait; want a refusal at once, a minute to wait", ok, time.Since(begin), after)
		}
		long, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if _, ok := b.wait(long, changes); !ok || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %s, want true after a minute", ok, time.Since(begin))
		}
	})
}

func TestBudget_whatComesWhileOneWaitsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, begin := newBudget(), time.Now()
		b.hold(begin.Add(10 * time.Second))
		time.AfterFunc(5*time.Second, func() { b.hold(begin.Add(20 * time.Second)) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, ok := b.wait(ctx, changes); !ok || time.Since(begin) != 20*time.Second {
			t.Errorf("got %v after %s, want true after 20s", ok, time.Since(begin))
		}
		b.hold(time.Now().Add(10 * time.Second))
		time.AfterFunc(5*time.Second, func() { b.hold(begin.Add(time.Hour)) })
		if after, ok := b.wait(ctx, changes); ok || after < 59*time.Minute {
			t.Errorf("got %v, %s to wait; want a refusal, most of an hour to wait", ok, after)
		}
	})
}
