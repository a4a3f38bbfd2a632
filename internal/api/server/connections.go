package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// connections are those that are open. One that has shown a valid token is that token's, and
// shared out among tokens; of the others there are few: who comes anew takes the place of the
// one that got on longest ago, of the address that has the most of them. So nobody without a
// token keeps anybody out (G8).
type connections struct {
	net.Listener
	closed chan struct{}
	close  sync.Once

	mu    sync.Mutex
	from  map[netip.Prefix]group // newcomers, by address
	of    map[string]group       // by token
	new   int                    // of newcomers
	owned int                    // of tokens
}

// connection is one that was accepted.
type connection struct {
	net.Conn
	all   *connections
	from  netip.Prefix
	token string    // whose it is; "" of a newcomer
	busy  int       // requests under way
	moved time.Time // when it came, or a request began or ended last
	gone  bool
}

// graceOfNewcomers is the time that each has to say something, however many come. Until then
// those that come wait to be accepted.
const graceOfNewcomers = 500 * time.Millisecond

// manyOfAnAddress is how many newcomers one address must have for others to wait for its own to
// have had their time: as long as it has fewer, waiting for them alone would let hardly anybody in.
const manyOfAnAddress = newcomers / 4

type group map[*connection]struct{}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, closed: make(chan struct{}), from: map[netip.Prefix]group{}, of: map[string]group{}}
}

// Accept implements net.Listener.
func (a *connections) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	in := &connection{Conn: c, all: a, from: sourceOf(c.RemoteAddr().String()), moved: time.Now()}
	for {
		wait := a.admit(in)
		if wait <= 0 {
			return in, nil
		}
		select {
		case <-time.After(wait):
		case <-a.closed:
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
	}
}

// Close implements net.Listener.
func (a *connections) Close() error {
	a.close.Do(func() { close(a.closed) })
	return a.Listener.Close()
}

// admit counts a newcomer, for whom another one goes where there are too many, or says for how
// long to wait.
func (a *connections) admit(in *connection) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.new >= newcomers {
		most := largest(a.from)
		out := cmp.Or(oldest(a.from, most, isIdle), oldest(a.from, most, anyone))
		if most < manyOfAnAddress && out.grace() > 0 {
			out = oldest(a.from, 1, anyone)
		}
		if wait := out.grace(); wait > 0 {
			return wait
		}
		out.end()
	}
	in.moved = time.Now()
	in.enter()
	return 0
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.leave()
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// end closes a connection for another's sake.
func (c *connection) end() {
	c.leave()
	_ = c.Conn.Close() // who is cut off may come again
}

// enter and leave count a connection; all.mu is held.
func (c *connection) enter() {
	if c.token == "" {
		join(c.all.from, c.from, c)
		c.all.new++
		return
	}
	join(c.all.of, c.token, c)
	c.all.owned++
}

func (c *connection) leave() {
	switch {
	case c.gone:
		return
	case c.token == "":
		part(c.all.from, c.from, c)
		c.all.new--
	default:
		part(c.all.of, c.token, c)
		c.all.owned--
	}
	c.gone = true
}

func join[K comparable](all map[K]group, key K, c *connection) {
	if all[key] == nil {
		all[key] = group{}
	}
	all[key][c] = struct{}{}
}

func part[K comparable](all map[K]group, key K, c *connection) {
	if delete(all[key], c); len(all[key]) == 0 {
		delete(all, key)
	}
}

// largest is how many the largest group has.
func largest[K comparable](all map[K]group) (most int) {
	for _, g := range all {
		most = max(most, len(g))
	}
	return most
}

// oldest returns the connection that got on longest ago, of those that will do in the groups
// that have so many; nil: none will do.
func oldest[K comparable](all map[K]group, many int, will func(*connection) bool) (oldest *connection) {
	for _, g := range all {
		if len(g) < many {
			continue
		}
		if c := g.oldest(will); c != nil && (oldest == nil || c.moved.Before(oldest.moved)) {
			oldest = c
		}
	}
	return oldest
}

// oldest returns the connection of those that will do that got on longest ago; nil: none will do.
func (g group) oldest(will func(*connection) bool) (oldest *connection) {
	for c := range g {
		if will(c) && (oldest == nil || c.moved.Before(oldest.moved)) {
			oldest = c
		}
	}
	return oldest
}

// grace is for how long a newcomer may still stay, however many come.
func (c *connection) grace() time.Duration { return time.Until(c.moved.Add(graceOfNewcomers)) }

func anyone(*connection) bool { return true }

func isIdle(c *connection) bool { return c.busy == 0 }

// show says whose a connection is, once it has shown a valid token. Where that has too many,
// one of its own that is idle ends for it; where all have, one of whoever has the most.
func (c *connection) show(token fleet.Token) error {
	if c == nil {
		return nil
	}
	a, s := c.all, shareOfConnections
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.gone || c.token == token.ID {
		return nil
	}
	if own := a.of[token.ID]; len(own) >= s.each {
		idle := own.oldest(isIdle)
		if idle == nil {
			return s.mine(token)
		}
		idle.end()
	}
	if a.owned >= s.limit(token) {
		idle := oldest(a.of, largest(a.of), isIdle)
		if idle == nil {
			return s.ours()
		}
		idle.end()
	}
	c.leave()
	c.token, c.gone = token.ID, false
	c.enter()
	return nil
}

// begins notes that a request is under way, until ended.
func (c *connection) begins() (ended func()) {
	note := func(n int) {
		if c != nil {
			c.all.mu.Lock()
			defer c.all.mu.Unlock()
			c.busy, c.moved = c.busy+n, time.Now()
		}
	}
	note(1)
	return func() { note(-1) }
}

// isNewcomer reports whether nobody has shown a valid token on the connection.
func (c *connection) isNewcomer() bool {
	if c == nil {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.token == ""
}

type connectionKey struct{}

// withConnection makes a connection known to its requests, and is for http.Server.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if in, ok := c.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, in)
	}
	return ctx
}

// connectionOf is that of a request; nil: it came by another way than newConnections knows of.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
