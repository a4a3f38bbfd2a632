package dns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
)

// listed is a zone's API that is listed only, late, and counts.
type listed struct {
	API
	mu      sync.Mutex
	listing Listing
	err     error
	noPools error // load balancers cannot be listed
	lacks   []string
	begun   []time.Time
}

func (l *listed) List(ctx context.Context, parts Parts) (Listing, error) {
	l.mu.Lock()
	l.begun = append(l.begun, time.Now())
	is, err := l.listing, l.err
	if parts.Balancers && err == nil {
		err = l.noPools
	}
	l.mu.Unlock()
	select {
	case <-time.After(200 * time.Millisecond): // the bubble's
	case <-ctx.Done():
		return Listing{}, ctx.Err()
	}
	return is, err
}

func (l *listed) Permissions(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lacks, l.err
}

func (l *listed) with(change func()) { l.mu.Lock(); defer l.mu.Unlock(); change() }

func (l *listed) calls() []time.Time { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.begun) }

// watched is a Watch of kura.test by its API, and of asked.test by queries, with who hears of news.
type watched struct {
	*Watch
	api  *listed
	mu   sync.Mutex
	news map[fleet.ServerKey]int
	read func(host string) ([]fleet.DNSRecord, error)
	asks int
}

func watching(t *testing.T, test func(t *testing.T, w *watched)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		env, err := fleet.NewEnvironment("staging", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &watched{api: &listed{}, news: map[fleet.ServerKey]int{}, read: func(string) ([]fleet.DNSRecord, error) { return nil, nil }}
		w.Watch = NewWatch(WatchConfig{
			Environment: env, Zones: Zones{{Domain: "kura.test", Name: "kura", Token: "/token"}, {Domain: "asked.test", Name: "asked"}},
			APIs: map[string]API{"kura.test": w.api}, Now: time.Now, Log: hclog.NewNullLogger(),
			Read: func(_ context.Context, _ Zone, host string) ([]fleet.DNSRecord, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.asks++
				return w.read(host)
			},
			Queries: func(ask func(context.Context, Question) fleet.HostRead, changed func(fleet.ServerKey)) Queries {
				return readiness.NewWatcher(ask, changed, readiness.Pace{Converged: 5 * time.Minute})
			},
			Changed: func(key fleet.ServerKey) { w.mu.Lock(); defer w.mu.Unlock(); w.news[key]++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		test(t, w)
	})
}

func (w *watched) heard() (n int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.news {
		n += times
	}
	return n
}

func (w *watched) asked() int { w.mu.Lock(); defer w.mu.Unlock(); return w.asks }

func pass(d time.Duration) { time.Sleep(d); synctest.Wait() } // the bubble's

func server(account string) fleet.ServerKey { return fleet.ServerKey{Account: account, Region: "eu"} }

func hostsWish(zone, account string, change ...func(*fleet.HostsWish)) fleet.HostsWish {
	w := fleet.HostsWish{Owner: "staging", Resource: fleet.ResourceOf("staging", server(account)), Hosts: []string{account + "-eu-staging." + zone}}
	for _, c := range change {
		c(&w)
	}
	return w
}

func pendingWish(w *fleet.HostsWish) { w.Pending = true }

// published are the records of a host as its owner's external-dns wrote them.
func published(host, owner string) []fleet.DNSRecord {
	return []fleet.DNSRecord{
		{ID: "1" + host, Name: host, Type: "A", Content: "192.0.2.1"},
		{ID: "2" + host, Name: "a-" + host, Type: "TXT", Content: "heritage=external-dns,external-dns/owner=" + owner},
	}
}

func fleetOf(n int, owner string) (l Listing) {
	for i := range n {
		l.Records = append(l.Records, published(fmt.Sprintf("a%d-eu-staging.kura.test", i), owner)...)
	}
	return l
}

// Whatever waits for it, a listing answers everyone at once, and a fleet at rest hears nothing more.
func TestD7_aSteadyZoneOf10000HostsTakesUnder12CallsIn5Minutes(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		const hosts = 10_000
		w.api.with(func() { w.api.listing = fleetOf(hosts, "staging") })
		for i := range hosts {
			account := fmt.Sprint("a", i)
			w.Set(server(account), hostsWish("kura.test", account, pendingWish))
		}
		pass(10 * time.Second)
		if n := w.heard(); n != hosts {
			t.Fatalf("%d heard of %d servers' hosts", n, hosts)
		}
		for i := range hosts {
			account := fmt.Sprint("a", i)
			if r := w.Latest(server(account)).Hosts[account+"-eu-staging.kura.test"]; r.Ownership != fleet.OwnershipOurs || r.Failure != nil {
				t.Fatalf("%s: %+v", account, r)
			}
			w.Set(server(account), hostsWish("kura.test", account))
		}
		pass(time.Minute)
		from := len(w.api.calls())
		pass(time.Hour)
		calls := w.api.calls()[from:]
		const each = hosts*2/perPage + 2 // pages of records, balancers and pools
		for i := range calls {
			n := 0
			for _, at := range calls[i:] {
				if at.Sub(calls[i]) < 5*time.Minute {
					n += each
				}
			}
			if n >= 12 {
				t.Fatalf("%d calls within five minutes of %s", n, calls[i])
			}
		}
		if len(calls) < 8 {
			t.Errorf("it was listed %d times in an hour", len(calls))
		}
		if n := w.heard(); n != hosts {
			t.Errorf("%d heard of news where there was none", n-hosts)
		}
	})
}

