package projection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var kube = variant{kube: true}

// What is planned for what is there (K1, K4, P4, P14).
func TestP14_planOfTheObjectThatIsThere(t *testing.T) {
	want := map[string]string{
		"absent":                          "apply new",
		"as desired":                      "-",
		"not rolled out yet":              "-",
		"another image rolled out":        "-",
		"another document":                "apply uid1",
		"another document and image":      "apply uid1",
		"a field edited":                  "apply uid1",
		"a label edited":                  "apply uid1",
		"a field held by another manager": "-",
		"no tag":                          "apply uid1",
		"being deleted":                   "-",
		"foreign":                         "-",
		"made by hand":                    "-",
		"taken over":                      "apply uid1",
		"taken over, with a difference":   "-",
	}
	for _, there := range objects().values {
		t.Run(there.name, func(t *testing.T) {
			s := newSim(kube)
			s.status = &fleet.Status{Status: fleet.StatusProvisioning, Generation: 1, Revision: s.desired().Revision}
			there.set(s)
			s.finalizer, s.old = true, true // what the schema lacks is no drift (P14)
			s.look()
			in := s.input()
			out := Decide(in)
			if got := brief(out.Status.Runtime.Plan); got != want[there.name] {
				t.Errorf("got  %s\nwant %s", got, want[there.name])
			}
			if pure := Plan(in, Project(in)); out.Status.Runtime.Plan != nil && brief(pure) != brief(out.Status.Runtime.Plan) {
				t.Errorf("Plan says %s", brief(pure))
			}
			if p := out.Status.Runtime.Plan; p != nil && (p.Kind != fleet.PlanApply || p.Tasks[0].Name != kubeName || p.Tasks[0].Digest != in.Desired.Revision || p.Tasks[0].Adopted != (there.name == "taken over")) {
				t.Errorf("plan %+v", p)
			}
		})
	}
}

func TestK1_aFieldThatAnotherManagerHoldsIsSaidOnceAndLeftAlone(t *testing.T) {
	p := play(t, settledOn(kube))
	p.change(func(o *object) { o.held = true })
	if plans := p.plans(); len(plans) != 0 {
		t.Errorf("planned %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonFieldConflict).quiet(5)
	const says = "fields that other managers applied stay as they are: spec.replicas is 3, wanted 2 (set by autoscaler); force_conflicts = true takes them over"
	if m := condition(*p.status, fleet.ConditionManifestConverged).Message; m != says || p.told(string(fleet.ReasonFieldConflict)) != 1 {
		t.Errorf("told %d times: %s", p.told(string(fleet.ReasonFieldConflict)), m)
	}
	p.change(func(o *object) { o.held, o.edited = false, true }) // it lets go: drift again
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged)
}

func TestK1_aFieldThatIsHeldHoldsUpNothingElse(t *testing.T) {
	p := play(t, settledOn(kube))
	p.edit(func(o *object) { o.held = true })
	p.declare("v2", "")
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded).shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonFieldConflict)
	p.edit(func(o *object) { o.edited = true }) // by hand, another field
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.obj.edited || !p.obj.held || p.told(string(fleet.ReasonFieldConflict)) != 1 {
		t.Errorf("edited %v, held %v, told %d times", p.obj.edited, p.obj.held, p.told(string(fleet.ReasonFieldConflict)))
	}
}

func TestK1_anImageThatIsHeldFailsAndIsAttemptedAgain(t *testing.T) {
	p := play(t, settledOn(kube))
	p.change(func(o *object) { o.heldImg = true })
	p.declare("v2", "")
	p.rest().is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonFieldConflict).deployment(fleet.DeploymentFailed)
	if p.status.PublishedURL == "" {
		t.Error("v1 is not published any more")
	}
	p.change(func(o *object) { o.heldImg, o.edited = false, true })
	p.pass(11*time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
}

func TestK3_whatTheSchemaLacksIsToldOnce(t *testing.T) {
	p := play(t, newSim(kube))
	p.old = true
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonSchemaTooOld).quiet(10)
	const says = "the cluster's schema of KuraInstance lacks spec.clientHostAliases; update the CRD to have them"
	if m := condition(*p.status, fleet.ConditionManifestConverged).Message; m != says || p.told(string(fleet.ReasonSchemaTooOld)) != 1 {
		t.Errorf("told %d times: %s", p.told(string(fleet.ReasonSchemaTooOld)), m)
	}
	p.old = false // the schema has it now; the runtime says that it differs
	p.change(func(o *object) { o.edited = true })
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged)
}

