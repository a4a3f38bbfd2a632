package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

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

	following sync.Mutex                                  // an older answer of the view may not come after a newer one
	watcher   atomic.Pointer[readiness.Endpoints[string]] // nil while Run does not run
}

// Run probes until ctx ends. It may run again.
func (d *declaredProbes) Run(ctx context.Context) {
	watcher := readiness.NewWatcher(d.probe, func(string) {}, declaredPace)
	d.watcher.Store(watcher)
	defer d.watcher.Store(nil)
	follow := func(account string) {
		d.following.Lock()
		defer d.following.Unlock()
		var targets []readiness.Target
		for _, e := range d.view.CacheEndpoints(account) {
			targets = append(targets, readiness.Target{URL: e.URL, Foreign: true})
		}
		watcher.Set(account, targets, false)
	}
	cancel := d.view.Subscribe(func(u store.Update) {
		if account, _, ok := strings.Cut(u.Name, "/"); ok && u.Kind == store.KindEndpoint {
			follow(account)
		}
	})
	defer cancel()
	for _, account := range d.view.AccountsWithEndpoints() {
		follow(account)
	}
	watcher.Run(ctx)
}

// Answers implements server.DeclaredProbes.
func (d *declaredProbes) Answers(account, url string) (ready, known bool) {
	watcher := d.watcher.Load()
	if watcher == nil {
		return false, false
	}
	seen, known := watcher.Latest(account, url)
	return seen.Ready, known
}
