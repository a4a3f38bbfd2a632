package projection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestK6_anInstanceThatIsAsDeclaredCostsOneApplyOfMetadata(t *testing.T) {
	p := play(t, adoptedOn(kube, false))
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded).quiet(5)
	if p.status.AdoptedResource != nil || p.obj.uid != "uid1" || p.obj.owner != "" {
		t.Errorf("record %+v, object %+v", p.status.AdoptedResource, p.obj)
	}
}

func TestK6_whatDiffersIsChangedOnceSomebodyAppliesIt(t *testing.T) {
	p := play(t, adoptedOn(kube, true))
	p.pass(time.Hour).is(fleet.StatusProvisioning, fleet.VerdictHeld, fleet.ReasonAdoption).deployment(fleet.DeploymentPending)
	p.shows(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonDocumentDiffers).shows(fleet.ConditionProgressing, fleet.False, fleet.ReasonHeld)
	const says = `it was taken over and differs from what is declared; apply once more to change it: metadata.labels[tuist.dev/account] is not there, wanted "acme"; spec.storageSize is "1Gi", wanted "2Gi" (set by kubectl-edit)`
	if h := p.status.Holds; len(h) != 1 || h[0].Message != says {
		t.Errorf("held by %v", h)
	}
	if p.status.Runtime.Plan != nil || brief(p.status.Runtime.Intended) != "apply uid1" || p.obj.owner != fleet.NotByKurad || p.status.Clock.Since != nil {
		t.Errorf("plan %s, intended %s, object %+v, clock %+v", brief(p.status.Runtime.Plan), brief(p.status.Runtime.Intended), p.obj, p.status.Clock)
	}
	p.unreadable = true // what was said stays
	p.turn()
	if h := p.status.Holds; len(h) != 1 || h[0].Message != says {
		t.Errorf("unreadable: held by %v", h)
	}
	p.unreadable = false
	p.declare("v1", "") // the same declaration, applied
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestK6_aDifferenceThatComesBeforeTheApplyHoldsIt(t *testing.T) {
	p := play(t, adoptedOn(kube, false))
	p.turn()
	if p.status.Runtime.Plan == nil {
		t.Fatal("metadata is not applied")
	}
	p.change(func(o *object) { o.edited = true })
	out := p.turn()
	p.is(fleet.StatusProvisioning, fleet.VerdictHeld, fleet.ReasonAdoption)
	if p.status.Runtime.Plan != nil || out.MayAct.Has(fleet.TrackRuntime) {
		t.Errorf("plan %s, may act %v", brief(p.status.Runtime.Plan), out.MayAct.Has(fleet.TrackRuntime))
	}
}

func TestK6_theRecordEndsWithItsObjectAndNotBefore(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*sim)
		kept  bool
	}{
		"it is there":                    {func(*sim) {}, true},
		"it is gone":                     {func(s *sim) { s.obj = nil; s.refresh() }, false},
		"the watch does not show it":     {func(s *sim) { s.obj = nil; s.look() }, true},
		"another object is there":        {func(s *sim) { s.create(object{owner: fleet.NotByKurad}) }, false},
		"it carries our labels":          {func(s *sim) { s.change(func(o *object) { o.owner = "" }) }, false},
		"another kurad put labels on it": {func(s *sim) { s.change(func(o *object) { o.owner = "server acme/eu of environment canary" }) }, true},
		"nobody can read":                {func(s *sim) { s.obj, s.unreadable = nil, true; s.look() }, true},
		"the read is older than that": {func(s *sim) {
			until := s.now.Add(time.Second)
			s.obj, s.status.Runtime.EffectsUntil = nil, &until
			s.refresh()
		}, true},
	} {
		s := adoptedOn(kube, true)
		c.given(s)
		if !s.asked && !s.seenFails {
			s.look()
		}
		if out := Decide(s.input()); (out.Status.AdoptedResource != nil) != c.kept {
			t.Errorf("%s: record %+v", name, out.Status.AdoptedResource)
		}
		if s.status.AdoptedResource == nil {
			t.Errorf("%s: the input was changed", name)
		}
	}
}

