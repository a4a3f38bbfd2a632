package cloudflare

import (
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
