package readiness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// endpoints is a fleet that answers as it is told and notes who asked when.
type endpoints struct {
	mu       sync.Mutex
	reason   map[string]fleet.Reason // by url; unset: Ready
	message  string
	takes    time.Duration
	begun    map[string][]time.Time
	underway int
	most     int
	changed  map[string]int
}

func newEndpoints() *endpoints {
	return &endpoints{reason: map[string]fleet.Reason{}, begun: map[string][]time.Time{}, changed: map[string]int{}}
}

func (e *endpoints) probe(ctx context.Context, t Target) fleet.ProbeObservation {
	e.mu.Lock()
	begun, takes := time.Now(), e.takes
	if strings.Contains(t.URL, "dead") {
		takes = MaxTimeout
	}
	e.begun[t.URL] = append(e.begun[t.URL], begun)
	e.underway++
	e.most = max(e.most, e.underway)
	e.mu.Unlock()
	if takes > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(takes):
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.underway--
	seen := fleet.ProbeObservation{URL: t.URL, Begun: begun, Reason: e.reason[t.URL], Message: e.message}
	if seen.Reason == "" {
		seen.Reason = fleet.ReasonReady
	}
	seen.Ready = seen.Reason == fleet.ReasonReady
	return seen
}

func (e *endpoints) news(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed[key]++
}

// set changes what the endpoints do.
func (e *endpoints) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// answer makes url answer with reason from now on.
func (e *endpoints) answer(url string, reason fleet.Reason) {
	e.set(func() { e.reason[url] = reason })
}

// probes returns how often url was asked, and forgets it.
func (e *endpoints) probes(url string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.begun[url])
	delete(e.begun, url)
	return n
}

// newsOf returns how often key had news, and forgets it.
func (e *endpoints) newsOf(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.changed[key]
	delete(e.changed, key)
	return n
}

// watched runs test in a bubble of fake time with a running watcher.
func watched(t *testing.T, pace Pace, test func(t *testing.T, w *Endpoints[string], e *endpoints)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoints()
		w := NewWatcher(e.probe, e.news, pace)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		test(t, w, e)
	})
}

// pass lets fake time pass and everything that is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

const regional = "https://acme-eu.kura.test"

var one = []Target{{URL: regional, Path: "/up"}}

func TestR5_pendingIsAskedEverySecond(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		e.answer(regional, fleet.ReasonHTTPNotReady)
		w.Set("acme/eu", one, true)
		pass(0)
		if n := e.probes(regional); n != 1 {
			t.Errorf("%d probes at once, want 1", n)
		}
		pass(10 * time.Second)
		if n := e.probes(regional); n != 10 {
			t.Errorf("%d probes in 10 s, want 10", n)
		}
	})
}

func TestR5_pendingBacksOffAfterSixtyFailures(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		e.answer(regional, fleet.ReasonConnectFailed)
		w.Set("acme/eu", one, true)
		pass(10 * time.Minute)
		e.mu.Lock()
		var pauses []time.Duration
		for i := 1; i < len(e.begun[regional]); i++ {
			pauses = append(pauses, e.begun[regional][i].Sub(e.begun[regional][i-1]))
		}
		e.mu.Unlock()
		s := time.Second
		if diff := cmp.Diff([]time.Duration{s, s, 2 * s, 4 * s, 8 * s, 10 * s, 10 * s}, pauses[58:65]); diff != "" {
			t.Errorf("pauses after the 59th failure and later (-want +got):\n%s", diff)
		}
		if last := pauses[len(pauses)-1]; last != 10*s {
			t.Errorf("the last pause is %s, want never more than 10 s", last)
		}
		// One answer is enough to be quick again.
		e.answer(regional, fleet.ReasonReady)
		pass(10 * s)
		e.answer(regional, fleet.ReasonConnectFailed)
		e.probes(regional)
		if pass(10 * s); e.probes(regional) != 10 {
			t.Error("after an answer a pending server is not asked every second again")
		}
	})
}

