package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestC12_aPortThatSomebodyHasIsOfferedToNobodyForAWhile(t *testing.T) {
	w := newWorld(t)
	w.runtimes.first, w.runtimes.last = 20000, 20003
	w.seed([]string{"eu"}, "acme", "beta")
	was := w.put(srv("acme", "eu", "v1")).Ports["cache/http"]
	move := func() (int, error) {
		g, err := w.records.Gather(t.Context(), key("acme", "eu"))
		w.must(nil, err)
		m := fleet.PortMove{Endpoint: "podman", Need: "cache/http", From: g.Intent.Ports["cache/http"]}
		if m.To, err = w.declarer.NewPort(t.Context(), g, m); err != nil {
			return 0, err
		}
		write := fleet.TurnWrite{Key: key("acme", "eu"), IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: fleet.Status{Status: fleet.StatusProvisioning}, Port: &m}
		w.must(nil, w.records.CommitTurn(t.Context(), write))
		w.viewed()
		return m.To, nil
	}
	is, err := move()
	if err != nil || is == was {
		t.Fatalf("port %d, %v; want another than %d", is, err, was)
	}
	for range 2 { // two are left, and the one that was given back is nobody's
		if port := w.put(srv("beta", "eu", "v1")).Ports["cache/http"]; port == was || port == is {
			t.Errorf("beta gets port %d, which somebody has", port)
		}
	}
	seen := map[int]bool{was: true, is: true}
	next, err := move()
	if err != nil || seen[next] {
		t.Errorf("port %d, %v", next, err)
	}
	if port, err := move(); err == nil { // all that is left was found taken
		t.Errorf("port %d, want none", port)
	}
	w.clock.advance(10 * time.Minute)
	if port, err := move(); err != nil {
		t.Errorf("after a while: %d, %v", port, err)
	}
}

func TestC12_aServerThatFindsEveryPortTakenGetsNoMoreForAWhile(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	g, err := w.records.Gather(t.Context(), key("acme", "eu"))
	w.must(nil, err)
	var said string
	for i := range 10 {
		_, err := w.declarer.NewPort(t.Context(), g, fleet.PortMove{Endpoint: "podman", Need: "cache/http", From: 20500 + i})
		if (err != nil) != (i >= 5) {
			t.Fatalf("the %d. time: %v", i+1, err)
		}
		if err != nil {
			said = fmt.Sprint(err)
		}
	}
	if said != "server acme/eu got 5 other ports within 10m0s, and somebody had each" {
		t.Error(said)
	}
}
