//go:build real

package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// containerWatch lists the containers of a region all the time, and remembers what must
// not be: two that run for one service, or two that ran from one document. A leader that
// was stopped in the middle of a create may, when it goes on, make a temporary container
// that is never started: that one is cleared away, and matters to nobody.
type containerWatch struct {
	mu     sync.Mutex
	ran    map[string]map[string]bool // ids, by account and digest
	twice  []string
	listed int
	stop   func()
}

func watchContainers(t *testing.T, environment, region string) *containerWatch {
	t.Helper()
	env, err := fleet.NewEnvironment(environment, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := containers.Open(containers.Config{Name: "watch", Socket: real.engine.Socket()}, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &containerWatch{ran: map[string]map[string]bool{}}
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if list, err := e.List(ctx); err == nil {
				w.take(list, region)
			}
			pause(ctx, 150*time.Millisecond)
		}
	})
	w.stop = func() { cancel(); group.Wait() }
	t.Cleanup(w.stop)
	return w
}

func (w *containerWatch) take(list []fleet.Container, region string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed++
	running := map[string]string{}
	for _, c := range list {
		if c.Foreign != "" || c.Region != region {
			continue
		}
		if c.State != fleet.ContainerRunning {
			continue
		}
		key := c.Account + " " + c.Digest
		if w.ran[key] == nil {
			w.ran[key] = map[string]bool{}
		}
		w.ran[key][c.ID] = true
		service := c.Account + "/" + c.Service
		if other := running[service]; other != "" {
			w.twice = append(w.twice, service+": "+other+" and "+c.Name)
		}
		running[service] = c.Name
	}
}

// check says what was seen that must not be.
func (w *containerWatch) check(t *testing.T, accounts []string, rolls int) {
	t.Helper()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, ids := range w.ran {
		if len(ids) > 1 {
			account, digest, _ := strings.Cut(key, " ")
			t.Errorf("server %s: %d containers ran from one document (%.12s)", account, len(ids), digest)
		}
	}
	if len(w.twice) > 0 {
		t.Errorf("two containers of one service ran at once: %v", w.twice)
	}
	if w.listed < rolls || len(w.ran) < rolls {
		t.Errorf("%d listings saw %d documents of %d servers: that is too little to tell", w.listed, len(w.ran), len(accounts))
	}
}
