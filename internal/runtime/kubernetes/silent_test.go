package kubernetes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A cluster that accepts and never answers holds up each look for its own time only, though
// the schema is read by one at a time.
func TestG9_aSilentClusterHoldsUpEachLookForItsOwnTimeOnly(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	c, err := Open(Config{Name: "silent", Environment: fleet.Environment{Name: "staging"}, REST: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	look := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := c.Read(ctx, fleet.ServerKey{Account: "acme", Region: "eu"}, fleet.KubeDocument{Namespace: "kura", Name: "i"}, nil)
		return err
	}
	slow, quick := make(chan error, 1), make(chan error, 1)
	go func() { slow <- look(4 * time.Second) }() // reads the schema all the time
	go func() { quick <- look(50 * time.Millisecond) }()
	select {
	case err := <-quick:
		if fleet.CodeOf(err) != fleet.CodeUnavailable {
			t.Error(err)
		}
	case err := <-slow:
		t.Errorf("the look that began first ended first: %v", err)
	}
	if err := <-slow; fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Error(err)
	}
}
