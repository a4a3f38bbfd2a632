//go:build real

package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// The acceptance tests drive the provider with a real CLI against the daemon's real API
// and store. Here a script decides what becomes of each server, so that every verdict
// can be had at will.

// requireCLI ends the test where it was not told which CLI to drive: an acceptance test
// that silently does nothing proves nothing.
func requireCLI(t *testing.T) (path string) {
	t.Helper()
	path = os.Getenv("TF_ACC_TERRAFORM_PATH")
	if path == "" || os.Getenv("TF_ACC") == "" {
		t.Fatal("set TF_ACC=1 and TF_ACC_TERRAFORM_PATH to the tofu binary (`make testacc` does); for OpenTofu also TF_ACC_PROVIDER_HOST=registry.opentofu.org TF_ACC_PROVIDER_NAMESPACE=hashicorp")
	}
	// A CLI config that is not ours could send init to the network.
	t.Setenv("TF_CLI_CONFIG_FILE", os.DevNull)
	t.Setenv("CHECKPOINT_DISABLE", "1")
	clearAll(t)
	return path
}

func clearAll(t *testing.T) {
	for _, name := range []string{envEndpoint, envToken, envTokenFile, envEnvironment} {
		t.Setenv(name, "")
	}
}

// factories serve the provider in this process.
func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){"kura": providerserver.NewProtocol6WithError(New("test")())}
}

// becomes changes what a turn stores of a server: its status and its deployment.
type becomes func(g fleet.Gathered, s *fleet.Status, d *fleet.Deployment)

// kurad is a daemon on a loopback port whose turns follow a script.
type kurad struct {
	t        *testing.T
	endpoint string
	token    string
	tokens   *server.Tokens
	records  *store.Records
	api      *api.Client
	work     chan fleet.ServerKey

	mu      sync.Mutex
	script  map[fleet.ServerKey]becomes // what it is by its version otherwise
	lingers map[fleet.ServerKey]bool    // asked to go, and not gone
}

