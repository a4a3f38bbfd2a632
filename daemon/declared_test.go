package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
)

// A declared endpoint is asked while its daemon leads, and only then is anything known
// of it.
func TestR5_declaredEndpointsAreAskedWhileTheDaemonLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := conformance.NewMemory()
		defer below.Close()
		records := store.NewRecords(below, "staging")
		if err := records.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		view := store.NewView(records, nil)
		ctx, cancel := context.WithCancel(t.Context())
		viewed := make(chan error, 1)
		go func() { viewed <- view.Run(ctx) }()
		d := &declaredProbes{view: view, probe: func(_ context.Context, target readiness.Target) fleet.ProbeObservation {
			if !target.Foreign || target.Path != "" {
				t.Errorf("probed as %+v", target)
			}
			return fleet.ProbeObservation{URL: target.URL, Begun: time.Now(), Ready: strings.Contains(target.URL, "up")}
		}}
		declare := func(account, url string) {
			tx := records.Begin()
			tx.PutCacheEndpoint(store.Versioned[fleet.CacheEndpoint]{}, fleet.CacheEndpoint{Account: account, URL: url}.WithDefaults())
			if _, err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when, account, url string, ready, known bool) {
			t.Helper()
			synctest.Wait()
			if r, k := d.Answers(account, url); r != ready || k != known {
				t.Errorf("%s: %s of %s is ready %v, known %v; want %v, %v", when, url, account, r, k, ready, known)
			}
		}
		const up, down = "https://up.example.dev", "https://down.example.dev"
		declare("acme", up)
		synctest.Wait()
		for range 2 { // a kurad may lead again
			term, end := context.WithCancel(ctx)
			ended := make(chan struct{})
			want("before it leads", "acme", up, false, false)
			go func() { d.Run(term); close(ended) }()
			want("declared before", "acme", up, true, true)
			want("of nobody", "bravo", up, false, false)
			end()
			<-ended
			want("it leads no more", "acme", up, false, false)
		}
		term, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { d.Run(term); close(ended) }()
		declare("acme", down)
		want("declared meanwhile", "acme", down, false, true)
		stored, err := records.CacheEndpoint(t.Context(), "acme", fleet.CacheEndpoint{URL: up}.Key())
		if err != nil {
			t.Fatal(err)
		}
		tx := records.Begin()
		tx.DeleteCacheEndpoint(stored)
		if _, err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		want("removed", "acme", up, false, false)
		want("the other stays", "acme", down, false, true)
		end()
		<-ended
		cancel()
		if err := <-viewed; err != nil {
			t.Error(err)
		}
	})
}
