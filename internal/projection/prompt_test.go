package projection

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// refusedForLong leaves a server whose next attempt is minutes away.
func refusedForLong(t *testing.T, p *script, reason fleet.Reason) {
	t.Helper()
	p.pass(30*time.Minute).is(fleet.StatusFailed, fleet.VerdictFailed, reason)
	for p.status.Runtime.NextAttempt.Sub(p.now) < 5*time.Minute {
		p.wait(*p.status.Runtime.NextAttempt)
		p.rest()
	}
}

// Only holds delay a recreation: what an earlier attempt waits for does not.
func TestP4_aFailedServersInstanceThatVanishesIsRecreatedAtOnce(t *testing.T) {
	t.Run("KuraInstance", func(t *testing.T) {
		p := play(t, settledOn(kube))
		p.change(func(o *object) { o.claimed = true })
		p.declare("v2", "")
		refusedForLong(t, p, fleet.ReasonFieldConflict)
		p.obj = nil
		if plans := p.plans(); !slices.Equal(plans, []string{"apply new"}) {
			t.Errorf("planned %q, want one apply", plans)
		}
		p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	})
	t.Run("containers", func(t *testing.T) {
		p := play(t, settledOn(variant{}))
		p.tasks = fleet.ClassRefused
		p.declare("v2", "")
		refusedForLong(t, p, fleet.ReasonCreateFailed)
		p.tasks = ""
		p.remove()
		if plans := p.plans(); len(plans) != 1 {
			t.Errorf("planned %q, want one plan", plans)
		}
		p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
	})
}

func TestP9_aConflictThatEndsIsAttemptedAtOnce(t *testing.T) {
	lets := func(p *script) { p.change(func(o *object) { o.heldImg, o.edited = false, true }) }
	takes := func(p *script) { p.force = true }
	for name, c := range map[string]struct{ begins, ends func(*script) }{
		"another manager lets the image go":   {func(p *script) { p.change(func(o *object) { o.heldImg = true }) }, lets},
		"force_conflicts takes the image":     {func(p *script) { p.change(func(o *object) { o.heldImg = true }) }, takes},
		"force_conflicts takes the whole one": {func(p *script) { p.change(func(o *object) { o.claimed = true }) }, takes},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, settledOn(kube))
			c.begins(p)
			p.declare("v2", "")
			if p.obj.claimed {
				refusedForLong(t, p, fleet.ReasonFieldConflict)
			} else { // nothing is left to attempt until it ends
				p.pass(30*time.Minute).is(fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonFieldConflict).quiet(5)
			}
			c.ends(p)
			if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
				t.Errorf("planned %q, want one apply", plans)
			}
			p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentFailed)
		})
	}
}

// What serves is put aside under another name where somebody else's container has the usual one.
func TestC4_aForeignContainerInTheWayOfARollOutCostsNobodyAnything(t *testing.T) {
	const aside = carrierName + "-old"
	p := play(t, settledOn(variant{helper: true}))
	foreign := box{id: "backup", tag: "v0", state: fleet.ContainerExited, foreign: true}
	p.boxes[aside] = foreign
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "").quiet(5) // it is in nobody's way
	id := p.box().id
	p.declare("v2", "")
	p.doc = -1 // the other service changes, too
	want := "create cache as -next; create proxy as kura-acme-eu-proxy-next; stop cache; rename cache as -" + id + "; rename cache as itself; start cache; remove cache; " +
		"stop proxy; rename proxy as kura-acme-eu-proxy-old; rename proxy as kura-acme-eu-proxy; start proxy; remove proxy"
	if plans := p.plans(); !slices.Equal(plans, []string{want}) {
		t.Errorf("got  %q\nwant %q", plans, want)
	}
	p.is(fleet.StatusActive, fleet.VerdictConverged, "").deployment(fleet.DeploymentSucceeded)
	if p.box().tag != "v2" || len(p.boxes) != 3 || p.boxes[aside] != foreign {
		t.Errorf("%+v, want v2 and what is not ours as it was", p.boxes)
	}
}
