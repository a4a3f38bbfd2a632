package cloudflare

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// tx changes records of one zone: all of it or nothing.
type tx struct {
	e    *Emulator
	zone *zone
	by   string
	done []replaced
}

type replaced struct{ before, after *Record }

func (t *tx) put(before, after *Record) {
	t.zone.put(before, after)
	t.done = append(t.done, replaced{before, after})
}

func (t *tx) rollback() {
	for _, change := range slices.Backward(t.done) {
		t.zone.put(change.after, change.before)
	}
	t.done = nil
}

func (t *tx) commit() {
	for _, change := range t.done {
		t.e.remember(t.by, t.zone, change)
		t.e.publish(t.zone, cmp.Or(change.after, change.before).Name)
		if change.before != nil && change.after != nil && change.before.Name != change.after.Name {
			t.e.publish(t.zone, change.before.Name)
		}
	}
	t.e.settle(t.zone)
}

func (t *tx) create(in input) (*Record, *failure) {
	return t.write(nil, in.over(Record{}))
}

func (t *tx) update(id string, in input, whole bool) (*Record, *failure) {
	before := t.zone.records[id]
	if before == nil {
		return nil, unknownRecord()
	}
	if whole {
		return t.write(before, in.over(Record{}))
	}
	return t.write(before, in.over(*before))
}

func (t *tx) write(before *Record, r Record) (*Record, *failure) {
	now := t.e.now().UTC()
	after := t.zone.normalize(r)
	after.ModifiedOn = now
	if before != nil {
		after.ID, after.CreatedOn = before.ID, before.CreatedOn
	} else {
		after.ID, after.CreatedOn = t.e.newID("record"), now
		if quota := t.zone.Quota.Records; quota > 0 && len(t.zone.records) >= quota {
			return nil, invalid(81045, "Record quota exceeded.")
		}
	}
	if fail := t.zone.check(after); fail != nil {
		return nil, fail
	}
	if fail := t.zone.conflict(&after); fail != nil {
		return nil, fail
	}
	t.put(before, &after)
	return &after, nil
}

func (t *tx) remove(id string) (*Record, *failure) {
	before := t.zone.records[id]
	if before == nil {
		return nil, unknownRecord()
	}
	t.put(before, nil)
	return before, nil
}

// transact makes one change of a call.
func (e *Emulator) transact(c *call, change func(*tx) (any, *failure)) (reply, *failure) {
	t := &tx{e: e, zone: c.zone, by: c.token.Name}
	result, fail := change(t)
	if fail == nil && c.has(QuotaExceeded) {
		fail = invalid(81045, "Record quota exceeded.")
	}
	if fail != nil {
		t.rollback()
		return reply{}, fail
	}
	t.commit()
	return reply{result: result}, nil
}

func (e *Emulator) getRecord(c *call) (reply, *failure) {
	r := c.zone.records[c.PathValue("id")]
	if r == nil {
		return reply{}, unknownRecord()
	}
	return reply{result: r}, nil
}

func (e *Emulator) createRecord(c *call) (reply, *failure) {
	var in input
	if fail := c.decode(&in); fail != nil {
		return reply{}, fail
	}
	return e.transact(c, func(t *tx) (any, *failure) { return t.create(in) })
}

func (e *Emulator) patchRecord(c *call) (reply, *failure) { return e.changeRecord(c, false) }
func (e *Emulator) putRecord(c *call) (reply, *failure)   { return e.changeRecord(c, true) }

func (e *Emulator) changeRecord(c *call, whole bool) (reply, *failure) {
	var in input
	if fail := c.decode(&in); fail != nil {
		return reply{}, fail
	}
	return e.transact(c, func(t *tx) (any, *failure) { return t.update(c.PathValue("id"), in, whole) })
}

func (e *Emulator) deleteRecord(c *call) (reply, *failure) {
	return e.transact(c, func(t *tx) (any, *failure) {
		gone, fail := t.remove(c.PathValue("id"))
		if fail != nil {
			return nil, fail
		}
		return map[string]string{"id": gone.ID}, nil
	})
}

