package reconcile_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// world is a store, engines and endpoints, in virtual time. The store, its view and the
// probes are the real ones. Everything in it outlives a kurad.
type world struct {
	t        *testing.T
	env      fleet.Environment
	memory   *conformance.Memory
	below    *counter
	really   bool // in real time
	records  *store.Records
	view     *store.View
	engines  map[string]*engine
	clusters map[string]*apiserver
	end      context.CancelFunc
	ended    sync.WaitGroup
	ports    int
	kurads   []*kurad
	probed   atomic.Int64 // endpoints, by anybody

	mu        sync.Mutex
	handles   map[string]string       // accounts of handles that are not their ids
	sick      map[string]fleet.Reason // endpoints that do not answer, by account
	answers   bool                    // somebody else answers where nothing of ours does
	unsettled map[string]map[fleet.ServerKey]bool
	most      map[string]int             // the most that were unsettled at once, by region
	running   map[fleet.ServerKey]string // the image of each converged server
}

// virtual runs a test in a world of virtual time.
func virtual(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { w := newWorld(t); defer w.close(); test(w) })
}

func newWorld(t *testing.T) *world {
	memory := conformance.NewMemory()
	w := newWorldOn(t, memory)
	w.memory = memory
	return w
}

func newWorldOn(t *testing.T, below kv.Store) *world {
	env, err := fleet.NewEnvironment("staging", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, env: env, below: &counter{Store: below}, engines: map[string]*engine{"local": newEngine()}, clusters: map[string]*apiserver{"prod": newAPIServer()}, sick: map[string]fleet.Reason{}, handles: map[string]string{},
		unsettled: map[string]map[fleet.ServerKey]bool{}, most: map[string]int{}, running: map[fleet.ServerKey]string{},
	}
	w.records = store.NewRecords(w.below, env.Name)
	w.must(w.records.Prepare(t.Context()))
	w.view = store.NewView(w.records, nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the world outlives the test function: its clean-up ends it
	w.end = cancel
	w.ended.Go(func() { _ = w.view.Run(ctx) })
	tx := w.records.Begin()
	tx.PutTemplate(store.Versioned[fleet.HostTemplate]{}, fleet.HostTemplate{Name: "main", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"})
	w.commit(tx)
	w.region("eu", nil)
	return w
}

func (w *world) close() {
	for _, k := range w.kurads { // where a test ended early
		k.kill()
	}
	w.end()
	w.ended.Wait()
	w.must(w.below.Close())
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) commit(tx *store.Tx) {
	w.t.Helper()
	_, err := tx.Commit(context.Background())
	w.must(err)
}

func (w *world) engine() *engine { return w.engines["local"] }

// region declares a region, or changes it.
func (w *world) region(name string, change func(*fleet.Region)) {
	w.t.Helper()
	prev, err := w.records.Region(context.Background(), name)
	if fleet.CodeOf(err) != fleet.CodeNotFound {
		w.must(err)
	}
	region := prev.Value
	if !prev.Exists() {
		region = fleet.Region{
			Name: name, Hosts: fleet.RegionHosts{Public: "main"}, Readiness: fleet.Readiness{Scheme: fleet.SchemeHTTP},
			Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{
				"cache": {
					Image: "localhost/kura:{image_tag}", Env: map[string]string{"WHO": "{account}"}, GracePeriod: fleet.Duration(2 * time.Second),
					Volumes: []fleet.Volume{{Name: "data", Path: "/data"}},
					Ports:   map[string]fleet.Port{"http": {Container: 8080, Endpoint: fleet.EndpointPublic}},
				},
			}},
		}
	}
	if change != nil {
		change(&region)
	}
	tx := w.records.Begin()
	tx.PutRegion(prev, region)
	w.commit(tx)
}

// onKubernetes makes eu a region of the cluster prod.
func (w *world) onKubernetes(change func(*fleet.Region)) {
	w.t.Helper()
	w.region("eu", func(r *fleet.Region) {
		r.Containers, r.Readiness = nil, fleet.Readiness{}
		r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Image: "localhost/kura:{image_tag}"}
		if change != nil {
			change(r)
		}
	})
}

func (w *world) cluster() *apiserver { return w.clusters["prod"] }

func key(account string) fleet.ServerKey { return fleet.ServerKey{Account: account, Region: "eu"} }

// declare declares a server, or a change of it, as the API does (P11).
func (w *world) declare(account, image string) { w.t.Helper(); w.declareIn(key(account), image, false) }

func (w *world) redeploy(account string) {
	w.t.Helper()
	w.declareIn(key(account), w.server(account).Intent.ImageTag, true)
}

func (w *world) declareIn(k fleet.ServerKey, image string, redeploy bool) {
	w.t.Helper()
	for {
		tx := w.records.Begin()
		g, err := w.records.Gather(context.Background(), k)
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			account, err := w.records.Account(context.Background(), k.Account)
			if fleet.CodeOf(err) == fleet.CodeNotFound {
				tx.PutAccount(account, fleet.Account{ID: k.Account})
			}
			w.ports++
			g.Intent = fleet.Intent{Server: fleet.Server{Account: k.Account, Region: k.Region}, CreatedAt: time.Now(), Ports: map[string]int{"cache/http": 20000 + w.ports}}
		} else {
			w.must(err)
		}
		next := g.Intent
		next.Generation++
		fresh := fleet.Deployment{Account: k.Account, Region: k.Region, ImageTag: image, Generation: next.Generation, Status: fleet.DeploymentPending, CreatedAt: time.Now()}
		if latest := g.Latest; latest != nil {
			fresh.RestartMark = latest.RestartMark
			if latest.Status.Open() {
				old := *latest
				old.Status = fleet.DeploymentSuperseded
				tx.PutDeployment(store.Versioned[fleet.Deployment]{Value: *latest, Revision: g.LatestRevision}, old)
			}
		}
		if next.ImageTag != image || redeploy {
			next.ImageTag = image
			next.Deployment++
			fresh.Seq = next.Deployment
			if redeploy {
				fresh.RestartMark = fmt.Sprint("redeploy-", fresh.Seq, time.Now().UTC())
			}
			tx.PutDeployment(store.Versioned[fleet.Deployment]{}, fresh)
		}
		tx.PutIntent(store.Versioned[fleet.Intent]{Value: g.Intent, Revision: g.IntentRevision}, next)
		_, err = tx.Commit(context.Background())
		if !kv.IsConflict(err) {
			w.must(err)
			return
		}
	}
}

