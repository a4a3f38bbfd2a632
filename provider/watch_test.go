package provider

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// fakeDaemon answers polls from a map of servers, each answer being whole, and counts
// how many polls are open at once.
type fakeDaemon struct {
	mu      sync.Mutex
	servers map[fleet.ServerKey]fleet.ServerView
	changed chan struct{}
	fail    error // answer of every poll, while set
	stale   bool  // lists leave every server out
	polls   int
	open    int
	most    int
}

func newFakeDaemon() *fakeDaemon {
	return &fakeDaemon{servers: map[fleet.ServerKey]fleet.ServerView{}, changed: make(chan struct{})}
}

func (d *fakeDaemon) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *fakeDaemon) GetServer(_ context.Context, key fleet.ServerKey, _ api.GetOptions) (fleet.ServerView, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.servers[key]
	if !ok {
		return v, fleet.Errorf(fleet.CodeNotFound, "server %s does not exist", key)
	}
	return v, nil
}

func (d *fakeDaemon) WaitServers(ctx context.Context, region, cursor string, wait time.Duration) (api.ServerChanges, error) {
	d.mu.Lock()
	d.polls++
	d.open++
	d.most = max(d.most, d.open)
	changed := d.changed
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.open--
		d.mu.Unlock()
	}()
	if cursor != "" {
		select {
		case <-changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return api.ServerChanges{}, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return api.ServerChanges{}, d.fail
	}
	out := api.ServerChanges{Full: true, Cursor: "c"}
	for key, v := range d.servers {
		if key.Region == region && !d.stale {
			out.Items = append(out.Items, v)
		}
	}
	return out, nil
}

func key(account string) fleet.ServerKey { return fleet.ServerKey{Account: account, Region: "eu"} }

func serverOf(account string, generation int64) fleet.ServerView {
	return fleet.ServerView{Account: account, Region: "eu", Generation: generation}
}

// reaches waits until the server has the generation.
func reaches(generation int64) func(*fleet.ServerView) bool {
	return func(v *fleet.ServerView) bool { return v != nil && v.Generation >= generation }
}

func TestWatch_everyoneWhoWaitsInARegionSharesOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		for _, account := range []string{"a", "b", "c"} {
			d.servers[key(account)] = serverOf(account, 1)
		}
		w := newWatches(d)
		done := make(chan error)
		for _, account := range []string{"a", "b", "c"} {
			go func() { done <- w.follow(t.Context(), key(account), reaches(2)) }()
		}
		synctest.Wait()
		for _, account := range []string{"a", "b", "c"} {
			d.set(func() { d.servers[key(account)] = serverOf(account, 2) })
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if d.most != 1 {
			t.Errorf("%d polls were open at once, want one", d.most)
		}
		if d.open != 0 || len(w.regions) != 0 {
			t.Errorf("nobody waits, and %d polls are open for %d regions", d.open, len(w.regions))
		}
	})
}

func TestWatch_endsAtOnceWhenTheCallerIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")] = serverOf("a", 1)
		w := newWatches(d)
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.follow(ctx, key("a"), reaches(2)) }()
		synctest.Wait()
		start := time.Now()
		interrupt()
		if err := <-done; !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("ended with %v after %s, want context.Canceled at once", err, time.Since(start))
		}
		synctest.Wait()
		if d.open != 0 {
			t.Error("the poll goes on although nobody waits")
		}
	})
}

func TestWatch_oneWhoIsInterruptedDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")], d.servers[key("b")] = serverOf("a", 1), serverOf("b", 1)
		w := newWatches(d)
		ctx, interrupt := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- w.follow(ctx, key("a"), reaches(2)) }()
		synctest.Wait()
		go func() { second <- w.follow(t.Context(), key("b"), reaches(2)) }()
		synctest.Wait()
		interrupt()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who was interrupted ended with %v", err)
		}
		d.set(func() { d.servers[key("b")] = serverOf("b", 2) })
		if err := <-second; err != nil {
			t.Errorf("the other one ended with %v", err)
		}
	})
}

func TestWatch_waitsForADaemonThatDoesNotAnswerForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")] = serverOf("a", 1)
		w := newWatches(d)
		done := make(chan error, 1)
		go func() { done <- w.follow(t.Context(), key("a"), reaches(2)) }()
		synctest.Wait()
		d.set(func() { d.fail = fleet.Errorf(fleet.CodeUnavailable, "restarting") })
		time.Sleep(time.Minute) // the bubble's
		d.set(func() { d.fail, d.servers[key("a")] = nil, serverOf("a", 2) })
		if err := <-done; err != nil {
			t.Errorf("ended with %v although the daemon came back", err)
		}
		synctest.Wait()
		if d.polls < 3 || d.polls > 100 {
			t.Errorf("%d polls in a minute without answers", d.polls)
		}
	})
}

func TestWatch_leavesADaemonAloneAsLongAsItAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")] = serverOf("a", 1)
		w := newWatches(d)
		ctx, interrupt := context.WithTimeout(t.Context(), 3*time.Minute)
		defer interrupt()
		done := make(chan error, 1)
		go func() { done <- w.follow(ctx, key("a"), reaches(2)) }()
		synctest.Wait()
		before := d.polls
		d.set(func() {
			d.fail = &api.Error{Status: 429, RetryAfter: 2 * time.Minute, Err: fleet.Errorf(fleet.CodeUnavailable, "busy")}
		})
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v, want the deadline", err)
		}
		synctest.Wait()
		if polls := d.polls - before; polls != 1 {
			t.Errorf("%d polls in three minutes after one that was told to come back in two, want one", polls)
		}
	})
}

func TestWatch_endsForEveryoneWhenTheDaemonRefusesToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")] = serverOf("a", 1)
		w := newWatches(d)
		done := make(chan error, 1)
		go func() { done <- w.follow(t.Context(), key("a"), reaches(2)) }()
		synctest.Wait()
		d.set(func() { d.fail = fleet.Errorf(fleet.CodeUnauthorized, "the token was revoked") })
		if err := <-done; fleet.CodeOf(err) != fleet.CodeUnauthorized {
			t.Errorf("ended with %v, want the refusal", err)
		}
		synctest.Wait()
		if len(w.regions) != 0 {
			t.Error("the next one who waits would get no poll")
		}
	})
}

// A list may have been made before the server was: what is missing there is only gone
// when reading it says so.
func TestWatch_believesAnAbsenceOnlyOfTheServerItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDaemon()
		d.servers[key("a")], d.stale = serverOf("a", 1), true
		w := newWatches(d)
		absent := false
		done := make(chan error, 1)
		go func() {
			done <- w.follow(t.Context(), key("a"), func(v *fleet.ServerView) bool {
				absent = absent || v == nil
				return v == nil || v.Generation == 2
			})
		}()
		synctest.Wait()
		d.set(func() { d.servers[key("a")] = serverOf("a", 2) })
		if err := <-done; err != nil || absent {
			t.Errorf("ended with %v; it was taken for gone: %v", err, absent)
		}
		done = make(chan error, 1)
		go func() {
			done <- w.follow(t.Context(), key("a"), func(v *fleet.ServerView) bool { return v == nil })
		}()
		synctest.Wait()
		d.set(func() { delete(d.servers, key("a")) })
		if err := <-done; err != nil {
			t.Errorf("a server that is gone ended the wait with %v", err)
		}
	})
}
