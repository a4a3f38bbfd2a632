package projection

import (
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// differs says what a plan is to mend: what is there, what is wanted, and whose doing it is
// as far as that is known (P21).
func differs(s fleet.Status) (text string) {
	for _, ct := range []fleet.ConditionType{fleet.ConditionImageConverged, fleet.ConditionManifestConverged} {
		if c := condition(s, ct); c.Status == fleet.False && c.Message != "" {
			text += "; " + c.Message
		}
	}
	return text
}

// joined are texts behind one another, each after the separator.
func joined(separator string, texts []string) (all string) {
	for _, text := range texts {
		all += separator + text
	}
	return all
}

// isNew reports whether the plan is a new one.
func isNew(p, before *fleet.Plan) bool { return p != nil && (before == nil || before.ID != p.ID) }

// differences are the events that follow from what changed.
func (t *turn) differences() (es []fleet.Event) {
	in, s := t.in, t.s
	add := func(kind fleet.EventType, reason, format string, args ...any) {
		es = append(es, event(in, kind, reason, fmt.Sprintf(format, args...)))
	}
	prev := fleet.Status{Status: fleet.StatusProvisioning}
	if in.Prev != nil {
		prev = *in.Prev
	}
	if s.Status != prev.Status || s.Status == fleet.StatusFailed && s.Reason != prev.Reason {
		switch s.Status {
		case fleet.StatusActive:
			add(fleet.EventNormal, "Active", "serves %s at %s", s.ServingImageTag, s.PublishedURL)
		case fleet.StatusFailed:
			if s.Reason != fleet.ReasonStalled { // told below, once
				add(fleet.EventWarning, "Failed", "%s: %s", s.Reason, s.Message)
			}
		case fleet.StatusProvisioning:
			add(fleet.EventNormal, "Provisioning", "was %s", prev.Status)
		case fleet.StatusDestroying:
			add(fleet.EventNormal, "Destroying", "unpublished; its %s next", in.runtime().describe())
		case fleet.StatusDestroyed:
			add(fleet.EventNormal, "Destroyed", "nothing of it is left on the runtime")
		}
	} else if s.ServingImageTag != prev.ServingImageTag && s.Status == fleet.StatusActive {
		add(fleet.EventNormal, "Active", "serves %s at %s", s.ServingImageTag, s.PublishedURL)
	}
	if prev.PublishedURL != "" && s.PublishedURL != "" && prev.PublishedURL != s.PublishedURL {
		add(fleet.EventNormal, "URLSwitched", "from %s to %s", prev.PublishedURL, s.PublishedURL)
	}
	withheld := s.Withheld != "" && prev.Withheld == ""
	if withheld {
		add(fleet.EventWarning, "EndpointWithheld", "clients are led to %s no more: %s", s.PublishedURL, t.in.claimOn(fleet.HostOf(s.PublishedURL)))
	} else if s.Withheld == "" && prev.Withheld != "" && s.PublishedURL == prev.PublishedURL {
		add(fleet.EventNormal, "EndpointRestored", "clients are led to %s again", s.PublishedURL)
	}
	switch {
	case !s.Clock.Expired || prev.Clock.Expired:
	case in.Intent.Deleting != nil:
		add(fleet.EventWarning, "NotWithdrawn", "what leads to it is still there after %s: its %s goes all the same, and the rest when it can; %s", in.Region.StallAfter, in.runtime().describe(), t.unwithdrawn())
	default:
		add(fleet.EventWarning, "Stalled", "%s", condition(s, fleet.ConditionProgressing).Message)
	}
	if is := condition(s, fleet.ConditionProgressing); is.Reason == fleet.ReasonSilent && condition(prev, fleet.ConditionProgressing).Reason != is.Reason {
		add(fleet.EventWarning, string(is.Reason), "%s", is.Message)
	}
	if p := s.Runtime.Plan; isNew(p, prev.Runtime.Plan) && !p.Repeats(prev.Course(fleet.TrackRuntime, p.Cause).LastFailed) && !s.Restarts(p) {
		add(fleet.EventNormal, "PlanStored", "%s for %s, %d steps, attempt %d%s", p.Kind, p.Cause, len(p.Tasks), p.Attempt, differs(s))
	}
	for _, b := range t.tracks() {
		if p := b.work.Plan; isNew(p, prev.PlanOf(b.track)) && !p.Repeats(prev.On(b.track).LastFailed) {
			add(fleet.EventNormal, "PlanStored", "%s: %s for %s, %d steps, attempt %d%s", b.track, p.Kind, p.Cause, len(p.Tasks), p.Attempt, joined("; ", b.Differs))
		}
	}
	if latest := t.latest; latest.Status != in.Latest.Status && !latest.Status.Open() {
		kind := fleet.EventNormal
		if latest.Status == fleet.DeploymentFailed {
			kind = fleet.EventWarning
		}
		add(kind, "Deployment", "deployment %d of %s %s", latest.Seq, latest.ImageTag, latest.Status)
	}
	for _, e := range fieldEvents(in, prev, s) {
		add(fleet.EventWarning, string(e.reason), "%s", e.text)
	}
	for _, ct := range []fleet.ConditionType{fleet.ConditionInstanceObserved, fleet.ConditionEndpointReady, fleet.ConditionDNSOwned} {
		was, is := condition(prev, ct), condition(s, ct)
		if was.Type == "" || was.Status == is.Status || in.Intent.Deleting != nil || withheld && ct == fleet.ConditionDNSOwned {
			continue
		}
		if is.Status == fleet.True {
			add(fleet.EventNormal, string(ct), "%s", is.Reason)
		} else if was.Status == fleet.True {
			add(fleet.EventWarning, string(ct)+"Lost", "%s %s", is.Reason, is.Message)
		}
	}
	return es
}