// An hour of outage is two pieces of news, and few calls.
func TestD5_aZoneThatCannotBeListedKeepsWhatWasRead(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.listing = fleetOf(5, "staging") })
		host := "a1-eu-staging.kura.test"
		w.Set(server("a1"), hostsWish("kura.test", "a1"))
		pass(time.Minute)
		heard, times := w.heard(), len(w.api.calls())
		down := time.Now()
		w.api.with(func() {
			w.api.err = &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, Message: "429", After: 90 * time.Second}
		})
		pass(time.Hour)
		r := w.Latest(server("a1")).Hosts[host]
		if r.Ownership != fleet.OwnershipOurs || r.Failure == nil || r.Failure.Reason != fleet.ReasonRateLimited || r.Failure.Count < 10 || r.Failure.Since.Before(down) || !r.Begun.Before(down) {
			t.Errorf("it is %+v (%+v)", r, r.Failure)
		}
		if n := w.heard() - heard; n != 1 {
			t.Errorf("%d pieces of news in the outage", n)
		}
		if n := len(w.api.calls()) - times; n > 41 {
			t.Errorf("%d listings in an hour of 429 with Retry-After 90", n)
		}
		if reason, text := w.Trouble(); reason != fleet.ReasonRateLimited || !strings.Contains(strings.Join(text, ""), "zone kura: 429") {
			t.Errorf("trouble is %s %q", reason, text)
		}
		w.api.with(func() { w.api.err = nil })
		pass(2 * time.Minute)
		if r := w.Latest(server("a1")).Hosts[host]; r.Failure != nil || r.Begun.Before(down) || w.heard() != heard+2 {
			t.Errorf("after it, it is %+v, %d pieces of news", r, w.heard()-heard)
		}
	})
}

// One failure between two answers is nobody's news.
func TestD5_oneListingThatFailsIsNoNews(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.listing = fleetOf(5, "staging") })
		w.Set(server("a1"), hostsWish("kura.test", "a1"))
		pass(time.Minute)
		heard, times := w.heard(), len(w.api.calls())
		w.api.with(func() { w.api.err = errors.New("connection reset") })
		for len(w.api.calls()) == times {
			pass(100 * time.Millisecond)
		}
		pass(time.Second)
		w.api.with(func() { w.api.err = nil })
		pass(10 * time.Minute)
		if w.heard() != heard {
			t.Errorf("%d pieces of news", w.heard()-heard)
		}
	})
}