// change changes the intent alone.
func (w *world) change(account string, change func(*fleet.Intent)) {
	w.t.Helper()
	prev, err := w.records.Intent(context.Background(), key(account))
	w.must(err)
	next := prev.Value
	next.Generation++
	change(&next)
	tx := w.records.Begin()
	tx.PutIntent(prev, next)
	w.commit(tx)
}

func (w *world) destroy(account string) {
	w.t.Helper()
	now := time.Now().UTC()
	w.change(account, func(in *fleet.Intent) { in.Deleting = &now })
}

// server returns what is stored of a server.
func (w *world) server(account string) fleet.Gathered {
	w.t.Helper()
	g, err := w.records.Gather(context.Background(), key(account))
	w.must(err)
	return g
}

func (w *world) status(account string) fleet.Status {
	w.t.Helper()
	if s := w.server(account).Status; s != nil {
		return *s
	}
	return fleet.Status{}
}

func (w *world) gone(account string) bool {
	_, err := w.records.Gather(context.Background(), key(account))
	return fleet.CodeOf(err) == fleet.CodeNotFound
}

// converged reports whether the server runs this image, and nothing is left to do.
func (w *world) converged(account, image string) bool {
	g, err := w.records.Gather(context.Background(), key(account))
	if err != nil || g.Status == nil {
		return false
	}
	s := g.Status
	return s.Verdict == fleet.VerdictConverged && s.VerdictReason == "" && s.ServingImageTag == image && s.Runtime.Plan == nil && s.Generation == g.Intent.Generation && g.Intent.ImageTag == image
}

