package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func allOrNothing(t *testing.T, s store.Store) {
	a := put(t, s, "/a", "1")
	before := list(t, s, "/", store.ListOptions{})
	_, err := s.Txn(t.Context(), store.Txn{
		If:   []store.Compare{store.Unchanged("/a", a), store.Absent("/a")},
		Then: []store.Op{store.Put("/a", []byte("2")), store.Put("/b", nil)},
	})
	if !store.IsConflict(err) {
		t.Fatalf("err = %v, want a conflict", err)
	}
	same(t, "after the conflict", list(t, s, "/", store.ListOptions{}), before)

	revision := txn(t, s, store.Txn{
		If:   []store.Compare{store.Unchanged("/a", a), store.Absent("/b")},
		Then: []store.Op{store.Delete("/a"), store.Put("/b", []byte("b")), store.Put("/c", []byte("c"))},
	})
	same(t, "after the transaction", list(t, s, "/", store.ListOptions{}), store.Page{
		Revision: revision,
		Items:    []store.KV{{Key: "/b", Value: []byte("b"), Revision: revision}, {Key: "/c", Value: []byte("c"), Revision: revision}},
	})
}

func conflictNamesFirstKey(t *testing.T, s store.Store) {
	a, b := put(t, s, "/a", "1"), put(t, s, "/b", "1")
	tests := []struct {
		name string
		ifs  []store.Compare
		want string
	}{
		{"the second", []store.Compare{store.Unchanged("/a", a), store.Unchanged("/b", a), store.Absent("/a")}, "/b"},
		{"one that is there", []store.Compare{store.Absent("/c"), store.Absent("/b")}, "/b"},
		{"one that is gone", []store.Compare{store.Unchanged("/c", b), store.Unchanged("/a", b)}, "/c"},
	}
	for _, test := range tests {
		_, err := s.Txn(t.Context(), store.Txn{If: test.ifs, Then: []store.Op{store.Put("/x", nil)}})
		conflict, ok := errors.AsType[*store.ConflictError](err)
		if !ok || conflict.Key != test.want {
			t.Errorf("%s: err = %v, want a conflict of %s", test.name, err, test.want)
		}
	}
}

func prefixComparison(t *testing.T, s store.Store) {
	try := func() error {
		_, err := s.Txn(t.Context(), store.Txn{
			If: []store.Compare{store.NoneUnder("/r/eu/")}, Then: []store.Op{store.Put("/done", nil)},
		})
		return err
	}
	put(t, s, "/r/eu", "x")
	put(t, s, "/r/eu-2/a", "x")
	if err := try(); err != nil {
		t.Errorf("with nothing under it: %v", err)
	}
	put(t, s, "/r/eu/a", "x")
	conflict, ok := errors.AsType[*store.ConflictError](try())
	if !ok {
		t.Fatal("with a key under it: no conflict")
	}
	same(t, "conflict", *conflict, store.ConflictError{Key: "/r/eu/", Found: "/r/eu/a"})
	txn(t, s, store.Txn{Then: []store.Op{store.Delete("/r/eu/a")}})
	if err := try(); err != nil {
		t.Errorf("after the key under it went: %v", err)
	}
}

func deletePrefix(t *testing.T, s store.Store) {
	for _, k := range []string{"/d", "/d/1", "/d/2/x", "/d2", "/e"} {
		put(t, s, k, "x")
	}
	revision := txn(t, s, store.Txn{Then: []store.Op{store.DeletePrefix("/d/"), store.Put("/f", nil)}})
	page := list(t, s, "/", store.ListOptions{})
	same(t, "what is left", keys(page), []string{"/d", "/d2", "/e", "/f"})
	same(t, "revision", page.Revision, revision)
}

func noEffectNoRevision(t *testing.T, s store.Store) {
	a := put(t, s, "/a", "1")
	same(t, "comparison only", txn(t, s, store.Txn{If: []store.Compare{store.Unchanged("/a", a)}}), a)
	same(t, "deletion of nothing", txn(t, s, store.Txn{Then: []store.Op{store.Delete("/b"), store.DeletePrefix("/c/")}}), a)
	same(t, "revision", list(t, s, "/", store.ListOptions{}).Revision, a)
}

func limits(t *testing.T, s store.Store) {
	puts := func(n int) (ops []store.Op) {
		for i := range n {
			ops = append(ops, store.Put(fmt.Sprintf("/l/%03d", i), []byte("x")))
		}
		return ops
	}
	compares := func(n int) (ifs []store.Compare) {
		for i := range n {
			ifs = append(ifs, store.Absent(fmt.Sprintf("/m/%03d", i)))
		}
		return ifs
	}
	txn(t, s, store.Txn{If: compares(store.MaxOps), Then: puts(store.MaxOps)})
	txn(t, s, store.Txn{Then: []store.Op{store.Put("/big", []byte(strings.Repeat("x", store.MaxBytes-100)))}})
	before := list(t, s, "/", store.ListOptions{})
	tests := []struct {
		name string
		txn  store.Txn
		want error
	}{
		{"too many operations", store.Txn{Then: puts(store.MaxOps + 1)}, store.ErrTooLarge},
		{"too many comparisons", store.Txn{If: compares(store.MaxOps + 1)}, store.ErrTooLarge},
		{"too large", store.Txn{Then: []store.Op{store.Put("/big", make([]byte, store.MaxBytes+1))}}, store.ErrTooLarge},
		{"one key twice", store.Txn{Then: []store.Op{store.Put("/a", nil), store.Delete("/a")}}, store.ErrBadTxn},
		{"a key under a removed prefix", store.Txn{Then: []store.Op{store.DeletePrefix("/l/"), store.Put("/l/1", nil)}}, store.ErrBadTxn},
		{"no key", store.Txn{Then: []store.Op{store.Put("", nil)}}, store.ErrBadTxn},
		{"a comparison of no key", store.Txn{If: []store.Compare{store.Absent("")}}, store.ErrBadTxn},
		{"a prefix with a revision", store.Txn{If: []store.Compare{{Key: "/", Prefix: true, Revision: 1}}}, store.ErrBadTxn},
		{"an unknown operation", store.Txn{Then: []store.Op{{Kind: "move", Key: "/a"}}}, store.ErrBadTxn},
	}
	for _, test := range tests {
		if _, err := s.Txn(t.Context(), test.txn); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	same(t, "after the refusals", list(t, s, "/", store.ListOptions{}).Revision, before.Revision)
}

func oneWinner(t *testing.T, s store.Store) {
	const writers, rounds = 8, 10
	for range rounds {
		page := list(t, s, "/lock", store.ListOptions{})
		var at int64
		if len(page.Items) > 0 {
			at = page.Items[0].Revision
		}
		var wins, losses int
		var mu sync.Mutex
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				_, err := s.Txn(t.Context(), store.Txn{
					If: []store.Compare{store.Unchanged("/lock", at)}, Then: []store.Op{store.Put("/lock", []byte{byte(w)})},
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					wins++
				case store.IsConflict(err):
					losses++
				default:
					t.Errorf("writer %d: %v", w, err)
				}
			})
		}
		group.Wait()
		if wins != 1 || losses != writers-1 {
			t.Fatalf("%d writers won and %d lost, want 1 and %d", wins, losses, writers-1)
		}
	}
}
