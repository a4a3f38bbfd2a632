package containers_test

import (
	"net/http"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

func TestP19_aContainerThatIsRemovedDuringAListingLeavesTheOthersReadable(t *testing.T) {
	const vanished = "container 0123 does not exist in database: no such container"
	for name, tt := range map[string]struct {
		answers  []int // to the looks at the stopped container
		readable bool
	}{
		"Podman: 500, and at a second look 404": {[]int{500, 404}, true},
		"an engine that is in trouble":          {[]int{500, 500}, false},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/json": answer(200, []any{
					listed("running", "running", ourLabels("staging", "acme", "eu")),
					listed("removed", "exited", ourLabels("staging", "umbra", "eu")),
				}),
				"GET /containers/{id}/json": func(w http.ResponseWriter, r *http.Request) {
					refusal(tt.answers[min(looks, len(tt.answers)-1)], vanished)(w, r)
					looks++
				},
			})
			got, err := e.List(t.Context())
			if !tt.readable {
				if f := containers.ReadFailure(err); err == nil || f.Reason != fleet.ReasonRuntimeError {
					t.Errorf("listing %+v, %v; want an error of the engine", got, err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].Name != "running" {
				t.Errorf("listing %+v, %v; want the container that is still there", got, err)
			}
		})
	}
}
