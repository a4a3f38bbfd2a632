package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/declare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// world is a kurad without turns: store, view and API, and a client with an admin token.
type world struct {
	t        testing.TB
	below    kv.Store
	records  *store.Records
	view     *store.View
	tokens   *server.Tokens
	turns    *turns
	clock    *clock
	env      fleet.Environment
	api      *server.Server
	url      string
	admin    string
	client   *api.Client
	logged   *lockedBuffer
	audit    *auditMemory
	runtimes *runtimes
	declared *declared
	declarer *declare.Declarer
	hosts    *knownHosts
	zones    *givenZones
	renders  *atomic.Int64 // how often a server was rendered
}

func newWorld(t testing.TB, change ...func(*server.Config)) *world {
	t.Helper()
	return newWorldOn(t, conformance.NewMemory(), change...)
}

func newWorldOn(t testing.TB, below kv.Store, change ...func(*server.Config)) *world {
	t.Helper()
	env, err := fleet.NewEnvironment("staging", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, below: below, env: env, turns: &turns{}, clock: &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}, logged: &lockedBuffer{}, audit: &auditMemory{}, runtimes: &runtimes{first: 20000, last: 20999}, declared: &declared{}, hosts: &knownHosts{}, zones: &givenZones{}, renders: &atomic.Int64{}}
	w.records = store.NewRecords(below, env.Name)
	if err := w.records.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.view = store.NewView(w.records, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.view.Run(t.Context()); err != nil {
			t.Errorf("view: %v", err)
		}
	}()
	w.declarer = declare.New(declare.Config{
		Records: w.records, View: w.view, Environment: env, Runtimes: w.runtimes, Turns: w.turns, Hosts: w.hosts, Zones: w.zones, Logger: hclog.NewNullLogger(), Now: w.clock.now,
		Render: func(e fleet.Environment, g fleet.Gathered) (fleet.Desired, error) {
			w.renders.Add(1)
			return fleet.Render(e, g)
		},
	})
	w.tokens = server.NewTokens(w.records, w.clock.now)
	cfg := server.Config{
		Records: w.records, View: w.view, Environment: env, Tokens: w.tokens, Turns: w.turns, Runtimes: w.runtimes, Declare: w.declarer, Declared: w.declared,
		Version: "1.2.3", Now: w.clock.now, Audit: w.audit, FailedLogins: 1 << 20,
		Logger: hclog.New(&hclog.LoggerOptions{Name: "kurad", Level: hclog.Debug, Output: w.logged}),
	}
	for _, c := range change {
		c(&cfg)
	}
	w.api, err = server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(w.api)
	w.url = ts.URL
	t.Cleanup(func() {
		w.api.Close()
		ts.Close()
		<-ended
		if err := below.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	w.admin = w.token("admin", fleet.ScopeAdmin)
	w.client = w.clientWith(w.admin)
	return w
}

func (w *world) token(name string, scope fleet.Scope) string {
	w.t.Helper()
	_, secret, err := w.tokens.Create(w.t.Context(), "test", api.TokenRequest{Name: name, Scope: scope})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret.Reveal()
}

func (w *world) clientWith(token string) *api.Client {
	w.t.Helper()
	c, err := api.New(api.Config{Endpoint: w.url, Token: api.NewSecret(token), Environment: "staging"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// template is the host template that the regions of tests name.
func template() fleet.HostTemplate {
	return fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}
}

// region is a container region with one assigned public port.
func region(name string) fleet.Region {
	return fleet.Region{
		Name:  name,
		Hosts: fleet.RegionHosts{Public: "public"},
		Containers: &fleet.Containers{Endpoint: "podman", Services: map[string]fleet.Service{
			"cache": {Image: "localhost/cache:{image_tag}", Ports: map[string]fleet.Port{"http": {Container: 8443, Endpoint: fleet.EndpointPublic}}},
		}},
	}
}

func srv(account, region, tag string) fleet.Server {
	return fleet.Server{Account: account, Region: region, ImageTag: tag}
}

func key(account, region string) fleet.ServerKey {
	return fleet.ServerKey{Account: account, Region: region}
}

// seed declares a template, regions and accounts.
func (w *world) seed(regions []string, accounts ...string) {
	w.t.Helper()
	w.must(w.client.PutHostTemplate(w.t.Context(), template(), api.PutOptions{}))
	for _, r := range regions {
		w.must(w.client.PutRegion(w.t.Context(), region(r), api.PutOptions{}))
	}
	for _, a := range accounts {
		w.must(w.client.PutAccount(w.t.Context(), fleet.Account{ID: a}, api.PutOptions{}))
	}
}

// lookalike declares an account and a region in which its server has the host, though no
// account has another's name (H5).
func (w *world) lookalike(id, host string) fleet.Server {
	w.t.Helper()
	w.must(w.client.PutHostTemplate(w.t.Context(), fleet.HostTemplate{Name: "bare", Pattern: "{account_handle}{env_suffix}.kura.test"}, api.PutOptions{}))
	r := region("bare")
	r.Hosts.Public = "bare"
	w.must(w.client.PutRegion(w.t.Context(), r, api.PutOptions{}))
	handle, _, _ := strings.Cut(host, "-staging")
	w.must(w.client.PutAccount(w.t.Context(), fleet.Account{ID: id, Handle: handle}, api.PutOptions{}))
	return srv(id, "bare", "v1")
}

func (w *world) must(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(s fleet.Server) fleet.ServerView {
	w.t.Helper()
	out, err := w.client.PutServer(w.t.Context(), s, api.PutOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.viewed()
	return out.Object
}

// viewed waits until the view has what is stored: tokens are looked up there, and a long
// poll would tell what was written just now as news.
func (w *world) viewed() {
	w.t.Helper()
	w.must(nil, w.view.CatchUp(w.t.Context()))
}

// turn stores a status as a turn would.
func (w *world) turn(k fleet.ServerKey, change func(*fleet.Status)) {
	w.t.Helper()
	g, err := w.records.Gather(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	status := fleet.Status{Status: fleet.StatusProvisioning, Verdict: fleet.VerdictProgressing, Generation: g.Intent.Generation}
	if g.Status != nil {
		status = *g.Status
	}
	change(&status)
	if err := w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: k, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: status}); err != nil {
		w.t.Fatal(err)
	}
}

// remove ends a destroyed server as its last turn would.
func (w *world) remove(k fleet.ServerKey) {
	w.t.Helper()
	g, err := w.records.Gather(w.t.Context(), k)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.records.CommitTurn(w.t.Context(), fleet.TurnWrite{Key: k, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true, KeptUntil: w.clock.now().Add(aliasPeriod)}); err != nil {
		w.t.Fatal(err)
	}
}

// active is a converged server that publishes url.
func active(tag, url string) func(*fleet.Status) {
	return func(s *fleet.Status) {
		s.Status, s.Verdict, s.ServingImageTag, s.ObservedImageTag, s.PublishedURL = fleet.StatusActive, fleet.VerdictConverged, tag, tag, url
		s.Conditions = []fleet.Condition{{Type: fleet.ConditionEndpointReady, Status: fleet.True, Reason: fleet.ReasonReady}}
	}
}

// wantFault checks an error's code, the pointer of one of its fields, and that its
// whole text holds each of the words.
func wantFault(t *testing.T, err error, code fleet.Code, pointer string, words ...string) {
	t.Helper()
	fault, ok := errors.AsType[*fleet.Error](err)
	if !ok {
		t.Fatalf("got %v, want a fleet.Error of code %s", err, code)
	}
	if fault.Code != code {
		t.Errorf("code %s, want %s: %v", fault.Code, code, err)
	}
	if pointer != "" && !slices.ContainsFunc(fault.Fields, func(f fleet.FieldError) bool { return f.Pointer == pointer }) {
		t.Errorf("no field error at %s: %v", pointer, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("text lacks %q: %v", word, err)
		}
	}
}

// turns is a reconciler that remembers being asked.
type turns struct {
	mu      sync.Mutex
	asked   []fleet.ServerKey
	observe func(context.Context, fleet.ServerKey) error
	at      time.Time
	failed  int
	waits   string
	beyond  func(fleet.Gathered) *fleet.Status

	listings     []fleet.Listing
	kubeListings []fleet.KubeListing
}

func (f *turns) ObserveNow(ctx context.Context, k fleet.ServerKey) error {
	f.mu.Lock()
	f.asked = append(f.asked, k)
	observe := f.observe
	f.mu.Unlock()
	if observe != nil {
		return observe(ctx, k)
	}
	return nil
}

func (f *turns) Beyond(g fleet.Gathered) *fleet.Status {
	f.mu.Lock()
	beyond := f.beyond
	f.mu.Unlock()
	if beyond != nil {
		return beyond(g)
	}
	if g.Status == nil || g.Try == nil {
		return g.Status
	}
	s := g.Status.Tried(*g.Try)
	return &s
}

func (f *turns) Waits(fleet.ServerKey) string { return f.waits }

func (f *turns) Memory(fleet.ServerKey) (time.Time, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.failed
}

func (f *turns) Listings() []fleet.Listing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listings
}

func (f *turns) KubeListings() []fleet.KubeListing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kubeListings
}

// declared is what probes of declared endpoints saw, by url.
type declared struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (d *declared) answers(url string, ready bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[url] = ready
}

func (d *declared) Answers(_, url string) (ready, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ready, known = d.seen[url]
	return ready, known
}

// runtimes is a daemon that was given one engine, as the container endpoint podman and
// under more names.
type runtimes struct {
	first, last int
	more        []string
	listing     fleet.Listing
	adoptable   map[string]error  // by id
	kube        *cluster          // nil: it was given none
	uids        map[string]string // of namespaces, by cluster and name; nil: no cluster answers
	hangs       func(ctx context.Context, endpoint string)
}

func (r *runtimes) Region(region fleet.Region) error {
	var v fleet.Invalid
	switch {
	case region.Kubernetes != nil && r.kube != nil && region.Kubernetes.Cluster == "prod":
	case region.Kubernetes != nil:
		v.Add("/kubernetes/cluster", "this kurad was given no cluster named %q", region.Kubernetes.Cluster)
	case !slices.Contains(r.ContainerEndpoints(), region.Containers.Endpoint):
		v.Add("/containers/endpoint", "this kurad was given no container endpoint named %q; it has podman", region.Containers.Endpoint)
	default:
		for name, s := range region.Containers.Services {
			for i, volume := range s.Volumes {
				if volume.HostPath != "" && !strings.HasPrefix(volume.HostPath, "/srv/kura/") {
					v.Add(fmt.Sprintf("/containers/services/%s/volumes/%d/host_path", name, i), "%s is not below /srv/kura, the path that endpoint podman allows", volume.HostPath)
				}
			}
		}
	}
	return v.Err(fmt.Sprintf("region %q", region.Name))
}

func (r *runtimes) PortRange(fleet.Region) (int, int, bool) { return r.first, r.last, r.last > 0 }

func (r *runtimes) ContainerEndpoints() []string { return append([]string{"podman"}, r.more...) }

func (r *runtimes) Clusters() []string {
	if r.kube == nil {
		return nil
	}
	return []string{"prod"}
}

func (r *runtimes) Instance(ctx context.Context, k fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	return r.kube.read(ctx, k, doc, adopted)
}

func (r *runtimes) NamespaceUID(_ context.Context, cluster, namespace string) (string, error) {
	if r.uids == nil {
		return "", fleet.Errorf(fleet.CodeUnavailable, "cluster %s does not answer", cluster)
	}
	return r.uids[cluster+"/"+namespace], nil
}

func (r *runtimes) Adoptable(_ context.Context, _, id string) error { return r.adoptable[id] }

func (r *runtimes) Containers(ctx context.Context, endpoint string, _ time.Duration) fleet.Listing {
	if r.hangs != nil {
		r.hangs(ctx, endpoint)
	}
	l := r.listing
	l.Endpoint = endpoint
	return l
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
