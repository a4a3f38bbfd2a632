package server_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// between is a store that lets somebody in before the next listing below a prefix.
type between struct {
	kv.Store
	prefix string
	mu     sync.Mutex
	first  func() // nil: nobody waits
}

func (s *between) List(ctx context.Context, prefix string, o kv.ListOptions) (kv.Page, error) {
	if strings.Contains(prefix, s.prefix) {
		s.mu.Lock()
		first := s.first
		s.first = nil
		s.mu.Unlock()
		if first != nil {
			first()
		}
	}
	return s.Store.List(ctx, prefix, o)
}

func TestG1_anEqualWriteThatAnotherOvertakesShowsNobodyElsesDeclaration(t *testing.T) {
	for _, tt := range []struct {
		name      string
		meanwhile func(*world)
		want      int64 // generation
	}{
		{"changed", func(w *world) { w.put(srv("acme", "eu", "v2")) }, 3},
		{"destroyed", func(w *world) {
			w.must(w.client.DeleteServer(w.t.Context(), key("acme", "eu")))
			w.remove(key("acme", "eu"))
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			below := &between{Store: conformance.NewMemory(), prefix: "servers/eu/acme/"}
			w := newWorldOn(t, below)
			w.seed([]string{"eu"}, "acme")
			w.put(srv("acme", "eu", "v1"))
			below.mu.Lock()
			below.first = func() { tt.meanwhile(w) }
			below.mu.Unlock()
			got, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !got.Changed || got.Object.Generation != tt.want || got.Object.Intent.ImageTag != "v1" {
				t.Errorf("changed %v to generation %d of %s, want v1 declared again, at generation %d", got.Changed, got.Object.Generation, got.Object.Intent.ImageTag, tt.want)
			}
		})
	}
}
