package containers_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What a volume's label says was written when the volume was made, and cannot be changed.
func TestC13_thePresentDocumentDecidesWhichVolumesStay(t *testing.T) {
	named := func(source string, retain bool) fleet.VolumeDocument {
		return fleet.VolumeDocument{Source: source, Path: "/" + source, Retain: retain}
	}
	for name, c := range map[string]struct {
		doc     *fleet.ServiceDocument
		removed []string
	}{
		"no document":                    {nil, []string{"plain"}},
		"a document without volumes":     {&fleet.ServiceDocument{}, []string{"plain"}},
		"it gives one up":                {&fleet.ServiceDocument{Volumes: []fleet.VolumeDocument{named("retained", false)}}, []string{"plain", "retained"}},
		"it keeps one":                   {&fleet.ServiceDocument{Volumes: []fleet.VolumeDocument{named("plain", true)}}, nil},
		"both":                           {&fleet.ServiceDocument{Volumes: []fleet.VolumeDocument{named("plain", true), named("retained", false)}}, []string{"retained"}},
		"one of two services keeps it":   {&fleet.ServiceDocument{Volumes: []fleet.VolumeDocument{named("plain", true), named("plain", false)}}, nil},
		"the other of two services does": {&fleet.ServiceDocument{Volumes: []fleet.VolumeDocument{named("plain", false), named("plain", true)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			volume := func(name, retain string) map[string]any {
				return map[string]any{"Name": name, "Labels": map[string]string{
					fleet.LabelEnvironment: "staging", fleet.LabelAccount: "acme", fleet.LabelRegion: "eu", fleet.LabelRetain: retain,
				}}
			}
			var removed []string
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /volumes": answer(200, map[string]any{"Volumes": []any{volume("plain", "false"), volume("retained", "true")}}),
				"DELETE /volumes/{name}": func(w http.ResponseWriter, r *http.Request) {
					removed = append(removed, r.PathValue("name"))
					w.WriteHeader(http.StatusNoContent)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, c.doc)
			slices.Sort(removed)
			if d := cmp.Diff(c.removed, removed); d != "" || o.Class != fleet.ClassOK {
				t.Errorf("%+v, removed (-want +got):\n%s", o, d)
			}
		})
	}
}
