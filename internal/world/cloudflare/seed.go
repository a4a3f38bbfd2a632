package cloudflare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Seed puts records there as somebody called by would have, without the API's checks but that of the zone: what is
// in a zone need not be what may be written today. TTL 0 is automatic.
func (e *Emulator) Seed(by string, records ...Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range records {
		z := e.zoneOf(strings.ToLower(strings.TrimSuffix(r.Name, ".")))
		if z == nil {
			return fmt.Errorf("seed %s %s: it is in none of the zones", r.Type, r.Name)
		}
		r = z.normalize(r)
		r.ID, r.CreatedOn, r.ModifiedOn = e.newID("record"), e.now().UTC(), e.now().UTC()
		t := &tx{e: e, zone: z, by: by}
		t.put(nil, &r)
		t.commit()
	}
	return nil
}

// TXTForm is how external-dns says whose a record is.
type TXTForm string

// The forms of its versions (documentation of registry/txt of 0.13, 0.17 and 0.23).
const (
	TXTNew  TXTForm = "new"  // since 0.18: a TXT whose name begins with the type, such as a-
	TXTBoth TXTForm = "both" // 0.12 to 0.17: that and one of the record's own name
	TXTOld  TXTForm = "old"  // before 0.12: of the record's own name only
)

// SeedExternalDNS puts records there as an external-dns of that owner would have, each with its TXT. Resource is what
// they are made from, such as ingress/kura/acme.
func (e *Emulator) SeedExternalDNS(owner, resource string, form TXTForm, records ...Record) error {
	value := fmt.Sprintf(`"heritage=external-dns,external-dns/owner=%s,external-dns/resource=%s"`, owner, resource)
	var all []Record
	for _, r := range records {
		all = append(all, r)
		if form != TXTOld {
			all = append(all, Record{Name: strings.ToLower(r.Type) + "-" + r.Name, Type: "TXT", Content: value, TTL: r.TTL})
		}
		if form != TXTNew {
			all = append(all, Record{Name: r.Name, Type: "TXT", Content: value, TTL: r.TTL})
		}
	}
	return e.Seed("external-dns/"+owner, all...)
}

// Edit changes, by hand, the content of all records of that name and type. It returns how many there were.
func (e *Emulator) Edit(name, kind, content string) int {
	return e.byHand(name, kind, func(t *tx, r *Record) {
		edited := *r
		edited.Content, edited.ModifiedOn = content, e.now().UTC()
		t.put(r, &edited)
	})
}

// Delete deletes, by hand, all records of that name and type; of every type if kind is "". It returns how many.
func (e *Emulator) Delete(name, kind string) int {
	return e.byHand(name, kind, func(t *tx, r *Record) { t.put(r, nil) })
}

func (e *Emulator) byHand(name, kind string, do func(*tx, *Record)) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	name = strings.ToLower(name)
	z := e.zoneOf(name)
	if z == nil {
		return 0
	}
	t := &tx{e: e, zone: z, by: ByHand}
	for _, r := range slices.Clone(z.byName[name]) {
		if kind == "" || r.Type == kind {
			do(t, r)
		}
	}
	t.commit()
	return len(t.done)
}

// Records returns the records of a name, and of a type if kind is not "".
func (e *Emulator) Records(name, kind string) []Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []Record
	for _, z := range e.zones {
		for _, r := range z.byName[strings.ToLower(name)] {
			if kind == "" || r.Type == kind {
				found = append(found, *r)
			}
		}
	}
	return found
}

// DeleteBalancer deletes, by hand, the load balancer of that name, and tells whether there was one.
func (e *Emulator) DeleteBalancer(name string) bool {
	return e.balancerByHand(name, func(z *zone, b *Balancer) { e.dropBalancer(z, ByHand, b) })
}

// EditBalancer changes, by hand, the load balancer of that name, and tells whether there was one.
func (e *Emulator) EditBalancer(name string, change func(*Balancer)) bool {
	return e.balancerByHand(name, func(z *zone, b *Balancer) {
		edited := *b
		edited.DefaultPools = slices.Clone(b.DefaultPools)
		change(&edited)
		e.setBalancer(z, ByHand, &edited)
	})
}

func (e *Emulator) balancerByHand(name string, do func(*zone, *Balancer)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, z := range e.zones {
		for _, b := range z.balancers {
			if b.Name == strings.ToLower(name) {
				do(z, b)
				return true
			}
		}
	}
	return false
}

// EditPool changes, by hand, the pool of that name, and tells whether there was one.
func (e *Emulator) EditPool(name string, change func(*Pool)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for account, pools := range e.pools {
		for _, p := range pools {
			if p.Name == name {
				edited := *p
				edited.Origins = slices.Clone(p.Origins)
				change(&edited)
				e.setPool(account, ByHand, &edited)
				return true
			}
		}
	}
	return false
}

// Balancers returns the load balancers of all zones, by name.
func (e *Emulator) Balancers() map[string]Balancer {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]Balancer{}
	for _, z := range e.zones {
		for _, b := range z.balancers {
			all[b.Name] = *b
		}
	}
	return all
}

// Pools returns the pools of all accounts, by name.
func (e *Emulator) Pools() map[string]Pool {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]Pool{}
	for _, pools := range e.pools {
		for _, p := range pools {
			all[p.Name] = *p
		}
	}
	return all
}

// SeedPool puts a pool into an account as somebody called by would have, enabled, without the API's checks, and returns its
// identifier.
func (e *Emulator) SeedPool(by, account string, p Pool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.begin(e, "pool", nil)
	p.Enabled = true
	e.setPool(account, by, &p)
	return p.ID
}

// SeedBalancer puts a load balancer into the zone of its name, the same way.
func (e *Emulator) SeedBalancer(by string, b Balancer) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	z := e.zoneOf(b.Name)
	if z == nil {
		return "", fmt.Errorf("seed load balancer %s: it is in none of the zones", b.Name)
	}
	b.begin(e, "balancer", nil)
	b.ZoneName, b.Enabled = z.Name, true
	e.setBalancer(z, by, &b)
	return b.ID, nil
}

// Configure changes what is paid for a zone and what it may have; its name and account stay.
func (e *Emulator) Configure(zone string, change func(*Zone)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	z := e.zoneByID(ZoneID(zone))
	if z == nil {
		return fmt.Errorf("configure zone %s: there is none of that name", zone)
	}
	changed := z.Zone
	change(&changed)
	if _, known := batchMost[cmp.Or(changed.Plan, PlanFree)]; !known {
		return fmt.Errorf("configure zone %s: there is no plan %q", zone, changed.Plan)
	}
	z.Plan, z.Unsubscribed, z.Quota = cmp.Or(changed.Plan, PlanFree), changed.Unsubscribed, changed.Quota
	return nil
}