func TestR5_convergedIsAskedSlowlyAndSpread(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		pauses := map[time.Duration]int{}
		for i := range 200 {
			target := fmt.Sprintf("https://a%d-eu.kura.test", i)
			w.Set(fmt.Sprintf("a%d/eu", i), []Target{{URL: target}}, false)
		}
		pass(2 * time.Minute)
		e.mu.Lock()
		defer e.mu.Unlock()
		for target, begun := range e.begun {
			for i := 1; i < len(begun); i++ {
				pause := begun[i].Sub(begun[i-1])
				if pauses[pause]++; pause < 24*time.Second || pause > 36*time.Second {
					t.Errorf("%s was asked again after %s, want 30 s ± 6 s", target, pause)
				}
			}
		}
		if len(e.begun) != 200 || len(pauses) < 100 {
			t.Errorf("%d servers with %d different pauses, want 200 that do not stay together", len(e.begun), len(pauses))
		}
	})
}

func TestR5_failingConvergedBacksOff(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		w.Set("acme/eu", one, false)
		pass(0)
		e.answer(regional, fleet.ReasonTimeout)
		pass(10 * time.Minute)
		e.mu.Lock()
		defer e.mu.Unlock()
		begun := e.begun[regional]
		for i, around := range []time.Duration{30, 2, 4, 8, 16, 30, 30} {
			around *= time.Second
			pause := begun[i+1].Sub(begun[i])
			if pause < around*4/5 || pause > around*6/5 || (i > 0 && pause > 30*time.Second) {
				t.Errorf("pause %d of a failing converged server is %s, want about %s", i, pause, around)
			}
		}
	})
}

func TestR5_newsIsAChangeOfReadyOrReason(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		w.Set("acme/eu", one, false)
		pass(0)
		if n := e.newsOf("acme/eu"); n != 1 {
			t.Errorf("the first answer made news %d times, want once", n)
		}
		pass(5 * time.Minute)
		if n := e.newsOf("acme/eu"); n != 0 {
			t.Errorf("the same answer made news %d times, want never (P16)", n)
		}
		e.set(func() { e.message = "another text" })
		pass(5 * time.Minute)
		if n := e.newsOf("acme/eu"); n != 0 {
			t.Errorf("a message alone made news %d times, want never", n)
		}
		for _, reason := range []fleet.Reason{fleet.ReasonHTTPNotReady, fleet.ReasonTimeout, fleet.ReasonReady} {
			e.answer(regional, reason)
			pass(5 * time.Minute)
			if n := e.newsOf("acme/eu"); n != 1 {
				t.Errorf("the change to %s made news %d times, want once", reason, n)
			}
			if seen, _ := w.Latest("acme/eu", regional); seen.Reason != reason {
				t.Errorf("the newest observation says %s, want %s", seen.Reason, reason)
			}
		}
	})
}

func TestR1_everyFreshReadyAnswerIsNewsWhilePending(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		w.Set("acme/eu", one, true)
		pass(5 * time.Second)
		if n := e.newsOf("acme/eu"); n != 6 {
			t.Errorf("6 ready answers made news %d times, want each time", n)
		}
		e.answer(regional, fleet.ReasonTimeout)
		pass(5 * time.Second)
		if n := e.newsOf("acme/eu"); n != 1 {
			t.Errorf("5 answers that are not ready made news %d times, want once", n)
		}
	})
}

func TestR5_becomingPendingAsksAtOnceAndSetAgainDoesNot(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		w.Set("acme/eu", one, false)
		pass(time.Second)
		e.probes(regional)
		for range 100 { // a turn sets what it knows each time
			w.Set("acme/eu", one, false)
			pass(0)
		}
		if n := e.probes(regional); n != 0 {
			t.Errorf("Set with the same asked %d times, want never", n)
		}
		w.Set("acme/eu", one, true)
		pass(0)
		if n := e.probes(regional); n != 1 {
			t.Errorf("becoming pending asked %d times at once, want 1", n)
		}
		for range 30 { // and setting it again does not put the next one off either
			pass(100 * time.Millisecond)
			w.Set("acme/eu", one, true)
		}
		if n := e.probes(regional); n != 3 {
			t.Errorf("%d probes in 3 s, want 3", n)
		}
		w.Set("acme/eu", one, false)
		pass(20 * time.Second)
		if n := e.probes(regional); n != 0 {
			t.Errorf("%d probes in the 20 s after it converged, want none", n)
		}
		w.Set("acme/eu", []Target{{URL: regional, Path: "/ready"}}, false)
		if _, known := w.Latest("acme/eu", regional); known {
			t.Error("the answer of the old path counts for the new one")
		}
		pass(0)
		if n := e.probes(regional); n != 1 {
			t.Errorf("a new path was asked %d times at once, want 1", n)
		}
		w.Remove("acme/eu")
		pass(time.Hour)
		if _, known := w.Latest("acme/eu", regional); known || e.probes(regional) != 0 {
			t.Error("a removed key is still known or asked")
		}
	})
}