func TestK3_whatAnAdoptedInstanceLacksIsToldToo(t *testing.T) {
	s := adoptedOn(kube, false)
	s.old = true
	s.look()
	s.status.Resource = s.seenObj // as the request that took it over stores it
	p := play(t, s)
	p.rest()
	if n := p.told(string(fleet.ReasonSchemaTooOld)); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestK4_aForeignInstanceIsNamedAndLeftAlone(t *testing.T) {
	for owner, says := range map[string]string{
		"server other/eu of environment staging": "KuraInstance kura/kura-acme-eu is held by server other/eu of environment staging; it is left alone: delete it, and the server is made",
		fleet.NotByKurad:                         "KuraInstance kura/kura-acme-eu is there and was not made by kurad; it is left alone: take it over with terraform import, or delete it, and the server is made",
	} {
		p := play(t, newSim(kube))
		p.create(object{owner: owner, image: imageOf("v1/"), observed: imageOf("v1/")})
		p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonForeignInstance).deployment(fleet.DeploymentFailed)
		p.shows(fleet.ConditionImageConverged, fleet.False, fleet.ReasonForeignInstance).shows(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonForeignInstance)
		if p.status.Message != says {
			t.Errorf("got  %s\nwant %s", p.status.Message, says)
		}
		if p.status.Resource == nil || p.status.Resource.Foreign != owner || p.status.ObservedImageTag != "" {
			t.Errorf("stored %+v, image %q", p.status.Resource, p.status.ObservedImageTag)
		}
		p.obj = nil
		p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	}
}

func TestP4_aRecreatedInstanceIsProvisioningUntilItReportsAnImage(t *testing.T) {
	p := play(t, settledOn(kube))
	p.obj, p.stuck = nil, true
	p.turn()
	p.is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonAbsent)
	if p.status.ObservedImageTag != "" || p.status.Resource != nil {
		t.Errorf("observed %q, stored %+v", p.status.ObservedImageTag, p.status.Resource)
	}
	p.rest().is(fleet.StatusProvisioning, fleet.VerdictProgressing, fleet.ReasonRollingOut).shows(fleet.ConditionImageConverged, fleet.False, fleet.ReasonRollingOut)
	if p.status.PublishedURL == "" {
		t.Error("the url went with the object")
	}
	p.stuck = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestP4_anInstanceThatIsBeingDeletedIsMadeAgainWhenItIsGone(t *testing.T) {
	p := play(t, settledOn(kube))
	p.finalizer = true
	p.change(func(o *object) { o.deleting = true })
	p.pass(5*time.Minute).is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonDrifted)
	p.shows(fleet.ConditionManifestConverged, fleet.False, fleet.ReasonTerminating)
	if p.status.Runtime.Plan != nil || p.status.Runtime.Plans != 1 {
		t.Errorf("plan %s, %d plans", brief(p.status.Runtime.Plan), p.status.Runtime.Plans)
	}
	p.finalizer = false
	if plans := p.plans(); !slices.Equal(plans, []string{"apply new"}) {
		t.Errorf("planned %q", plans)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.obj.uid != "uid2" {
		t.Errorf("the object is %s", p.obj.uid)
	}
}

func TestP5_anotherObjectOfTheNameIsProbedAnew(t *testing.T) {
	p := play(t, settledOn(kube))
	was := *p.status.ConvergedAt
	o := *p.obj
	p.wait(p.now.Add(time.Minute))
	p.create(o) // restored from a backup
	p.turn()
	if !p.status.ConvergedAt.After(was) || p.status.Resource.UID != "uid2" {
		t.Errorf("converged at %s, before it was made; %+v", p.status.ConvergedAt, p.status.Resource)
	}
}

func TestP9_aRefusalIsKeptAndAttemptedAgainAtOnceWhenTheManifestChanges(t *testing.T) {
	p := play(t, newSim(kube))
	p.tasks = fleet.ClassRefused
	p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonCreateFailed).deployment(fleet.DeploymentFailed)
	if r := p.status.Runtime.Refusal; r == nil || r.Generation != 1 || r.Revision != p.desired().Revision {
		t.Fatalf("refusal %+v", r)
	}
	if wait := p.status.Runtime.NextAttempt.Sub(p.now); wait <= 0 || wait > time.Minute || p.status.Runtime.Plans < 60 || p.status.Runtime.Plans > 80 {
		t.Errorf("next attempt in %s after %d plans", wait, p.status.Runtime.Plans)
	}
	p.tasks, p.doc = "", 1 // the region's document changes
	before := p.now
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	if p.now.Sub(before) > time.Second {
		t.Errorf("it waited %s", p.now.Sub(before))
	}
}

func TestP10_whatAStalledInstanceLacksIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(*script)
		want  string
	}{
		{"instance", func(p *script) { p.tasks = fleet.ClassTransient }, "there is no instance; apply KuraInstance kura-acme-eu: not today"},
		{"roll-out", func(p *script) { p.stuck = true }, "no roll-out is complete yet"},
		{"another image", func(p *script) { p.stuck = true; p.create(object{observed: imageOf("v0/")}) }, "the roll-out has not ended: runs v0, wants v1"},
		{"document", func(p *script) { p.create(object{edited: true}); p.tasks = fleet.ClassTransient }, `KuraInstance kura/kura-acme-eu: spec.storageSize is "1Gi", wanted "2Gi" (set by kubectl-edit); apply KuraInstance kura-acme-eu: not today`},
		{"deleted", func(p *script) { p.finalizer = true; p.create(object{deleting: true}) }, "KuraInstance kura/kura-acme-eu is being deleted, and is still there"},
		{"endpoint", func(p *script) { p.endpoint = fleet.ReasonTLSNotReady }, "https://acme-eu.kura.test:1 is not ready (TLSNotReady)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := play(t, newSim(kube))
			p.turn() // the clock begins with the first plan
			c.given(p)
			p.pass(40 * time.Minute)
			if want := "not settled after 15m0s: " + c.want; p.status.Message != want {
				t.Errorf("got  %s\nwant %s", p.status.Message, want)
			}
		})
	}
}

func TestP12_redeployOfAnInstanceIsOneApply(t *testing.T) {
	p := play(t, settledOn(kube))
	p.declare("v1", "again")
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.obj.spec != "v1/again/0/" || p.told("Provisioning") != 0 {
		t.Errorf("applied %s, %d times provisioning", p.obj.spec, p.told("Provisioning"))
	}
}

func TestP16_aConvergedInstanceCostsNothing(t *testing.T) {
	p := play(t, settledOn(variant{kube: true, global: true}))
	p.quiet(200)
	if out := Decide(p.input()); !out.Due.IsZero() || out.Pending || out.Unsettled || out.NeedFreshRead.Has(fleet.TrackRuntime) {
		t.Errorf("it wants something: due %v, pending %v, unsettled %v, fresh read %v", out.Due, out.Pending, out.Unsettled, out.NeedFreshRead.Has(fleet.TrackRuntime))
	}
}

func TestP18_anInstanceIsDestroyedByItsUIDAndGoneWhenTheClusterSaysSo(t *testing.T) {
	p := play(t, settledOn(kube))
	p.finalizer, p.intent.Deleting = true, &p.now
	p.turn()
	if got := brief(p.status.Runtime.Plan); got != "delete uid1" || p.status.Runtime.Plan.Kind != fleet.PlanDestroy || p.status.PublishedURL != "" {
		t.Errorf("plan %s, published %q", got, p.status.PublishedURL)
	}
	p.pass(time.Hour).is(fleet.StatusDestroying, fleet.VerdictDestroying, fleet.ReasonDeleting)
	if m := condition(*p.status, fleet.ConditionProgressing).Message; m != "KuraInstance kura/kura-acme-eu is deleted, and stays until its finalizers are done" || p.status.Runtime.Plan != nil {
		t.Errorf("plan %s, says %q", brief(p.status.Runtime.Plan), m)
	}
	p.finalizer = false
	out := p.turn() // the watch says that it is gone
	if p.removed || !out.NeedFreshRead.Has(fleet.TrackRuntime) || out.Status.Status != fleet.StatusDestroying {
		t.Fatalf("removed %v, asks %v, %s", p.removed, out.NeedFreshRead.Has(fleet.TrackRuntime), out.Status.Status)
	}
	p.unreadable = true // and the cluster does not answer, or does not serve the type any more
	p.pass(time.Hour)
	if p.removed {
		t.Fatal("destroyed without an answer")
	}
	p.unreadable = false
	for range 3 {
		if !p.removed {
			p.step()
		}
	}
	if !p.removed || p.told("Destroying") != 1 || p.told("Destroyed") != 1 || p.status.VolumesRemoved {
		t.Errorf("removed %v, told %d and %d times", p.removed, p.told("Destroying"), p.told("Destroyed"))
	}
	if i := slices.IndexFunc(p.events, func(e fleet.Event) bool { return e.Reason == "Destroying" }); p.events[i].Message != "unpublished; its KuraInstance goes next" {
		t.Errorf("told %q", p.events[i].Message)
	}
}

