package world

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ProxyMode is what a proxy does with connections.
type ProxyMode string

// Proxy modes.
const (
	ProxyPass     ProxyMode = ""          // hands everything on
	ProxyRefuse   ProxyMode = "refuse"    // nobody listens; connections that were open are cut
	ProxyDrop     ProxyMode = "drop"      // takes connections and cuts them at once
	ProxyHalfOpen ProxyMode = "half-open" // takes connections and bytes, hands nothing on and answers nothing
)

// Proxy sits before a TCP or unix address, such as the Podman socket or the API,
// and breaks what goes through it on command.
type Proxy struct {
	network, address string // where it listens
	target           [2]string
	tls              *tls.Config // what it asks of those who connect; nil: plain bytes
	closed           chan struct{}
	running          sync.WaitGroup

	mu       sync.Mutex
	mode     ProxyMode
	delay    time.Duration // of every piece, in both directions
	listener net.Listener  // nil: refusing
	conns    map[net.Conn]bool
	done     bool
}

// StartProxy listens on a free loopback port (network "tcp"), or on the socket file
// listen (network "unix"), and hands on to target on the same network.
func StartProxy(network, listen, target string) (*Proxy, error) {
	p := &Proxy{network: network, address: listen, target: [2]string{network, target}}
	if network == "unix" {
		if err := os.MkdirAll(filepath.Dir(listen), 0o700); err != nil {
			return nil, fmt.Errorf("start a proxy: %w", err)
		}
	}
	return p, p.start()
}

// start listens for the first time.
func (p *Proxy) start() error {
	p.closed, p.conns = make(chan struct{}), map[net.Conn]bool{}
	if p.address == "" {
		p.address = "127.0.0.1:0"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(); err != nil {
		return fmt.Errorf("start a proxy: %w", err)
	}
	p.address = p.listener.Addr().String() // the port stays the same from here on
	return nil
}

// Addr returns the address that clients use: host:port, or the socket file.
func (p *Proxy) Addr() string { return p.address }

// Set changes what happens from now on. Open connections follow the new delay; any
// mode but pass cuts them, except half-open, which leaves them without an answer.
func (p *Proxy) Set(mode ProxyMode, delay time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return nil
	}
	p.mode, p.delay = mode, delay
	if mode == ProxyRefuse || mode == ProxyDrop {
		p.cut()
	}
	switch {
	case mode == ProxyRefuse && p.listener != nil:
		p.listener.Close()
		p.listener = nil
	case mode != ProxyRefuse && p.listener == nil:
		if err := p.open(); err != nil {
			return fmt.Errorf("listen again: %w", err)
		}
	}
	return nil
}

// Close stops listening, cuts every connection and waits until all is over.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.done {
		p.done = true
		close(p.closed)
		if p.listener != nil {
			p.listener.Close()
		}
		p.cut()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// open listens; the lock is held.
func (p *Proxy) open() error {
	listener, err := net.Listen(p.network, p.address)
	if err != nil {
		return err
	}
	if p.tls != nil {
		listener = tls.NewListener(listener, p.tls)
	}
	p.listener = listener
	p.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(conn) })
		}
	})
	return nil
}

// cut closes every connection; the lock is held.
func (p *Proxy) cut() {
	for conn := range p.conns {
		abort(conn)
	}
}

// abort closes a connection so that the other side sees a reset, as of a crash.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// keep notes a connection so that it can be cut, unless that is due already.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.mode == ProxyRefuse || p.mode == ProxyDrop {
		abort(conn)
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *Proxy) forget(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	conn.Close()
}

func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.forget(client)
	target, err := net.Dial(p.target[0], p.target[1])
	if err != nil {
		return
	}
	if !p.keep(target) {
		return
	}
	defer p.forget(target)
	var back sync.WaitGroup
	back.Go(func() { p.copy(client, target) })
	p.copy(target, client)
	back.Wait()
}

// copy hands on what from says, piece by piece, and then its end.
func (p *Proxy) copy(to, from net.Conn) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		p.mu.Lock()
		mode, delay := p.mode, p.delay
		p.mu.Unlock()
		if mode == ProxyHalfOpen {
			if err != nil {
				return // the end is not handed on either
			}
			continue
		}
		if delay > 0 && n > 0 {
			timer := time.NewTimer(delay)
			select {
			case <-timer.C:
			case <-p.closed:
			}
			timer.Stop()
		}
		if n > 0 {
			if _, writeErr := to.Write(piece[:n]); writeErr != nil {
				abort(from)
				return
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			abort(to)
			return
		}
	}
}
