package cloudflare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	// maxEntries is how many entries a listing may have: what they are kept in has an end.
	maxEntries = 200_000
	// witnesses is how many entries of a listing are remembered for the next one.
	witnesses = 8
	// listTries is how often a listing is begun again that changed while it was read.
	listTries = 3
)

// kind is something that is listed and asked for by its id.
type kind[T any] struct {
	name    string // records
	need    string
	perPage int // 0: as many as Cloudflare gives
	list    func(identity, context.Context, ...option.RequestOption) error
	get     func(id string) func(identity, context.Context, ...option.RequestOption) error
	is      func(T) (id string, changed time.Time)
}

// memory is what is remembered of a listing.
type memory struct {
	begun time.Time
	ids   []string
}

// errMoved says that a listing changed while it was read.
var errMoved = errors.New("it changed while it was read")

// list reads all there is of a kind.
func list[T any](ctx context.Context, z *Zone, k kind[T]) ([]T, error) {
	for try := 1; ; try++ {
		begun := time.Now()
		all, err := pages(ctx, z, k)
		if err == nil {
			err = confirm(ctx, z, k, all, begun)
		}
		if errors.Is(err, errMoved) && try < listTries && settled(ctx, z.client.settle) {
			continue
		}
		if _, told := errors.AsType[*dns.Error](err); err != nil && !told {
			err = &dns.Error{
				Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Answered: true,
				Message: fmt.Sprintf("zone %s: list its %s: %v; what was read before stays", z.Domain, k.name, err),
			}
		}
		return all, err
	}
}

// settled waits until what was changed in the second of a listing lies before the next one: a Date has
// no fractions.
func settled(ctx context.Context, d time.Duration) bool {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pages reads page after page, and believes them only if they are one listing: each says the same
// total, that many came, none came twice, and none was changed after the first page was read.
// Nothing else tells of an entry that was skipped because one before it was deleted.
func pages[T any](ctx context.Context, z *Zone, k kind[T]) ([]T, error) {
	var all []T
	var first answer[[]T]
	for page, perPage := 1, k.perPage; ; page++ {
		a, err := sent[[]T](ctx, z, call{what: "list its " + k.name, need: k.need}, func(is identity, ctx context.Context, with ...option.RequestOption) error {
			if perPage > 0 {
				with = append(with, option.WithQuery("per_page", strconv.Itoa(perPage)), option.WithQuery("page", strconv.Itoa(page)))
			}
			return k.list(is, ctx, with...)
		})
		if err != nil {
			return nil, err
		}
		if page == 1 {
			first = a
			if a.Info == nil || a.Info.TotalCount == nil {
				if k.perPage > 0 {
					return nil, errors.New("the answer does not say how many there are")
				}
				return a.Result, nil // a kind that has no pages
			}
			perPage = max(k.perPage, a.Info.PerPage, len(a.Result), 1)
		}
		all = append(all, a.Result...)
		total := *first.Info.TotalCount
		switch {
		case a.Info == nil || a.Info.TotalCount == nil || *a.Info.TotalCount != total:
			return nil, errMoved
		case total > maxEntries:
			return nil, fmt.Errorf("there are %d, kurad reads at most %d", total, maxEntries)
		case len(all) < total && len(a.Result) > 0:
			continue
		case len(all) != total:
			return nil, fmt.Errorf("it is cut: %d of %d came", len(all), total)
		}
		ids := make(map[string]bool, len(all))
		for _, one := range all {
			id, changed := k.is(one)
			ids[id] = true
			if page > 1 && !first.at.IsZero() && !changed.Before(first.at) {
				return nil, errMoved
			}
		}
		if len(ids) != len(all) || ids[""] {
			return nil, errMoved
		}
		return all, nil
	}
}

// confirm asks for entries by their ids that were there in the last listing and are not in this one.
// An API that lists nothing, or half, and says that this is all, still knows them: that is refused
// however long it lasts, and what was deleted is believed at once (D5). All who read the zone share
// the memory, which ends with the process: the first listing of each kind is believed as it comes. A
// listing that began before the last one is not measured by it: there may be entries that are newer.
func confirm[T any](ctx context.Context, z *Zone, k kind[T], all []T, begun time.Time) error {
	ids := make([]string, len(all))
	there := make(map[string]bool, len(all))
	for i, one := range all {
		ids[i], _ = k.is(one)
		there[ids[i]] = true
	}
	z.mu.Lock()
	last := z.seen[k.name]
	z.mu.Unlock()
	if last.begun.After(begun) {
		return nil
	}
	for _, id := range last.ids {
		if there[id] {
			continue
		}
		_, err := sent[struct{}](ctx, z, call{what: "ask for one of its " + k.name + " that is no longer listed", need: k.need}, k.get(id))
		if e, ok := errors.AsType[*dns.Error](err); ok && e.NotFound {
			continue
		}
		if err == nil {
			err = fmt.Errorf("it is not believed: it lists %d of them, without %s, which is there", len(all), id)
		}
		return err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.seen[k.name].begun.After(begun) {
		z.seen[k.name] = memory{begun, sample(ids)}
	}
	return nil
}

// sample takes some of the ids from all over the listing.
func sample(ids []string) []string {
	if len(ids) <= witnesses {
		return slices.Clone(ids)
	}
	var some []string
	for i := range witnesses {
		some = append(some, ids[i*(len(ids)-1)/(witnesses-1)])
	}
	return some
}