func TestR5_aProbeUnderWayOfARemovedKeyIsForNobody(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		e.set(func() { e.takes = 2 * time.Second })
		w.Set("acme/eu", one, true)
		pass(time.Second)
		e.probes(regional)
		w.Remove("acme/eu")
		pass(time.Hour)
		if asked, news := e.probes(regional), e.newsOf("acme/eu"); asked != 0 || news != 0 {
			t.Errorf("after it was removed a key was asked %d times and made news %d times, want neither", asked, news)
		}
	})
}

func TestR1_aGateGetsAProbeThatBeganAfterItWasSet(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		e.set(func() { e.takes = 3 * time.Second })
		w.Set("acme/eu", one, false)
		pass(time.Second)
		asked := time.Now()
		w.Set("acme/eu", one, true) // while a probe is under way
		pass(2 * time.Second)
		pass(3 * time.Second)
		if seen, _ := w.Latest("acme/eu", regional); seen.Begun.Before(asked) {
			t.Errorf("the newest probe began %s before the gate was set, want after it and at once", asked.Sub(seen.Begun))
		}
	})
}

func TestR5_nowAsksAllTargetsAfreshAndWaits(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		const global = "https://acme.kura.test"
		e.set(func() { e.takes = 2 * time.Second })
		w.Set("acme/eu", []Target{{URL: regional}, {URL: global}, {URL: regional}}, false)
		pass(time.Second)
		for range 2 { // first while a probe is under way, then while none is
			asked := time.Now()
			if err := w.Now(t.Context(), "acme/eu"); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(asked); took > 4*time.Second {
				t.Errorf("Now took %s, want a probe's 2 s after at most the one under way", took)
			}
			for _, target := range []string{regional, global} {
				if seen, known := w.Latest("acme/eu", target); !known || seen.Begun.Before(asked) {
					t.Errorf("%s: after Now the newest probe began %s before the call", target, asked.Sub(seen.Begun))
				}
			}
			pass(time.Second)
		}
		if n := e.probes(regional); n != 3 {
			t.Errorf("%d probes, want 3: one by schedule, one for each Now, none for the url named twice", n)
		}
	})
}

func TestR5_nowNeverWaitsForNothing(t *testing.T) {
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		if err := w.Now(t.Context(), "nobody/eu"); err == nil || !strings.Contains(err.Error(), "nobody/eu") {
			t.Errorf("Now for an unknown key: %v, want an error that names it", err)
		}
		w.Set("acme/eu", []Target{{URL: "https://dead.kura.test"}}, false)
		pass(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Now(ctx, "acme/eu"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Now with a second: %v, want its deadline", err)
		}
		ended := make(chan error)
		go func() { ended <- w.Now(t.Context(), "acme/eu") }()
		synctest.Wait()
		w.Remove("acme/eu")
		if err := <-ended; !errors.Is(err, errChanged) {
			t.Errorf("Now for a key that goes away: %v, want %v", err, errChanged)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoints()
		w := NewWatcher(e.probe, e.news, Pace{})
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		w.Set("acme/eu", []Target{{URL: "https://dead.kura.test"}}, false)
		ended := make(chan error)
		go func() { ended <- w.Now(t.Context(), "acme/eu") }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, errStopped) {
			t.Errorf("Now while kurad stops: %v, want %v", err, errStopped)
		}
		if _, known := w.Latest("acme/eu", "https://dead.kura.test"); known || e.newsOf("acme/eu") != 0 {
			t.Error("a probe that the stop cut short counts as an answer")
		}
	})
}

