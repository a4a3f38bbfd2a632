package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// unreadable returns what a dry run said of a runtime.
func unreadable(t *testing.T, what string, list []fleet.Warning, err error) *fleet.Warning {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	list = slices.DeleteFunc(list, func(w fleet.Warning) bool { return w.Code != fleet.WarnUnreadable })
	if len(list) > 1 {
		t.Errorf("%s: it is said %d times: %v", what, len(list), list)
	}
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

func TestP2_aDryRunSaysThatTheRuntimeCannotBeRead(t *testing.T) {
	dry, refused := api.PutOptions{DryRun: true}, &fleet.ReadFailure{Reason: fleet.ReasonRuntimeRefused, Message: "Unauthorized"}
	for _, c := range []struct {
		name   string
		world  func(t *testing.T) *world
		region fleet.Region
		breaks func(*world)
		reason fleet.Reason
		says   string
	}{
		{"an engine", func(t *testing.T) *world {
			w := newWorld(t)
			w.seed([]string{"eu"}, "acme", "bravo")
			return w
		}, region("eu"), func(w *world) {
			w.runtimes.listing.Unreadable = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "connection refused"}
		}, fleet.ReasonEndpointUnreachable, `container endpoint "podman" cannot be read now: connection refused`},
		{"a cluster", func(t *testing.T) *world { return newKubeWorld(t, "acme", "bravo") }, kubeRegion("eu"), func(w *world) {
			w.runtimes.kube.err = errors.New("connection refused")
		}, "", `namespace "kura" of cluster "prod" cannot be read now: connection refused`},
		{"a cluster whose watch is refused", func(t *testing.T) *world { return newKubeWorld(t, "acme", "bravo") }, kubeRegion("eu"), func(w *world) {
			w.turns.kubeListings = []fleet.KubeListing{{Cluster: "prod", Namespace: "else"}, {Cluster: "prod", Namespace: "kura", Unreadable: refused}}
		}, fleet.ReasonRuntimeRefused, `namespace "kura" of cluster "prod" cannot be read now: Unauthorized`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			w.put(srv("acme", "eu", "v1"))
			changed, fresh := c.region, c.region
			changed.Labels = map[string]string{"tier": "gold"}
			fresh.Name = "other"
			ask := map[string]func(api.PutOptions) ([]fleet.Warning, error){
				"a new server": func(o api.PutOptions) ([]fleet.Warning, error) {
					out, err := w.client.PutServer(t.Context(), srv("bravo", "eu", "v1"), o)
					return out.Warnings, err
				},
				"a server of an account that is planned, too": func(o api.PutOptions) ([]fleet.Warning, error) {
					out, err := w.client.PutServer(t.Context(), srv("nobody", "eu", "v1"), o)
					return out.Warnings, err
				},
				"another version": func(o api.PutOptions) ([]fleet.Warning, error) {
					out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v2"), o)
					return out.Warnings, err
				},
				"a changed region": func(o api.PutOptions) ([]fleet.Warning, error) {
					out, err := w.client.PutRegion(t.Context(), changed, o)
					return out.Warnings, err
				},
				"a new region": func(o api.PutOptions) ([]fleet.Warning, error) {
					out, err := w.client.PutRegion(t.Context(), fresh, o)
					return out.Warnings, err
				},
			}
			for what, put := range ask {
				list, err := put(dry)
				if got := unreadable(t, what, list, err); got != nil {
					t.Errorf("%s, and it answers: %+v", what, got)
				}
			}
			c.breaks(w)
			for what, put := range ask {
				list, err := put(dry)
				got := unreadable(t, what, list, err)
				if got == nil {
					t.Errorf("%s: it is not said: %v", what, list)
					continue
				}
				if got.Reason != c.reason || !strings.Contains(got.Detail, c.says) || !strings.Contains(got.Detail, "nothing is changed there until kurad can read it") || got.Pointer == "" {
					t.Errorf("%s: %+v, want reason %q and %q", what, got, c.reason, c.says)
				}
			}
			// To store a declaration takes no runtime, and a write asks none to say so.
			list, err := ask["another version"](api.PutOptions{})
			if got := unreadable(t, "a write", list, err); got != nil {
				t.Errorf("a write warns: %+v", got)
			}
		})
	}
}