func TestP18_aForeignInstanceCountsAsAbsenceAndStays(t *testing.T) {
	s := newSim(kube)
	s.create(object{owner: "server other/eu of environment staging"})
	s.intent.Deleting = &s.now
	p := play(t, s)
	for range 10 {
		if !p.removed {
			p.step()
		}
	}
	if !p.removed || p.obj == nil {
		t.Errorf("removed %v, object %v", p.removed, p.obj)
	}
}

func TestP18_aLateApplyLeavesNoOrphan(t *testing.T) {
	p := play(t, newSim(kube))
	p.tasks = unanswered // the apply lands when nobody expects it
	p.turn()
	p.step()
	at := p.now
	p.intent.Deleting, p.intent.Generation, p.tasks = &at, p.intent.Generation+1, ""
	for range 60 {
		if p.removed {
			break
		}
		p.step()
	}
	if waited := p.now.Sub(at); !p.removed || p.obj != nil || p.late != nil || waited < 29*time.Second {
		t.Errorf("removed %v after %s, object %v, late %v", p.removed, waited, p.obj, p.late)
	}
}

func TestS6_aPlanForWhatIsNoLongerThereIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		given func(*script)
		plan  string
	}{
		"gone":                 {func(p *script) { p.obj = nil }, "apply new"},
		"another object":       {func(p *script) { o := *p.obj; p.create(o) }, "apply uid2"},
		"somebody else's":      {func(p *script) { p.change(func(o *object) { o.owner = "server other/eu of environment staging" }) }, "-"},
		"as desired meanwhile": {func(p *script) { p.change(func(o *object) { o.spec, o.image = p.desired().Revision, imageOf("v2/") }) }, "-"},
		"being deleted":        {func(p *script) { p.finalizer = true; p.change(func(o *object) { o.deleting = true }) }, "-"},
	} {
		p := play(t, settledOn(kube))
		p.declare("v2", "")
		p.turn()
		c.given(p)
		if p.turn(); brief(p.status.Runtime.Plan) != c.plan {
			t.Errorf("%s: got %s, want %s", name, brief(p.status.Runtime.Plan), c.plan)
		}
	}
}

func TestKubernetes_longListsOfDifferencesAreCut(t *testing.T) {
	ds := []fleet.FieldDifference{{Path: "spec.image", Want: `"` + strings.Repeat("ü", 900) + `"`}, {Path: "spec.replicas", Have: "1"}}
	if s := list(ds); len(s) > 1024 || !strings.HasPrefix(s, "spec.image is not there, wanted ") || !strings.HasSuffix(s, "ü…") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	if s := list(ds[1:]); s != "spec.replicas is 1, wanted none" {
		t.Errorf("got %s", s)
	}
}

func TestP5_anotherRepositoryIsAnotherImage(t *testing.T) { // L44
	p := play(t, settledOn(kube))
	p.doc, p.stuck = 1, true // the region's images move; the tag stays
	p.rest().shows(fleet.ConditionManifestConverged, fleet.True, fleet.ReasonConverged).shows(fleet.ConditionImageConverged, fleet.False, fleet.ReasonDrifted)
	p.is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonDrifted)
	if m := condition(*p.status, fleet.ConditionImageConverged).Message; m != "runs registry.test/kura:v1, wants mirror.test/kura:v1" {
		t.Errorf("says %q", m)
	}
	if p.status.Settled == p.settledKey() || !Unsettled(*p.status) || p.status.ObservedImageTag != "v1" {
		t.Errorf("settled %+v, unsettled %v, observed %q", p.status.Settled, Unsettled(*p.status), p.status.ObservedImageTag)
	}
	p.stuck = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.status.Settled != p.settledKey() || Unsettled(*p.status) {
		t.Errorf("settled %+v, unsettled %v", p.status.Settled, Unsettled(*p.status))
	}
}

// settledKey is what the server settles for.
func (p *script) settledKey() fleet.Settled {
	return fleet.Settled{Generation: p.intent.Generation, Revision: p.desired().Revision}
}

func TestP5_digestsThatNobodyAskedForMakeNoOtherImage(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		observed, want string
		same           bool
	}{
		{"a.test/kura:v1", "a.test/kura:v1", true},
		{"a.test/kura:v1" + digest, "a.test/kura:v1", true},
		{"a.test/kura:v1" + digest, "a.test/kura:v1" + digest, true},
		{"a.test/kura:v1", "a.test/kura:v1" + digest, false},
		{"a.test/kura:v1", "b.test/kura:v1", false},
		{"kura:v1", "a.test/kura:v1", false},
	} {
		if got := sameImage(c.observed, c.want); got != c.same {
			t.Errorf("%s for %s: %v", c.observed, c.want, got)
		}
	}
}

