package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func watch(t *testing.T, s kv.Store, prefix string, from int64) <-chan kv.Batch {
	t.Helper()
	batches, err := s.Watch(t.Context(), prefix, from)
	if err != nil {
		t.Fatalf("watch %s from %d: %v", prefix, from, err)
	}
	return batches
}

// next returns the next batch of a watch that must go on.
func next(t *testing.T, batches <-chan kv.Batch) kv.Batch {
	t.Helper()
	b, ok := <-batches
	if !ok {
		t.Fatal("the watch has ended")
	}
	if b.Err != nil {
		t.Fatalf("the watch has ended: %v", b.Err)
	}
	return b
}

// one is the batch of a single put.
func one(key, value string, revision int64) kv.Batch {
	return kv.Batch{Revision: revision, Events: []kv.Change{
		{Key: key, Item: kv.Item{Key: key, Value: []byte(value), Revision: revision}},
	}}
}

func watchInOrder(t *testing.T, s kv.Store) {
	batches := watch(t, s, "/w/", 0)
	var want []kv.Batch
	for i := range 50 {
		key, value := fmt.Sprintf("/w/%d", i%7), fmt.Sprint(i)
		want = append(want, one(key, value, Put(t, s, key, value)))
	}
	revision := txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete("/w/3")}})
	want = append(want, kv.Batch{Revision: revision, Events: []kv.Change{
		{Key: "/w/3", Item: kv.Item{Key: "/w/3", Revision: revision}, Deleted: true},
	}})
	for _, w := range want {
		same(t, "batch", next(t, batches), w)
	}
}

func watchWholeRevisions(t *testing.T, s kv.Store) {
	from := Put(t, s, "/w/first", "x")
	var sizes []int
	for n := range 5 {
		ops := []kv.Op{kv.DeletePrefix("/w/old/")}
		for i := range 20 * (n + 1) {
			ops = append(ops, kv.Put(fmt.Sprintf("/w/%d/%03d", n, i), []byte("x")))
		}
		txn(t, s, kv.Txn{Then: ops})
		sizes = append(sizes, len(ops)-1)
	}
	batches := watch(t, s, "/w/", from+1)
	last := from
	for n, size := range sizes {
		b := next(t, batches)
		same(t, fmt.Sprintf("changes of transaction %d", n), len(b.Events), size)
		if b.Revision <= last {
			t.Errorf("revision %d after %d", b.Revision, last)
		}
		last = b.Revision
	}
}

func watchPrefix(t *testing.T, s kv.Store) {
	batches := watch(t, s, "/w/", 0)
	Put(t, s, "/w", "x")
	Put(t, s, "/x/1", "x")
	revision := txn(t, s, kv.Txn{Then: []kv.Op{kv.Put("/v", nil), kv.Put("/w/1", []byte("y")), kv.Put("/w2", nil)}})
	same(t, "batch", next(t, batches), one("/w/1", "y", revision))
}

func watchResumes(t *testing.T, s kv.Store) {
	var revisions []int64
	for i := range 6 {
		revisions = append(revisions, Put(t, s, "/w/a", fmt.Sprint(i)))
	}
	batches := watch(t, s, "/w/", revisions[3])
	for i := 3; i < 6; i++ {
		same(t, "batch", next(t, batches), one("/w/a", fmt.Sprint(i), revisions[i]))
	}
	revision := Put(t, s, "/w/a", "live")
	same(t, "live batch", next(t, batches), one("/w/a", "live", revision))
}

func watchFromNow(t *testing.T, s kv.Store) {
	for i := range 10 {
		Put(t, s, "/w/a", "before")
		ctx, cancel := context.WithCancel(t.Context())
		batches, err := s.Watch(ctx, "/w/", 0)
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprint(i)
		revision := Put(t, s, "/w/a", value)
		same(t, "first batch", next(t, batches), one("/w/a", value, revision))
		cancel()
	}
}

