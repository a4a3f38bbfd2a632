package kubernetes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// process is one of the two programs.
type process struct {
	args  []string // the program first
	log   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended, whoever ended it
}

// start runs the program. It dies with us.
func (p *process) start() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.args[0], p.args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is the demo's
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name(), err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // that it was killed is no news, and its log says the rest
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// kill ends the program as kill -9 does. One that does not run stays so.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only where it has ended
	<-p.ended
	p.cmd = nil
}

func (p *process) signal(s syscall.Signal) error {
	if p.cmd == nil {
		return fmt.Errorf("signal %s to %s: it does not run", s, p.name())
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.name(), err)
	}
	return nil
}

func (p *process) name() string { return filepath.Base(p.args[0]) }

// said returns the end of what the program has logged.
func (p *process) said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 4 << 10
	return string(b[max(0, len(b)-most):])
}

// freePort returns a loopback port that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
