package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A plan may be applied long after it was made. Whether what the plan saw fail is redeployed is
// the daemon's decision (TestP9_anApplyLeavesAServerAloneThatHealedSinceThePlan, of
// internal/declare): the apply asks for it exactly where the plan shows another version.
func TestP9_anApplyAsksForAnotherTryOnlyWhereThePlanShowsAVersion(t *testing.T) {
	failed := view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", fleet.DeploymentFailed)
	served := view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "2", "2", fleet.DeploymentFailed)
	healed := view(fleet.VerdictConverged, "", "2", "2", fleet.DeploymentFailed) // history is not edited
	again := healed
	again.Generation, again.Deployment = 9, &fleet.Deployment{Seq: 4, Generation: 9, ImageTag: "2", Status: fleet.DeploymentSucceeded}
	for name, c := range map[string]struct {
		planned fleet.ServerView // what the plan saw
		answer  fleet.ServerView // to the PUT
		changed bool
		labels  bool // the plan is of these alone
		asked   int
	}{
		"it healed":                           {failed, healed, false, false, 1},
		"a version that served before healed": {served, healed, false, false, 1},
		"it failed still":                     {failed, again, true, false, 1},
		"another attribute changes":           {healed, again, true, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := &told{answers: map[string]any{"GET /v1/servers/acme/eu": c.planned}}
			core := newCore(t, d)
			config := core.object("kura_server", nil, map[string]tftypes.Value{"account": hcl("acme"), "region": hcl("eu"), "image_tag": hcl("2")})
			private := []byte(`{"image_tag":"IjIi"}`) // this resource declared version 2
			read := core.refresh("kura_server", config, private)
			prior := core.read("kura_server", read.NewState)
			if c.labels {
				config = core.object("kura_server", nil, map[string]tftypes.Value{"account": hcl("acme"), "region": hcl("eu"), "image_tag": hcl("2"), "paused": tftypes.NewValue(tftypes.Bool, true)})
			}
			p := core.plan("kura_server", prior, config, read.Private)
			if planned := core.read("kura_server", p.PlannedState); prior["image_tag"].Equal(planned["image_tag"]) != c.labels {
				t.Fatalf("the plan shows image_tag go from %s to %s", prior["image_tag"], planned["image_tag"])
			}
			d.say("PUT /v1/servers/acme/eu", api.Written[fleet.ServerView]{Object: c.answer, Changed: c.changed})
			d.say("GET /v1/servers/acme/eu", c.answer)
			d.say("GET /v1/servers", api.ServerChanges{Full: true, Items: []fleet.ServerView{c.answer}, Cursor: "c"})
			a := core.apply("kura_server", prior, config, p)
			if len(a.Diagnostics) > 0 {
				t.Error(spoken(a.Diagnostics))
			}
			if tag := core.read("kura_server", a.NewState)["image_tag"]; !tag.Equal(hcl("2")) {
				t.Errorf("image_tag in state is %s", tag)
			}
			if n := d.count("PUT /v1/servers/acme/eu again"); n != c.asked {
				t.Errorf("another try was asked for %d times, want %d", n, c.asked)
			}
		})
	}
}
