package store_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// BenchmarkTurn compares, in one run and by turns, a CommitTurn of a status with the
// bare fsynced put of a value of the same size that it cannot do without. The number
// to look at is the ratio.
func BenchmarkTurn(b *testing.B) {
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(b.TempDir(), "store")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := store.NewRecords(s, "staging")
	if err := r.Prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	tx := r.Begin()
	tx.PutIntent(store.Versioned[fleet.Intent]{}, intentOf(acme, 1))
	if _, err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	g, err := r.Gather(b.Context(), acme)
	if err != nil {
		b.Fatal(err)
	}
	w := turnOf(acme, g, "benchmark")
	for _, rule := range fleet.ConditionRules() {
		w.Status.Conditions = append(w.Status.Conditions, fleet.Condition{Type: rule.Type, Status: fleet.True, Reason: fleet.ReasonReady, Message: rule.Meaning})
	}
	value, err := json.Marshal(w.Status)
	if err != nil {
		b.Fatal(err)
	}
	var turns, puts time.Duration
	for i := 0; b.Loop(); i++ {
		w.Status.Message = fmt.Sprint(i)
		start := time.Now()
		if err := r.CommitTurn(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		turns += time.Since(start)
		status, err := r.Status(b.Context(), acme)
		if err != nil {
			b.Fatal(err)
		}
		w.StatusRevision = status.Revision
		start = time.Now()
		if _, err := s.Txn(b.Context(), kv.Txn{Then: []kv.Op{kv.Put("/raw", value)}}); err != nil {
			b.Fatal(err)
		}
		puts += time.Since(start)
	}
	b.ReportMetric(float64(turns.Microseconds())/float64(b.N), "turn-µs")
	b.ReportMetric(float64(puts.Microseconds())/float64(b.N), "put-µs")
	b.ReportMetric(float64(turns)/float64(puts), "turn/put")
}
