package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// rude is a zone whose API does what Cloudflare's does, and what else can go wrong.
type rude struct {
	t         *testing.T
	now       time.Time
	records   map[string]fleet.DNSRecord
	balancers map[string]Balancer
	pools     map[string]Pool
	others    map[string]bool // ids of what is not ours
	ids       int

	bad     string                        // what holds it is refused
	most    int                           // records that there is place for; 0: no limit
	quota   bool                          // of load balancers
	between func(write int)               // another writer, before each write
	fail    func(write int) (error, bool) // nil: none; and whether the effect lands all the same
	down    error                         // what everything is answered with
	lists   int
	batches int
	writes  int
	putOf   map[string]int // writes of the balancer of a host
	largest int            // batch
}

func newRude(t *testing.T) *rude {
	return &rude{
		t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), records: map[string]fleet.DNSRecord{}, balancers: map[string]Balancer{}, pools: map[string]Pool{},
		others: map[string]bool{}, putOf: map[string]int{},
	}
}

func (z *rude) id() string { z.ids++; return fmt.Sprintf("id%05d", z.ids) }

// seed puts a record there as another would.
func (z *rude) seed(ofType, name, content string) string {
	r := fleet.DNSRecord{ID: z.id(), Type: ofType, Name: name, Content: content, TTL: 300}
	z.records[r.ID], z.others[r.ID] = r, true
	return r.ID
}

// seedTXT puts an ownership record there as another would.
func (z *rude) seedTXT(name, owner string) string {
	return z.seed("TXT", name, "heritage=external-dns,external-dns/owner="+owner+",external-dns/resource=ingress/prod/web")
}

// gone deletes what there is of a host.
func (z *rude) gone(host string) {
	maps.DeleteFunc(z.records, func(_ string, r fleet.DNSRecord) bool { return strings.HasSuffix(r.Name, host) })
}

// find returns the record of that type and name.
func (z *rude) find(ofType, name string) (found []fleet.DNSRecord) {
	for _, id := range slices.Sorted(maps.Keys(z.records)) {
		if r := z.records[id]; r.Type == ofType && r.Name == name {
			found = append(found, r)
		}
	}
	return found
}