func compactedWatch(t *testing.T, s kv.Store) {
	old := Put(t, s, "/w/a", "1")
	for range 5 {
		Put(t, s, "/w/a", "2")
	}
	at := Put(t, s, "/w/a", "3")
	last := Put(t, s, "/w/a", "4")
	compact(t, s, at)
	batches := watch(t, s, "/w/", old)
	b := <-batches
	if !errors.Is(b.Err, kv.ErrCompacted) {
		t.Errorf("watch from %d, compacted at %d: %+v, want ErrCompacted", old, at, b)
	}
	if b, ok := <-batches; ok {
		t.Errorf("after the error came %+v", b)
	}
	same(t, "watch from a kept revision", next(t, watch(t, s, "/w/", at+1)), one("/w/a", "4", last))
}

func twoWatchers(t *testing.T, s kv.Store) {
	a, b := watch(t, s, "/w/", 0), watch(t, s, "/w/", 0)
	for i := range 10 {
		Put(t, s, fmt.Sprintf("/w/%d", i), "x")
	}
	for range 10 {
		same(t, "batch of the second watcher", next(t, b), next(t, a))
	}
}

func slowWatcher(t *testing.T, s kv.Store) {
	slow, fast := watch(t, s, "/w/", 0), watch(t, s, "/w/", 0)
	for i := range 300 {
		revision := Put(t, s, "/w/a", fmt.Sprint(i))
		same(t, "batch of the fast watcher", next(t, fast), one("/w/a", fmt.Sprint(i), revision))
	}
	for i := range 300 {
		same(t, "value of the slow watcher", string(next(t, slow).Events[0].Item.Value), fmt.Sprint(i))
	}
}

func watchEndsWithContext(t *testing.T, s kv.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	idle, err := s.Watch(ctx, "/w/", 0)
	if err != nil {
		t.Fatal(err)
	}
	unread, err := s.Watch(ctx, "/w/", 0)
	if err != nil {
		t.Fatal(err)
	}
	other := watch(t, s, "/v/", 0)
	Put(t, s, "/w/a", "x")
	next(t, idle)
	cancel()
	if b, ok := <-idle; ok {
		t.Errorf("after the end came %+v", b)
	}
	for b := range unread { // what was on its way may still come, an error may not
		if b.Err != nil {
			t.Errorf("the end of the context shows as %v", b.Err)
		}
	}
	revision := Put(t, s, "/v/a", "x")
	same(t, "batch of a watch with another context", next(t, other), one("/v/a", "x", revision))
	if _, err := s.Watch(ctx, "/w/", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("watch with an ended context: %v", err)
	}
}

func closing(t *testing.T, s kv.Store) {
	Put(t, s, "/w/a", "x")
	batches := watch(t, s, "/w/", 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b, ok := <-batches; ok {
		t.Errorf("closing a store shows as %+v", b)
	}
	_, getErr := s.Get(t.Context(), "/w/a")
	_, listErr := s.List(t.Context(), "/w/", kv.ListOptions{})
	_, txnErr := s.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/w/b", nil)}})
	_, watchErr := s.Watch(t.Context(), "/w/", 1)
	for call, err := range map[string]error{"get": getErr, "list": listErr, "txn": txnErr, "watch": watchErr} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s of a closed store: %v, want ErrClosed", call, err)
		}
	}
	select {
	case <-s.Failed():
		t.Error("closing a store shows as its failure")
	default:
	}
	if err := s.Err(); err != nil {
		t.Errorf("closing a store shows as its failure: %v", err)
	}
}

func endedContext(t *testing.T, s kv.Store) {
	revision := Put(t, s, "/a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := s.Get(ctx, "/a")
	_, listErr := s.List(ctx, "/", kv.ListOptions{})
	_, txnErr := s.Txn(ctx, kv.Txn{If: []kv.Compare{kv.Unchanged("/a", revision)}})
	for call, err := range map[string]error{"get": getErr, "list": listErr, "txn": txnErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", call, err)
		}
	}
}
