package projection

import (
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Unsettled reports whether a stored status counts against its region's max_unsettled:
// it was admitted, and has neither settled nor failed nor stalled since (G4).
func Unsettled(s fleet.Status) bool {
	return s.Admitted && s.Status != fleet.StatusFailed && !s.Clock.Expired && s.Status != fleet.StatusDestroying
}

// needsPlace reports whether the plan is a part of a mass change: taking away, at the
// end of a server or after a replace, settles nothing and unsettles nobody, and to start
// what served last changes nothing.
func needsPlace(p fleet.Plan) bool {
	return p.Kind != fleet.PlanDestroy && p.Cause != fleet.CauseCleanup && p.Cause != fleet.CauseOutage
}

// urgent reports whether a newer image waits for a server that had failed or stalled on
// the last one: it goes first. The hold remembers it over the turns that wait.
func (t *turn) urgent() bool {
	prev := t.in.Prev
	return prev != nil && t.latest.Status.Open() &&
		(prev.Status == fleet.StatusFailed || prev.Clock.Expired || slices.Contains(prev.Holds, waitsForPlace(true)))
}

func waitsForPlace(first bool) fleet.Hold {
	message := "waits for a place: the region's max_unsettled servers are being settled"
	if first {
		message += "; it goes first, for the last image failed here"
	}
	return fleet.Hold{Kind: fleet.HoldAdmission, Message: message}
}
