// Package process runs the programs that tests and the demo need beside them, such as etcd
// and kube-apiserver.
package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Process is a program that can be started again after it was killed. It dies with us, and
// has a process group of its own: Ctrl-C is the demo's.
type Process struct {
	Args []string // the program first
	Log  string   // the file that what it prints is added to

	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs the program.
func (p *Process) Start() error {
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name(), err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // that it was killed is no news, and its log says the rest
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// Ended is closed when the program that was started last has ended, whoever ended it.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the program as kill -9 does. One that does not run stays so.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only where it has ended
	<-p.ended
	p.cmd = nil
}

// Signal sends a signal to a program that runs.
func (p *Process) Signal(s syscall.Signal) error {
	if p.cmd == nil {
		return fmt.Errorf("signal %s to %s: it does not run", s, p.Name())
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s to %s: %w", s, p.Name(), err)
	}
	return nil
}

// Name is that of the program's file.
func (p *Process) Name() string { return filepath.Base(p.Args[0]) }

// Said returns the end of what the program has printed.
func (p *Process) Said() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	const most = 4 << 10
	return string(b[max(0, len(b)-most):])
}

// Ports below those that the system gives to whoever connects or listens on port 0 (32768
// and up, ip_local_port_range), and below those that containers publish (20000 and up): a
// program that was killed finds its port free when it is started again.
const firstPort, lastPort = 10000, 19999

var given struct {
	sync.Mutex
	ports map[int]bool
}

// FreeAddress returns a loopback address that nobody listens on, and that it returns only once.
func FreeAddress() (string, error) {
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[int]bool{}
	}
	var last error
	for _, n := range rand.Perm(lastPort - firstPort + 1)[:1000] {
		port := firstPort + n
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		given.ports[port] = true
		return l.Addr().String(), l.Close()
	}
	return "", errors.Join(fmt.Errorf("no port of %d-%d is free", firstPort, lastPort), last)
}