// What waits for a read that begins after an effect has one within seconds, 500 of them together,
// and an ?observe=now too.
func TestR2_whoWaitsForAFreshListingHasItWithinSeconds(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.listing = fleetOf(500, "staging") })
		for i := range 500 {
			w.Set(server(fmt.Sprint("a", i)), hostsWish("kura.test", fmt.Sprint("a", i)))
		}
		pass(2 * time.Minute)
		heard, times := w.heard(), len(w.api.calls())
		since := time.Now()
		for i := range 500 {
			w.Set(server(fmt.Sprint("a", i)), hostsWish("kura.test", fmt.Sprint("a", i), func(wish *fleet.HostsWish) { wish.Fresh = true }))
		}
		pass(2 * kickedAfter)
		for i := range 500 {
			if r := w.Latest(server(fmt.Sprint("a", i))).Hosts[fmt.Sprintf("a%d-eu-staging.kura.test", i)]; r.Begun.Before(since) {
				t.Fatalf("a%d was read %s before", i, since.Sub(r.Begun))
			}
		}
		if n, m := w.heard()-heard, len(w.api.calls())-times; n != 500 || m > 2 {
			t.Errorf("%d heard, by %d listings", n, m)
		}
		since = time.Now()
		if err := w.Now(t.Context(), server("a7")); err != nil || time.Since(since) > 2*kickedAfter {
			t.Errorf("%v after %s", err, time.Since(since))
		}
		if r := w.Latest(server("a7")).Hosts["a7-eu-staging.kura.test"]; r.Begun.Before(since) {
			t.Error("it is an older read")
		}
	})
}

// A host that somebody takes over, and one in no zone that was given.
func TestD3_whatAZoneSaysOfAHostIsNewsWhenItDiffers(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.listing = fleetOf(9, "staging") })
		wish := hostsWish("kura.test", "a1", func(wish *fleet.HostsWish) { wish.Hosts = append(wish.Hosts, "a1.elsewhere.test") })
		w.Set(server("a1"), wish)
		pass(time.Minute)
		if r := w.Latest(server("a1")).Hosts["a1.elsewhere.test"]; r.Ownership != fleet.OwnershipUnknown || r.Failure == nil || !strings.Contains(r.Failure.Message, "--zone") {
			t.Errorf("in no zone: %+v", r)
		}
		heard := w.heard()
		w.api.with(func() {
			w.api.listing.Records = append(slices.Clone(w.api.listing.Records), fleet.DNSRecord{ID: "x", Name: "a-a1-eu-staging.kura.test", Type: "TXT", Content: "heritage=external-dns,external-dns/owner=production"})
		})
		pass(2 * time.Minute)
		if r := w.Latest(server("a1")).Hosts["a1-eu-staging.kura.test"]; r.Ownership != fleet.OwnershipForeign || w.heard() != heard+1 {
			t.Errorf("taken over it is %+v, %d pieces of news", r, w.heard()-heard)
		}
		w.Set(server("a1"), fleet.HostsWish{})
		if r := w.Latest(server("a1")); len(r.Hosts) != 0 {
			t.Errorf("of a server that is gone there is %+v", r)
		}
	})
}

// A zone without a token: fast while a gate waits, slowly after, and no turn for the same answer
// again. A server that does not answer keeps what was read.
func TestD3_P16_aHostThatIsAskedForIsReadAtThePaceOfItsState(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		owner, err := "production", error(nil)
		w.read = func(host string) ([]fleet.DNSRecord, error) { return published(host, owner), err }
		with := func(o string, e error) { w.mu.Lock(); defer w.mu.Unlock(); owner, err = o, e }
		host := "a1-eu-staging.asked.test"
		w.Set(server("a1"), hostsWish("asked.test", "a1", pendingWish))
		pass(10 * time.Second)
		if n := w.asked(); n < 9 || n > 11 || w.heard() != 1 {
			t.Errorf("%d reads and %d pieces of news in 10 s", n, w.heard())
		}
		with("staging", nil)
		pass(10 * time.Second)
		if r := w.Latest(server("a1")).Hosts[host]; r.Ownership != fleet.OwnershipOurs || w.heard() != 2 {
			t.Errorf("ours it is %+v, %d pieces of news", r, w.heard())
		}
		w.Set(server("a1"), hostsWish("asked.test", "a1"))
		n := w.asked()
		pass(time.Hour)
		if n = w.asked() - n; n < 9 || n > 16 || w.heard() != 2 {
			t.Errorf("%d reads and %d pieces of news in an hour at rest", n, w.heard())
		}
		with("staging", errors.New("SERVFAIL"))
		pass(20 * time.Minute)
		if r := w.Latest(server("a1")).Hosts[host]; r.Ownership != fleet.OwnershipOurs || r.Failure == nil || r.Failure.Count < 2 || w.heard() != 3 {
			t.Errorf("of a zone that fails it is %+v, %d pieces of news", r, w.heard())
		}
		with("staging", nil)
		pass(time.Minute)
		if r := w.Latest(server("a1")).Hosts[host]; r.Failure != nil || w.heard() != 4 {
			t.Errorf("after it, it is %+v, %d pieces of news", r, w.heard())
		}
	})
}

