package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const seats = "/e/leader/"

func campaign(t *testing.T, s kv.Store, value string) kv.Leadership {
	t.Helper()
	l, err := s.Campaign(t.Context(), seats, []byte(value))
	if err != nil {
		t.Fatalf("campaign: %v", err)
	}
	if !l.Valid() {
		t.Fatal("a leadership is not valid from the start")
	}
	return l
}

// holder returns the one key of the leader.
func holder(t *testing.T, s kv.Store) kv.Item {
	t.Helper()
	page := list(t, s, seats, kv.ListOptions{})
	if len(page.Items) != 1 {
		t.Fatalf("%d keys of leaders, want one: %+v", len(page.Items), page.Items)
	}
	return page.Items[0]
}

// guarded writes as a leader does.
func guarded(t *testing.T, s kv.Store, l kv.Leadership) error {
	t.Helper()
	_, err := s.Txn(t.Context(), kv.Txn{If: []kv.Compare{l.Guard()}, Then: []kv.Op{kv.Put("/e/effect", nil)}})
	return err
}

func wantLost(t *testing.T, l kv.Leadership) {
	t.Helper()
	<-l.Lost()
	if l.Valid() {
		t.Error("a lost leadership is valid")
	}
}

// contend campaigns while somebody leads.
func contend(t *testing.T, s kv.Store, value string) <-chan kv.Leadership {
	t.Helper()
	won := make(chan kv.Leadership, 1)
	go func() {
		if l, err := s.Campaign(t.Context(), seats, []byte(value)); err != nil {
			t.Errorf("campaign: %v", err)
			close(won)
		} else {
			won <- l
		}
	}()
	return won
}

func oneLeader(t *testing.T, s kv.Store) {
	first := campaign(t, s, "a")
	same(t, "what others read", string(holder(t, s).Value), "a")
	if err := guarded(t, s, first); err != nil {
		t.Errorf("the leader's write: %v", err)
	}
	second := contend(t, s, "b")
	Put(t, s, "/e/other", "x") // whatever else is written makes nobody lead
	select {
	case <-second:
		t.Fatal("two lead at a time")
	default:
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Errorf("resign: %v", err)
	}
	wantLost(t, first)
	next := <-second
	same(t, "what others read", string(holder(t, s).Value), "b")
	if err := guarded(t, s, first); !kv.IsConflict(err) {
		t.Errorf("a write of the one that resigned: %v, want a conflict", err)
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Errorf("resign again: %v", err)
	}
	if err := guarded(t, s, next); err != nil || !next.Valid() {
		t.Errorf("the next leader: valid %v, write %v", next.Valid(), err)
	}
}

func otherSeats(t *testing.T, s kv.Store) {
	campaign(t, s, "a")
	l, err := s.Campaign(t.Context(), "/f/leader/", []byte("b"))
	if err != nil || !l.Valid() {
		t.Errorf("a leader of something else is in the way: %v", err)
	}
}

// A lease that has run out shows as a key that is gone.
func deposed(t *testing.T, s kv.Store) {
	first := campaign(t, s, "a")
	second := contend(t, s, "b")
	txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete(holder(t, s).Key)}})
	wantLost(t, first)
	next := <-second
	err := guarded(t, s, first)
	if conflict, ok := errors.AsType[*kv.ConflictError](err); !ok || conflict.Key != first.Guard().Key {
		t.Errorf("a write of the one that was deposed: %v, want a conflict of %s", err, first.Guard().Key)
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Errorf("resign of the one that was deposed: %v", err)
	}
	if err := guarded(t, s, next); err != nil || !next.Valid() {
		t.Errorf("the next leader: valid %v, write %v", next.Valid(), err)
	}
}

func campaignEnds(t *testing.T, s kv.Store) {
	first := campaign(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.Campaign(ctx, seats, []byte("b"))
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("campaign whose context ended: %v", err)
	}
	if _, err := s.Campaign(ctx, seats, []byte("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("campaign with an ended context: %v", err)
	}
	same(t, "leader", string(holder(t, s).Value), "a")
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	campaign(t, s, "c")
}

func closingDeposes(t *testing.T, s kv.Store) {
	l := campaign(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantLost(t, l)
	if _, err := s.Campaign(t.Context(), seats, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("campaign in a closed store: %v, want ErrClosed", err)
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Errorf("resign in a closed store: %v", err)
	}
}

// progress asks until the watch says that it has delivered everything up to revision. A
// question may stay without an answer, as it does at an etcd member that is behind.
func progress(t *testing.T, s kv.Store, batches <-chan kv.Batch, revision int64) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if err := s.Progress(t.Context()); err != nil {
			t.Fatalf("progress: %v", err)
		}
		select {
		case b, ok := <-batches:
			if !ok || b.Err != nil {
				t.Fatalf("the watch has ended: %v", b.Err)
			}
			if len(b.Events) > 0 {
				t.Fatalf("an event that was not written: %+v", b)
			}
			if b.Revision >= revision {
				return
			}
		case <-again.C:
		}
	}
}

func watchProgress(t *testing.T, s kv.Store) {
	batches := watch(t, s, "/w/", 0)
	a := Put(t, s, "/w/a", "x")
	same(t, "batch", next(t, batches), one("/w/a", "x", a))
	progress(t, s, batches, a)
	foreign := Put(t, s, "/v/a", "x")
	progress(t, s, batches, foreign)
	b := Put(t, s, "/w/b", "y")
	for got := range batches {
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if len(got.Events) == 0 {
			continue // answers to questions that were asked before
		}
		same(t, "batch after the progress", got, one("/w/b", "y", b))
		break
	}
	quiet, other := watch(t, s, "/q/", 0), watch(t, s, "/w/", b)
	same(t, "first batch of a watch that begins in the past", next(t, other), one("/w/b", "y", b))
	last := Put(t, s, "/v/a", "x")
	progress(t, s, quiet, last)
}
