package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/process"
)

// Program is the environment variable that names the etcd program.
const Program = "KURA_ETCD"

const readyWithin = 3 * time.Minute

// Options say what cluster to run.
type Options struct {
	// Members is how many there are; 0: one.
	Members int
	// TLS makes the members serve TLS and ask for a client certificate.
	TLS bool
}

// Cluster is a running etcd cluster. It ends with its test.
type Cluster struct {
	// Members are in the order of their names: m0, m1, …
	Members []*Member
	// Files are what a client needs; empty without TLS.
	Files world.Files

	t      testing.TB
	client *http.Client
}

// Member is one etcd process.
type Member struct {
	// Endpoint is its client URL. It stays the same when the member is started again.
	Endpoint string

	cluster *Cluster
	name    string
	process process.Process
}

// Start runs a cluster and returns when every member is ready.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	program := os.Getenv(Program)
	if program == "" {
		t.Fatalf("%s is not set: run it through make test, or set it to what internal/tools/build.sh etcd prints", Program)
	}
	c := &Cluster{t: t, client: &http.Client{Timeout: 2 * time.Second}}
	transport := &http.Transport{DisableKeepAlives: true}
	c.client.Transport = transport
	scheme := "http"
	var serve []string
	if o.TLS {
		scheme = "https"
		transport.TLSClientConfig = c.certify()
		serve = []string{"--cert-file", c.Files.Cert, "--key-file", c.Files.Key, "--trusted-ca-file", c.Files.CA, "--client-cert-auth"}
	}
	dir := t.TempDir()
	var peers, initial []string
	for i := range max(o.Members, 1) {
		m := &Member{cluster: c, name: fmt.Sprintf("m%d", i), Endpoint: scheme + "://" + freeAddress(t)}
		m.process.Log = filepath.Join(dir, m.name+".log")
		peers = append(peers, "http://"+freeAddress(t))
		initial = append(initial, m.name+"="+peers[i])
		c.Members = append(c.Members, m)
	}
	for i, m := range c.Members {
		m.process.Args = append([]string{
			program, "--name", m.name, "--data-dir", filepath.Join(dir, m.name), "--log-level", "warn",
			"--listen-client-urls", m.Endpoint, "--advertise-client-urls", m.Endpoint,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i],
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", dir,
			// What a killed process has written is still there; only a machine that loses power forgets it.
			"--unsafe-no-fsync",
		}, serve...)
		m.start()
	}
	t.Cleanup(func() {
		for _, m := range c.Members {
			m.Kill()
			if t.Failed() {
				t.Logf("etcd %s:\n%s", m.name, m.process.Said())
			}
		}
	})
	for _, m := range c.Members {
		m.WaitReady()
	}
	return c
}

// certify makes the files that members and clients share, and returns what asks them.
func (c *Cluster) certify() *tls.Config {
	c.t.Helper()
	ca, err := world.NewCA()
	if err != nil {
		c.t.Fatal(err)
	}
	certificate, err := ca.Issue("127.0.0.1", "localhost")
	if err != nil {
		c.t.Fatal(err)
	}
	if c.Files, err = ca.WriteFiles(c.t.TempDir(), certificate); err != nil {
		c.t.Fatal(err)
	}
	own, err := certificate.TLS()
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{own}}
}

// Endpoints are the client URLs of all members.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.Members {
		out = append(out, m.Endpoint)
	}
	return out
}

// Address is host:port of the member's endpoint, for a proxy before it.
func (m *Member) Address() string {
	_, address, _ := strings.Cut(m.Endpoint, "://")
	return address
}

// Kill ends the process as kill -9 does. A member that does not run stays so.
func (m *Member) Kill() { m.process.Kill() }

// Stop freezes the process: it keeps its connections and answers nothing.
func (m *Member) Stop() { m.cluster.t.Helper(); m.signal(syscall.SIGSTOP) }

// Continue lets a stopped process go on.
func (m *Member) Continue() { m.cluster.t.Helper(); m.signal(syscall.SIGCONT) }

// Restart starts the process again with the same data, after Kill, and waits until it is
// ready.
func (m *Member) Restart() {
	m.cluster.t.Helper()
	m.Kill()
	m.start()
	m.WaitReady()
}

// WaitReady waits until the member has joined a cluster that has a leader.
func (m *Member) WaitReady() {
	m.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := m.ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-m.process.Ended():
			m.cluster.t.Fatalf("etcd %s has ended:\n%s", m.name, m.process.Said())
		case <-tick.C:
		case <-ctx.Done():
			m.cluster.t.Fatalf("etcd %s is not ready after %s: %v\n%s", m.name, readyWithin, err, m.process.Said())
		}
	}
}

func (m *Member) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Endpoint+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := m.cluster.client.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", answer.Status)
	}
	return nil
}

func (m *Member) start() {
	m.cluster.t.Helper()
	if err := m.process.Start(); err != nil {
		m.cluster.t.Fatal(err)
	}
}

func (m *Member) signal(s syscall.Signal) {
	m.cluster.t.Helper()
	if err := m.process.Signal(s); err != nil {
		m.cluster.t.Fatalf("member %s: %v", m.name, err)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
