package store

import (
	"cmp"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// EventsAfter returns the servers that keep wants and have events of a revision after
// after, those with the newest events first, and the revision at which the view says so.
// Servers that are gone are among them while their events are kept.
func (v *View) EventsAfter(after int64, keep func(fleet.ServerKey) bool) (keys []fleet.ServerKey, newest func(fleet.ServerKey) int64, revision int64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	at := map[fleet.ServerKey]int64{}
	for k, r := range v.state.events {
		if r > after && keep(k) {
			at[k] = r
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b fleet.ServerKey) int { return cmp.Or(cmp.Compare(at[b], at[a]), compareKeys(a, b)) })
	return keys, func(k fleet.ServerKey) int64 { return at[k] }, v.revision
}
