package projection

import (
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	someID     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	byDigest   = "registry.test/kura@" + someID
	withoutTag = "registry.test/kura"
)

// An engine names a container by the id of its image once the tag has moved on, or by the
// digest that it was pinned to. What was made from the desired document runs the desired
// image, whatever it is called by now (C1, C3).
func TestP23_whatWasMadeFromTheDocumentRunsItsImageWhateverTheEngineCallsIt(t *testing.T) {
	for _, image := range []string{someID, byDigest} {
		for _, observe := range []bool{false, true} {
			p := play(t, settledOn(variant{}))
			p.observe = observe
			plans := p.status.Runtime.Plans
			b := p.box()
			b.image = image
			p.boxes[carrierName] = b
			p.rest()
			p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictConverged, "")
			if p.status.Runtime.Plans != plans || p.status.ObservedImageTag != "v1" {
				t.Errorf("%s: plan %d after %d, observed %q", image, p.status.Runtime.Plans, plans, p.status.ObservedImageTag)
			}
		}
	}
}

// One of another document is another image, and what it is cannot be said.
func TestP23_anImageThatCannotBeReadIsItsOwnReasonAndReplacedLikeAnyOther(t *testing.T) {
	for _, image := range []string{someID, byDigest, withoutTag} {
		p := play(t, settledOn(variant{}))
		b := p.box()
		b.image, b.dig = image, "c/none"
		p.boxes[carrierName], p.observe = b, true
		p.rest().is(fleet.StatusActive, fleet.VerdictDrifted, fleet.ReasonUnparsableImage)
		if m := condition(*p.status, fleet.ConditionImageConverged).Message; m != "runs "+image+", whose tag cannot be read, wants v1" {
			t.Errorf("says %q", m)
		}
		p.observe = false
		p.pass(time.Minute).is(fleet.StatusActive, fleet.VerdictConverged, "")
	}
}

// A hand that copied our labels makes no plan that would change nothing: there is none.
func TestP23_noPlanIsMadeThatWouldChangeNothing(t *testing.T) {
	for name, p := range map[string]*script{"containers": play(t, settledOn(variant{})), "kubernetes": play(t, settledOn(kube))} {
		plans, image := p.status.Runtime.Plans, withoutTag
		if p.kube {
			image, p.stuck = byDigest, true
			p.change(func(o *object) { o.observed = image })
		} else {
			b := p.box()
			b.image = image
			p.boxes[carrierName] = b
		}
		p.rest().is(fleet.StatusActive, fleet.VerdictProgressing, fleet.ReasonUnparsableImage)
		p.pass(time.Hour).is(fleet.StatusActive, fleet.VerdictStalled, fleet.ReasonUnparsableImage)
		p.observe = true
		p.rest()
		if p.status.Runtime.Plans != plans || p.status.Runtime.Intended != nil {
			t.Errorf("%s: plan %d after %d, intended %s", name, p.status.Runtime.Plans, plans, brief(p.status.Runtime.Intended))
		}
		if m := condition(*p.status, fleet.ConditionImageConverged).Message; !strings.HasPrefix(m, "runs "+image+", whose tag cannot be read, wants v1") {
			t.Errorf("%s says %q", name, m)
		}
	}
}

// A first version of which nobody can say whether it runs fails with that.
func TestP23_aStallSaysWhichImageRuns(t *testing.T) {
	p := play(t, newSim(kube))
	p.stuck = true
	p.pass(time.Minute)
	p.change(func(o *object) { o.observed, o.rolled, o.phase = byDigest, o.target, "Ready" })
	p.pass(time.Hour).is(fleet.StatusFailed, fleet.VerdictStalled, fleet.ReasonUnparsableImage)
	if want := "not settled after 15m0s: runs " + byDigest + ", whose tag cannot be read, wants v1"; p.status.Message != want {
		t.Errorf("says %q, want %q", p.status.Message, want)
	}
}
