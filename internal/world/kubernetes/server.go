package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/world/process"
)

// Program is the environment variable that names the kube-apiserver program.
const Program = "KURA_APISERVER"

// Namespace is where the instances are, unless a region says otherwise.
const Namespace = "kura"

const readyWithin = 3 * time.Minute

// Options say what to run.
type Options struct {
	// Dir is where Open keeps data, keys and logs; Start has its own.
	Dir string
	// Bare leaves the cluster empty: no CRD, no namespace "kura" and no right of kurad.
	Bare bool
	// Without are the spec fields that the CRD lacks, such as those of NewerFields.
	Without []string
}

// Server is a running kube-apiserver and the etcd behind it.
type Server struct {
	dir, host       string // host is host:port of the apiserver
	ca              *world.CA
	files           world.Files
	etcd, apiserver *process.Process
	admin           *rest.Config
}

// Start runs a server that ends with its test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	o.Dir = t.TempDir()
	s, err := Open(t.Context(), o)
	t.Cleanup(func() {
		s.Close()
		if t.Failed() && s.host != "" {
			t.Logf("kube-apiserver:\n%s\netcd:\n%s", s.apiserver.Said(), s.etcd.Said())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Open runs a server until Close, which is to be called whether it succeeds or not.
func Open(ctx context.Context, o Options) (*Server, error) {
	s := &Server{dir: o.Dir, etcd: &process.Process{}, apiserver: &process.Process{}}
	if err := s.open(ctx); err != nil {
		return s, fmt.Errorf("run a kube-apiserver: %w", err)
	}
	if o.Bare {
		return s, nil
	}
	if err := s.InstallCRD(ctx, o.Without...); err != nil {
		return s, err
	}
	return s, errors.Join(s.CreateNamespace(ctx, Namespace), s.Grant(ctx, Namespace))
}

func (s *Server) open(ctx context.Context) error {
	addresses, err := s.prepare()
	if err != nil {
		return err
	}
	client, peer := "http://"+addresses[0], "http://"+addresses[1]
	_, port, err := net.SplitHostPort(s.host)
	if err != nil {
		return err
	}
	s.etcd.Args = append(s.etcd.Args, "--name", "etcd", "--data-dir", filepath.Join(s.dir, "etcd"), "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "etcd="+peer,
		// What a killed process has written is still there; only a machine that loses power forgets it.
		"--unsafe-no-fsync")
	if err := s.etcd.Start(); err != nil {
		return err
	}
	s.apiserver.Args = append(s.apiserver.Args, "--etcd-servers", client,
		"--bind-address", "127.0.0.1", "--secure-port", port,
		"--tls-cert-file", s.files.Cert, "--tls-private-key-file", s.files.Key,
		"--token-auth-file", filepath.Join(s.dir, "tokens.csv"), "--authorization-mode", "RBAC",
		// Any key pair does for the tokens of service accounts; nobody asks for one.
		"--service-account-key-file", s.files.Cert, "--service-account-signing-key-file", s.files.Key,
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-cluster-ip-range", "10.0.0.0/24",
		// They wait for controllers that nobody runs here.
		"--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
		// Two cores run the tests as well, and nobody is to be kept waiting by fairness between them.
		"--enable-priority-and-fairness=false", "--max-requests-inflight", "0", "--max-mutating-requests-inflight", "0")
	if err := s.apiserver.Start(); err != nil {
		return err
	}
	return s.WaitReady(ctx)
}

// prepare finds the programs and addresses for etcd, and one for the apiserver, and writes
// keys and tokens.
func (s *Server) prepare() (addresses [2]string, err error) {
	for name, p := range map[string]*process.Process{etcd.Program: s.etcd, Program: s.apiserver} {
		program := os.Getenv(name)
		if program == "" {
			return addresses, fmt.Errorf("%s is not set: run it through make test, or set it to what internal/tools/build.sh %s prints", name, tools[name])
		}
		p.Args, p.Log = []string{program}, filepath.Join(s.dir, filepath.Base(program)+".log")
	}
	for _, address := range []*string{&addresses[0], &addresses[1], &s.host} {
		if *address, err = process.FreeAddress(); err != nil {
			return addresses, err
		}
	}
	if s.ca, err = world.NewCA(); err != nil {
		return addresses, err
	}
	certificate, err := s.ca.Issue("127.0.0.1", "localhost")
	if err != nil {
		return addresses, err
	}
	if s.files, err = s.ca.WriteFiles(filepath.Join(s.dir, "tls"), certificate); err != nil {
		return addresses, err
	}
	s.admin = s.REST(Admin)
	return addresses, os.WriteFile(filepath.Join(s.dir, "tokens.csv"), tokens(), 0o600)
}

// tools are what builds the programs, by their variables.
var tools = map[string]string{etcd.Program: "etcd", Program: "kube-apiserver"}

// Address is host:port of the apiserver. It stays the same when it is started again.
func (s *Server) Address() string { return s.host }

// Close ends both programs.
func (s *Server) Close() {
	s.apiserver.Kill()
	s.etcd.Kill()
}

// Stop freezes the apiserver: it keeps its connections and answers nothing.
func (s *Server) Stop() error { return s.apiserver.Signal(syscall.SIGSTOP) }

// Continue lets a stopped apiserver go on.
func (s *Server) Continue() error { return s.apiserver.Signal(syscall.SIGCONT) }

// Kill ends the apiserver as kill -9 does; etcd goes on.
func (s *Server) Kill() { s.apiserver.Kill() }

// Restart starts the apiserver again with what it had, and waits until it is ready.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	if err := s.apiserver.Start(); err != nil {
		return err
	}
	return s.WaitReady(ctx)
}

// WaitReady waits until the apiserver says that it is ready.
func (s *Server) WaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	client.Timeout = 2 * time.Second
	err = poll(ctx, readyWithin, func() error {
		for _, p := range []*process.Process{s.etcd, s.apiserver} {
			select {
			case <-p.Ended():
				return final{fmt.Errorf("%s has ended:\n%s", p.Name(), p.Said())}
			default:
			}
		}
		answer, err := client.Get(s.admin.Host + "/readyz")
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", answer.Status)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver is not ready: %w", err)
	}
	return nil
}

// final is an error after which trying again makes no sense.
type final struct{ error }

// poll tries until it succeeds; the API server tells nobody when it is done.
func poll(ctx context.Context, most time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if end, ok := errors.AsType[final](err); ok {
			return end.error
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
