package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func allOrNothing(t *testing.T, s kv.Store) {
	a := Put(t, s, "/a", "1")
	before := list(t, s, "/", kv.ListOptions{})
	_, err := s.Txn(t.Context(), kv.Txn{
		If:   []kv.Compare{kv.Unchanged("/a", a), kv.Absent("/a")},
		Then: []kv.Op{kv.Put("/a", []byte("2")), kv.Put("/b", nil)},
	})
	if !kv.IsConflict(err) {
		t.Fatalf("err = %v, want a conflict", err)
	}
	same(t, "after the conflict", list(t, s, "/", kv.ListOptions{}), before)

	revision := txn(t, s, kv.Txn{
		If:   []kv.Compare{kv.Unchanged("/a", a), kv.Absent("/b")},
		Then: []kv.Op{kv.Delete("/a"), kv.Put("/b", []byte("b")), kv.Put("/c", []byte("c"))},
	})
	same(t, "after the transaction", list(t, s, "/", kv.ListOptions{}), kv.Page{
		Revision: revision,
		Items:    []kv.Item{{Key: "/b", Value: []byte("b"), Revision: revision}, {Key: "/c", Value: []byte("c"), Revision: revision}},
	})
}

func conflictNamesFirstKey(t *testing.T, s kv.Store) {
	a, b := Put(t, s, "/a", "1"), Put(t, s, "/b", "1")
	tests := []struct {
		name string
		ifs  []kv.Compare
		want string
	}{
		{"the second", []kv.Compare{kv.Unchanged("/a", a), kv.Unchanged("/b", a), kv.Absent("/a")}, "/b"},
		{"one that is there", []kv.Compare{kv.Absent("/c"), kv.Absent("/b")}, "/b"},
		{"one that is gone", []kv.Compare{kv.Unchanged("/c", b), kv.Unchanged("/a", b)}, "/c"},
	}
	for _, test := range tests {
		_, err := s.Txn(t.Context(), kv.Txn{If: test.ifs, Then: []kv.Op{kv.Put("/x", nil)}})
		conflict, ok := errors.AsType[*kv.ConflictError](err)
		if !ok || conflict.Key != test.want {
			t.Errorf("%s: err = %v, want a conflict of %s", test.name, err, test.want)
		}
	}
}

func prefixComparison(t *testing.T, s kv.Store) {
	try := func() error {
		_, err := s.Txn(t.Context(), kv.Txn{
			If: []kv.Compare{kv.NoneUnder("/r/eu/")}, Then: []kv.Op{kv.Put("/done", nil)},
		})
		return err
	}
	Put(t, s, "/r/eu", "x")
	Put(t, s, "/r/eu-2/a", "x")
	if err := try(); err != nil {
		t.Errorf("with nothing under it: %v", err)
	}
	Put(t, s, "/r/eu/a", "x")
	conflict, ok := errors.AsType[*kv.ConflictError](try())
	if !ok {
		t.Fatal("with a key under it: no conflict")
	}
	same(t, "conflict", *conflict, kv.ConflictError{Key: "/r/eu/", Found: "/r/eu/a"})
	txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete("/r/eu/a")}})
	if err := try(); err != nil {
		t.Errorf("after the key under it went: %v", err)
	}
}

func deletePrefix(t *testing.T, s kv.Store) {
	for _, k := range []string{"/d", "/d/1", "/d/2/x", "/d2", "/e"} {
		Put(t, s, k, "x")
	}
	revision := txn(t, s, kv.Txn{Then: []kv.Op{kv.DeletePrefix("/d/"), kv.Put("/f", nil)}})
	page := list(t, s, "/", kv.ListOptions{})
	same(t, "what is left", keys(page), []string{"/d", "/d2", "/e", "/f"})
	same(t, "revision", page.Revision, revision)
}

func noEffectNoRevision(t *testing.T, s kv.Store) {
	a := Put(t, s, "/a", "1")
	same(t, "comparison only", txn(t, s, kv.Txn{If: []kv.Compare{kv.Unchanged("/a", a)}}), a)
	same(t, "deletion of nothing", txn(t, s, kv.Txn{Then: []kv.Op{kv.Delete("/b"), kv.DeletePrefix("/c/")}}), a)
	same(t, "revision", list(t, s, "/", kv.ListOptions{}).Revision, a)
}

func limits(t *testing.T, s kv.Store) {
	puts := func(n int) (ops []kv.Op) {
		for i := range n {
			ops = append(ops, kv.Put(fmt.Sprintf("/l/%03d", i), []byte("x")))
		}
		return ops
	}
	compares := func(n int) (ifs []kv.Compare) {
		for i := range n {
			ifs = append(ifs, kv.Absent(fmt.Sprintf("/m/%03d", i)))
		}
		return ifs
	}
	txn(t, s, kv.Txn{If: compares(kv.MaxOps), Then: puts(kv.MaxOps)})
	txn(t, s, kv.Txn{Then: []kv.Op{kv.Put("/big", []byte(strings.Repeat("x", kv.MaxBytes-100)))}})
	before := list(t, s, "/", kv.ListOptions{})
	tests := []struct {
		name string
		txn  kv.Txn
		want error
	}{
		{"too many operations", kv.Txn{Then: puts(kv.MaxOps + 1)}, kv.ErrTooLarge},
		{"too many comparisons", kv.Txn{If: compares(kv.MaxOps + 1)}, kv.ErrTooLarge},
		{"too large", kv.Txn{Then: []kv.Op{kv.Put("/big", make([]byte, kv.MaxBytes+1))}}, kv.ErrTooLarge},
		{"one key twice", kv.Txn{Then: []kv.Op{kv.Put("/a", nil), kv.Delete("/a")}}, kv.ErrBadTxn},
		{"a key under a removed prefix", kv.Txn{Then: []kv.Op{kv.DeletePrefix("/l/"), kv.Put("/l/1", nil)}}, kv.ErrBadTxn},
		{"no key", kv.Txn{Then: []kv.Op{kv.Put("", nil)}}, kv.ErrBadTxn},
		{"a comparison of no key", kv.Txn{If: []kv.Compare{kv.Absent("")}}, kv.ErrBadTxn},
		{"a prefix with a revision", kv.Txn{If: []kv.Compare{{Key: "/", Prefix: true, Revision: 1}}}, kv.ErrBadTxn},
		{"an unknown operation", kv.Txn{Then: []kv.Op{{Kind: "move", Key: "/a"}}}, kv.ErrBadTxn},
	}
	for _, test := range tests {
		if _, err := s.Txn(t.Context(), test.txn); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	same(t, "after the refusals", list(t, s, "/", kv.ListOptions{}).Revision, before.Revision)
}

func oneWinner(t *testing.T, s kv.Store) {
	const writers, rounds = 8, 10
	for range rounds {
		page := list(t, s, "/lock", kv.ListOptions{})
		var at int64
		if len(page.Items) > 0 {
			at = page.Items[0].Revision
		}
		var wins, losses int
		var mu sync.Mutex
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				_, err := s.Txn(t.Context(), kv.Txn{
					If: []kv.Compare{kv.Unchanged("/lock", at)}, Then: []kv.Op{kv.Put("/lock", []byte{byte(w)})},
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					wins++
				case kv.IsConflict(err):
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
