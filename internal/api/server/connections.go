package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
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
	idle  bool      // no request is under way
	moved time.Time // when a request began or ended last
	gone  bool
}

type group map[*connection]struct{}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, from: map[netip.Prefix]group{}, of: map[string]group{}}
}

// Accept implements net.Listener.
func (a *connections) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.new >= newcomers {
		largest(a.from).oldest(func(*connection) bool { return true }).end()
	}
	in := &connection{Conn: c, all: a, from: sourceOf(c.RemoteAddr().String()), moved: time.Now()}
	in.enter()
	return in, nil
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

// largest returns the group that has the most.
func largest[K comparable](all map[K]group) (most group) {
	for _, g := range all {
		if len(g) > len(most) {
			most = g
		}
	}
	return most
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

func isIdle(c *connection) bool { return c.idle }

// show says whose a connection is, once it has shown a valid token. Where that has too many,
// one of its own that is idle ends for it; where all have, one of whoever has the most.
func (c *connection) show(token fleet.Token) error {
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
		idle := largest(a.of).oldest(isIdle)
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

// moves notes that a request begins or has ended.
func (c *connection) moves(idle bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.idle, c.moved = idle, time.Now()
}

// connectionOf finds the connection below TLS.
func connectionOf(c net.Conn) (*connection, bool) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	in, ok := c.(*connection)
	return in, ok
}

type connectionKey struct{}

// withConnection makes a connection known to its requests, and note them, and is for
// http.Server.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if in, ok := connectionOf(c); ok {
		return context.WithValue(ctx, connectionKey{}, in)
	}
	return ctx
}

// noteState is for http.Server.
func noteState(c net.Conn, state http.ConnState) {
	if in, ok := connectionOf(c); ok && (state == http.StateActive || state == http.StateIdle) {
		in.moves(state == http.StateIdle)
	}
}

// show says whose the connection of a request is.
func show(ctx context.Context, token fleet.Token) error {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		return c.show(token)
	}
	return nil
}

// isNewcomer reports whether nobody has shown a valid token on the connection of a request.
func isNewcomer(ctx context.Context) bool {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.token == ""
}