func startKurad(t *testing.T) *kurad {
	t.Helper()
	env, err := fleet.NewEnvironment("staging", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	memory := store.NewMemory()
	k := &kurad{
		t: t, records: store.NewRecords(memory, env.Name), work: make(chan fleet.ServerKey, 1024),
		script: map[fleet.ServerKey]becomes{}, lingers: map[fleet.ServerKey]bool{},
	}
	if err := k.records.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	view := store.NewView(k.records, nil)
	view.Subscribe(func(u store.Update) {
		if u.Kind == store.KindIntent && !u.Deleted {
			k.work <- u.Key
		}
	})
	k.tokens = server.NewTokens(k.records, nil)
	handler, err := server.New(server.Config{
		Records: k.records, View: view, Environment: env, Tokens: k.tokens, Turns: k, Runtimes: edge{}, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	ctx := t.Context()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := view.Run(ctx); err != nil {
			t.Errorf("view: %v", err)
		}
	})
	wg.Go(func() { k.turns(ctx) })
	t.Cleanup(func() {
		handler.Close()
		web.Close()
		wg.Wait()
		memory.Close()
	})
	k.endpoint, k.token = web.URL, k.newToken("test", fleet.ScopeAdmin)
	k.api, err = api.New(api.Config{Endpoint: k.endpoint, Token: api.NewSecret(k.token), Environment: env.Name})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kurad) newToken(name string, scope fleet.Scope) string {
	k.t.Helper()
	_, secret, err := k.tokens.Create(k.t.Context(), "test", api.TokenRequest{Name: name, Scope: scope})
	if err != nil {
		k.t.Fatal(err)
	}
	return secret.Reveal()
}

func (k *kurad) turns(ctx context.Context) {
	for {
		select {
		case key := <-k.work:
			if err := k.turn(ctx, key); err != nil && ctx.Err() == nil {
				k.t.Errorf("turn of %s: %v", key, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// turn stores what the script says of the server.
func (k *kurad) turn(ctx context.Context, key fleet.ServerKey) error {
	for {
		g, err := k.records.Gather(ctx, key)
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		w := fleet.TurnWrite{Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, LatestRevision: g.LatestRevision}
		k.mu.Lock()
		script, lingers := k.script[key], k.lingers[key]
		k.mu.Unlock()
		if script == nil {
			script = byVersion
		}
		w.Status = fleet.Status{Conditions: []fleet.Condition{}}
		if g.Status != nil {
			w.Status.ServingImageTag, w.Status.PublishedURL = g.Status.ServingImageTag, g.Status.PublishedURL
		}
		w.Status.Generation = g.Intent.Generation
		latest := *g.Latest
		switch {
		case g.Intent.Deleting != nil && !lingers:
			w.Remove = true
		case g.Intent.Deleting != nil:
			w.Status.Status, w.Status.Verdict, w.Status.VerdictReason = fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting
		default:
			script(g, &w.Status, &latest)
			if latest.Status == fleet.DeploymentFailed && g.Latest.Status != fleet.DeploymentFailed {
				w.Events = []fleet.Event{{Account: key.Account, Region: key.Region, At: time.Now(), Type: fleet.EventWarning, Reason: string(latest.Reason), Message: latest.Message}}
			}
			w.Latest = &latest
		}
		if err := k.records.CommitTurn(ctx, w); !store.IsConflict(err) {
			return err
		}
	}
}

// stands makes the server stand as told from now on; nil: as its version says.
func (k *kurad) stands(key fleet.ServerKey, as becomes) {
	k.t.Helper()
	k.mu.Lock()
	k.script[key] = as
	k.mu.Unlock()
	if err := k.turn(k.t.Context(), key); err != nil {
		k.t.Fatal(err)
	}
}

// byVersion: the version's name says what becomes of it.
func byVersion(g fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
	switch tag := g.Intent.ImageTag; {
	case strings.HasSuffix(tag, "-broken"):
		failed(fleet.ReasonImagePullFailed, "no such image: localhost/cache:"+tag)(g, s, d)
	case strings.HasSuffix(tag, "-stalls"):
		stalled(g, s, d)
	case strings.HasSuffix(tag, "-slow"):
		progressing(g, s, d)
	default:
		active(g, s, d)
	}
}

func active(g fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
	tag := g.Intent.ImageTag
	s.Status, s.Verdict, s.ServingImageTag, s.ObservedImageTag, s.PublishedURL = fleet.StatusActive, fleet.VerdictConverged, tag, tag, "http://published.kura.test"
	d.Status = fleet.DeploymentSucceeded
}

func progressing(_ fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
	s.Status, s.Verdict, s.VerdictReason, s.ObservedImageTag = fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonRollingOut, s.ServingImageTag
	d.Status = fleet.DeploymentRunning
}

func stalled(_ fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
	s.Status, s.Reason, s.Verdict, s.VerdictReason, s.Message = fleet.StatusProvisioning, fleet.ReasonStalled, fleet.VerdictStalled, fleet.ReasonHTTPNotReady, "GET /up answers 503 since 15m"
	d.Status = fleet.DeploymentRunning
}

func failed(reason fleet.Reason, message string) becomes {
	return func(_ fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
		s.Status, s.Reason, s.Verdict, s.VerdictReason, s.Message = fleet.StatusFailed, reason, fleet.VerdictFailed, reason, message
		d.Status, d.Reason, d.Message = fleet.DeploymentFailed, reason, message
	}
}

// verdict is a server of which only the verdict is told.
func verdict(v fleet.Verdict, reason fleet.Reason, message, observed string, holds ...fleet.Hold) becomes {
	return func(_ fleet.Gathered, s *fleet.Status, _ *fleet.Deployment) {
		s.Status, s.Verdict, s.VerdictReason, s.Message, s.ObservedImageTag, s.Holds = fleet.StatusActive, v, reason, message, observed, holds
	}
}

// ObserveNow implements server.Turns.
func (k *kurad) ObserveNow(ctx context.Context, key fleet.ServerKey) error { return k.turn(ctx, key) }

// Memory implements server.Turns.
func (k *kurad) Memory(fleet.ServerKey) (time.Time, int) { return time.Now().Add(-3 * time.Minute), 4 }

// edge is a daemon's runtime: one endpoint, and one folder that may be mounted.
type edge struct{}

func (edge) Region(r fleet.Region) error {
	var v fleet.Invalid
	if k := r.Kubernetes; k != nil {
		v.Add("/kubernetes/cluster", "this kurad was given no cluster named %q; start it with one, or name another", k.Cluster)
		return v.Err("region " + r.Name)
	}
	if r.Containers.Endpoint != "edge" {
		v.Add("/containers/endpoint", "this kurad was given no container endpoint named %q; it has edge", r.Containers.Endpoint)
	}
	for name, s := range r.Containers.Services {
		for i, m := range s.Volumes {
			if m.HostPath != "" && !strings.HasPrefix(m.HostPath, "/srv/kura/") {
				v.Add(fmt.Sprintf("/containers/services/%s/volumes/%d/host_path", name, i), "%s is outside of what may be mounted on edge; choose a path below /srv/kura", m.HostPath)
			}
		}
	}
	return v.Err("region " + r.Name)
}

func (edge) PortRange(fleet.Region) (first, last int, ok bool) { return 20000, 20099, true }

func (edge) ContainerEndpoints() []string { return []string{"edge"} }

// server returns the daemon's own record; nil where there is none.
func (k *kurad) server(account, region string) *fleet.ServerView {
	k.t.Helper()
	v, err := k.api.GetServer(k.t.Context(), fleet.ServerKey{Account: account, Region: region}, api.GetOptions{})
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return nil
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return &v
}

// nothingLeft checks that a destroy left no record in the daemon.
func (k *kurad) nothingLeft() error {
	ctx := context.WithoutCancel(k.t.Context())
	servers, err1 := k.api.ListServers(ctx, api.ServerFilter{})
	regions, err2 := k.api.ListRegions(ctx)
	accounts, err3 := k.api.ListAccounts(ctx)
	templates, err4 := k.api.ListHostTemplates(ctx)
	if n := len(servers) + len(regions) + len(accounts) + len(templates); n > 0 {
		return fmt.Errorf("%d objects are left", n)
	}
	return errors.Join(err1, err2, err3, err4)
}

// config is a whole configuration: the provider block, the neighbours of a server, and
// what the test adds.
func (k *kurad) config(more ...string) string {
	return k.provider("staging") + neighbours + strings.Join(slices.Concat(more), "\n")
}

func (k *kurad) provider(environment string) string {
	return fmt.Sprintf("terraform {\n  required_providers {\n    kura = { source = \"hashicorp/kura\" }\n  }\n}\n\nprovider \"kura\" {\n  endpoint    = %q\n  token       = %q\n  environment = %q\n}\n", k.endpoint, k.token, environment)
}

const neighbours = `
resource "kura_account" "acme" {
  id = "acme"
}

resource "kura_host_template" "public" {
  name    = "public"
  pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.test"
}

resource "kura_region" "eu" {
  name      = "eu"
  hosts     = { public = kura_host_template.public.name }
  readiness = { scheme = "http" }
  containers = {
    endpoint = "edge"
    services = {
      cache = {
        image = "localhost/cache:{image_tag}"
        ports = { http = { container = 8080, endpoint = "public" } }
      }
    }
  }
}
`

// serverHCL is the server acme/eu with a version and further attributes.
func serverHCL(version string, more ...string) string {
	return fmt.Sprintf("resource \"kura_server\" \"acme\" {\n  account   = kura_account.acme.id\n  region    = kura_region.eu.name\n  image_tag = %q\n  %s\n}\n", version, strings.Join(more, "\n  "))
}
