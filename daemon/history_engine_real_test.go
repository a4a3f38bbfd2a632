//go:build real

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// span is a time in which a container is known to have run.
type span struct {
	of       string // account and service
	id, name string
	from, to time.Time
}

func (s span) String() string {
	return fmt.Sprintf("%s (%.12s) of %s from %s to %s", s.name, s.id, s.of, s.from.Format(time.StampMilli), s.to.Format(time.StampMilli))
}

// witness looks at the containers of a region again and again.
type witness struct {
	engine *client.Client
	region string
	looks  int
	spans  map[string]span // by id and start
	over   map[string]bool // those whose end is known
}

// watch looks until ctx ends. A look that fails is no evidence, and the next one comes.
func (w *witness) watch(ctx context.Context) {
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	for {
		if err := w.look(ctx); err == nil {
			w.looks++
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *witness) look(ctx context.Context) error {
	listed, err := w.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", fleet.LabelRegion+"="+w.region)})
	if err != nil {
		return err
	}
	for _, item := range listed.Items {
		if w.over[item.ID] && string(item.State) != "running" {
			continue
		}
		asked := time.Now()
		seen, err := w.engine.ContainerInspect(ctx, item.ID, client.ContainerInspectOptions{})
		if err != nil || seen.Container.State == nil {
			continue // it was removed since
		}
		state := seen.Container.State
		s := span{
			of: item.Labels[fleet.LabelAccount] + " " + item.Labels[fleet.LabelService], id: item.ID,
			name: strings.TrimPrefix(seen.Container.Name, "/"), to: asked,
		}
		if s.from, err = time.Parse(time.RFC3339Nano, state.StartedAt); err != nil || s.from.Year() < 2000 {
			continue // it was never started
		}
		if !state.Running {
			if s.to, err = time.Parse(time.RFC3339Nano, state.FinishedAt); err != nil {
				return err
			}
		}
		w.over[item.ID] = !state.Running
		w.spans[item.ID+state.StartedAt] = s
	}
	return nil
}

// overlaps are pairs of containers of one service that ran at once.
func (w *witness) overlaps() (pairs []string) {
	spans := slices.SortedFunc(maps.Values(w.spans), func(a, b span) int { return a.from.Compare(b.from) })
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.of == b.of && a.id != b.id && b.from.Before(a.to) && a.from.Before(b.to) {
				pairs = append(pairs, a.String()+", and "+b.String())
			}
		}
	}
	return pairs
}

// accounted waits until the engine holds what kurad's records name, and nothing else: what
// a roll-out leaves over is taken away after it has settled.
func (k *kurad) accounted(region string) {
	k.t.Helper()
	eventually(k.t, "records and engine tell the same", func() error { return k.account(region) })
}

func (k *kurad) account(region string) error {
	t := k.t
	t.Helper()
	list, err := k.client.ListServers(t.Context(), api.ServerFilter{Region: region})
	if err != nil {
		return err
	}
	named, volumes := map[string]string{}, []string{}
	for _, v := range list {
		if len(v.Containers) != 1 {
			return fmt.Errorf("%s/%s names %d containers, want one: %s", v.Account, v.Region, len(v.Containers), brief(v))
		}
		for _, c := range v.Containers {
			named[c.ID] = v.Instance + "-cache-staging"
		}
		volumes = append(volumes, v.Instance+"-data-staging")
	}
	held := map[string]string{}
	for _, b := range boxes(t, region, k.env) {
		held[b.ID] = b.name()
	}
	if d := cmp.Diff(named, held); d != "" {
		return fmt.Errorf("containers (-of kurad's records +on the engine):\n%s", d)
	}
	var kept []struct{ Name string }
	if err := json.Unmarshal([]byte(podman(t, "volume", "ls", "--format", "json", "--filter", "label="+fleet.LabelRegion+"="+region)), &kept); err != nil {
		return err
	}
	names := []string{}
	for _, v := range kept {
		names = append(names, v.Name)
	}
	slices.Sort(volumes)
	slices.Sort(names)
	if d := cmp.Diff(volumes, names); d != "" {
		return fmt.Errorf("volumes (-of the servers +on the engine):\n%s", d)
	}
	return nil
}

// newWitness begins to look at a region, until the test has ended or stop is called.
func newWitness(t *testing.T, region string) (w *witness, stop func()) {
	t.Helper()
	engine, err := client.New(client.WithHost("unix://" + real.engine.Socket()))
	if err != nil {
		t.Fatal(err)
	}
	w = &witness{engine: engine, region: region, spans: map[string]span{}, over: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.watch(ctx) }()
	return w, func() {
		cancel()
		<-ended
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}
