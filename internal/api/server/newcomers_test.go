package server

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// comes is a listener to which connections come from the addresses that are sent, at once.
type comes struct {
	from   chan string
	closed chan struct{}
}

type came struct {
	net.Conn
	from net.Addr
}

func (c came) RemoteAddr() net.Addr { return c.from }
func (came) Close() error           { return nil }

func (l comes) Accept() (net.Conn, error) {
	select {
	case from := <-l.from:
		at, err := net.ResolveTCPAddr("tcp", from)
		return came{from: at}, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l comes) Close() error { close(l.closed); return nil }

func (comes) Addr() net.Addr { return nil }

// crowd is a listener whose newcomers come from as many addresses.
func crowd(t *testing.T) (l comes, all *connections, accept func(from string)) {
	t.Helper()
	l = comes{make(chan string, 1), make(chan struct{})}
	all = newConnections(l)
	accept = func(from string) {
		t.Helper()
		l.from <- from
		if _, err := all.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range newcomers {
		accept(fmt.Sprintf("[2001:db8:0:%x::1]:1", i))
	}
	return l, all, accept
}

// Whoever has many addresses, a /64 each, fills the places with one connection of each: who
// comes then waits for the one that is there longest, and not for one that just came.
func TestG8_manyAddressesSlowNobodyDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, accept := crowd(t)
		time.Sleep(graceOfNewcomers) // the bubble's
		begun := time.Now()
		for i := range newcomers {
			accept(fmt.Sprintf("[2001:db8:1:%x::1]:1", i))
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("%d more that came once those were there long enough waited %s", newcomers, took)
		}
	})
}

// A few connections of one address that come again and again beside them do neither.
func TestG8_oneAddressBesideManySlowsNobodyDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, accept := crowd(t)
		time.Sleep(graceOfNewcomers) // the bubble's
		begun := time.Now()
		for i := range 1000 {
			accept("192.0.2.1:1")
			accept(fmt.Sprintf("[2001:db8:1:%x::1]:1", i))
		}
		if took := time.Since(begun); took > 2*graceOfNewcomers {
			t.Errorf("2,000 more waited %s", took)
		}
	})
}

func TestG8_theListenerEndsWhileOneWaitsToBeAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all, _ := crowd(t)
		ended := make(chan error)
		begun := time.Now()
		go func() {
			_, err := all.Accept()
			ended <- err
		}()
		l.from <- "192.0.2.1:1"
		synctest.Wait()
		if err := all.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) || time.Since(begun) > 0 {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}
