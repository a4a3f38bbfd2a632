package containers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A task may touch a container without our labels only where it says that this very one was
// adopted, and never one that bears anybody's.
func TestC7_onlyTheRecordedContainerWithoutLabelsIsTouched(t *testing.T) {
	unlabelled := inspected("made-by-hand", "running")
	unlabelled["Config"] = map[string]any{"Labels": map[string]string{"team": "cache"}}
	theirs := inspected("made-by-hand", "running")
	theirs["Config"] = map[string]any{"Labels": map[string]string{fleet.LabelEnvironment: "production"}}
	half := inspected("made-by-hand", "running")
	half["Config"] = map[string]any{"Labels": map[string]string{fleet.LabelAccount: "umbra"}}
	for name, c := range map[string]struct {
		box     any
		adopted bool
		ref     string
		touched bool
	}{
		"adopted":                      {unlabelled, true, someID, true},
		"not adopted":                  {unlabelled, false, someID, false},
		"adopted, by name":             {unlabelled, true, "made-by-hand", false},
		"adopted, labelled since":      {theirs, true, someID, false},
		"adopted, with half of labels": {half, true, someID, false},
	} {
		t.Run(name, func(t *testing.T) {
			touched := false
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/{ref}/json": answer(200, c.box),
				"POST /containers/" + someID + "/rename": func(w http.ResponseWriter, _ *http.Request) {
					touched = true
					w.WriteHeader(http.StatusNoContent)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Kind: fleet.TaskRename, ContainerID: c.ref, Name: "kura-acme-eu-cache", Adopted: c.adopted}, nil)
			if touched != c.touched || (o.Class == fleet.ClassOK) != c.touched {
				t.Errorf("touched %t, %+v; want touched %t", touched, o, c.touched)
			}
			if !c.touched && (o.Reason != fleet.ReasonForeignInstance || !strings.Contains(o.Message, "made-by-hand")) {
				t.Errorf("refused with %s: %s", o.Reason, o.Message)
			}
		})
	}
}

func TestC11_howAnAdoptedContainerEndedIsLookedUp(t *testing.T) {
	exited := inspected("made-by-hand", "exited")
	e := fakeEngine(t, map[string]http.HandlerFunc{
		"GET /containers/json":      answer(200, []any{listed("made-by-hand", "exited", nil), listed("database", "exited", nil)}),
		"GET /containers/{id}/json": answer(200, exited),
	})
	got, err := e.List(t.Context(), "made-by-hand-id")
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, c := range got {
		if (c.Finished != nil) != (c.ID == "made-by-hand-id") {
			t.Errorf("%s ended at %v; only the adopted one is looked at", c.Name, c.Finished)
		}
	}
}
