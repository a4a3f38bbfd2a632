package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const staging = "/kura/v1/staging/"

// furnish makes records of every kind in a store and returns them.
func furnish(t *testing.T, s kv.Store) *store.Records {
	t.Helper()
	r := prepared(t, s)
	declare(t, r, acme)
	w := turnOf(acme, gather(t, r, acme), "x")
	w.Events = []fleet.Event{{Account: "acme", Region: "eu", Message: "said"}}
	if err := r.CommitTurn(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for i := range 600 { // more than a page, more than a transaction
		mustPut(t, s, fmt.Sprintf("%stokens/t%04d", staging, i), fmt.Sprintf(`{"schema":1,"generation":1,"value":{"id":"t%04d"}}`, i))
	}
	mustPut(t, s, staging+"nonsense/x", "no \x00 JSON \xff")
	mustPut(t, s, staging+"regions/huge", strings.Repeat("x", 900<<10))
	mustPut(t, s, "/kura/v1/canary/accounts/other", "is of another environment")
	if _, err := s.Campaign(t.Context(), r.LeaderPrefix(), []byte("me")); err != nil {
		t.Fatal(err)
	}
	return r
}

func prepared(t *testing.T, s kv.Store) *store.Records {
	t.Helper()
	r := store.NewRecords(s, "staging")
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func save(t *testing.T, r *store.Records) ([]byte, store.Snapshot) {
	t.Helper()
	var b bytes.Buffer
	info, err := r.Save(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), info
}

// contents are the records of staging that a snapshot carries, with their values.
func contents(t *testing.T, s kv.Store) map[string]string {
	t.Helper()
	page, err := s.List(t.Context(), staging, kv.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, item := range page.Items {
		key := strings.TrimPrefix(item.Key, staging)
		if key != "schema" && !strings.HasPrefix(key, "leader/") {
			out[key] = string(item.Value)
		}
	}
	return out
}

func restored(t *testing.T, from *store.Records, snapshot []byte, target kv.Store) *store.Records {
	t.Helper()
	if _, err := store.Restore(t.Context(), target, "staging", bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, from.Store()), contents(t, target)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	r := prepared(t, target)
	if r.StoreID() == from.StoreID() || r.StoreID() == "" {
		t.Errorf("store id %q, of %q: cursors of the old records would be taken for ours", r.StoreID(), from.StoreID())
	}
	if _, ok, err := r.Leader(t.Context()); ok || err != nil {
		t.Errorf("who led the old records leads the new ones: %v", err)
	}
	return r
}

func TestG7_snapshotMovesAllRecordsToAnotherStore(t *testing.T) {
	memory := conformance.NewMemory()
	defer memory.Close()
	r := furnish(t, memory)
	snapshot, info := save(t, r)
	verified, err := store.Verify(bytes.NewReader(snapshot))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(info, verified); diff != "" {
		t.Errorf("what a reader learns (-saved +read):\n%s", diff)
	}
	if info.Environment != "staging" || info.Records != len(contents(t, memory)) || info.StoreID != r.StoreID() ||
		info.Kinds[store.KindToken] != 600 || info.Kinds[store.KindIntent] != 1 || info.Kinds[store.KindLeader] != 0 || info.Kinds[store.KindOther] != 1 {
		t.Errorf("snapshot %+v", info)
	}
	e := embedded(t, filepath.Join(t.TempDir(), "store"))
	grown := restored(t, r, snapshot, e)
	if g := gather(t, grown, acme); g.Status == nil || g.Latest == nil || len(must[store.Listing[fleet.Event]](t)(grown.Events(t.Context(), acme)).Items) != 1 {
		t.Errorf("a restored server reads as %+v", g)
	}
	again, _ := save(t, grown)
	back := conformance.NewMemory()
	defer back.Close()
	restored(t, grown, again, back)
}

func TestG7_snapshotShowsOneRevision(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	r := furnish(t, m)
	want := contents(t, m)
	var b bytes.Buffer
	writer := writerFunc(func(p []byte) (int, error) { // somebody writes meanwhile
		mustPut(t, m, staging+"accounts/zeta", "new")
		mustPut(t, m, staging+"tokens/t0599", "changed")
		return b.Write(p)
	})
	if _, err := r.Save(t.Context(), writer); err != nil {
		t.Fatal(err)
	}
	target := conformance.NewMemory()
	defer target.Close()
	if _, err := store.Restore(t.Context(), target, "staging", bytes.NewReader(b.Bytes())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, contents(t, target)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestG7_damagedSnapshotIsRefusedAndChangesNothing(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	r := prepared(t, m)
	declare(t, r, acme)
	snapshot, _ := save(t, r)
	target := conformance.NewMemory()
	defer target.Close()
	refused := func(what string, damaged []byte) {
		t.Helper()
		_, err := store.Restore(t.Context(), target, "staging", bytes.NewReader(damaged))
		if !errors.Is(err, store.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", what, err)
		}
	}
	for i := range snapshot {
		for _, flip := range []byte{0x01, 0x20, 0x80} {
			damaged := bytes.Clone(snapshot)
			damaged[i] ^= flip
			refused(fmt.Sprintf("byte %d flipped by %#x", i, flip), damaged)
		}
		refused(fmt.Sprintf("cut after %d bytes", i), snapshot[:i])
	}
	refused("written twice", append(bytes.Clone(snapshot), snapshot...))
	refused("something after its end", append(bytes.Clone(snapshot), '\n'))
	refused("no snapshot", []byte("hello\n"))
	if page, err := target.List(t.Context(), "/", kv.ListOptions{}); err != nil || page.Revision != 1 {
		t.Errorf("a refused snapshot was written: %+v, %v", page, err)
	}
}

func TestG7_snapshotThatDoesNotFitIsRefused(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	r := prepared(t, m)
	declare(t, r, acme)
	snapshot, _ := save(t, r)
	empty := conformance.NewMemory()
	defer empty.Close()
	_, err := store.Restore(t.Context(), empty, "canary", bytes.NewReader(snapshot))
	wantError(t, err, `"staging"`, `"canary"`)
	_, err = store.Restore(t.Context(), m, "staging", bytes.NewReader(snapshot))
	wantError(t, err, "holds records of it already", "empty data directory")
	newer := resealed(snapshot, func(s string) string { return strings.Replace(s, `"schema":3,`, `"schema":99,`, 1) })
	_, err = store.Restore(t.Context(), empty, "staging", bytes.NewReader(newer))
	wantError(t, err, "schema 99", "at least as new")
	future := resealed(snapshot, func(s string) string { return strings.Replace(s, `"version":1,`, `"version":2,`, 1) })
	_, err = store.Verify(bytes.NewReader(future))
	wantError(t, err, "format 2", "at least as new")
	if page, err := empty.List(t.Context(), "/", kv.ListOptions{}); err != nil || page.Revision != 1 {
		t.Errorf("a refused snapshot was written: %+v, %v", page, err)
	}
}

// resealed changes a snapshot and makes its checksum fit, as a newer kurad would write it.
func resealed(snapshot []byte, change func(string) string) []byte {
	lines := strings.SplitAfter(strings.TrimSuffix(change(string(snapshot)), "\n"), "\n")
	body := strings.Join(lines[:len(lines)-1], "")
	return fmt.Appendf([]byte(body), "{\"count\":%d,\"sha256\":\"%x\"}\n", len(lines)-2, sha256.Sum256([]byte(body)))
}

// faulty is a store whose process is killed at its nth transaction.
type faulty struct {
	kv.Store
	left int
}

var errKilled = errors.New("killed")

func (f *faulty) Txn(ctx context.Context, x kv.Txn) (int64, error) {
	if f.left--; f.left < 0 {
		return 0, errKilled
	}
	return f.Store.Txn(ctx, x)
}

func TestG7_restoreThatWasBrokenOffIsBegunAnew(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	r := furnish(t, m)
	snapshot, _ := save(t, r)
	target := conformance.NewMemory()
	defer target.Close()
	broken := 0
	for n := 0; ; n++ {
		_, err := store.Restore(t.Context(), &faulty{target, n}, "staging", bytes.NewReader(snapshot))
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatalf("killed at transaction %d: %v", n, err)
		}
		if broken++; n > 0 {
			wantError(t, store.NewRecords(target, "staging").Prepare(t.Context()), "was not restored to its end", "snapshot restore")
		}
	}
	if broken < 7 {
		t.Errorf("only %d transactions to break off", broken)
	}
	if diff := cmp.Diff(contents(t, m), contents(t, target)); diff != "" {
		t.Errorf("restored after %d crashes (-want +got):\n%s", broken, diff)
	}
	prepared(t, target)
}

func TestG7_twoRestoresAtOnceDoNotMix(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	r := furnish(t, m)
	snapshot, _ := save(t, r)
	target := conformance.NewMemory()
	defer target.Close()
	// The second begins when the first is half done, and is believed.
	overtaken := &overtake{Store: target, at: 4, then: func() {
		if _, err := store.Restore(t.Context(), target, "staging", bytes.NewReader(snapshot)); err != nil {
			t.Errorf("the second restore: %v", err)
		}
	}}
	_, err := store.Restore(t.Context(), overtaken, "staging", bytes.NewReader(snapshot))
	wantError(t, err, "another restore perhaps")
	if diff := cmp.Diff(contents(t, m), contents(t, target)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

// overtake does something before its nth transaction.
type overtake struct {
	kv.Store
	at   int
	then func()
}

func (o *overtake) Txn(ctx context.Context, x kv.Txn) (int64, error) {
	if o.at--; o.at == 0 {
		o.then()
	}
	return o.Store.Txn(ctx, x)
}
