package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options say where an engine lives.
type Options struct {
	// Dir holds everything of the engine and is deleted with it; it is made if missing,
	// and what an earlier engine left in it is removed first.
	Dir string
	Log hclog.Logger // nil: nothing is logged
	// PlainRegistries are hosts, with or without a port, that images are pulled from
	// without TLS, such as a Registry's. If there are any, the machine's registry
	// settings are not used.
	PlainRegistries []string
}

// Engine is a running Podman of its own.
type Engine struct {
	dir      string
	log      hclog.Logger
	settings settings
	net      network
	// state is a short folder elsewhere: Podman refuses a run root of more than 50
	// characters, and a socket's path has at most 107.
	state   string
	service *exec.Cmd
	ended   chan struct{} // closed when the service has ended
}

// Start prepares an engine in opt.Dir, finds settings that run a container on this
// machine, and serves the Docker-compatible API on Socket.
func Start(ctx context.Context, opt Options) (*Engine, error) {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil, errors.New("podman is not installed: apt-get install -y --no-install-recommends podman runc crun netavark aardvark-dns iptables")
	}
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("engine folder %s: %w", opt.Dir, err)
	}
	e := &Engine{dir: dir, log: opt.Log}
	if e.log == nil {
		e.log = hclog.NewNullLogger()
	}
	if err := e.start(ctx, opt); err != nil {
		// The cause is told; what cannot be cleaned up besides belongs to it.
		return nil, errors.Join(fmt.Errorf("start a podman in %s: %w", dir, err), e.Close())
	}
	return e, nil
}

func (e *Engine) start(ctx context.Context, opt Options) error {
	if err := Remove(ctx, e.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	held, err := os.ReadDir(e.dir)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		// Close will delete the folder: nobody's files may be in it.
		e.dir = ""
		return errors.New("the folder is not empty and holds no engine; name an empty or a new one")
	}
	if e.state, err = makeState(e.dir); err != nil {
		return err
	}
	if e.net, err = reserveNetwork(); err != nil {
		return err
	}
	if err := e.chooseSettings(ctx, opt.PlainRegistries); err != nil {
		return err
	}
	return e.serve(ctx)
}

// Socket returns the path of the API's unix socket.
func (e *Engine) Socket() string { return filepath.Join(e.state, "podman.sock") }

// Podman runs the podman command on this engine and returns what it printed.
func (e *Engine) Podman(ctx context.Context, args ...string) (string, error) {
	return e.settings.run(ctx, args...)
}

// serve starts `podman system service` and waits until its socket answers.
func (e *Engine) serve(ctx context.Context) error {
	out, err := os.OpenFile(filepath.Join(e.dir, "service.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command("podman", append(e.settings.flags(), "system", "service", "--time=0", "unix://"+e.Socket())...)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.settings.env(), out, out
	cmd.ExtraFiles = []*os.File{e.net.lock}
	// A group of its own: an interrupt at the terminal must reach our Close first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	e.service, e.ended = cmd, ended
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	if err := os.WriteFile(pidFile(e.dir), fmt.Appendf(nil, "%d\n", cmd.Process.Pid), 0o600); err != nil {
		return err
	}
	return e.awaitSocket(ctx)
}

func (e *Engine) awaitSocket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, e.Socket()) {
			return nil
		}
		select {
		case <-tick.C:
		case <-e.ended:
			return fmt.Errorf("podman system service ended: %s", tail(filepath.Join(e.dir, "service.log")))
		case <-ctx.Done():
			return fmt.Errorf("podman's socket %s does not answer: %w", e.Socket(), ctx.Err())
		}
	}
}

// StopService ends the API service and leaves the containers alone: to clients the
// engine is unreachable until StartService.
func (e *Engine) StopService() error {
	if e.service == nil {
		return nil
	}
	pid := e.service.Process.Pid
	_ = e.service.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.ended:
	case <-time.After(5 * time.Second): // it waits for open event streams
		_ = e.service.Process.Kill()
		<-e.ended
	}
	e.service = nil
	e.log.Debug("podman service ended", "pid", pid)
	return errors.Join(ignoreMissing(os.Remove(e.Socket())), ignoreMissing(os.Remove(pidFile(e.dir))))
}

// StartService serves the API again after StopService.
func (e *Engine) StartService(ctx context.Context) error {
	if e.service != nil {
		return nil
	}
	return e.serve(ctx)
}

// Close ends the service and removes all containers and everything below Dir.
func (e *Engine) Close() error {
	errs := []error{e.StopService()}
	if e.settings.dir != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		errs = append(errs, e.settings.clear(ctx))
	}
	errs = append(errs, removeTree(e.state), removeTree(e.dir), e.net.release())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the podman in %s: %w", e.dir, err)
	}
	return nil
}

// makeState makes the short folder of the engine in dir and notes it there.
func makeState(dir string) (string, error) {
	parent := os.TempDir()
	if len(parent) > 20 {
		parent = "/tmp"
	}
	state, err := os.MkdirTemp(parent, "kura")
	if err != nil {
		return "", err
	}
	return state, os.WriteFile(stateFile(dir), []byte(state), 0o600)
}

func stateFile(dir string) string { return filepath.Join(dir, "state") }

func pidFile(dir string) string { return filepath.Join(dir, "service.pid") }

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// tail returns the last lines of a log, for an error message.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 2000 {
		_, _ = f.Seek(-2000, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	return strings.TrimSpace(string(b))
}
