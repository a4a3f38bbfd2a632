package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// MaxEvents is how many events of a server are kept: a ring, in which the newest takes
// the place of the oldest. An event's Generation is its number, counted per server; its
// slot is that number modulo MaxEvents.
const MaxEvents = 50

// MaxDeparted is how many servers that are gone keep their events: with the ring of each
// server it bounds the events of all.
const MaxDeparted = 250

// departed names the servers that are gone and whose events are kept, the longest gone
// first.
type departed struct {
	Servers []fleet.ServerKey `json:"servers"`
}

// Events returns the kept events of a server, the oldest first. They outlive the server,
// until MaxDeparted others have gone after it.
func (r *Records) Events(ctx context.Context, k fleet.ServerKey) (Listing[fleet.Event], error) {
	l, err := list[fleet.Event](ctx, r, eventFolder(k), PageOptions{})
	slices.SortFunc(l.Items, func(a, b Versioned[fleet.Event]) int { return cmp.Compare(a.Generation, b.Generation) })
	return l, err
}

// appendEvents puts events into the rings of their servers. The slots that it writes
// are compared, so that two writers never take the same one.
func (tx *Tx) appendEvents(ctx context.Context, events []fleet.Event) error {
	byServer := map[fleet.ServerKey][]fleet.Event{}
	var order []fleet.ServerKey
	for _, e := range events {
		k := fleet.ServerKey{Account: e.Account, Region: e.Region}
		if byServer[k] == nil {
			order = append(order, k)
		}
		byServer[k] = append(byServer[k], e)
	}
	for _, k := range order {
		slots := map[string]int64{}
		var last int64
		err := tx.records.scan(ctx, eventFolder(k), new(int64), func(key string, item kv.Item) {
			slots[key] = item.Revision
			// A slot that cannot be read is overwritten when its turn comes.
			if v, err := decode[fleet.Event](item); err == nil {
				last = max(last, v.Generation)
			}
		})
		if err != nil {
			return err
		}
		fresh := byServer[k]
		if drop := len(fresh) - MaxEvents; drop > 0 {
			last += int64(drop)
			fresh = fresh[drop:]
		}
		for _, e := range fresh {
			last++
			key := eventKey(k, last)
			seq := last
			tx.write(key, slots[key], func() ([]byte, error) { return encode(e, seq, e.At, tx.now) })
		}
	}
	return nil
}

// depart notes that a server is gone, and forgets the events of those that went too long
// ago. One that was declared again meanwhile keeps its own: it departs anew. What is
// compared here and has changed is read again by the caller.
func (tx *Tx) depart(ctx context.Context, k fleet.ServerKey) error {
	record, err := fetch[departed](ctx, tx.records, departedKey)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(record.Value.Servers), func(o fleet.ServerKey) bool { return o == k })
	gone = append(gone, k)
	for ; len(gone) > MaxDeparted; gone = gone[1:] {
		intent, err := fetch[fleet.Intent](ctx, tx.records, intentKey(gone[0]))
		if err != nil && fleet.CodeOf(err) != fleet.CodeInternal { // one that cannot be read is there
			return err
		}
		if err == nil && !intent.Exists() {
			tx.compare(kv.Absent(intentKey(gone[0])))
			tx.then = append(tx.then, kv.DeletePrefix(eventFolder(gone[0])))
		}
	}
	put(tx, departedKey, record, departed{Servers: gone})
	return nil
}
