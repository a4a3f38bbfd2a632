package projection

import (
	"cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// verdict is the first that holds (the table at the end of section 4).
func (t *turn) verdict() {
	s := &t.s
	is := func(ct fleet.ConditionType) bool { return condition(*s, ct).Status == fleet.True }
	same := is(fleet.ConditionImageConverged) && is(fleet.ConditionManifestConverged)
	endpoint := condition(*s, fleet.ConditionEndpointReady)
	unreadable := t.in.Seen.Instance.Unreadable != nil || t.in.NotRenderable != nil
	switch {
	case t.in.Intent.Deleting != nil:
		s.Verdict, s.VerdictReason = fleet.VerdictDestroying, fleet.ReasonDeleting
		if len(s.Holds) > 0 {
			s.VerdictReason = holdReason(s.Holds[0].Kind)
		}
	case unreadable:
		s.Verdict, s.VerdictReason = fleet.VerdictUnobserved, condition(*s, fleet.ConditionInstanceObserved).Reason
	case s.Clock.Expired:
		s.Verdict, s.VerdictReason = fleet.VerdictStalled, t.stallReason()
	case s.Status == fleet.StatusFailed:
		s.Verdict, s.VerdictReason = fleet.VerdictFailed, s.Reason
	case s.Status == fleet.StatusActive && same && s.PublishedURL == t.in.Desired.URL && !t.latest.Status.Open() && onlyRemovals(s.Runtime.Plan) && s.Settled == t.key() && s.RollOut == nil && t.underWay() == "":
		s.Verdict, s.VerdictReason = fleet.VerdictConverged, ""
		switch endpoint.Status {
		case fleet.True:
		case fleet.False:
			s.VerdictReason = fleet.ReasonEndpointNotReady
		case fleet.Unknown:
			s.VerdictReason = fleet.ReasonNotChecked
		}
	case t.observing() && !t.declared() && condition(*s, fleet.ConditionImageConverged).Reason == fleet.ReasonAbsent:
		s.Verdict, s.VerdictReason = fleet.VerdictAbsent, fleet.ReasonAbsent
	case t.observing() && !t.declared():
		s.Verdict, s.VerdictReason = fleet.VerdictDrifted, t.progressReason()
	case len(s.Holds) > 0:
		s.Verdict, s.VerdictReason = fleet.VerdictHeld, holdReason(s.Holds[0].Kind)
	default:
		s.Verdict, s.VerdictReason = fleet.VerdictProgressing, t.progressReason()
	}
}

// progressReason says what the server is on its way from.
func (t *turn) progressReason() fleet.Reason {
	image, document := condition(t.s, fleet.ConditionImageConverged), condition(t.s, fleet.ConditionManifestConverged)
	switch {
	case image.Status == fleet.Unknown:
		return fleet.ReasonNotObservedYet
	case t.controllerSilent():
		return fleet.ReasonSilent
	case image.Status == fleet.False:
		return image.Reason
	case document.Status == fleet.False:
		return fleet.ReasonDrifted
	case t.s.PublishedURL != "" && t.s.PublishedURL != t.in.Desired.URL:
		return fleet.ReasonURLMove
	case t.s.RollOut != nil:
		return fleet.ReasonRollingOut
	case t.gate.claim.reason != "":
		return t.gate.reason
	case condition(t.s, fleet.ConditionEndpointReady).Status != fleet.True:
		return fleet.ReasonEndpointNotReady
	case t.in.globalRequired() && condition(t.s, fleet.ConditionGlobalEndpointReady).Status != fleet.True:
		return fleet.ReasonGlobalNotReady
	default:
		return cmp.Or(t.underWay(), fleet.ReasonRollingOut)
	}
}

// stallReason is why a server does not settle, as far as that is known (P21): that it differs
// is none.
func (t *turn) stallReason() fleet.Reason {
	trouble, _ := t.trouble()
	document := condition(t.s, fleet.ConditionManifestConverged)
	switch reason := t.progressReason(); {
	case trouble != "":
		return trouble
	case reason == fleet.ReasonDrifted && document.Status == fleet.False:
		return document.Reason
	case reason == fleet.ReasonDrifted:
		return fleet.ReasonRollingOut
	default:
		return reason
	}
}

func holdReason(k fleet.HoldKind) fleet.Reason {
	switch k {
	case fleet.HoldPaused:
		return fleet.ReasonPaused
	case fleet.HoldObserve:
		return fleet.ReasonObserveOnly
	case fleet.HoldAdmission:
		return fleet.ReasonAdmission
	case fleet.HoldOwnership:
		return fleet.ReasonForeignOwner
	case fleet.HoldAdoption:
		return fleet.ReasonAdoption
	default:
		return fleet.ReasonHeld
	}
}

// summary is the condition Ready.
func (t *turn) summary() {
	switch t.s.Verdict {
	case fleet.VerdictConverged:
		switch endpoint := condition(t.s, fleet.ConditionEndpointReady); endpoint.Status {
		case fleet.True:
			t.set(fleet.ConditionReady, fleet.True, fleet.ReasonReady, "")
		case fleet.False, fleet.Unknown:
			t.set(fleet.ConditionReady, endpoint.Status, fleet.ReasonEndpointNotReady, endpoint.Message)
		}
	case fleet.VerdictUnobserved:
		t.set(fleet.ConditionReady, fleet.Unknown, fleet.ReasonNotObservedYet, condition(t.s, fleet.ConditionInstanceObserved).Message)
	case fleet.VerdictHeld:
		t.set(fleet.ConditionReady, fleet.False, fleet.ReasonHeld, t.s.Holds[0].Message)
	case fleet.VerdictStalled:
		t.set(fleet.ConditionReady, fleet.False, fleet.ReasonStalled, t.stalled())
	case fleet.VerdictDestroying:
		t.set(fleet.ConditionReady, fleet.False, fleet.ReasonDeleting, condition(t.s, fleet.ConditionProgressing).Message)
	case fleet.VerdictFailed:
		t.set(fleet.ConditionReady, fleet.False, t.s.Reason, t.s.Message)
	case fleet.VerdictAbsent, fleet.VerdictDrifted, fleet.VerdictProgressing:
		_, trouble := t.trouble()
		t.set(fleet.ConditionReady, fleet.False, t.s.VerdictReason, cmp.Or(trouble, t.doing()))
	}
}
