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
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: c.ref, Name: "kura-acme-eu-cache", Adopted: c.adopted}}, nil)
			if touched != c.touched || (o.Class == fleet.ClassOK) != c.touched {
				t.Errorf("touched %t, %+v; want touched %t", touched, o, c.touched)
			}
			if !c.touched && (o.Reason != fleet.ReasonForeignInstance || !strings.Contains(o.Message, "made-by-hand")) {
				t.Errorf("refused with %s: %s", o.Reason, o.Message)
			}
		})
	}
}

// What an adopted container keeps outside named volumes is its maker's; our own
// containers' anonymous volumes are ours, and go with them.
func TestC13_theVolumesOfAnAdoptedContainerStay(t *testing.T) {
	unlabelled := inspected("made-by-hand", "exited")
	unlabelled["Config"] = map[string]any{}
	for name, c := range map[string]struct {
		box     any
		adopted bool
		volumes string
	}{
		"adopted":  {unlabelled, true, ""},
		"our own":  {inspected("kura-acme-eu-cache", "exited"), false, "1"},
		"replaced": {inspected("kura-acme-eu-cache", "exited"), true, "1"}, // by one with labels since
	} {
		t.Run(name, func(t *testing.T) {
			removed := "not at all"
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/{ref}/json": answer(200, c.box),
				"DELETE /containers/" + someID: func(w http.ResponseWriter, r *http.Request) {
					removed = r.URL.Query().Get("v")
					w.WriteHeader(http.StatusNoContent)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: someID, Adopted: c.adopted}}, nil)
			if o.Class != fleet.ClassOK || removed != c.volumes {
				t.Errorf("%+v, removed with v=%q; want %q", o, removed, c.volumes)
			}
		})
	}
}

// A container that the engine starts again or removes by itself does not stay as kurad
// left it (C9).
func TestC9_whatTheEngineRunsByItselfIsNotAdopted(t *testing.T) {
	host := func(policy string, remove bool) map[string]any {
		c := inspected("made-by-hand", "running")
		c["Config"] = map[string]any{}
		c["HostConfig"] = map[string]any{"RestartPolicy": map[string]any{"Name": policy}, "AutoRemove": remove}
		return c
	}
	silent := inspected("made-by-hand", "running")
	for name, c := range map[string]struct {
		route http.HandlerFunc
		code  fleet.Code // empty: it can be adopted
		says  string
	}{
		"no policy":      {answer(200, host("", false)), "", ""},
		"policy no":      {answer(200, host("no", false)), "", ""},
		"always":         {answer(200, host("always", false)), fleet.CodeInvalid, `restart policy "always"`},
		"unless-stopped": {answer(200, host("unless-stopped", false)), fleet.CodeInvalid, "docker update --restart=no made-by-hand"},
		"on-failure":     {answer(200, host("on-failure", false)), fleet.CodeInvalid, "podman update --restart=no made-by-hand"},
		"removed":        {answer(200, host("no", true)), fleet.CodeInvalid, "--rm"},
		"gone":           {refusal(404, "no such container"), fleet.CodeInvalid, "is gone"},
		"half an answer": {answer(200, silent), fleet.CodeUnavailable, "lacks"},
		"an engine away": {hangUp, fleet.CodeUnavailable, "look at container"},
	} {
		t.Run(name, func(t *testing.T) {
			err := fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/{ref}/json": c.route}).Adoptable(t.Context(), someID)
			if (err == nil) != (c.code == "") || err != nil && (fleet.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q that says %q", err, c.code, c.says)
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
