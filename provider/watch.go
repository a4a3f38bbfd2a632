package provider

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// How long one poll waits for a change, and the least pause after one that failed.
const (
	pollWait  = 30 * time.Second
	pollPause = time.Second
)

// poller is what a watch needs of the client.
type poller interface {
	GetServer(ctx context.Context, key fleet.ServerKey, opts api.GetOptions) (fleet.ServerView, error)
	WaitServers(ctx context.Context, region, cursor string, wait time.Duration) (api.ServerChanges, error)
}

// watches follows servers for everyone who waits for one. However many wait, there is
// one long poll per region, and none while nobody waits.
type watches struct {
	poll    poller
	mu      sync.Mutex
	regions map[string]*watch
}

func newWatches(p poller) *watches { return &watches{poll: p, regions: map[string]*watch{}} }

// watch is the long poll of one region.
type watch struct {
	stop    context.CancelFunc
	waiters map[*waiter]struct{}
}

// waiter is somebody who waits for one server. News holds the newest that was heard.
type waiter struct {
	key  fleet.ServerKey
	news chan news
}

type news struct {
	view *fleet.ServerView // nil: not among the region's servers
	err  error             // the poll is over
}

// replace replaces what was not heard yet.
func (w *waiter) replace(n news) {
	select {
	case <-w.news:
	default:
	}
	w.news <- n
}

// follow calls see with the server as it is now and after each change, nil standing
// for one that does not exist, until see has seen enough or ctx ends. A daemon that
// does not answer for a while is waited for.
func (w *watches) follow(ctx context.Context, key fleet.ServerKey, see func(*fleet.ServerView) (enough bool)) error {
	// Joining before reading makes sure that no change falls between the two.
	me := w.join(key)
	defer w.leave(me)
	for fresh := true; ; fresh = false {
		n := news{}
		if !fresh {
			select {
			case n = <-me.news:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if n.err != nil {
			return n.err
		}
		if n.view == nil {
			// A list may have been made before the server was: only its own 404 counts.
			var err error
			if n.view, err = w.read(ctx, key); err != nil {
				return err
			}
		}
		if see(n.view) {
			return nil
		}
	}
}

// read returns the server, nil if it does not exist.
func (w *watches) read(ctx context.Context, key fleet.ServerKey) (*fleet.ServerView, error) {
	for {
		v, err := w.poll.GetServer(ctx, key, api.GetOptions{})
		switch {
		case err == nil:
			return &v, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case has(err, fleet.CodeNotFound):
			return nil, nil
		case final(err):
			return nil, err
		}
		if !pause(ctx, pauseAfter(err)) {
			return nil, context.Cause(ctx)
		}
	}
}

func (w *watches) join(key fleet.ServerKey) *waiter {
	me := &waiter{key: key, news: make(chan news, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.regions[key.Region]
	if r == nil {
		// Detached from whoever came first: one that is cancelled must not fail the rest.
		ctx, stop := context.WithCancel(context.Background())
		r = &watch{stop: stop, waiters: map[*waiter]struct{}{}}
		w.regions[key.Region] = r
		go w.run(ctx, key.Region, r)
	}
	r.waiters[me] = struct{}{}
	return me
}

func (w *watches) leave(me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.regions[me.key.Region]
	if r == nil {
		return
	}
	delete(r.waiters, me)
	if len(r.waiters) == 0 {
		r.stop()
		delete(w.regions, me.key.Region)
	}
}

// run polls until its context ends, which the last waiter to leave sees to.
func (w *watches) run(ctx context.Context, region string, r *watch) {
	defer r.stop()
	for cursor := ""; ctx.Err() == nil; {
		changes, err := w.poll.WaitServers(ctx, region, cursor, pollWait)
		switch {
		case err == nil:
			cursor = changes.Cursor
			w.spread(r, changes)
		case ctx.Err() != nil:
			return
		case final(err):
			w.end(region, r, err)
			return
		default:
			pause(ctx, pauseAfter(err))
		}
	}
}

func (w *watches) spread(r *watch, changes api.ServerChanges) {
	views := make(map[fleet.ServerKey]*fleet.ServerView, len(changes.Items))
	for i := range changes.Items {
		v := &changes.Items[i]
		views[v.Key()] = v
	}
	for _, key := range changes.Gone {
		views[key] = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for me := range r.waiters {
		if v, ok := views[me.key]; ok || changes.Full {
			me.replace(news{view: v})
		}
	}
}

// end tells everyone that the poll is over, and lets the next one who waits start anew.
func (w *watches) end(region string, r *watch, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for me := range r.waiters {
		me.replace(news{err: err})
	}
	if w.regions[region] == r {
		delete(w.regions, region)
	}
}

// final reports errors that waiting does not mend.
func final(err error) bool {
	switch fleet.CodeOf(err) {
	case fleet.CodeUnauthorized, fleet.CodeForbidden, fleet.CodeInvalid, fleet.CodePrecondition:
		return true
	case fleet.CodeNotFound, fleet.CodeConflict, fleet.CodeTooLarge, fleet.CodeUnavailable, fleet.CodeInternal:
		return false
	}
	return false
}

// pauseAfter is how long a daemon is left alone that answered with err: as long as it
// asks for, where that is longer than what the client itself waits.
func pauseAfter(err error) time.Duration {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return max(pollPause, e.RetryAfter)
	}
	return pollPause
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
