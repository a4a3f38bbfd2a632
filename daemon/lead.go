package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// campaignAgain is how long a kurad waits before it campaigns again after the store gave
// no answer, or after it has lost the leadership.
const campaignAgain = time.Second

// catchUpWithin is how long a new leader may take to read what earlier ones stored.
const catchUpWithin = 5 * time.Second

// leaderTerm is what runs while this kurad leads: turns, and the probes and listings that they
// look at. The others of its store only answer the API (G2).
type leaderTerm struct {
	kv.Leadership
	loop    *reconcile.Reconciler
	watcher *readiness.Endpoints[fleet.ServerKey]
	hosts   *dns.Watch
}

// presence is what a leader says of itself to the others.
type presence struct {
	URL string `json:"url"`
}

// advertised is the URL at which the other kurads of the same store reach this one.
func advertised(o options, at net.Addr, own string) (string, error) {
	if o.advertise != "" {
		u, err := url.Parse(o.advertise)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("--advertise %q is not the URL of an API, such as https://kurad-1.example.dev:7433", o.advertise)
		}
		if u.Scheme == "http" && !isLoopback(u.Hostname()) {
			return "", fmt.Errorf("--advertise %s: without TLS it must lead to a loopback address such as 127.0.0.1, for tokens would cross the network in the clear; "+
				"advertise https://%s, and give a certificate with --tls-cert and --tls-key, or let kurad make one with --tls-generate", o.advertise, u.Host)
		}
		return strings.TrimSuffix(o.advertise, "/"), nil
	}
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() && o.store.shared() {
		return "", fmt.Errorf("--listen %s names no address at which the other kurads of the store reach this one: give --advertise https://<its name>:%d", o.listen, tcp.Port)
	}
	return own, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// lead campaigns, leads for as long as it may, and campaigns again, until ctx ends.
func (d *daemon) lead(ctx context.Context) error {
	self, err := json.Marshal(presence{URL: d.advertised})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		leadership, err := d.store.Campaign(ctx, d.records.LeaderPrefix(), self)
		if err == nil {
			err = d.serveTerm(ctx, leadership)
		}
		if ctx.Err() != nil || errors.Is(err, kv.ErrClosed) {
			return nil // whoever watches the store ends the daemon
		}
		if err != nil {
			d.log.Warn("cannot lead, trying again", "error", err, "pause", campaignAgain)
		}
		kv.Pause(ctx, campaignAgain)
	}
	return nil
}

// serveTerm leads until ctx ends or the leadership is lost. It begins with a view that
// shows everything that earlier leaders stored.
func (d *daemon) serveTerm(ctx context.Context, leadership kv.Leadership) error {
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := leadership.Resign(end); err != nil {
			d.log.Warn("could not give up the leadership; it runs out by itself", "error", err)
		}
	}()
	t := &leaderTerm{Leadership: leadership}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func(ended <-chan struct{}) {
		select {
		case <-leadership.Lost():
			cancel()
		case <-ended:
		}
	}(ctx.Done())
	group, ctx := errgroup.WithContext(ctx)
	within, done := context.WithTimeout(ctx, catchUpWithin)
	err := d.view.CatchUp(within)
	done()
	if err != nil { // one that sees nothing leaves the lead to another
		return fmt.Errorf("read what earlier leaders stored: %w", err)
	}
	d.runtimes.expect(d.view.Identities())
	t.watcher = readiness.NewWatcher(d.prober.Probe, func(key fleet.ServerKey) { t.loop.Kick(key) }, readiness.Pace{})
	t.hosts = d.zones.watch(d.env, func(key fleet.ServerKey) { t.loop.Kick(key) }, d.log.Named("dns"))
	engines, clusters := d.runtimes.observed()
	t.loop = reconcile.New(reconcile.Config{
		Environment: d.env, Store: turnStore{d.records.Fenced(leadership), d.view}, Probes: t.watcher, Hosts: t.hosts,
		Tracks: d.zones.tracks(d.env), Executors: zoneExecutors(d.zones.Zones, d.zones.writers),
		Leadership: t, Runtimes: engines, Clusters: clusters, ReadFailure: containers.ReadFailure, Changed: d.api.Changed, Log: d.log.Named("reconcile"),
		Tick: d.options.tick, NewPort: d.declare.NewPort, AliasPeriod: d.options.aliasPeriod, OrphanPeriod: d.options.orphanPeriod, Paused: d.options.paused,
	})
	d.term.Store(t) // first: a change that is heard from now on must find the loop
	defer d.term.Store(nil)
	group.Go(func() error { t.watcher.Run(ctx); return nil })
	group.Go(func() error { t.hosts.Run(ctx); return nil })
	group.Go(func() error { d.declared.Run(ctx); return nil })
	group.Go(func() error { d.declare.GiveBackEvery(ctx, time.Hour); return nil })
	group.Go(func() error { return t.loop.Run(ctx) })
	d.log.Info("kurad leads", "address", d.advertised)
	err = group.Wait()
	if !t.Valid() {
		d.log.Warn("kurad leads no more: another one may", "address", d.advertised)
	}
	return err
}

