package projection

import (
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// gate is what stands between a converged instance and active.
type gate struct {
	url      string // that must answer
	moveHeld bool   // a declared host belongs to somebody else (D3)
	claim    claim  // on the host that is not known to be ours
	open     bool
	reason   fleet.Reason // why it is not open
}

// look at the endpoints that P5 needs.
func (t *turn) readGate() gate {
	in, g := t.in, gate{url: t.in.Desired.URL}
	probe := in.Seen.Endpoint
	if in.rule(RuleD3Ownership) {
		switch c := in.entryClaim(); {
		case c.status == fleet.True:
		case c.foreign() && t.s.PublishedURL != "" && t.s.PublishedURL != g.url:
			g.url, g.moveHeld, g.claim, probe = t.s.PublishedURL, true, c, in.Seen.Published
		default:
			return gate{url: g.url, reason: c.reason, claim: c}
		}
	}
	if !in.rule(RuleURLOnce) {
		g.open = true
		return g
	}
	if !t.answered(probe, g.url) {
		g.reason = fleet.ReasonEndpointNotReady
		return g
	}
	if in.globalRequired() && !t.answered(in.Seen.Global, in.Desired.GlobalURL) {
		g.reason = fleet.ReasonGlobalNotReady
		return g
	}
	g.reason = t.shut()
	g.open = g.reason == ""
	return g
}

// globalRequired reports whether the global endpoint is a part of the gate (R2).
func (in Input) globalRequired() bool {
	return in.Desired.GlobalURL != "" && in.Region.Readiness.Global != fleet.GlobalAdvisory
}

// answered reports whether a probe of the url, begun after the instance converged,
// was answered.
func (t *turn) answered(p fleet.ProbeObservation, url string) bool {
	if p.URL != url || p.Begun.IsZero() {
		return false
	}
	if from := t.s.ConvergedAt; t.in.rule(RuleP5FreshProbe) && (from == nil || p.Begun.Before(*from)) {
		return false
	}
	return p.Ready || !t.in.rule(RuleP8Endpoint)
}

// active is P5.
func (t *turn) active() bool {
	t.gate = t.readGate()
	if !t.seen.fresh || t.seen.presence != present || !t.seen.image.equal() || !t.seen.document || !t.seen.running {
		return false
	}
	if t.crashing() || !onlyRemovals(t.s.Runtime.Plan) {
		return false
	}
	if t.settled() {
		t.atRest()
		return true // P8: a probe does not end it
	}
	if !t.gate.open || t.s.RollOut != nil {
		return false
	}
	t.become(fleet.StatusActive, "", "")
	t.s.ServingImageTag = t.in.Desired.ImageTag
	if t.s.PublishedURL != t.gate.url {
		t.publish(t.gate.url)
	}
	if t.latest.Status.Open() {
		t.finish(fleet.DeploymentSucceeded, "", "")
	}
	if !t.gate.moveHeld {
		t.s.Settled = t.key()
	}
	if t.in.rule(RuleS11DropHeld) {
		t.books().dropHeld() // what is settled is only observed where the region says so
	}
	t.atRest()
	return true
}

// atRest forgets what was counted while the server was not settled.
func (t *turn) atRest() {
	if t.in.rule(RuleSettledRefusal) {
		t.s.Runtime.Refusal = nil
	}
	t.s.Clock = fleet.StallClock{}
	if t.s.Runtime.Plan == nil {
		t.s.Admitted = false
	}
	if t.s.Runtime.Plan == nil && (t.seen.converged || t.s.Runtime.Failing == nil) {
		t.s.Runtime.Course = fleet.Course{} // what failed is done, whoever did it
	}
}

// publish switches the published url in one write and keeps the old host routed for
// the alias period (H8, P15).
func (t *turn) publish(url string) {
	if old, host := fleet.HostOf(t.s.PublishedURL), fleet.HostOf(url); old != "" && old != host {
		until := t.in.Now.Add(t.in.AliasPeriod)
		t.s.Aliases = slices.DeleteFunc(t.s.Aliases, func(a fleet.Alias) bool { return a.Host == old || a.Host == host })
		t.s.Aliases = append(t.s.Aliases, fleet.Alias{Host: old, Until: &until})
	}
	t.s.PublishedURL, t.s.Withheld = url, ""
}

// freed are the hosts that the server led clients to before the turn and does not now:
// those of aliases whose period is over. A host that it is declared to have stays its own; one
// that is destroyed gives its hosts up at its end (H10).
func (t *turn) freed() []string {
	if t.in.Intent.Deleting != nil {
		return nil
	}
	kept, declared := t.s.ClientHosts(), t.in.Desired.Hosts
	return slices.DeleteFunc(t.in.Prev.ClientHosts(), func(host string) bool { return declared.Has(host) || slices.Contains(kept, host) })
}

// endAliases ends the aliases whose period is over. What routes them is asked first: a
// container host routes none; a KuraInstance does until it was seen without them (K7).
func (t *turn) endAliases() {
	if t.in.NotRenderable != nil {
		return // nobody knows which hosts it is to have
	}
	withdrawn := t.withdrawn()
	var kept []fleet.Alias
	for _, a := range t.s.Aliases {
		over := a.Until != nil && !a.Until.After(t.in.Now)
		if over && (withdrawn && a.Ended || !t.in.runtime().routes()) {
			continue
		}
		a.Ended = over
		kept = append(kept, a)
	}
	t.s.Aliases = kept
}
