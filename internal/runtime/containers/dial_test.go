package containers_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// tlsEngine is an engine without containers behind a proxy that ends TLS, and the parts
// of connections to it.
type tlsEngine struct {
	*testing.T
	proxy  *world.Proxy
	ca     *world.CA
	client world.Certificate
	told   chan struct{} // an event is told for each
}

func newTLSEngine(t *testing.T) *tlsEngine {
	t.Helper()
	x := &tlsEngine{T: t, told: make(chan struct{})}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
	mux.HandleFunc("GET /v1.41/containers/json", answer(200, []any{listed("database", "running", nil)}))
	mux.HandleFunc("GET /v1.41/events", func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-x.told:
				_, _ = w.Write([]byte(`{"Type":"container","Action":"die","Actor":{"ID":"1","Attributes":{"name":"cache"}}}` + "\n"))
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	if x.ca, err = world.NewCA(); err != nil {
		t.Fatal(err)
	}
	certificate, err := x.ca.Issue("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if x.client, err = x.ca.IssueClient("kurad"); err != nil {
		t.Fatal(err)
	}
	if x.proxy, err = world.StartTLSProxy(certificate, x.ca, "unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.proxy.Close)
	return x
}

// files writes an authority and a client's certificate where an endpoint finds them.
func (x *tlsEngine) files(ca *world.CA, client world.Certificate) containers.TLSFiles {
	x.Helper()
	written, err := ca.WriteFiles(x.TempDir(), client)
	if err != nil {
		x.Fatal(err)
	}
	return containers.TLSFiles{CA: written.CA, Cert: written.Cert, Key: written.Key}
}

func (x *tlsEngine) open(files containers.TLSFiles) *containers.Endpoint {
	x.Helper()
	return open(x.T, containers.Config{Name: "local", TCP: x.proxy.Addr(), TLS: files})
}

func TestC9_anEngineBehindTLSListsAndStreams(t *testing.T) {
	x := newTLSEngine(t)
	e := x.open(x.files(x.ca, x.client))
	if got, err := e.List(t.Context()); err != nil || len(got) != 1 || got[0].Name != "database" {
		t.Errorf("listed %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var seen []string
	x.tell(ctx)
	err := e.Watch(ctx, func(name string) { seen = append(seen, name); cancel() })
	if len(seen) != 1 || seen[0] != "cache" {
		t.Errorf("watched %q, ended with %v; want the one event while the stream is open", seen, err)
	}
}

func (x *tlsEngine) tell(ctx context.Context) {
	go func() {
		select {
		case x.told <- struct{}{}:
		case <-ctx.Done():
		}
	}()
}

func TestP2_whatTLSRefusesIsAReadFailure(t *testing.T) {
	x := newTLSEngine(t)
	other, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.IssueClient("kurad")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := x.ca.Issue("engine.test")
	if err != nil {
		t.Fatal(err)
	}
	wrongName, err := world.StartTLSProxy(elsewhere, x.ca, "unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wrongName.Close)
	good := x.files(x.ca, x.client)
	for name, c := range map[string]struct {
		cfg    containers.Config
		reason fleet.Reason
		says   string
	}{
		"no client certificate":          {containers.Config{TCP: x.proxy.Addr(), TLS: containers.TLSFiles{CA: good.CA}}, fleet.ReasonRuntimeRefused, "tls"},
		"a stranger's certificate":       {containers.Config{TCP: x.proxy.Addr(), TLS: x.files(x.ca, stranger)}, fleet.ReasonRuntimeRefused, "tls"},
		"an authority that did not sign": {containers.Config{TCP: x.proxy.Addr(), TLS: x.files(other, x.client)}, fleet.ReasonEndpointUnreachable, "unknown authority"},
		"a certificate of another host":  {containers.Config{TCP: wrongName.Addr(), TLS: good}, fleet.ReasonEndpointUnreachable, "127.0.0.1"},
		"TLS spoken to in the clear":     {containers.Config{TCP: x.proxy.Addr()}, fleet.ReasonEndpointUnreachable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Name = "local"
			e := open(t, c.cfg)
			got, err := e.List(t.Context())
			if err == nil {
				t.Fatalf("listed %+v", got)
			}
			f := containers.ReadFailure(err)
			if f.Reason != c.reason || !strings.Contains(f.Message, c.says) {
				t.Errorf("read failure %+v, want %s that says %q", f, c.reason, c.says)
			}
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}}, nil)
			if o.Class != fleet.ClassTransient || o.Reason != c.reason {
				t.Errorf("a task: %+v, want transient %s", o, c.reason)
			}
		})
	}
}

func TestC9_aRenewedClientCertificateNeedsNoRestart(t *testing.T) {
	x := newTLSEngine(t)
	other, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	expired, err := other.IssueClient("kurad")
	if err != nil {
		t.Fatal(err)
	}
	files := x.files(x.ca, expired)
	e := x.open(files)
	if _, err := e.List(t.Context()); err == nil {
		t.Fatal("a certificate of another authority was accepted")
	}
	for path, content := range map[string][]byte{files.Cert: x.client.Cert, files.Key: x.client.Key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.List(t.Context()); err != nil {
		t.Errorf("with the renewed certificate: %v", err)
	}
}

func TestC9_filesThatCannotBeUsedAreRefusedAtTheStart(t *testing.T) {
	x := newTLSEngine(t)
	good := x.files(x.ca, x.client)
	broken := filepath.Join(t.TempDir(), "broken.pem")
	if err := os.WriteFile(broken, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, files := range map[string]containers.TLSFiles{
		"ca: open":                 {CA: filepath.Join(t.TempDir(), "none.pem")},
		"holds no PEM certificate": {CA: broken},
		"cert and key: ":           {CA: good.CA, Cert: broken, Key: good.Key},
		"belong together":          {CA: good.CA, Key: good.Key},
	} {
		e, err := containers.Open(containers.Config{Name: "local", TCP: x.proxy.Addr(), TLS: files}, fleet.Environment{Name: "staging"}, nil)
		if err == nil {
			_ = e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), `endpoint "local"`) {
			t.Errorf("%+v: %v, want it to say %q", files, err, says)
		}
	}
}

// The links of another machine cannot be seen from here, so a path is checked by its text.
func TestC10_pathsOfARemoteEngineAreCheckedByTheirText(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	region := func(path string) fleet.Region {
		return fleet.Region{Name: "eu", Containers: &fleet.Containers{Endpoint: "far", Services: map[string]fleet.Service{
			"cache": {Volumes: []fleet.Volume{{HostPath: path, Path: "/data"}}},
		}}}
	}
	e := open(t, containers.Config{Name: "far", TCP: "192.0.2.1:2376", TLS: newTLSEngine(t).caOnly(), Mounts: []string{folder}})
	if err := e.AllowsRegion(region(filepath.Join(folder, "link", "data"))); err != nil {
		t.Errorf("a link of this machine says nothing of another one: %v", err)
	}
	for _, path := range []string{outside, folder + "/../etc", "/"} {
		if e.AllowsRegion(region(path)) == nil {
			t.Errorf("%s is allowed", path)
		}
	}
}

func (x *tlsEngine) caOnly() containers.TLSFiles {
	return containers.TLSFiles{CA: x.files(x.ca, x.client).CA}
}