func TestR5_aDeadFleetDoesNotDelayAPendingServer(t *testing.T) {
	watched(t, Pace{Concurrency: 8}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		for i := range 1000 {
			w.Set(fmt.Sprintf("a%d/eu", i), []Target{{URL: fmt.Sprintf("https://dead-a%d.kura.test", i)}}, false)
		}
		pass(time.Minute)
		w.Set("acme/eu", one, true)
		pass(10 * time.Second)
		if n := e.probes(regional); n != 11 {
			t.Errorf("a pending server beside 1000 dead ones was asked %d times in 10 s, want 11", n)
		}
		asked := time.Now()
		w.Set("calm/eu", []Target{{URL: "https://calm.kura.test"}}, false)
		if err := w.Now(t.Context(), "calm/eu"); err != nil || time.Since(asked) > 0 {
			t.Errorf("Now beside 1000 dead ones: %v after %s, want at once", err, time.Since(asked))
		}
		if e.most > 8 {
			t.Errorf("%d probes were under way at once, want at most 8", e.most)
		}
	})
}

func TestR5_thousandsOfServersAreCheap(t *testing.T) {
	const servers, minutes = 5000, 10
	watched(t, Pace{}, func(t *testing.T, w *Endpoints[string], e *endpoints) {
		e.set(func() { e.takes = 10 * time.Millisecond })
		for i := range servers {
			w.Set(fmt.Sprintf("a%d/eu", i), []Target{{URL: fmt.Sprintf("https://a%d.kura.test", i)}}, false)
		}
		pass(minutes * time.Minute)
		total := 0
		for _, begun := range e.begun {
			total += len(begun)
			if len(begun) < minutes*60/36 {
				t.Errorf("a server was asked %d times in %d minutes, want at least every 36 s", len(begun), minutes)
			}
		}
		if most := servers * (minutes*60/24 + 1); len(e.begun) != servers || total > most {
			t.Errorf("%d servers were asked %d times, want %d and at most %d", len(e.begun), total, servers, most)
		}
		if e.most > 128 {
			t.Errorf("%d probes were under way at once, want at most half of 256", e.most)
		}
	})
}

// lamp is a question that is none about an endpoint.
type lamp int

func (l lamp) Name() string { return fmt.Sprint(int(l)) }

// light is what a lamp was seen to do.
type light struct{ on bool }

func (l light) State() (bool, fleet.Reason) { return l.on, "" }

func TestR5_anythingIsAskedAtThePaceOfItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 7
		var mu sync.Mutex
		asked, news, lit := map[lamp]int{}, 0, true
		set := func(change func()) { mu.Lock(); defer mu.Unlock(); change() }
		w := NewWatcher(func(_ context.Context, l lamp) light {
			mu.Lock()
			defer mu.Unlock()
			asked[l]++
			return light{lit}
		}, func(int) { set(func() { news++ }) }, Pace{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		w.Set(room, []lamp{1, 2}, false)
		begun := time.Now()
		pass(0)
		if l, known := w.Latest(room, "2"); !known || !l.on || news != 2 {
			t.Errorf("light %v, known %v, %d news; want on, and both are news", l, known, news)
		}
		set(func() { lit = false })
		pass(5 * time.Minute)
		if at, failed := w.Memory(room); !at.Before(begun.Add(time.Minute)) || failed < 8 || failed > 14 || news != 4 {
			t.Errorf("good last at +%s, %d failures in a row since, %d news; want within a minute, about ten, 4", at.Sub(begun), failed, news)
		}
		w.Set(room, []lamp{1}, true)
		set(func() { clear(asked) })
		pass(10 * time.Second)
		if asked[1] != 11 || asked[2] != 0 {
			t.Errorf("asked %v in 10 s, want the pending one each second and the other no more", asked)
		}
		set(func() { lit = true })
		if err := w.Now(t.Context(), room); err != nil {
			t.Error(err)
		}
		if _, failed := w.Memory(room); failed != 0 {
			t.Errorf("%d failures after a good answer", failed)
		}
		cancel()
		<-ended
	})
}
