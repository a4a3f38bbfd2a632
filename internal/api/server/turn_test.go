package server_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// A runtime that does not answer holds up whoever needs its answer, and no other write: not of
// a server, and not one that must run alone.
func TestG9_aRuntimeThatDoesNotAnswerHoldsUpNoOtherWrite(t *testing.T) {
	w := newWorld(t)
	w.runtimes.more = []string{"silent"}
	w.seed([]string{"eu"}, "acme", "umbra")
	silent := region("mute")
	silent.Containers.Endpoint = "silent"
	w.must(w.client.PutRegion(t.Context(), silent, api.PutOptions{}))
	answer := make(chan struct{})
	asked := make(chan struct{}, 100)
	w.runtimes.hangs = func(_ context.Context, endpoint string) {
		if endpoint == "silent" {
			asked <- struct{}{}
			<-answer // whatever the context says
		}
	}
	var held sync.WaitGroup
	for name, write := range map[string]func() error{
		"a new server": func() error {
			_, err := w.client.PutServer(t.Context(), srv("acme", "mute", "v1"), api.PutOptions{})
			return err
		},
		"a dry run": func() error {
			_, err := w.client.PutServer(t.Context(), srv("umbra", "mute", "v1"), api.PutOptions{DryRun: true})
			return err
		},
		"an adoption": func() error {
			_, err := w.client.Adopt(t.Context(), key("umbra", "mute"), api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": "made-by-hand"}})
			if fleet.CodeOf(err) == fleet.CodeInvalid { // there is no such container
				return nil
			}
			return err
		},
	} {
		held.Go(func() {
			if err := write(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		<-asked
	}
	w.put(srv("acme", "eu", "v1"))
	w.must(w.client.PutAccount(t.Context(), fleet.Account{ID: "acme", Handle: "acme-2"}, api.PutOptions{}))
	w.must(w.client.PutRegion(t.Context(), region("us"), api.PutOptions{}))
	close(answer)
	held.Wait()
}

// A write that never ends, whatever its deadline says, is seen: kurad is not ready.
func TestG9_readyzSaysThatNoWriteEnds(t *testing.T) {
	below := &stuck{Store: conformance.NewMemory(), on: make(chan struct{}), off: make(chan struct{})}
	w := newWorldOn(t, below)
	w.viewed()
	ready := func() (int, string) {
		resp, b := w.do("GET", "/readyz", "", "")
		return resp.StatusCode, string(b)
	}
	below.sticks.Store(true)
	ended := make(chan error, 1)
	go func() {
		_, err := w.client.PutAccount(t.Context(), fleet.Account{ID: "acme"}, api.PutOptions{})
		ended <- err
	}()
	<-below.on
	if status, b := ready(); status != http.StatusOK {
		t.Errorf("while a write is under way: %d %s", status, b)
	}
	w.clock.advance(2 * time.Minute)
	if status, b := ready(); status != http.StatusServiceUnavailable || !strings.Contains(b, "no write has ended for 2m0s") {
		t.Errorf("while a write does not end: %d %s", status, b)
	}
	close(below.off)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if status, b := ready(); status != http.StatusOK {
		t.Errorf("once it has ended: %d %s", status, b)
	}
}

// stuck is a store one of whose transactions heeds no deadline.
type stuck struct {
	kv.Store
	sticks  atomic.Bool
	on, off chan struct{}
}

func (s *stuck) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	if s.sticks.CompareAndSwap(true, false) {
		close(s.on)
		<-s.off
	}
	return s.Store.Txn(ctx, t)
}