func TestKubernetes_nothingThatIsStoredIsUnbounded(t *testing.T) {
	long := strings.Repeat("ü", 4000)
	p := play(t, settledOn(kube))
	p.declare("v2", "")
	p.turn()
	st := p.status.Clone()
	i := st.Runtime.Plan.Current()
	st.Runtime.Plan.Claim(i, p.now.Add(time.Minute))
	st.Runtime.Plan.Record(i, fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Message: long, Answered: true, At: p.now})
	p.status = &st
	p.look()
	in := p.input()
	in.Holds = []fleet.Hold{{Kind: fleet.HoldPaused, Message: long}}
	out := Decide(in)
	if out.Status.Runtime.Refusal == nil || out.Status.Status != fleet.StatusFailed || out.Latest == nil || len(out.Events) == 0 {
		t.Fatalf("%s, refusal %v", out.Status.Status, out.Status.Runtime.Refusal)
	}
	for _, text := range texts(out) {
		if len(text) > 1024 {
			t.Errorf("a text of %d bytes", len(text))
		}
	}
}

func TestP9_whatIsRevertedAgainAndAgainIsAppliedEverLessOften(t *testing.T) {
	p := play(t, settledOn(kube))
	start, plans := p.now, p.status.Runtime.Plans
	for p.now.Sub(start) < time.Hour {
		p.change(func(o *object) { o.edited = true }) // before anybody sees what was applied
		if p.step(); p.status.Runtime.Plans == plans+1 && p.now.Sub(start) > time.Second {
			t.Fatalf("first corrected after %s", p.now.Sub(start))
		}
	}
	if n := p.status.Runtime.Plans - plans; n < 10 || n > 20 {
		t.Errorf("%d applies in an hour", n)
	}
}

// The image that is observed is that of the last complete roll-out, and where another one
// changes something else, or goes back, only the controller's phase tells that it goes on.
func TestP5_aRollOutOfTheSameImageSettlesWhenItIsComplete(t *testing.T) {
	for name, begin := range map[string]func(*script){
		"another document": func(p *script) { p.doc = -1 },
		"a redeploy":       func(p *script) { p.declare("v1", "again") },
		"back from an image that does not start": func(p *script) {
			p.declare("v2", "")
			p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonRollingOut)
			p.declare("v1", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(kube))
			p.stuck = true
			begin(p)
			p.pass(5 * time.Minute)
			if p.obj.observed != imageOf("v1/") || p.status.Settled == p.settledKey() || !Unsettled(*p.status) || p.status.Verdict != fleet.VerdictProgressing || p.status.Status != fleet.StatusActive {
				t.Errorf("%s runs, settled %+v, unsettled %v, %s %s/%s", p.obj.observed, p.status.Settled, Unsettled(*p.status), p.status.Status, p.status.Verdict, p.status.VerdictReason)
			}
			if m := condition(*p.status, fleet.ConditionProgressing).Message; m != "its roll-out is not complete" {
				t.Errorf("says %q", m)
			}
			if p.pass(15 * time.Minute); p.status.Status != fleet.StatusActive || p.status.Verdict != fleet.VerdictStalled {
				t.Errorf("%s %s", p.status.Status, p.status.Verdict)
			}
			p.stuck = false
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(5)
			p.stuck = true
			p.change(func(o *object) { o.drained = true }) // a node is drained
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestG4_aCorrectionHoldsItsPlaceUntilItIsRolledOut(t *testing.T) {
	p := play(t, settledOn(kube))
	p.stuck = true
	p.edit(func(o *object) { o.edited, o.image = true, imageOf("v0/") }) // the controller rolls the edit out, then our document
	p.pass(5 * time.Minute)
	if p.obj.edited || !Unsettled(*p.status) || p.status.Status != fleet.StatusActive {
		t.Errorf("edited %v, unsettled %v, %s", p.obj.edited, Unsettled(*p.status), p.status.Status)
	}
	p.stuck = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(5)
	if Unsettled(*p.status) {
		t.Error("it keeps its place")
	}
}

// The phase is Pending, too, while a pod is away of which nothing was changed.
func TestP8_podsThatComeAndGoUnsettleNobody(t *testing.T) {
	drained := func(p *script) {
		p.stuck = true
		p.change(func(o *object) { o.drained = true })
	}
	p := play(t, settledOn(kube))
	drained(p)
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(5)
	p.declare("v1", "") // with other labels
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.status.Settled != p.settledKey() {
		t.Errorf("settled %+v", p.status.Settled)
	}
	p = play(t, adoptedOn(kube, false))
	drained(p)
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}
