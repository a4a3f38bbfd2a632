package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// flaky ends watches and fails lists as a store under stress does.
type flaky struct {
	*conformance.Memory
	mu     sync.Mutex
	budget int // batches until the watch ends
	fails  int // lists that fail
	lists  int
	err    error
}

func (f *flaky) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	f.mu.Lock()
	f.lists++
	fail := f.fails > 0
	if fail {
		f.fails--
	}
	f.mu.Unlock()
	if fail {
		return kv.Page{}, errors.New("no answer")
	}
	return f.Memory.List(ctx, prefix, o)
}

func (f *flaky) Watch(ctx context.Context, prefix string, from int64) (<-chan kv.Batch, error) {
	in, err := f.Memory.Watch(ctx, prefix, from)
	if err != nil {
		return nil, err
	}
	out := make(chan kv.Batch)
	go func() {
		defer close(out)
		for n := 0; ; n++ {
			f.mu.Lock()
			end, cause := f.budget > 0 && n >= f.budget, f.err
			f.mu.Unlock()
			if end {
				if cause != nil {
					select {
					case out <- kv.Batch{Err: cause}:
					case <-ctx.Done():
					}
				}
				return
			}
			b, ok := <-in
			if !ok {
				return
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func TestView_listsAgainWhenTheWatchEnds(t *testing.T) {
	for name, cause := range map[string]error{"compacted": kv.ErrCompacted, "closed": nil, "broken": errors.New("stream reset")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := conformance.NewMemory()
				defer m.Close()
				f := &flaky{Memory: m, budget: 2, err: cause, fails: 0}
				r := store.NewRecords(f, "staging")
				if err := r.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				f.fails = 1
				f.mu.Unlock()
				v := store.NewView(r, nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- v.Run(ctx) }()
				var want []string
				for i := range 12 {
					tx := r.Begin()
					tx.PutRegion(store.Versioned[fleet.Region]{}, fleet.Region{Name: fmt.Sprintf("a%02d", i)})
					revision := commit(t, tx)
					if err := v.WaitFor(ctx, revision); err != nil {
						t.Fatal(err)
					}
					want = append(want, fmt.Sprintf("a%02d", i))
				}
				var got []string
				for _, a := range v.Regions() {
					got = append(got, a.Value.Name)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("regions (-want +got):\n%s", diff)
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("run: %v", err)
				}
			})
		})
	}
}

func TestView_endsWhenTheStoreHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := records(t)
		v := store.NewView(r, nil)
		done := make(chan error)
		go func() { done <- v.Run(t.Context()) }()
		if err := v.WaitFor(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		m.Fail(errors.New("disk broken"))
		wantError(t, <-done, "disk broken")
	})
}

func TestView_waitForEndsWithItsContext(t *testing.T) {
	r, _ := records(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := store.NewView(r, nil).WaitFor(ctx, 7)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	wantError(t, err, "revision 7")
}

// Whatever happens to the records and to the watch, the view ends up showing what a
// fresh reading shows, and what subscribers were told adds up to the same.
func TestView_underChurnShowsWhatIsStored(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := conformance.NewMemory()
		defer m.Close()
		f := &flaky{Memory: m, err: kv.ErrCompacted, budget: rapid.IntRange(0, 5).Draw(rt, "budget")}
		r := store.NewRecords(f, "staging")
		if err := r.Prepare(ctx); err != nil {
			rt.Fatal(err)
		}
		v := store.NewView(r, nil)
		told := map[fleet.ServerKey]int64{}
		v.Subscribe(func(u store.Update) {
			switch {
			case u.Kind != store.KindIntent:
			case u.Deleted:
				delete(told, u.Key)
			default:
				told[u.Key] = u.Revision
			}
		})
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			step(ctx, rt, r, m)
		}
		caughtUp(rt, v, r)
		list, _ := v.Servers(nil)
		want := map[fleet.ServerKey]int64{}
		for _, g := range list {
			k := g.Intent.Key()
			stored, err := r.Gather(ctx, k)
			if err != nil || !cmp.Equal(g, stored) {
				rt.Errorf("view shows %+v, stored is %+v (%v)", g, stored, err)
			}
			want[k] = g.IntentRevision
		}
		page, err := m.List(ctx, "/kura/v1/staging/servers/", kv.ListOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		intents := 0
		for _, item := range page.Items {
			if strings.HasSuffix(item.Key, "/intent") {
				intents++
			}
		}
		if intents != len(list) {
			rt.Errorf("view shows %d servers, stored are %d", len(list), intents)
		}
		cancel()
		if err := <-done; err != nil {
			rt.Errorf("run: %v", err)
		}
		if diff := cmp.Diff(want, told); diff != "" {
			rt.Errorf("what subscribers were told (-stored +told):\n%s", diff)
		}
	})
}

// step does one random thing to the records.
func step(ctx context.Context, rt *rapid.T, r *store.Records, m *conformance.Memory) {
	k := fleet.ServerKey{
		Account: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "account"),
		Region:  rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "region"),
	}
	intent, err := r.Intent(ctx, k)
	exists := err == nil
	var seq int64 = 1
	if exists {
		seq = intent.Value.Deployment + 1
	}
	tx := r.Begin()
	switch rapid.SampledFrom([]string{"intent", "intent", "turn", "remove", "region", "compact"}).Draw(rt, "what") {
	case "intent":
		tx.PutIntent(intent, intentOf(k, seq))
		tx.PutDeployment(store.Versioned[fleet.Deployment]{}, deploymentOf(k, seq))
	case "turn", "remove":
		if !exists {
			return
		}
		g, err := r.Gather(ctx, k)
		if err != nil {
			rt.Fatal(err)
		}
		w := turnOf(k, g, fmt.Sprint(seq))
		w.Latest, w.LatestRevision = g.Latest, g.LatestRevision
		w.Events = []fleet.Event{{Account: k.Account, Region: k.Region}}
		w.Remove = rapid.Bool().Draw(rt, "remove")
		if err := r.CommitTurn(ctx, w); err != nil {
			rt.Fatal(err)
		}
		return
	case "region":
		region, err := r.Region(ctx, k.Region)
		if err == nil && rapid.Bool().Draw(rt, "delete region") {
			tx.DeleteRegion(region)
		} else {
			tx.PutRegion(region, fleet.Region{Name: k.Region, DisplayName: fmt.Sprint(seq)})
		}
	case "compact":
		revision, err := r.Revision(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		if err := m.Compact(ctx, revision); err != nil {
			rt.Fatal(err)
		}
		return
	}
	_, err = tx.Commit(ctx)
	if _, used := errors.AsType[*store.UsedError](err); err != nil && !used {
		rt.Fatal(err)
	}
}