// batchMost is how many operations a batch may have on each plan (documentation of batch record changes).
var batchMost = map[Plan]int{PlanFree: 200, PlanPro: 3500, PlanEnterprise: 3500}

// batch answers POST …/dns_records/batch: deletes, patches, puts, posts, each list in its order, in one transaction.
// "If any of the individual action fails, no changes are applied and the API returns the first error it encountered"
// (documentation of batch record changes): which action that was it does not say, and external-dns goes on one by
// one to find out (its pull request 6208).
func (e *Emulator) batch(c *call) (reply, *failure) {
	var in struct{ Deletes, Patches, Puts, Posts []input }
	if fail := c.decode(&in); fail != nil {
		return reply{}, fail
	}
	operations := len(in.Deletes) + len(in.Patches) + len(in.Puts) + len(in.Posts)
	e.counters.Batched += operations
	if most := batchMost[c.zone.Plan]; operations > most { // the code is not documented
		return reply{}, invalid(1004, "DNS Validation Error: a batch of this zone has at most %d operations", most)
	}
	return e.transact(c, func(t *tx) (any, *failure) {
		result := map[string][]*Record{}
		for _, list := range []struct {
			name   string
			inputs []input
			do     func(input) (*Record, *failure)
		}{
			{"deletes", in.Deletes, func(one input) (*Record, *failure) { return t.remove(one.ID) }},
			{"patches", in.Patches, func(one input) (*Record, *failure) { return t.update(one.ID, one, false) }},
			{"puts", in.Puts, func(one input) (*Record, *failure) { return t.update(one.ID, one, true) }},
			{"posts", in.Posts, t.create},
		} {
			for _, one := range list.inputs {
				r, fail := list.do(one)
				if fail != nil {
					return nil, fail
				}
				result[list.name] = append(result[list.name], r)
			}
		}
		return result, nil
	})
}

// listRecords answers GET …/dns_records. Pages are cut from what is there at the moment of each call: what is
// created or deleted meanwhile moves the others.
func (e *Emulator) listRecords(c *call) (reply, *failure) {
	matches, fail := filter(c.URL.Query())
	if fail != nil {
		return reply{}, fail
	}
	seen := make([]*Record, 0, len(c.zone.records))
	for _, r := range c.zone.listed() {
		if matches(r) {
			seen = append(seen, r)
		}
	}
	if c.URL.Query().Get("direction") == "desc" {
		slices.Reverse(seen)
	}
	if c.has(AnyOrder) {
		e.rand.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
	}
	cut, info, fail := paged(c, seen, 100, 5000)
	return reply{result: cut, info: info}, fail
}

// filter reads the query of a listing: name, content and comment, alone or with .exact, .contains, .startswith and
// .endswith, without regard to case; type; proxied; match=any for one of them instead of all (API documentation).
func filter(query url.Values) (func(*Record) bool, *failure) {
	var tests []func(*Record) bool
	for param, values := range query {
		field, how, _ := strings.Cut(param, ".")
		of := map[string]func(*Record) string{
			"name":    func(r *Record) string { return r.Name },
			"content": func(r *Record) string { return strings.ToLower(r.Content) },
			"comment": func(r *Record) string { return strings.ToLower(string(r.Comment)) },
			"type":    func(r *Record) string { return strings.ToLower(r.Type) },
			"proxied": func(r *Record) string { return strconv.FormatBool(r.Proxied) },
		}[field]
		compare := map[string]func(a, b string) bool{
			"": func(a, b string) bool { return a == b }, "exact": func(a, b string) bool { return a == b },
			"contains": strings.Contains, "startswith": strings.HasPrefix, "endswith": strings.HasSuffix,
		}[how]
		if of == nil {
			continue
		}
		if compare == nil {
			return nil, invalid(1004, "DNS Validation Error: the emulator has no filter %q", param)
		}
		wanted := strings.ToLower(values[0])
		tests = append(tests, func(r *Record) bool { return compare(of(r), wanted) })
	}
	any := query.Get("match") == "any"
	return func(r *Record) bool {
		for _, test := range tests {
			if test(r) == any {
				return any
			}
		}
		return !any || len(tests) == 0
	}, nil
}
