package containers_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

func listed(name, state string, labels map[string]string) map[string]any {
	return map[string]any{
		"Id": name + "-id", "Names": []string{"/" + name}, "Image": "localhost/kura:v1", "State": state, "Labels": labels,
		"Ports": []map[string]any{{"IP": "127.0.0.1", "PrivatePort": 8080, "PublicPort": 20001, "Type": "tcp"}, {"PrivatePort": 9, "Type": "udp"}},
	}
}

func ourLabels(environment, account, region string) map[string]string {
	return map[string]string{
		fleet.LabelEnvironment: environment, fleet.LabelAccount: account, fleet.LabelRegion: region,
		fleet.LabelService: "cache", fleet.LabelDigest: "d1",
	}
}

func TestC1_oneListingAndOnlyStoppedOnesAreLookedAt(t *testing.T) {
	var looked []string
	look := func(w http.ResponseWriter, r *http.Request) {
		looked = append(looked, r.PathValue("id"))
		if r.PathValue("id") == "removed-id" {
			refusal(404, "no such container")(w, r)
			return
		}
		answer(200, inspected("exited", "exited"))(w, r)
	}
	e := fakeEngine(t, map[string]http.HandlerFunc{
		"GET /containers/json": answer(200, []any{
			listed("running", "running", ourLabels("staging", "acme", "eu")),
			listed("exited", "exited", ourLabels("staging", "acme", "eu")),
			listed("removed", "exited", ourLabels("staging", "acme", "eu")),
			listed("theirs", "exited", ourLabels("production", "acme", "eu")),
			listed("database", "paused", nil),
			listed("half", "paused", map[string]string{fleet.LabelAccount: "umbra"}),
		}),
		"GET /containers/{id}/json": look,
	})
	got, err := e.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started, finished := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 10, 0, 4, 500_000_000, time.UTC)
	ours := fleet.Container{Service: "cache", Account: "acme", Region: "eu", Image: "localhost/kura:v1", Digest: "d1", Ports: map[string]int{"8080/tcp": 20001}}
	running, exited := ours, ours
	running.Name, running.ID, running.State = "running", "running-id", fleet.ContainerRunning
	exited.Name, exited.ID, exited.State, exited.ExitCode, exited.Started, exited.Finished = "exited", "exited-id", fleet.ContainerExited, 3, &started, &finished
	want := []fleet.Container{
		{Name: "database", ID: "database-id", Image: "localhost/kura:v1", State: fleet.ContainerPaused, Foreign: fleet.NotByKurad, Ports: ours.Ports},
		exited,
		// It carries one of our labels: it is not what can be adopted, nor what a task touches.
		{Name: "half", ID: "half-id", Image: "localhost/kura:v1", State: fleet.ContainerPaused, Foreign: "labelled for account \"umbra\", region \"\" and no environment", Ports: ours.Ports},
		running,
		{Name: "theirs", ID: "theirs-id", Image: "localhost/kura:v1", State: fleet.ContainerExited, Foreign: "server acme/eu of environment production", Ports: ours.Ports},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("listing (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"exited-id", "removed-id"}, looked); d != "" {
		t.Errorf("inspected (-want +got):\n%s", d)
	}
}

func TestC1_watchOpensTheStreamAgainAndSaysThatItMissedSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Nothing listens: the stream ends at once, every time.
		e := open(t, containers.Config{Name: "local", Socket: t.TempDir() + "/none"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		gaps := 0
		err := e.Watch(ctx, func(name string) {
			if name != "" {
				t.Errorf("an event of %q out of nothing", name)
			}
			gaps++
		})
		if err != context.DeadlineExceeded {
			t.Errorf("Watch ended with %v", err)
		}
		// 0.2 s, doubled up to 10 s, each half to one and a half of it.
		if gaps < 6 || gaps > 20 {
			t.Errorf("%d attempts in a minute, want them to back off", gaps)
		}
	})
}
