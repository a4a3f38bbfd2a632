package declare

import (
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A plan may be applied long after it was made. What healed meanwhile is left alone: a
// redeploy would stop what serves.
func TestP9_anApplyLeavesAServerAloneThatHealedSinceThePlan(t *testing.T) {
	converged := []fleet.Condition{{Type: fleet.ConditionImageConverged, Status: fleet.True}, {Type: fleet.ConditionManifestConverged, Status: fleet.True}}
	failed := fleet.Status{Verdict: fleet.VerdictFailed, VerdictReason: fleet.ReasonImagePullFailed, ServingImageTag: "1", ObservedImageTag: "1"}
	healed := fleet.Status{Verdict: fleet.VerdictConverged, ServingImageTag: "2", ObservedImageTag: "2"}
	stalled := fleet.Status{Verdict: fleet.VerdictStalled, ServingImageTag: "1", ObservedImageTag: "2", Conditions: converged}
	older := healed
	older.ServingImageTag = "1"
	attempt, made := failed, failed
	attempt.Runtime.Plan = &fleet.Plan{Kind: fleet.PlanApply}
	made.ObservedImageTag, made.Conditions = "2", converged
	differs := failed
	differs.Verdict, differs.Resource = fleet.VerdictDrifted, &fleet.KubeInstance{Differs: []fleet.FieldDifference{{Path: "spec.image"}}}
	foreign := failed
	foreign.Resource = &fleet.KubeInstance{Adopted: true, Differs: differs.Resource.Differs}
	for name, c := range map[string]struct {
		status           *fleet.Status
		deployment       fleet.DeploymentStatus
		equal            bool
		nothing, waitsTo bool // it came to nothing; a try is under way
	}{
		"it healed": {&healed, fleet.DeploymentFailed, true, false, false},
		"it healed, and more than the version is declared": {&healed, fleet.DeploymentFailed, false, false, false},
		"an attempt is under way":                          {&attempt, fleet.DeploymentFailed, true, true, true},
		"it has been made, and is about to answer":         {&made, fleet.DeploymentFailed, true, true, true},
		"it failed still":                                  {&failed, fleet.DeploymentFailed, true, true, false},
		"its deployment is under way":                      {&failed, fleet.DeploymentRunning, true, false, false},
		"it stalled, its deployment still open":            {&stalled, fleet.DeploymentRunning, true, true, false},
		"it stalled, and more is declared":                 {&stalled, fleet.DeploymentFailed, false, true, false},
		"another version serves":                           {&older, fleet.DeploymentFailed, true, true, false},
		"no turn has seen it":                              {nil, fleet.DeploymentPending, true, false, false},
		"it is as somebody else made it":                   {&foreign, fleet.DeploymentSucceeded, false, false, false},
		"it drifted, and declaring it corrects that":       {&differs, fleet.DeploymentSucceeded, false, false, false},
		"it drifted, and declaring it came to nothing":     {&differs, fleet.DeploymentFailed, false, true, false},
	} {
		g := fleet.Gathered{Intent: fleet.Intent{Server: fleet.Server{ImageTag: "2"}}, Status: c.status, Latest: &fleet.Deployment{Seq: 3, ImageTag: "2", Status: c.deployment}}
		if got := cameToNothing(g, c.status, c.equal); got != c.nothing {
			t.Errorf("%s: it came to nothing: %t, want %t", name, got, c.nothing)
		}
		if got := c.nothing && attempting(g, c.status); got != c.waitsTo {
			t.Errorf("%s: its try is waited for: %t, want %t", name, got, c.waitsTo)
		}
	}
}
