package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A plan may be applied long after it was made. What healed meanwhile is left alone: a
// redeploy would stop what serves.
func TestP9_anApplyLeavesAServerAloneThatHealedSinceThePlan(t *testing.T) {
	ready := []fleet.Condition{{Type: fleet.ConditionReady, Status: fleet.True}}
	failed := view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", fleet.DeploymentFailed)
	served := view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "2", "2", fleet.DeploymentFailed)
	healed := view(fleet.VerdictConverged, "", "2", "2", fleet.DeploymentFailed) // history is not edited
	healed.Status, healed.Conditions = fleet.StatusActive, ready
	relabelled := healed // the labels changed with it, and no turn has seen that yet
	relabelled.Verdict, relabelled.Reason, relabelled.Generation = fleet.VerdictProgressing, fleet.ReasonAccepted, 8
	broken := relabelled
	broken.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: fleet.False, Reason: fleet.ReasonStalled}}
	attempt := failed // begun between the plan and the apply
	attempt.Plan = &fleet.Plan{Kind: fleet.PlanApply}
	made := failed
	made.ObservedImageTag = "2"
	made.Conditions = []fleet.Condition{{Type: fleet.ConditionImageConverged, Status: fleet.True}, {Type: fleet.ConditionManifestConverged, Status: fleet.True}}
	older := healed
	older.ServingImageTag = "1"
	for name, c := range map[string]struct {
		planned    fleet.ServerView // what the plan saw
		answer     fleet.ServerView // to the PUT
		changed    bool
		redeployed int
	}{
		"it healed":                                        {failed, healed, false, 0},
		"a version that served before healed":              {served, healed, false, 0},
		"it healed, and more than the version is declared": {failed, relabelled, true, 0},
		"an attempt is under way, and succeeds":            {failed, attempt, false, 0},
		"it has been made, and is about to answer":         {failed, made, false, 0},
		"it failed still":                                  {failed, failed, false, 1},
		"it stalled, and more is declared":                 {failed, broken, true, 1},
		"another version serves":                           {failed, older, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			settled := healed
			settled.Generation = 9
			settled.Deployment = &fleet.Deployment{Seq: 4, Generation: 9, ImageTag: "2", Status: fleet.DeploymentSucceeded}
			if c.redeployed == 0 {
				settled.Deployment = healed.Deployment
			}
			d := &told{answers: map[string]any{"GET /v1/servers/acme/eu": c.planned}}
			core := newCore(t, d)
			config := core.object("kura_server", nil, map[string]tftypes.Value{"account": hcl("acme"), "region": hcl("eu"), "image_tag": hcl("2")})
			private := []byte(`{"image_tag":"IjIi"}`) // this resource declared version 2
			read := core.refresh("kura_server", config, private)
			prior := core.read("kura_server", read.NewState)
			p := core.plan("kura_server", prior, config, read.Private)
			if planned := core.read("kura_server", p.PlannedState); prior["image_tag"].Equal(planned["image_tag"]) {
				t.Fatalf("the plan shows no change of image_tag: %s", prior["image_tag"])
			}
			d.say("PUT /v1/servers/acme/eu", api.Written[fleet.ServerView]{Object: c.answer, Changed: c.changed})
			d.say("POST /v1/servers/acme/eu:redeploy", *settled.Deployment)
			d.say("GET /v1/servers/acme/eu", settled)
			d.say("GET /v1/servers", api.ServerChanges{Full: true, Items: []fleet.ServerView{settled}, Cursor: "c"})
			a := core.apply("kura_server", prior, config, p)
			if len(a.Diagnostics) > 0 {
				t.Error(spoken(a.Diagnostics))
			}
			if tag := core.read("kura_server", a.NewState)["image_tag"]; !tag.Equal(hcl("2")) {
				t.Errorf("image_tag in state is %s", tag)
			}
			if n := d.count("POST /v1/servers/acme/eu:redeploy"); n != c.redeployed {
				t.Errorf("%d redeploys, want %d", n, c.redeployed)
			}
		})
	}
}