func TestK6_whatWasTakenOverIsDestroyedWhenThatIsDeclared(t *testing.T) {
	p := play(t, adoptedOn(kube, true))
	p.rest()
	p.intent.Deleting, p.intent.Generation = &p.now, 2
	p.turn()
	if plan := p.status.Runtime.Plan; brief(plan) != "delete uid1" || !plan.Tasks[0].Adopted {
		t.Fatalf("plan %+v", plan)
	}
	for range 10 {
		if !p.removed {
			p.step()
		}
	}
	if !p.removed || p.obj != nil {
		t.Errorf("removed %v, object %v", p.removed, p.obj)
	}
}

func TestK6_anObservingRegionTakesOverWhatWasDeclared(t *testing.T) { // S10
	p := play(t, adoptedOn(kube, false))
	p.observe = true
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	p.change(func(o *object) { o.edited = true })
	p.rest().is(fleet.StatusActive, fleet.VerdictDrifted, fleet.ReasonDrifted)
	if m := condition(*p.status, fleet.ConditionManifestConverged).Message; !strings.Contains(m, "spec.storageSize") || brief(p.status.Runtime.Intended) != "apply uid1" {
		t.Errorf("intended %s, says %s", brief(p.status.Runtime.Intended), m)
	}
}

// What the API read of the cluster itself, a watch may not show for a while.
func TestK6_aWatchThatIsBehindTheImportForgetsNothing(t *testing.T) {
	p := play(t, adoptedUnseen())
	in := p.input()
	if out := Decide(in); out.Status.AdoptedResource == nil || out.Status.Runtime.Plan != nil || out.MayAct.Has(fleet.TrackRuntime) && out.Status.Runtime.Plan != nil || !out.NeedFreshRead.Has(fleet.TrackRuntime) || out.Latest != nil {
		t.Fatalf("record %+v, plan %s, asks %v", out.Status.AdoptedResource, brief(out.Status.Runtime.Plan), out.NeedFreshRead.Has(fleet.TrackRuntime))
	}
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	p.lag = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
}

func TestK6_whatOnlyAnotherManagerAppliedOtherwiseWaitsToo(t *testing.T) {
	s := adoptedOn(kube, false)
	s.change(func(o *object) { o.held = true })
	p := play(t, s)
	p.pass(time.Hour).is(fleet.StatusProvisioning, fleet.VerdictHeld, fleet.ReasonAdoption).deployment(fleet.DeploymentPending)
	const says = `it was taken over and differs from what is declared; apply once more to change it: metadata.labels[tuist.dev/account] is not there, wanted "acme"; spec.replicas is 3, wanted 2 (set by autoscaler)`
	if h := p.status.Holds; len(h) != 1 || h[0].Message != says || p.status.Runtime.Plan != nil {
		t.Errorf("held by %v, plan %s", h, brief(p.status.Runtime.Plan))
	}
	p.declare("v1", "")
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonFieldConflict)
}

// Records that were made for something else are rewritten when there is something to lead to, and so
// not for what was taken over until somebody applies what differs (K6, D0).
func TestK6_theRecordsOfWhatWasTakenOverWaitForTheApply(t *testing.T) {
	p := play(t, adoptedOn(variant{kube: true, zone: true}, true))
	before := map[string]zoneRecord{firstHost: {"us", "ingress/kura/acme", "10.9.9.9"}}
	p.records = map[string]zoneRecord{firstHost: before[firstHost]}
	p.pass(time.Hour).is(fleet.StatusProvisioning, fleet.VerdictHeld, fleet.ReasonAdoption).zoneIs(before, "")
	p.declare("v1", "")
	p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "").zoneIs(map[string]zoneRecord{firstHost: ourRecord}, "")
}
