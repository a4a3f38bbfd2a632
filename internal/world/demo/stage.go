package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/engine"
)

// providerVersion is the version under which the built provider lies in the mirror.
const providerVersion = "0.0.1"

// stage is everything that the story plays on.
type stage struct {
	dir     string // of the demo, removed at the end
	tofu    string
	hcl     string // a copy of the configuration, in which tofu works
	kurad   string
	env     []string // of tofu and of kurad's commands
	ca      string
	dns     *world.DNS
	engine  *engine.Engine
	daemon  *exec.Cmd
	ended   chan error
	daemonW *bytes.Buffer
}

// setUp starts the world, the engine and the daemon. The stage is never nil, so that
// what has been started can be torn down.
func setUp(ctx context.Context, tofu, bin, hcl string) (s *stage, err error) {
	s = &stage{daemonW: &bytes.Buffer{}}
	if s.tofu, err = exec.LookPath(tofu); err != nil {
		return s, fmt.Errorf("no OpenTofu at %q: run the demo by `make demo`, which builds it", tofu)
	}
	if s.kurad, err = filepath.Abs(filepath.Join(bin, "kurad")); err != nil {
		return s, err
	}
	for _, tool := range []string{"podman", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return s, fmt.Errorf("%s is not installed: apt-get install %s", tool, tool)
		}
	}
	if s.dir, err = os.MkdirTemp("", "kura-demo-"); err != nil {
		return s, err
	}
	chapter("Setting the stage: a certificate authority, DNS for kura.test, a Podman of its own, kurad for staging")
	tls := filepath.Join(s.dir, "tls")
	if err := s.startWorld(tls); err != nil {
		return s, err
	}
	err = progress("starting Podman with a root and a socket of its own", func() (err error) {
		s.engine, err = engine.Start(ctx, engine.Options{Dir: filepath.Join(s.dir, "podman")})
		return err
	})
	if err != nil {
		return s, err
	}
	err = progress("building the cache server's images v1, v2 and v3 FROM scratch", func() error {
		for _, tag := range []string{"v1", "v2", "v3"} {
			if err := s.engine.CacheImage(ctx, image(tag)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	if err := s.mirror(filepath.Join(bin, "terraform-provider-kura"), hcl, tls); err != nil {
		return s, err
	}
	return s, progress("starting kurad", func() error { return s.startDaemon(ctx, tls) })
}

func image(tag string) string { return "localhost/kura-cache:" + tag }

func (s *stage) startWorld(tls string) error {
	ca, err := world.NewCA()
	if err != nil {
		return err
	}
	cert, err := ca.IssueWildcard("kura.test")
	if err != nil {
		return err
	}
	files, err := ca.WriteFiles(tls, cert)
	if err != nil {
		return err
	}
	s.ca = files.CA
	if s.dns, err = world.StartDNS("kura.test"); err != nil {
		return err
	}
	s.dns.SetWildcard(netip.MustParseAddr("127.0.0.1"))
	return nil
}

// mirror lays the provider where OpenTofu looks for it without a network, and copies the
// configuration to where tofu may write.
func (s *stage) mirror(provider, hcl, tls string) error {
	binary, err := os.ReadFile(provider)
	if err != nil {
		return fmt.Errorf("read the provider: %w; run the demo by `make demo`, which builds it", err)
	}
	for _, host := range []string{"registry.opentofu.org", "registry.terraform.io"} {
		dir := filepath.Join(s.dir, "mirror", host, "kurafleet", "kura", providerVersion, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "terraform-provider-kura_v"+providerVersion), binary, 0o755); err != nil {
			return err
		}
	}
	config := filepath.Join(s.dir, "tofu.rc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(s.dir, "mirror"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	s.hcl = filepath.Join(s.dir, "hcl")
	if err := os.CopyFS(s.hcl, os.DirFS(hcl)); err != nil {
		return err
	}
	s.env = append(os.Environ(),
		"TF_CLI_CONFIG_FILE="+config, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_VAR_tls_dir="+tls,
		"KURA_DATA_DIR="+s.data(), "KURA_TOKEN_FILE="+filepath.Join(s.data(), "token"),
	)
	return nil
}

func (s *stage) data() string { return filepath.Join(s.dir, "kurad") }

// startDaemon starts kurad and waits until it answers.
func (s *stage) startDaemon(ctx context.Context, tls string) error {
	s.daemon = exec.Command(s.kurad, "serve", // it outlives an interrupted story: tearDown ends it
		"--environment", "staging", "--data-dir", s.data(), "--listen", "127.0.0.1:0", "--tick", "5s",
		"--container-endpoint", "local=unix://"+s.engine.Socket()+",address=127.0.0.1,ports=28000-28999,mounts="+tls,
		"--resolver", s.dns.Addr(), "--probe-ca", s.ca, "--probe-allow-cidr", "127.0.0.0/8",
	)
	s.daemon.Stdout, s.daemon.Stderr = s.daemonW, s.daemonW
	s.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the demo's, which ends it in order
	if err := s.daemon.Start(); err != nil {
		return fmt.Errorf("start kurad: %w", err)
	}
	s.ended = make(chan error, 1)
	go func() { s.ended <- s.daemon.Wait() }()
	return wait(ctx, 30*time.Second, "kurad answers", func() error {
		select {
		case err := <-s.ended:
			s.daemon = nil
			return stop{fmt.Errorf("kurad ended: %w\n%s", err, s.daemonW)}
		default:
		}
		address, err := os.ReadFile(filepath.Join(s.data(), "endpoint"))
		if err != nil {
			return err
		}
		endpoint := "KURA_ENDPOINT=" + strings.TrimSpace(string(address))
		if s.env[len(s.env)-1] != endpoint {
			s.env = append(s.env, endpoint)
		}
		_, err = s.run(ctx, s.kurad, "version", "--daemon")
		return err
	})
}

// run runs a command in the stage's environment and returns what it printed.
func (s *stage) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = s.env, s.hcl
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// keep waits for Ctrl-C and says what can be tried meanwhile.
func (s *stage) keep(ctx context.Context) error {
	chapter("Everything keeps running; Ctrl-C ends it")
	fmt.Printf("In another terminal:\n\n  export KURA_DATA_DIR=%s TF_CLI_CONFIG_FILE=%s TF_VAR_tls_dir=%s\n", s.data(), filepath.Join(s.dir, "tofu.rc"), filepath.Join(s.dir, "tls"))
	fmt.Printf("  export %s KURA_TOKEN_FILE=%s\n", s.env[len(s.env)-1], filepath.Join(s.data(), "token"))
	fmt.Printf("  %s status --watch\n  cd %s && %s plan\n\n", s.kurad, s.hcl, s.tofu)
	<-ctx.Done()
	fmt.Println("\nending")
	return nil
}

// tearDown ends what was started, in the reverse order, and removes the demo's folder.
func (s *stage) tearDown(ctx context.Context, failed bool) error {
	var errs []error
	if s.daemon != nil {
		errs = append(errs, s.daemon.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-s.ended:
			errs = append(errs, err)
		case <-time.After(30 * time.Second):
			errs = append(errs, errors.New("kurad does not end"), s.daemon.Process.Kill())
		}
		if failed {
			fmt.Fprintf(os.Stderr, "\n--- what kurad logged\n%s\n", tail(s.daemonW.String(), 60))
		}
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.dns != nil {
		errs = append(errs, s.dns.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
