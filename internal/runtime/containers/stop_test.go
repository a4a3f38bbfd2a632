package containers_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A deadline within the grace period is no answer: the container may end later.
func TestC6_stopWithoutAnswerWithinItsDeadlineIsTransient(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var signals []string
	const at = "/containers/" + someID
	running := inspected("kura-acme-eu-cache", "running")
	running["Config"].(map[string]any)["StopSignal"] = "SIGQUIT"
	e := fakeEngine(t, map[string]http.HandlerFunc{
		"GET " + at + "/json": answer(200, running),
		"POST " + at + "/kill": func(w http.ResponseWriter, r *http.Request) {
			signals = append(signals, r.FormValue("signal"))
			w.WriteHeader(http.StatusNoContent)
		},
		"POST " + at + "/wait": func(_ http.ResponseWriter, r *http.Request) {
			cancel() // the deadline of the task
			<-r.Context().Done()
		},
	})
	o := e.Execute(ctx, acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}}, nil)
	if o.Class != fleet.ClassTransient || o.Answered || o.Forced {
		t.Errorf("%+v, want transient and not answered", o)
	}
	if d := cmp.Diff([]string{"SIGQUIT"}, signals); d != "" {
		t.Errorf("signals (-want +got):\n%s", d)
	}
}

// A container has ended when its addresses are the engine's again: what is started on its port
// before is not reached.
func TestC4_aStopEndsWhenTheAddressesAreGivenBack(t *testing.T) {
	looks := 0
	e := fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/" + someID + "/json": func(w http.ResponseWriter, r *http.Request) {
		exited := inspected("kura-acme-eu-cache", "exited")
		if looks++; looks < 4 {
			exited["NetworkSettings"] = map[string]any{"Networks": map[string]any{"kura": map[string]any{"IPAddress": "10.88.0.7"}}}
		}
		answer(200, exited)(w, r)
	}})
	o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}}, nil)
	if o.Class != fleet.ClassOK || looks != 4 {
		t.Errorf("%+v after %d looks, want ok when it has no address any more", o, looks)
	}
}

// An earlier try may have sent SIGKILL and died before it was recorded.
func TestC6_forcedKillOfAnEarlierTryIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		tries, code int
		oom, want   bool
	}{
		"our own":                  {tries: 2, code: 137, want: true},
		"somebody else's":          {tries: 1, code: 137},
		"by itself":                {tries: 2, code: 0},
		"out of memory":            {tries: 2, code: 137, oom: true},
		"a signal that it handled": {tries: 2, code: 143},
	} {
		t.Run(name, func(t *testing.T) {
			exited := inspected("kura-acme-eu-cache", "exited")
			exited["State"] = map[string]any{"Status": "exited", "ExitCode": c.code, "OOMKilled": c.oom}
			e := fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/" + someID + "/json": answer(200, exited)})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}, Tries: c.tries}, nil)
			if o.Class != fleet.ClassOK || o.Forced != c.want {
				t.Errorf("%+v, want ok, forced %t", o, c.want)
			}
		})
	}
}

// Engines take the beginning of an id, or of a name, for a reference.
func TestC7_anotherContainersAnswerIsNotOurs(t *testing.T) {
	other := inspected("another", "running")
	e := fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/0123/json": answer(200, other)})
	o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: "0123"}}, nil)
	if o.Class != fleet.ClassOK {
		t.Errorf("%+v, want ok: no container has this id", o)
	}
	o = e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: "dance", ContainerID: "0123"}}, nil)
	if o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonInvalid {
		t.Errorf("an unknown task: %+v, want refused", o)
	}
}
