package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
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
	tags    []string // three versions of the image
	ground  ground
	asker   *asker
	daemon  *exec.Cmd
	ended   chan error
	daemonW *bytes.Buffer
}

// ground is what the servers of the story run on, and what is different there.
type ground interface {
	// introduce says what it is, and what will be done there.
	introduce() string
	// open starts it in a folder of the demo's. What it started ends by close, whether open
	// succeeds or not.
	open(ctx context.Context, dir string) error
	close(ctx context.Context, failed bool) error
	// serve are the flags of kurad serve.
	serve() []string
	// variables are those of the configuration.
	variables() map[string]string
	// zoned is the zone of the hosts.
	zoned() string
	// cloudflare is the provider of the zone; nil: the zone is not the demo's own.
	cloudflare() *cloudflare.Emulator
	// global is an account's host over all regions; "": there is none.
	global(account string) string
	// thing is what a server is there.
	thing() string
	// remove removes it and returns what a person would have typed.
	remove(ctx context.Context, v server) (string, error)
	// rolling and rolled say how a new image is rolled out, and how it was; an error: it
	// was not done so.
	rolling() string
	rolled(before, after server) (string, error)
	// failure is the reason of an image that nobody built.
	failure() string
	// nothingLeft says what was looked at; an error: something is left.
	nothingLeft(ctx context.Context) (string, error)
	// hint is what else can be looked at with, while everything is kept running.
	hint() string
	// target is the name in the makefile.
	target() string
	// stays: it is there after the demo, which has to take away what it made on it.
	stays() bool
}

// setUp starts the ground and the daemon. The stage is never nil, so that what has been
// started can be torn down.
func setUp(ctx context.Context, o options) (s *stage, err error) {
	s = &stage{daemonW: &bytes.Buffer{}, tags: o.tags, ground: o.ground}
	if s.tofu, err = exec.LookPath(o.tofu); err != nil {
		return s, fmt.Errorf("no OpenTofu at %q: run the demo by `make %s`, which builds it", o.tofu, s.ground.target())
	}
	if s.kurad, err = filepath.Abs(filepath.Join(o.bin, "kurad")); err != nil {
		return s, err
	}
	if s.dir, err = os.MkdirTemp("", "kura-demo-"); err != nil {
		return s, err
	}
	chapter("Setting the stage: %s", s.ground.introduce())
	if err := s.ground.open(ctx, s.dir); err != nil {
		return s, err
	}
	if err := s.mirror(filepath.Join(o.bin, "terraform-provider-kura"), o.hcl); err != nil {
		return s, err
	}
	if s.asker, err = newAsker(s.ground.serve()); err != nil {
		return s, err
	}
	return s, progress("starting kurad", func() error { return s.startDaemon(ctx) })
}

// mirror lays the provider where OpenTofu looks for it without a network, and copies the
// configuration to where tofu may write.
func (s *stage) mirror(provider, hcl string) error {
	binary, err := os.ReadFile(provider)
	if err != nil {
		return fmt.Errorf("read the provider: %w; run the demo by `make %s`, which builds it", err, s.ground.target())
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
		"TF_CLI_CONFIG_FILE="+config, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_VAR_image_tag="+s.tags[0],
		"KURA_DATA_DIR="+s.data(), "KURA_TOKEN_FILE="+filepath.Join(s.data(), "token"),
	)
	variables := s.ground.variables()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		s.env = append(s.env, "TF_VAR_"+name+"="+variables[name])
	}
	return nil
}

func (s *stage) data() string { return filepath.Join(s.dir, "kurad") }

// startDaemon starts kurad and waits until it answers.
func (s *stage) startDaemon(ctx context.Context) error {
	// It outlives an interrupted story: tearDown ends it.
	s.daemon = exec.Command(s.kurad, append([]string{"serve", "--data-dir", s.data(), "--listen", "127.0.0.1:0"}, s.ground.serve()...)...)
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
	list, err := s.servers(ctx)
	if err != nil {
		return err
	}
	curl, err := s.asker.curl(ctx, list[0].PublishedURL)
	if err != nil {
		return err
	}
	if s.ground.stays() {
		chapter("Everything keeps running; Ctrl-C destroys what the demo made, and ends it")
	} else {
		chapter("Everything keeps running; Ctrl-C ends it")
	}
	fmt.Print("In another terminal:\n\n")
	for _, v := range s.env[len(os.Environ()):] { // what was added
		fmt.Printf("  export %s\n", v)
	}
	fmt.Printf("  %s status --watch\n  cd %s && %s plan\n  %s\n%s\n", s.kurad, s.hcl, s.tofu, curl, s.ground.hint())
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
	errs = append(errs, s.ground.close(ctx, failed))
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