func TestD7_whatATokenLacksIsNamedAtTheStart(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.lacks = []string{"DNS:Edit"} })
		pass(time.Hour) // the one at the start was before
		reason, text := w.Trouble()
		if reason != fleet.ReasonZoneForbidden || len(text) != 1 || !strings.Contains(text[0], "zone kura: its token lacks DNS:Edit") {
			t.Errorf("%s %q", reason, text)
		}
		if n := len(w.api.calls()); n != 0 {
			t.Errorf("a zone of which nobody follows a host was listed %d times", n)
		}
		w.api.with(func() { w.api.lacks = nil })
		pass(mayAgain + roundSlowest)
		if reason, text := w.Trouble(); reason != "" {
			t.Errorf("%s %q", reason, text)
		}
	})
}

// A token that may read records alone, or a zone that is not subscribed to load balancing, keeps a
// server from its pool, and nobody from anything else.
func TestD2_loadBalancersThatCannotBeReadHideNoRecords(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		const global = "acme-staging.kura.test"
		w.api.with(func() {
			w.api.listing = fleetOf(2, "staging")
			w.api.noPools = &Error{Class: fleet.ClassRefused, Reason: fleet.ReasonNotSubscribed, Answered: true, Message: "load balancing is not enabled"}
		})
		w.Set(server("a0"), hostsWish("kura.test", "a0", func(h *fleet.HostsWish) { h.Global = global; h.Hosts = append(h.Hosts, global) }))
		w.Set(server("a1"), hostsWish("kura.test", "a1", pendingWish))
		pass(5 * time.Minute)
		for _, account := range []string{"a0", "a1"} {
			if r := w.Latest(server(account)).Hosts[account+"-eu-staging.kura.test"]; r.Ownership != fleet.OwnershipOurs || r.Failure != nil {
				t.Errorf("%s: %s, %+v", account, r.Ownership, r.Failure)
			}
		}
		read := w.Latest(server("a0"))
		if read.Pool.Failure == nil || read.Pool.Failure.Reason != fleet.ReasonNotSubscribed || read.Hosts[global].Failure == nil {
			t.Errorf("nobody says why the pool is not known: %+v, %+v", read.Pool, read.Hosts[global])
		}
		if z := w.Known(t.Context())[0]; z.Index == nil || z.Failure == nil || z.Failure.Reason != fleet.ReasonNotSubscribed {
			t.Errorf("an audit takes load balancers that cannot be listed for none: %+v", z.Failure) // D5
		}
		heard := w.heard()
		pass(10 * time.Minute)
		if again := w.heard(); again != heard {
			t.Errorf("what fails on was news %d times", again-heard)
		}
		w.api.with(func() { w.api.noPools = nil })
		pass(10 * time.Minute)
		if read := w.Latest(server("a0")); read.Pool.Failure != nil || read.Hosts[global].Failure != nil || w.heard() == heard {
			t.Errorf("it heals, and %+v is said", read.Pool)
		}
		if z := w.Known(t.Context())[0]; z.Failure != nil {
			t.Errorf("it heals, and an audit says %+v", z.Failure)
		}
	})
}

// Whoever may read may ask for audits all the time: of a zone of which nobody follows a host, too.
func TestD7_auditsThatAreAskedForInALoopListNoMoreOftenThanAFleet(t *testing.T) {
	watching(t, func(t *testing.T, w *watched) {
		w.api.with(func() { w.api.listing = fleetOf(20_000, "somebody") })
		for end := time.Now().Add(time.Hour); time.Now().Before(end); pass(time.Second) {
			if z := w.Known(t.Context())[0]; z.Index == nil || time.Since(z.Index.begun) > roundSlowest+5*time.Second {
				t.Fatalf("it is known of %+v", z.Failure)
			}
		}
		if n := len(w.api.calls()); n > 13 {
			t.Errorf("%d listings in an hour", n)
		}
	})
}
