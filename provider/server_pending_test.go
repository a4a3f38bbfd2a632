package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A version that came to nothing is still what the daemon wants. To go back to what serves
// is a change, and takes it back.
func TestPending_goingBackToWhatServesIsAChangeThatTakesTheFailedVersionBack(t *testing.T) {
	none := tftypes.NewValue(tftypes.String, nil)
	for name, failed := range map[string]fleet.ServerView{
		"it failed":  view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", fleet.DeploymentFailed),
		"it stalled": view(fleet.VerdictStalled, fleet.ReasonEndpointNotReady, "1", "2", fleet.DeploymentRunning),
		"somebody replaced it where the region only observes": view(fleet.VerdictDrifted, fleet.ReasonDrifted, "2", "1", fleet.DeploymentSucceeded),
	} {
		t.Run(name, func(t *testing.T) {
			d := &told{answers: map[string]any{"GET /v1/servers/acme/eu": failed}}
			core := newCore(t, d)
			config := func(tag string) map[string]tftypes.Value {
				return core.object("kura_server", nil, map[string]tftypes.Value{"account": hcl("acme"), "region": hcl("eu"), "image_tag": hcl(tag)})
			}
			read := core.refresh("kura_server", config("2"), []byte(`{"image_tag":"IjIi","generation":"Nw=="}`)) // this resource declared version 2
			state := core.read("kura_server", read.NewState)
			if !state["image_tag"].Equal(hcl("1")) || !state["pending_image_tag"].Equal(hcl("2")) {
				t.Fatalf("state says %s, pending %s", state["image_tag"], state["pending_image_tag"])
			}
			// To stay at version 2 shows the version, and going back what is taken back: nothing
			// else of the server moves in either plan.
			for tag, moves := range map[string][]string{"2": {"image_tag", "pending_image_tag"}, "1": {"pending_image_tag"}} {
				planned := core.read("kura_server", core.plan("kura_server", state, config(tag), read.Private).PlannedState)
				for name, v := range planned {
					if moved := !v.Equal(state[name]); moved != (name == moves[0] || name == moves[len(moves)-1]) {
						t.Errorf("to version %s: %s goes from %s to %s", tag, name, state[name], v)
					}
				}
				if !planned["pending_image_tag"].Equal(none) {
					t.Errorf("to version %s: pending_image_tag is planned as %s", tag, planned["pending_image_tag"])
				}
			}
			back := view(fleet.VerdictConverged, "", "1", "1", fleet.DeploymentSucceeded)
			back.Generation, back.Intent.ImageTag = 8, "1"
			back.Deployment = &fleet.Deployment{Seq: 4, Generation: 8, ImageTag: "1", Status: fleet.DeploymentSucceeded}
			written := back
			written.Verdict, written.Reason = fleet.VerdictProgressing, fleet.ReasonAccepted
			d.say("PUT /v1/servers/acme/eu", api.Written[fleet.ServerView]{Object: written, Changed: true})
			d.say("GET /v1/servers/acme/eu", back)
			d.say("GET /v1/servers", api.ServerChanges{Full: true, Items: []fleet.ServerView{back}, Cursor: "c"})
			a := core.apply("kura_server", state, config("1"), core.plan("kura_server", state, config("1"), read.Private))
			if len(a.Diagnostics) > 0 {
				t.Error(spoken(a.Diagnostics))
			}
			if d.count("PUT /v1/servers/acme/eu") != 1 || d.count("POST /v1/servers/acme/eu:redeploy") != 0 {
				t.Errorf("the daemon was asked %v", d.asked)
			}
			after := core.refresh("kura_server", core.read("kura_server", a.NewState), a.Private)
			now := core.read("kura_server", after.NewState)
			if !now["image_tag"].Equal(hcl("1")) || !now["pending_image_tag"].Equal(none) {
				t.Errorf("afterwards state says %s, pending %s", now["image_tag"], now["pending_image_tag"])
			}
			if planned := core.read("kura_server", core.plan("kura_server", now, config("1"), after.Private).PlannedState); !tftypes.NewValue(core.types["kura_server"], planned).Equal(tftypes.NewValue(core.types["kura_server"], now)) {
				t.Errorf("the plan afterwards is not empty: %v", planned)
			}
		})
	}
}

// What an update could not bring is pending in the state that it leaves, so that even a plan
// without a refresh tells the truth.
func TestPending_anUpdateThatComesToNothingLeavesWhatTheDaemonWants(t *testing.T) {
	fine := view(fleet.VerdictConverged, "", "1", "1", fleet.DeploymentSucceeded)
	fine.Intent.ImageTag = "1"
	d := &told{answers: map[string]any{"GET /v1/servers/acme/eu": fine}}
	core := newCore(t, d)
	config := core.object("kura_server", nil, map[string]tftypes.Value{"account": hcl("acme"), "region": hcl("eu"), "image_tag": hcl("2")})
	read := core.refresh("kura_server", config, []byte(`{"image_tag":"IjEi"}`))
	state := core.read("kura_server", read.NewState)
	failed := view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", fleet.DeploymentFailed)
	d.say("PUT /v1/servers/acme/eu", api.Written[fleet.ServerView]{Object: view(fleet.VerdictProgressing, fleet.ReasonAccepted, "1", "1", fleet.DeploymentPending), Changed: true})
	d.say("GET /v1/servers/acme/eu", failed)
	d.say("GET /v1/servers", api.ServerChanges{Full: true, Items: []fleet.ServerView{failed}, Cursor: "c"})
	a := core.apply("kura_server", state, config, core.plan("kura_server", state, config, read.Private))
	if said := spoken(a.Diagnostics); !contains(said, "version 2 failed (ImagePullFailed)", `set image_tag back to "1"`) {
		t.Errorf("the apply says: %s", said)
	}
	if left := core.read("kura_server", a.NewState); !left["image_tag"].Equal(hcl("1")) || !left["pending_image_tag"].Equal(hcl("2")) {
		t.Errorf("state says %s, pending %s", left["image_tag"], left["pending_image_tag"])
	}
}
