package dns

import (
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// doubtFor is how long a listing has to go on saying that half of what there was is gone.
const doubtFor = 10 * time.Second

// doubt keeps a listing from counting in which half of what there was is missing, until it was
// seen so for doubtFor (D5).
type doubt struct {
	size  int
	since time.Time
}

// of says why a listing of that size does not count; nil: it does.
func (d *doubt) of(l Listing) error {
	size := len(l.Records) + len(l.Balancers) + len(l.Pools)
	if size > d.size/2 || d.size == 0 || !d.since.IsZero() && l.Begun.Sub(d.since) >= doubtFor {
		d.size, d.since = size, time.Time{}
		return nil
	}
	if d.since.IsZero() {
		d.since = l.Begun
	}
	return &Error{
		Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Answered: true, After: doubtFor,
		Message: fmt.Sprintf("half of the zone or more is missing in its listing (%d, after %d before): nothing is changed unless that is still so in %s", size, d.size, doubtFor),
	}
}

// changed takes our own changes into account.
func (d *doubt) changed(by int) { d.size = max(0, d.size+by) }
