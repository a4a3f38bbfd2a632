package main

import (
	"context"
	"strings"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// declaredPace keeps the probes of declared endpoints few, whatever users declare.
var declaredPace = readiness.Pace{Concurrency: 16}

// declaredProbes ask the endpoints that users declare whether they answer, at the rate
// of converged servers. They have a watcher of their own, so that a dead one of them
// delays no server. Where they do not run, nothing is known of any endpoint.
type declaredProbes struct {
	view  *store.View
	probe func(context.Context, readiness.Target) fleet.ProbeObservation

	mu      sync.Mutex
	watcher *readiness.Endpoints[string] // nil while Run does not
}

// Run probes until ctx ends. It may run again.
func (d *declaredProbes) Run(ctx context.Context) {
	watcher := readiness.NewWatcher(d.probe, func(string) {}, declaredPace)
	d.use(watcher)
	defer d.use(nil)
	cancel := d.view.Subscribe(func(u store.Update) {
		if account, _, ok := strings.Cut(u.Name, "/"); ok && u.Kind == store.KindEndpoint {
			d.follow(account)
		}
	})
	defer cancel()
	for _, account := range d.view.AccountsWithEndpoints() {
		d.follow(account)
	}
	watcher.Run(ctx)
}

func (d *declaredProbes) use(w *readiness.Endpoints[string]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watcher = w
}

// follow takes over what is declared of an account now. The lock keeps an older answer
// of the view from coming after a newer one.
func (d *declaredProbes) follow(account string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watcher == nil {
		return
	}
	var targets []readiness.Target
	for _, e := range d.view.CacheEndpoints(account) {
		targets = append(targets, readiness.Target{URL: e.URL, Foreign: true})
	}
	d.watcher.Set(account, targets, false)
}

// Answers implements server.DeclaredProbes.
func (d *declaredProbes) Answers(account, url string) (ready, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watcher == nil {
		return false, false
	}
	seen, known := d.watcher.Latest(account, url)
	return seen.Ready, known
}
