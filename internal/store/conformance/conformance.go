// Package conformance is the contract of kv.Store as tests: whatever passes them may
// stand in for the real store. All implementations run it.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Compacter is what a store under test offers besides: forgetting old revisions.
type Compacter interface {
	Compact(ctx context.Context, revision int64) error
}

// Run runs the suite. open returns a new, empty store; the suite closes it. Every test
// checks that closing leaves no goroutine behind.
func Run(t *testing.T, open func(t *testing.T) kv.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, kv.Store)
	}{
		{"a get sees what was written before it and says when there is nothing", getSeesWrites},
		{"revisions only grow and name the write", revisionsGrow},
		{"a list is sorted and stays within its prefix", listIsSorted},
		{"pages of one list show one revision", pagesShowOneRevision},
		{"a list at a compacted revision says so", compactedList},
		{"a transaction applies everything or nothing", allOrNothing},
		{"a conflict names the first key that differs", conflictNamesFirstKey},
		{"a prefix comparison holds only where nothing is", prefixComparison},
		{"delete prefix removes what is under it and nothing else", deletePrefix},
		{"a transaction without effect is no revision", noEffectNoRevision},
		{"what no implementation could run is refused", limits},
		{"of many writers that expect one revision one wins", oneWinner},
		{"a watch delivers every change in order", watchInOrder},
		{"a watch delivers all changes of one revision in one batch", watchWholeRevisions},
		{"a watch stays within its prefix", watchPrefix},
		{"a watch begins at the revision it is given", watchResumes},
		{"a watch from now on misses nothing that is written after it", watchFromNow},
		{"a watch from a compacted revision ends with an error", compactedWatch},
		{"two watchers see the same", twoWatchers},
		{"a slow watcher holds nobody up and misses nothing", slowWatcher},
		{"a watch says how far it is when asked", watchProgress},
		{"a watch ends with its context", watchEndsWithContext},
		{"one leads at a time, and the next when it resigns", oneLeader},
		{"there is one leader for each prefix", otherSeats},
		{"a leader whose lease has run out writes nothing, and the next one leads", deposed},
		{"a campaign ends with its context and leaves nothing", campaignEnds},
		{"closing ends leadership", closingDeposes},
		{"closing ends watches and refuses calls", closing},
		{"a call whose context has ended fails", endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			s := open(t)
			test.run(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// Put writes one key and returns the revision.
func Put(t testing.TB, s kv.Store, key, value string) int64 {
	t.Helper()
	return txn(t, s, kv.Txn{Then: []kv.Op{kv.Put(key, []byte(value))}})
}

// WantError fails the test unless the error says all of the parts.
func WantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

func txn(t testing.TB, s kv.Store, x kv.Txn) int64 {
	t.Helper()
	revision, err := s.Txn(t.Context(), x)
	if err != nil {
		t.Fatalf("txn %+v: %v", x, err)
	}
	return revision
}

func list(t *testing.T, s kv.Store, prefix string, o kv.ListOptions) kv.Page {
	t.Helper()
	p, err := s.List(t.Context(), prefix, o)
	if err != nil {
		t.Fatalf("list %s %+v: %v", prefix, o, err)
	}
	return p
}

func keys(p kv.Page) []string {
	out := []string{}
	for _, item := range p.Items {
		out = append(out, item.Key)
	}
	return out
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func compact(t *testing.T, s kv.Store, revision int64) {
	t.Helper()
	c, ok := s.(Compacter)
	if !ok {
		t.Fatalf("%T cannot be compacted", s)
	}
	if err := c.Compact(t.Context(), revision); err != nil {
		t.Fatalf("compact at %d: %v", revision, err)
	}
}

func getSeesWrites(t *testing.T, s kv.Store) {
	_, err := s.Get(t.Context(), "/a")
	if !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of nothing: %v, want ErrNotFound", err)
	}
	for i := range 20 {
		revision := Put(t, s, "/a", fmt.Sprint(i))
		got, err := s.Get(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "value", got, kv.Item{Key: "/a", Value: []byte(fmt.Sprint(i)), Revision: revision})
	}
	txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete("/a")}})
	if _, err := s.Get(t.Context(), "/a"); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("get of a deleted key: %v, want ErrNotFound", err)
	}
}