// table is all there is, for people.
func (z *rude) table() string {
	var lines []string
	for _, r := range z.records {
		lines = append(lines, fmt.Sprintf("%s %s %s", r.Type, r.Name, r.Content))
	}
	for _, b := range z.balancers {
		var pools []string
		for _, id := range b.Pools {
			pools = append(pools, z.pools[id].Name)
		}
		lines = append(lines, fmt.Sprintf("LB %s %q fallback %s", b.Name, pools, z.pools[b.Fallback].Name))
	}
	for _, p := range z.pools {
		lines = append(lines, "POOL "+p.Name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (z *rude) List(_ context.Context, parts Parts) (Listing, error) {
	z.lists++
	if z.down != nil {
		return Listing{}, z.down
	}
	l := Listing{Begun: z.now}
	if parts.Records {
		for _, id := range slices.Sorted(maps.Keys(z.records)) {
			l.Records = append(l.Records, z.records[id])
		}
	}
	if parts.Balancers {
		l.Balancers, l.Pools = slices.Collect(maps.Values(z.balancers)), slices.Collect(maps.Values(z.pools))
	}
	return l, nil
}

var errLost = &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Message: "no answer"}

// write is one call that changes something.
func (z *rude) write(ctx context.Context, do func() error) error {
	z.writes++
	if z.between != nil {
		z.between(z.writes)
	}
	if z.down != nil {
		return z.down
	}
	if ctx.Err() != nil {
		return errLost
	}
	if z.fail != nil {
		if err, lands := z.fail(z.writes); err != nil {
			if lands {
				_ = do()
			}
			return err
		}
	}
	return do()
}

func refusal(conflict, notFound bool, format string, args ...any) *Error {
	e := &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Conflict: conflict, NotFound: notFound, Answered: true, Message: fmt.Sprintf(format, args...)}
	if !conflict && !notFound {
		e.Class, e.Reason = fleet.ClassRefused, fleet.ReasonInvalid
	}
	return e
}

func (z *rude) touches(id string) {
	if z.others[id] {
		z.t.Errorf("touched %+v, which is another's", z.records[id])
	}
}

func (z *rude) Apply(ctx context.Context, b Batch) error {
	z.batches++
	z.largest = max(z.largest, b.Len())
	return z.write(ctx, func() error {
		is := maps.Clone(z.records)
		for _, r := range b.Deletes {
			if _, ok := is[r.ID]; !ok {
				return refusal(false, true, "delete %s: 81044 Record does not exist", r.Name)
			}
			z.touches(r.ID)
			delete(is, r.ID)
		}
		for _, r := range b.Puts {
			if _, ok := is[r.ID]; !ok {
				return refusal(false, true, "put %s: 81044 Record does not exist", r.Name)
			}
			z.touches(r.ID)
			is[r.ID] = r
		}
		for _, r := range b.Posts {
			if r.ID != "" || r.Proxied || r.TTL != fleet.RecordTTL {
				z.t.Errorf("posted %+v", r)
			}
			for _, other := range is {
				if r.Name != other.Name {
					continue
				}
				if r.Type == other.Type && (r.Content == other.Content || r.Type == "CNAME") || (r.Type == "CNAME") != (other.Type == "CNAME") {
					return refusal(true, false, "post %s: 81053 another record of that host exists", r.Name)
				}
			}
			r.ID = z.id()
			is[r.ID] = r
		}
		for _, r := range is {
			if z.bad != "" && strings.Contains(r.Name+r.Content, z.bad) {
				return refusal(false, false, "9005 Content for A record is invalid")
			}
		}
		if z.most > 0 && len(is) > z.most {
			return &Error{Class: fleet.ClassRefused, Reason: fleet.ReasonQuotaExceeded, Answered: true, Message: "81045 Record quota exceeded."}
		}
		z.records = is
		return nil
	})
}

func (z *rude) PutBalancer(ctx context.Context, b Balancer) (Balancer, error) {
	z.putOf[b.Name]++
	err := z.write(ctx, func() error {
		if b.TTL != 30 || b.Proxied || b.Steering != "proximity" || !b.Enabled || len(b.Pools) == 0 || b.Fallback != b.Pools[0] {
			z.t.Errorf("balancer %+v", b)
		}
		if z.quota {
			return &Error{Class: fleet.ClassRefused, Reason: fleet.ReasonQuotaExceeded, Answered: true, Message: "1002 the quota of load balancers is exceeded"}
		}
		for _, id := range b.Pools {
			if _, ok := z.pools[id]; !ok {
				return refusal(false, false, "1002 pool %s does not exist", id)
			}
		}
		if b.ID == "" {
			for _, other := range z.balancers {
				if other.Name == b.Name {
					return refusal(true, false, "1003 the name is not unique")
				}
			}
			b.ID = z.id()
		} else if _, ok := z.balancers[b.ID]; !ok {
			return refusal(false, true, "balancer %s not found", b.ID)
		}
		z.touches(b.ID)
		z.balancers[b.ID] = b
		return nil
	})
	return b, err
}

func (z *rude) DeleteBalancer(ctx context.Context, id string) error {
	z.putOf[z.balancers[id].Name]++
	return z.write(ctx, func() error {
		if _, ok := z.balancers[id]; !ok {
			return refusal(false, true, "balancer %s not found", id)
		}
		z.touches(id)
		delete(z.balancers, id)
		return nil
	})
}

func (z *rude) PutPool(ctx context.Context, p Pool) (Pool, error) {
	err := z.write(ctx, func() error {
		for _, other := range z.pools {
			if other.Name == p.Name && other.ID != p.ID {
				return refusal(true, false, "1003 the name is not unique")
			}
		}
		if p.ID == "" {
			p.ID = z.id()
		} else if _, ok := z.pools[p.ID]; !ok {
			return refusal(false, true, "pool %s not found", p.ID)
		}
		z.touches(p.ID)
		z.pools[p.ID] = p
		return nil
	})
	return p, err
}

func (z *rude) DeletePool(ctx context.Context, id string) error {
	return z.write(ctx, func() error {
		if _, ok := z.pools[id]; !ok {
			return refusal(false, true, "pool %s not found", id)
		}
		for _, b := range z.balancers {
			if slices.Contains(b.Pools, id) || b.Fallback == id {
				return refusal(true, false, "1005 pool is referenced by %s", b.Name)
			}
		}
		z.touches(id)
		delete(z.pools, id)
		return nil
	})
}

func (*rude) Permissions(context.Context) ([]string, error) { return nil, errors.New("not asked here") }
