package projection

import "github.com/kurafleet/terraform-provider-kura/internal/fleet"

// deployment moves a pending one to running at the first effect or at adoption, and ends an
// open one of a server that goes.
func (t *turn) deployment() {
	effect := t.tried || t.s.Runtime.Refusal != nil
	adopted := t.seen.fresh && t.seen.presence == present && t.seen.image.equal() && t.seen.document
	switch {
	case t.latest.Status.Open() && t.destroying():
		t.finish(fleet.DeploymentCancelled, fleet.ReasonDeleting, "the server is being destroyed")
	case t.latest.Status == fleet.DeploymentPending && (effect || adopted):
		t.run()
	}
}

// mark takes up the mark of a redeploy whose record was lost, where the runtime did not answer
// when the server was declared anew: what was made by it then is as desired, and nothing
// restarts (G7). While nothing served, a deployment without a mark comes after no redeploy.
func (t *turn) mark() {
	if t.seen.fresh && t.latest.Status.Open() && t.latest.RestartMark == "" && t.s.ServingImageTag == "" {
		t.latest.RestartMark = t.in.runtime().mark(t.seen)
	}
}

// marked reports whether this turn took up a mark, which the server is not rendered with yet.
func (t *turn) marked() bool { return t.latest.RestartMark != t.in.Latest.RestartMark }

func (t *turn) run() {
	now := t.in.Now
	t.latest.Status, t.latest.StartedAt = fleet.DeploymentRunning, &now
}

// finish ends an open deployment; a pending one passes through running.
func (t *turn) finish(s fleet.DeploymentStatus, reason fleet.Reason, message string) {
	if t.latest.Status == fleet.DeploymentPending && s != fleet.DeploymentCancelled {
		t.run()
	}
	now := t.in.Now
	t.latest.Status, t.latest.FinishedAt = s, &now
	t.latest.Reason, t.latest.Message = reason, cut(message)
	t.latest.ManifestRevision = t.in.Desired.Revision
}

// fail ends an open deployment as failed; it is history afterwards (P9).
func (t *turn) fail(reason fleet.Reason, message string) {
	if t.latest.Status.Open() {
		t.finish(fleet.DeploymentFailed, reason, message)
	}
}
