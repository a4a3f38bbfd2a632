package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// mortal is a store of which a kurad that is killed writes no more: after the writes of
// intents that it is given.
type mortal struct {
	kv.Store
	left atomic.Int64
}

var errKilled = errors.New("kurad was killed")

func (m *mortal) Txn(ctx context.Context, t kv.Txn) (int64, error) {
	for _, op := range t.Then {
		if m.left.Load() < 0 {
			return 0, errKilled
		}
		if strings.HasSuffix(op.Key, "/intent") {
			if m.left.Add(-1) < 0 {
				return 0, errKilled
			}
			break
		}
	}
	return m.Store.Txn(ctx, t)
}

// fleetOfMany declares n servers in eu.
func (w *world) fleetOfMany(n int) {
	w.t.Helper()
	w.seed([]string{"eu", "us"})
	for i := range n {
		id := fmt.Sprintf("a%03d", i)
		w.must(w.client.PutAccount(w.t.Context(), fleet.Account{ID: id}, api.PutOptions{}))
		w.put(srv(id, "eu", "v1"))
	}
}

// held is all that servers hold on the endpoint, and what their records say of it.
func (w *world) held() (ports map[int]fleet.ServerKey, intents map[string]fleet.Intent) {
	w.t.Helper()
	ports, err := w.records.PortsTaken(w.t.Context(), "podman")
	w.must(nil, err)
	intents = map[string]fleet.Intent{}
	list, _ := w.view.Servers(nil)
	for _, g := range list {
		in, err := w.records.Intent(w.t.Context(), g.Intent.Key())
		w.must(nil, err)
		intents[g.Intent.Key().String()] = in.Value
	}
	return ports, intents
}

// withAdmin is eu with another assigned port.
func withAdmin() fleet.Region {
	r := region("eu")
	r.Containers.Services["cache"].Ports["admin"] = fleet.Port{Container: 9000}
	return r
}

func TestC12_aRefusedRegionTakesNoPorts(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.fleetOfMany(60)
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "other", Pattern: "x-{account_handle}{env_suffix}.kura.test"}, api.PutOptions{}))
	us := region("us")
	us.Hosts.Public = "other"
	w.must(w.client.PutRegion(ctx, us, api.PutOptions{}))
	w.put(srv("a059", "us", "v1")) // the last one's host is taken
	ports, intents := w.held()
	refused := withAdmin()
	refused.Hosts.Public = "other"
	_, err := w.client.PutRegion(ctx, refused, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/hosts/public", "a059/eu", "a059/us")
	w.viewed()
	after, intentsAfter := w.held()
	if d := cmp.Diff(ports, after); d != "" {
		t.Errorf("it took ports (-before +after):\n%s", d)
	}
	if d := cmp.Diff(intents, intentsAfter); d != "" {
		t.Errorf("it left something in intents (-before +after):\n%s", d)
	}
}

// kurad is killed after any step of a change that gives 60 servers a port each: of what it
// had taken nothing is lost to the others, and the same change made again goes through.
func TestC12_whatAChangeThatWasBrokenOffHasTakenIsFree(t *testing.T) {
	for _, steps := range []int64{0, 1, 2} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d steps, again %v", steps, again), func(t *testing.T) {
				below := &mortal{Store: conformance.NewMemory()}
				below.left.Store(1 << 30)
				w, ctx := newWorldOn(t, below), t.Context()
				w.fleetOfMany(60)
				shown, err := w.client.ListServers(ctx, api.ServerFilter{Region: "eu"})
				w.must(nil, err)
				below.left.Store(steps)
				body, err := json.Marshal(withAdmin())
				w.must(nil, err)
				if resp, b := w.do(http.MethodPut, "/v1/regions/eu", string(body), w.admin); resp.StatusCode != http.StatusServiceUnavailable {
					t.Fatalf("it was not broken off: %d %s", resp.StatusCode, b)
				}
				below.left.Store(1 << 30)
				w.must(nil, w.records.BreakLock(ctx)) // the next start
				w.viewed()
				now, err := w.client.ListServers(ctx, api.ServerFilter{Region: "eu"})
				w.must(nil, err)
				if d := cmp.Diff(shown, now); d != "" {
					t.Errorf("servers look different (-before +after):\n%s", d)
				}
				if !again {
					taken, err := w.records.PortsTaken(ctx, "podman")
					w.must(nil, err)
					if steps > 0 && len(taken) == 60 {
						t.Fatal("it had taken nothing yet")
					}
					w.fill(taken)
					return
				}
				w.must(w.client.PutRegion(ctx, withAdmin(), api.PutOptions{}))
				w.viewed()
				first := w.portsOf("eu")
				if len(first) != 120 {
					t.Errorf("%d ports, want two of each server", len(first))
				}
				// They are kept: over a change of the server, and while the region needs them not.
				w.put(srv("a007", "eu", "v2"))
				w.must(w.client.PutRegion(ctx, region("eu"), api.PutOptions{}))
				w.viewed()
				_, intents := w.held()
				for name, in := range intents {
					if len(in.Ports) != 2 || len(in.Offered) > 0 {
						t.Errorf("%s has %v, and was offered %v, want two of its own", name, in.Ports, in.Offered)
					}
				}
				w.must(w.client.PutRegion(ctx, withAdmin(), api.PutOptions{}))
				w.viewed()
				if d := cmp.Diff(first, w.portsOf("eu")); d != "" {
					t.Errorf("ports moved (-first +now):\n%s", d)
				}
			})
		}
	}
}

// fill narrows the range down to the ports that are taken, and declares a server for each
// that the servers of eu do not show.
func (w *world) fill(taken map[int]fleet.ServerKey) {
	w.t.Helper()
	shown := w.portsOf("eu")
	for port := range taken {
		if _, is := shown[port]; is {
			continue
		}
		w.runtimes.first, w.runtimes.last = port, port
		id := fmt.Sprintf("b%05d", port)
		w.must(w.client.PutAccount(w.t.Context(), fleet.Account{ID: id}, api.PutOptions{}))
		if got := w.put(srv(id, "us", "v1")).Ports["cache/http"]; got != port {
			w.t.Errorf("%s got port %d, want %d", id, got, port)
		}
	}
	w.runtimes.first, w.runtimes.last = 20000, 20999
	w.must(w.client.PutRegion(w.t.Context(), withAdmin(), api.PutOptions{}))
	w.viewed()
	all := w.portsOf("eu")
	others := w.portsOf("us")
	maps.DeleteFunc(others, func(port int, _ string) bool { _, twice := all[port]; return !twice })
	if len(all) != 120 || len(others) > 0 {
		w.t.Errorf("%d ports in eu, want 120; in both regions: %v", len(all), others)
	}
}

// portsOf are the ports of a region's servers, and whose each is.
func (w *world) portsOf(region string) map[int]string {
	w.t.Helper()
	list, err := w.client.ListServers(w.t.Context(), api.ServerFilter{Region: region})
	w.must(nil, err)
	ports := map[int]string{}
	for _, v := range list {
		for need, port := range v.Ports {
			if ports[port] != "" {
				w.t.Errorf("port %d is that of %s and of %s", port, ports[port], v.Account)
			}
			ports[port] = v.Account + " " + need
		}
	}
	return ports
}
