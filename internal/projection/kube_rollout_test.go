package projection

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// rollOuts are what a controller has to roll out.
var rollOuts = map[string]func(*script){
	"another document": func(p *script) { p.doc = -1 },
	"a redeploy":       func(p *script) { p.declare("v1", "again") },
	"another image":    func(p *script) { p.declare("v2", "") },
	"a correction":     func(p *script) { p.edit(func(o *object) { o.edited = true }) },
	"a recreation":     func(p *script) { p.obj = nil },
	"another image than serves, which is rolled out": func(p *script) {
		p.endpoint = fleet.ReasonConnectFailed
		p.declare("v2", "")
		p.rest()
		p.endpoint, p.doc = "", -1
	},
}

// underWay fails the test unless what was applied counts as under way everywhere.
func (p *script) underWay(reason fleet.Reason) {
	p.t.Helper()
	if st := p.status; st.Verdict != fleet.VerdictProgressing || st.VerdictReason != reason || !Unsettled(*st) || st.RollOut == nil {
		p.t.Fatalf("after %s: %s/%s, unsettled %v, roll-out %+v; want it under way, with %s", p.now.Sub(epoch), st.Verdict, st.VerdictReason, Unsettled(*st), st.RollOut, reason)
	}
}

func TestK8_whatWasAppliedSettlesWhenAControllerThatNoticesLateHasRolledItOut(t *testing.T) {
	for name, begin := range rollOuts {
		for _, late := range []time.Duration{0, 2 * time.Second, 10 * time.Second, time.Minute} {
			t.Run(name+" after "+late.String(), func(t *testing.T) {
				p := play(t, settledOn(kube))
				begin(p)
				p.down = true
				deployment := p.latest.Status
				p.pass(late)
				if late > 0 {
					p.underWay(p.status.VerdictReason)
					if p.latest.Status != deployment && !p.latest.Status.Open() {
						t.Errorf("its deployment became %s", p.latest.Status)
					}
				}
				p.down = false // and begins with a pass for what it had read before
				p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded).quiet(5)
				if p.told(string(fleet.ReasonSilent)) > 0 || Unsettled(*p.status) || p.status.RollOut != nil {
					t.Errorf("unsettled %v, roll-out %+v", Unsettled(*p.status), p.status.RollOut)
				}
			})
		}
	}
}

func TestK8_aControllerThatWritesNothingIsSilentAndConvergesNothing(t *testing.T) {
	for name, begin := range rollOuts {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(kube))
			begin(p)
			p.down = true
			p.pass(silentAfter - time.Second)
			if c := condition(*p.status, fleet.ConditionProgressing); c.Status != fleet.True {
				t.Errorf("before its time: Progressing is %s/%s", c.Status, c.Reason)
			}
			p.pass(2*time.Second).shows(fleet.ConditionProgressing, fleet.False, fleet.ReasonSilent)
			p.underWay(fleet.ReasonSilent)
			if m := condition(*p.status, fleet.ConditionProgressing).Message; !strings.Contains(m, "has written nothing since the apply") {
				t.Errorf("says %q", m)
			}
			if p.quiet(5).told(string(fleet.ReasonSilent)) != 1 {
				t.Errorf("told %d times", p.told(string(fleet.ReasonSilent)))
			}
			if p.pass(20 * time.Minute); p.status.Verdict != fleet.VerdictStalled || p.status.VerdictReason != fleet.ReasonSilent {
				t.Errorf("after %s: %s/%s", p.now.Sub(epoch), p.status.Verdict, p.status.VerdictReason)
			}
			p.down = false
			p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
		})
	}
}

func TestK8_whatChangesMetadataOnlyNeedsNoController(t *testing.T) {
	p := play(t, adoptedOn(kube, false))
	p.down = true
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	if p.obj.owner != "" || p.obj.generation != 1 {
		t.Errorf("it was not applied, or not to metadata only: %+v", p.obj)
	}
	p.change(func(o *object) { o.labels = true }) // by hand
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// A restart, a watch that lags and an answer that is lost are no evidence, and forget none.
func TestK8_aRestartForgetsNothingOfARollOut(t *testing.T) {
	p := play(t, settledOn(kube))
	p.doc, p.down = -1, true
	p.pass(5 * time.Second)
	for writes, what := range []string{"nothing was written", "a pass from before the apply has written"} {
		was := *p.status.RollOut
		p.silent = true
		p.step()
		p.step()
		if is := *p.status.RollOut; is.Writes != writes || is.Applied == nil || *is.Applied != *was.Applied || is.At != was.At {
			t.Errorf("%s: a restart made %+v of %+v", what, is, was)
		}
		p.underWay(fleet.ReasonRollingOut)
		p.down = false
		p.turn()
		p.down = true
	}
	p.down = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

func TestK8_anApplyWhoseAnswerWasLostIsRolledOutToo(t *testing.T) {
	p := play(t, settledOn(kube))
	p.doc, p.down, p.tasks = -1, true, unanswered
	p.turn()
	p.step()
	p.tasks = ""
	p.pass(time.Minute)
	if p.obj.spec != p.desired().Revision {
		t.Fatalf("%s is there", p.obj.spec)
	}
	p.underWay(fleet.ReasonRollingOut)
	p.down = false
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
}

// What admission makes of the image is no other image: a redeploy of it changes none, and the
// controller's latch, which is there already, tells nothing of its end.
func TestK10_K8_anImageThatAdmissionChangesIsNoOtherImage(t *testing.T) {
	in := Input{Desired: fleet.Desired{ImageTag: "v1", Kubernetes: &fleet.KubeDocument{Revision: "r2", Spec: map[string]any{"image": "registry.test/kura:v1"}}}}
	apply := fleet.Plan{Tasks: []fleet.Task{{Effect: fleet.Effect{Kind: fleet.TaskApply}}}}
	r := fleet.KubeInstance{UID: "u", SpecImage: "mirror.test/kura:v1", ObservedImage: "mirror.test/kura:v1"}
	for _, altered := range []bool{false, true} {
		if altered {
			r.Altered = []fleet.FieldDifference{{Path: "spec.image", Have: "mirror.test/kura:v1", Want: "registry.test/kura:v1"}}
		}
		v := reading{fresh: true}
		in.Seen.Instance.Resource = &r
		kuraInstance{}.look(in, &v)
		if o := rollsOut(in, nil, apply, &r); o.Latches == altered || v.image.equal() != altered {
			t.Errorf("altered %t: another image to roll out %t, image %s", altered, o.Latches, v.image)
		}
	}
}

func TestK10_whatAdmissionChangesIsToldOncePerField(t *testing.T) {
	now := func(paths ...string) (s fleet.Status) {
		for _, p := range paths {
			s.Altered = append(s.Altered, fleet.Alteration{Path: p, Sent: "s", Became: strings.Join(paths, "")})
		}
		return s
	}
	const says = "the cluster's admission changes what is applied, and that stays: "
	for _, c := range []struct {
		was, is fleet.Status
		want    string
	}{
		{now(), now("spec.image", "spec.mesh"), says + "spec.image, spec.mesh"},
		{now("spec.image"), now("spec.image", "spec.mesh"), says + "spec.mesh"},
		{now("spec.image", "spec.mesh"), now("spec.image"), ""}, // it became something else
	} {
		got := ""
		for _, e := range fieldEvents(Input{}, c.was, c.is) {
			got += e.text
		}
		if got != c.want {
			t.Errorf("from %v to %v: told %q, want %q", c.was.Altered, c.is.Altered, got, c.want)
		}
	}
}
