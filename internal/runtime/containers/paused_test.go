package containers_test

import (
	"net/http"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A start lets a paused container go on; one that ended, or was let go on, meanwhile is for
// the next plan.
func TestC2_aStartLetsAPausedContainerGoOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails bool
		then  string // its state after that
		class fleet.Class
	}{
		{"it goes on", false, "running", fleet.ClassOK},
		{"somebody was faster", true, "running", fleet.ClassTransient},
		{"it ended", true, "exited", fleet.ClassTransient},
		{"the engine cannot", true, "paused", fleet.ClassRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := "paused"
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/{id}/json": func(w http.ResponseWriter, r *http.Request) {
					answer(200, inspected("kura-acme-eu-cache", state))(w, r)
				},
				"POST /containers/{id}/unpause": func(w http.ResponseWriter, r *http.Request) {
					state = c.then
					if c.fails {
						refusal(500, "cannot unpause")(w, r)
						return
					}
					w.WriteHeader(http.StatusNoContent)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, Service: "cache", ContainerID: someID}}, nil)
			if o.Class != c.class || !o.Answered || state != c.then {
				t.Errorf("%+v, and it is %s", o, state)
			}
		})
	}
}