// count returns how many servers are converged on an image.
func (w *world) count(image string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tag := range w.running {
		if tag == image {
			n++
		}
	}
	return n
}

// until lets time pass until something holds.
func (w *world) until(what string, limit time.Duration, holds func() bool) {
	w.t.Helper()
	for start := time.Now(); ; {
		synctest.Wait()
		if holds() {
			return
		}
		if time.Since(start) > limit {
			w.t.Fatalf("not within %s: %s\n%s", limit, what, w.describe())
		}
		<-time.After(100 * time.Millisecond)
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { <-time.After(d); synctest.Wait() }

// describe shows what is not converged.
func (w *world) describe() string {
	var b strings.Builder
	list, _ := w.view.Servers(nil)
	for _, g := range list {
		if s := g.Status; s == nil {
			fmt.Fprintf(&b, "%s: no status\n", g.Intent.Key())
		} else if s.Verdict != fleet.VerdictConverged || s.VerdictReason != "" {
			fmt.Fprintf(&b, "%s g%d %s: %s %s/%s %s plan %+v holds %v clock %+v next %v until %v, %d crashes, %+v\n", g.Intent.Key(), g.Intent.Generation, g.Intent.ImageTag,
				s.Status, s.Verdict, s.VerdictReason, s.Message, s.Runtime.Plan, s.Holds, s.Clock, s.Runtime.NextAttempt, s.Runtime.EffectsUntil, len(s.Crashes), w.engine().of(g.Intent.Account))
		}
		if b.Len() > 4000 {
			break
		}
	}
	return b.String()
}

// one is the container of a server that has but one; it fails the test otherwise.
func (w *world) one(account string) box {
	w.t.Helper()
	bs := w.engine().of(account)
	if len(bs) != 1 || bs[0].Name != "kura-"+account+"-eu-cache-staging" || bs[0].State != fleet.ContainerRunning {
		w.t.Fatalf("%s has %+v, want one container under its name, running", account, bs)
	}
	return bs[0]
}

func (w *world) condition(account string, ct fleet.ConditionType) fleet.Condition {
	w.t.Helper()
	for _, c := range w.status(account).Conditions {
		if c.Type == ct {
			return c
		}
	}
	return fleet.Condition{}
}

func (w *world) events(account, reason string) (n int) {
	w.t.Helper()
	l, err := w.records.Events(context.Background(), key(account))
	w.must(err)
	for _, e := range l.Items {
		if e.Value.Reason == reason {
			n++
		}
	}
	return n
}

// probe answers as the container that bears the server's name does.
func (w *world) probe(_ context.Context, target readiness.Target) fleet.ProbeObservation {
	w.probed.Add(1)
	p := fleet.ProbeObservation{URL: target.URL, Begun: time.Now().UTC(), Reason: fleet.ReasonConnectFailed}
	_, host, _ := strings.Cut(target.URL, "://")
	handle, rest, _ := strings.Cut(host, "-")
	region, _, _ := strings.Cut(rest, "-")
	w.mu.Lock()
	account := cmp.Or(w.handles[handle], handle)
	sick := w.sick[account]
	if w.answers {
		p.Ready, p.Reason = true, fleet.ReasonReady
	}
	w.mu.Unlock()
	for _, e := range w.engines {
		e.with(func() {
			if b := e.named("kura-" + account + "-" + region + "-cache-staging"); b != nil && b.State == fleet.ContainerRunning {
				p.Ready, p.Reason = true, fleet.ReasonReady
			}
		})
	}
	for _, c := range w.clusters {
		if o, ok := c.get("kura", "kura-"+account+"-"+region); ok && o.phase == phaseReady {
			p.Ready, p.Reason = true, fleet.ReasonReady
		}
	}
	if sick != "" {
		p.Ready, p.Reason = false, sick
	}
	return p
}

func (w *world) setSick(account string, reason fleet.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sick[account] = reason
}
