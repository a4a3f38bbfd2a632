package containers_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// An engine that accepts and never answers holds up each call until its own deadline, and no
// longer: neither for what else waits, nor once the engine answers.
func TestG9_aSilentEngineHoldsUpEachCallForItsOwnTimeOnly(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Bool
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Api-Version", "1.41")
		answer(200, []any{})(w, r)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	e := open(t, containers.Config{Name: "silent", Socket: socket})
	e.StreamWithin(time.Hour, time.Hour)
	watching, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Watch(watching, func(string) {}) }() // has no deadline of its own
	within := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	returned := make(chan error, 3)
	go func() { _, err := e.List(within(100 * time.Millisecond)); returned <- err }()
	go func() { returned <- e.Adoptable(within(100*time.Millisecond), someID) }()
	go func() {
		o := e.Execute(within(100*time.Millisecond), acme, "i", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}}, nil)
		returned <- errors.New(o.Message)
	}()
	for range 3 {
		select {
		case err := <-returned:
			if err == nil {
				t.Error("a silent engine was understood")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a call goes on far behind its deadline")
		}
	}
	answers.Store(true)
	if _, err := e.List(within(30 * time.Second)); err != nil {
		t.Errorf("once it answers: %v", err)
	}
	end()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A stream that does not begin, and one that is open and half dead, are opened again, and
// what happened meanwhile is looked for.
func TestG9_anEventStreamThatSaysNothingIsOpenedAgain(t *testing.T) {
	for name, begins := range map[string]bool{"it does not begin": false, "it is silent": true} {
		t.Run(name, func(t *testing.T) {
			opened := make(chan struct{}, 100)
			e := fakeEngine(t, map[string]http.HandlerFunc{"GET /events": func(w http.ResponseWriter, r *http.Request) {
				opened <- struct{}{}
				if begins {
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}})
			e.StreamWithin(100*time.Millisecond, 100*time.Millisecond)
			ctx, end := context.WithCancel(t.Context())
			looks, ended := make(chan string, 100), make(chan error, 1)
			go func() { ended <- e.Watch(ctx, func(name string) { looks <- name }) }()
			for range 3 {
				<-opened
				if name := <-looks; name != "" {
					t.Errorf("an event of %q", name)
				}
			}
			end()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}
