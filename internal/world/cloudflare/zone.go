package cloudflare

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// zone is a zone with what is in it. What it points to is never changed, only replaced: an answer that is being
// written needs no lock.
type zone struct {
	Zone
	id        string
	records   map[string]*Record
	byName    map[string][]*Record
	sorted    []*Record // all records in the order of listings; nil: to be sorted again
	balancers map[string]*Balancer
	view      view
}

func newZone(z Zone) *zone {
	z.Name = strings.ToLower(strings.TrimSuffix(z.Name, "."))
	z.Account, z.Plan = cmp.Or(z.Account, "main"), cmp.Or(z.Plan, PlanFree)
	return &zone{
		Zone: z, id: ZoneID(z.Name), records: map[string]*Record{}, byName: map[string][]*Record{},
		balancers: map[string]*Balancer{}, view: newView(z.Name),
	}
}

func (e *Emulator) zoneByID(id string) *zone {
	for _, z := range e.zones {
		if z.id == id {
			return z
		}
	}
	return nil
}

// zoneOf returns the closest zone that name is in, or nil.
func (e *Emulator) zoneOf(name string) *zone {
	var closest *zone
	for _, z := range e.zones {
		if z.holds(name) && (closest == nil || len(z.Name) > len(closest.Name)) {
			closest = z
		}
	}
	return closest
}

func (z *zone) holds(name string) bool {
	return name == z.Name || strings.HasSuffix(name, "."+z.Name)
}

func (e *Emulator) accountByID(id string) (string, bool) {
	for _, z := range e.zones {
		if AccountID(z.Account) == id {
			return z.Account, true
		}
	}
	return "", false
}

// listZones answers GET /zones with the zones that the token is for; without the permission it is told so in words
// of its own (cloudflare-cli 58).
func (e *Emulator) listZones(c *call) (reply, *failure) {
	if !c.token.may(ZoneRead) {
		return reply{}, &failure{status: http.StatusForbidden, Message: "Actor 'com.cloudflare.api.token." + c.token.id() +
			"' requires permission 'com.cloudflare.api.account.zone.list' to list zones"}
	}
	query := c.URL.Query()
	seen := []any{}
	for _, z := range e.zones {
		named := query.Get("name") == "" || strings.EqualFold(query.Get("name"), z.Name)
		owned := query.Get("account.id") == "" || query.Get("account.id") == AccountID(z.Account)
		if named && owned && c.token.forZone(z) {
			seen = append(seen, z.describe())
		}
	}
	cut, info, fail := paged(c, seen, 20, 50)
	return reply{result: cut, info: info}, fail
}

func (e *Emulator) getZone(c *call) (reply, *failure) { return reply{result: c.zone.describe()}, nil }

func (z *zone) describe() map[string]any {
	return map[string]any{
		"id": z.id, "name": z.Name, "status": "active", "paused": false, "type": "full", "development_mode": 0,
		"name_servers": []string{"ns." + z.Name},
		"account":      map[string]string{"id": AccountID(z.Account), "name": z.Account},
		"plan":         map[string]any{"id": identifier("plan", string(z.Plan)), "legacy_id": z.Plan, "name": string(z.Plan), "is_subscribed": z.Plan != PlanFree},
		"permissions":  []string{"#zone:read", "#dns_records:read", "#dns_records:edit"},
	}
}

// put replaces before by after in the indexes; nil: there was none, there is none.
func (z *zone) put(before, after *Record) {
	if before != nil {
		delete(z.records, before.ID)
		kept := slices.DeleteFunc(slices.Clone(z.byName[before.Name]), func(r *Record) bool { return r.ID == before.ID })
		if z.byName[before.Name] = kept; len(kept) == 0 {
			delete(z.byName, before.Name)
		}
	}
	if after != nil {
		z.records[after.ID] = after
		z.byName[after.Name] = append(slices.Clone(z.byName[after.Name]), after)
	}
	z.sorted = nil
}

// listed returns all records by name, type and content.
func (z *zone) listed() []*Record {
	if z.sorted == nil {
		z.sorted = make([]*Record, 0, len(z.records))
		for _, r := range z.records {
			z.sorted = append(z.sorted, r)
		}
		slices.SortFunc(z.sorted, func(a, b *Record) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type), strings.Compare(a.Content, b.Content), strings.Compare(a.ID, b.ID))
		})
	}
	return z.sorted
}