// currentTerm is the term that runs, nil while another kurad leads.
type currentTerm struct {
	atomic.Pointer[leaderTerm]
	records *store.Records
}

// Leads implements server.Leader.
func (s *currentTerm) Leads() bool { return s.now() != nil }

// now returns the term that holds; one whose tasks only end is none any more.
func (s *currentTerm) now() *leaderTerm {
	if t := s.Load(); t != nil && t.Valid() {
		return t
	}
	return nil
}

// Address implements server.Leader.
func (s *currentTerm) Address(ctx context.Context) (string, error) {
	value, ok, err := s.records.Leader(ctx)
	if err != nil || !ok {
		return "", err
	}
	var p presence
	if err := json.Unmarshal(value, &p); err != nil {
		return "", fmt.Errorf("read who leads: %w", err)
	}
	return p.URL, nil
}

// zoneTrouble is what the kurad that leads has of zones.
func (s *currentTerm) zoneTrouble() (reason fleet.Reason, messages []string) {
	if t := s.now(); t != nil {
		return t.hosts.Trouble()
	}
	return "", nil
}

// ObserveNow implements server.Turns.
func (s *currentTerm) ObserveNow(ctx context.Context, key fleet.ServerKey) error {
	t := s.now()
	if t == nil {
		return fleet.Errorf(fleet.CodeUnavailable, "server %s is not looked at: another kurad leads and does not answer", key)
	}
	return t.loop.ObserveNow(ctx, key)
}

// Memory implements server.Turns.
func (s *currentTerm) Memory(key fleet.ServerKey) (lastObserved time.Time, failedReads int) {
	if t := s.now(); t != nil {
		return t.loop.Memory(key)
	}
	return time.Time{}, 0
}

// Beyond implements server.Turns.
func (s *currentTerm) Beyond(g fleet.Gathered) *fleet.Status {
	if t := s.now(); t != nil {
		return t.loop.Beyond(g)
	}
	return nil
}

// Waits implements server.Turns.
func (s *currentTerm) Waits(key fleet.ServerKey) string {
	if t := s.now(); t != nil {
		return t.loop.Waits(key)
	}
	return ""
}

// kick makes turns due, where this kurad leads.
func (s *currentTerm) kick(keys ...fleet.ServerKey) {
	if t := s.now(); t != nil {
		for _, key := range keys {
			t.loop.Kick(key)
		}
	}
}

// Listings implements server.Turns.
func (s *currentTerm) Listings() []fleet.Listing {
	if t := s.Load(); t != nil {
		return t.loop.Listings()
	}
	return nil
}

// KubeListings implements server.Turns.
func (s *currentTerm) KubeListings() []fleet.KubeListing {
	if t := s.Load(); t != nil {
		return t.loop.KubeListings()
	}
	return nil
}

// turnStore is the store as turns see it.
type turnStore struct {
	*store.Records
	view *store.View
}

func (s turnStore) Stored(k fleet.ServerKey) (fleet.Gathered, bool) {
	return s.view.Server(k)
}
func (s turnStore) ServerKeys() []fleet.ServerKey { return s.view.ServerKeys() }
func (s turnStore) IsConflict(err error) bool     { return kv.IsConflict(err) }

func (s turnStore) Regions() []fleet.Region { return store.Values(s.view.Regions()) }

func (s turnStore) Region(ctx context.Context, name string) (fleet.Region, error) {
	r, err := s.Records.Region(ctx, name)
	return r.Value, err
}