func revisionsGrow(t *testing.T, s kv.Store) {
	var last int64
	for i := range 10 {
		revision := Put(t, s, fmt.Sprintf("/k%d", i%3), "x")
		if revision <= last {
			t.Errorf("revision %d after %d", revision, last)
		}
		last = revision
	}
	same(t, "revision of a list", list(t, s, "/", kv.ListOptions{}).Revision, last)
}

func listIsSorted(t *testing.T, s kv.Store) {
	for _, k := range []string{"/b/2", "/a/9", "/b/1", "/b", "/bc/0", "/b/10"} {
		Put(t, s, k, k)
	}
	same(t, "keys under /b/", keys(list(t, s, "/b/", kv.ListOptions{})), []string{"/b/1", "/b/10", "/b/2"})
	same(t, "keys under /b", keys(list(t, s, "/b", kv.ListOptions{})), []string{"/b", "/b/1", "/b/10", "/b/2", "/bc/0"})
	same(t, "keys under /z", keys(list(t, s, "/z", kv.ListOptions{})), []string{})
	if _, err := s.List(t.Context(), "", kv.ListOptions{}); err == nil {
		t.Error("a list without a prefix is not refused")
	}
}

func pagesShowOneRevision(t *testing.T, s kv.Store) {
	for i := range 5 {
		Put(t, s, fmt.Sprintf("/p/%d", i), "old")
	}
	first := list(t, s, "/p/", kv.ListOptions{Limit: 2})
	same(t, "first page", keys(first), []string{"/p/0", "/p/1"})
	if !first.More {
		t.Error("the first page does not say that more follows")
	}
	Put(t, s, "/p/3", "new")
	Put(t, s, "/p/25", "new")
	txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete("/p/4")}})
	second := list(t, s, "/p/", kv.ListOptions{Limit: 2, After: "/p/1", Revision: first.Revision})
	same(t, "second page", keys(second), []string{"/p/2", "/p/3"})
	same(t, "value at the revision", string(second.Items[1].Value), "old")
	same(t, "revision of the second page", second.Revision, first.Revision)
	third := list(t, s, "/p/", kv.ListOptions{Limit: 2, After: "/p/3", Revision: first.Revision})
	same(t, "third page", keys(third), []string{"/p/4"})
	if third.More {
		t.Error("the last page says that more follows")
	}
	same(t, "after the last", keys(list(t, s, "/p/", kv.ListOptions{After: "/p/9"})), []string{})
	same(t, "after another prefix", keys(list(t, s, "/p/", kv.ListOptions{After: "/q"})), []string{})
	same(t, "a limit that fits", list(t, s, "/p/", kv.ListOptions{Limit: 5}).More, false)
}

func compactedList(t *testing.T, s kv.Store) {
	old := Put(t, s, "/a", "1")
	Put(t, s, "/a", "2")
	at := Put(t, s, "/a", "3")
	Put(t, s, "/a", "4")
	compact(t, s, at)
	if _, err := s.List(t.Context(), "/", kv.ListOptions{Revision: old}); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("list at revision %d, compacted at %d: %v, want ErrCompacted", old, at, err)
	}
	same(t, "value at the compacted revision", string(list(t, s, "/a", kv.ListOptions{Revision: at}).Items[0].Value), "3")
	same(t, "present value", string(list(t, s, "/a", kv.ListOptions{}).Items[0].Value), "4")
	if _, err := s.List(t.Context(), "/", kv.ListOptions{Revision: at + 1000}); err == nil {
		t.Error("a list at a revision that is not there yet is not refused")
	}
}
