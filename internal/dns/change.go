package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// change is what brings a zone as it is to where a task wants it; nothing, with a success,
// where it is there already. What is not ours is refused (D4).
func change(x *Index, e fleet.Effect) (Batch, fleet.Outcome) {
	if e.Kind == fleet.TaskWithdraw {
		return withdraw(x, e)
	}
	return publish(x, e)
}

func publish(x *Index, e fleet.Effect) (b Batch, _ fleet.Outcome) {
	if no := notOurs(x, e); no.Class != fleet.ClassOK {
		return b, no
	}
	record, txt := written(x.zone.TXT, e)
	for label := range strings.SplitSeq(txt.Name, ".") {
		if len(label) > mostLabel {
			return b, refuse(fleet.ReasonInvalid, fmt.Sprintf("%s cannot have an ownership record: the first label of %s is longer than %d characters; "+
				"choose a shorter handle or cluster id, or give the zone a txt-prefix that ends in a dot", e.Name, txt.Name, mostLabel))
		}
	}
	same, others := apart(x.Records(e.Name), func(r fleet.DNSRecord) bool { return r.Type == record.Type })
	b.Deletes = others
	b.bring(record, same, func(r fleet.DNSRecord) bool {
		return leadsTo(r, record) && r.TTL == record.TTL && !r.Proxied
	})
	var at []fleet.DNSRecord
	for _, c := range x.Claims(e.Name) {
		if c.Reading != ReadingOwner || c.TXT.Owner != e.DNS.Owner {
			continue // one that does not count
		}
		switch {
		case c.Record.Name == txt.Name:
			at = append(at, c.Record)
		case c.Form == FormTyped, c.Record.Name == record.Name && record.Type == TypeCNAME && !c.ofAnotherServer(e.DNS):
			// Of a type that is there no more; and nothing may stand beside a CNAME.
			b.Deletes = append(b.Deletes, c.Record)
		}
	}
	b.bring(txt, at, func(r fleet.DNSRecord) bool {
		is, _ := ParseTXT(r.Content)
		return is.Resource == e.DNS.Resource
	})
	return b, done()
}

// notOurs refuses what a task must not touch.
func notOurs(x *Index, e fleet.Effect) fleet.Outcome {
	const advice = "; kurad does not touch it: choose another host, have its owner remove it, or move it with kurad dns take"
	switch is := x.Host(e.Name, e.DNS.Owner); is.Ownership {
	case fleet.OwnershipForeign, fleet.OwnershipUnreadable, fleet.OwnershipUnknown:
		return refuse(fleet.ReasonForeignOwner, e.Name+" "+is.Detail+advice)
	case fleet.OwnershipOurs:
		claims := x.Claims(e.Name)
		for _, r := range is.Records {
			if !slices.ContainsFunc(claims, func(c Claim) bool { return c.told() && c.covers(r.Type) }) {
				return refuse(fleet.ReasonForeignOwner, fmt.Sprintf("%s has %s, and its ownership record %s%s", e.Name, recordText(r), is.Detail, advice))
			}
		}
	case fleet.OwnershipAbsent, fleet.OwnershipNotChecked:
	}
	return done()
}

// bring makes of the records that are there exactly one that is as wanted.
func (b *Batch) bring(want fleet.DNSRecord, are []fleet.DNSRecord, fits func(fleet.DNSRecord) bool) {
	if len(are) == 0 {
		b.Posts = append(b.Posts, want)
		return
	}
	i := max(0, slices.IndexFunc(are, fits))
	if !fits(are[i]) {
		want.ID = are[i].ID
		b.Puts = append(b.Puts, want)
	}
	b.Deletes = append(b.Deletes, slices.Delete(slices.Clone(are), i, i+1)...)
}

const mostLabel = 63 // bytes (RFC 1035, 2.3.4)

// mostComment is how long a record's comment may be on every plan (Cloudflare's documentation of
// record attributes).
const mostComment = 100

// written are the record of a task and the ownership record beside it.
func written(n Naming, e fleet.Effect) (record, txt fleet.DNSRecord) {
	comment := "managed by kurad"
	if environment, key, ok := ParseResource(e.DNS.Resource); ok {
		comment += " " + environment + " " + key.String()
	}
	comment = comment[:min(len(comment), mostComment)]
	host := canonical(e.Name)
	record = fleet.DNSRecord{Name: host, Type: e.DNS.Type, Content: e.DNS.Content, TTL: fleet.RecordTTL, Comment: comment}
	txt = fleet.DNSRecord{Name: n.Name(host, e.DNS.Type), Type: "TXT", Content: TXT{Owner: e.DNS.Owner, Resource: e.DNS.Resource}.String(), TTL: fleet.RecordTTL, Comment: comment}
	return record, txt
}

// withdraw deletes what is the server's. A host that is another server's by now is left.
func withdraw(x *Index, e fleet.Effect) (b Batch, _ fleet.Outcome) {
	claims := x.Claims(e.Name)
	mine, others := apart(claims, func(c Claim) bool { return c.isOf(e.DNS) })
	if len(mine) == 0 {
		return b, done()
	}
	if no := notOurs(x, e); no.Class != fleet.ClassOK {
		return b, no
	}
	about := func(claims []Claim, r fleet.DNSRecord) bool {
		return slices.ContainsFunc(claims, func(c Claim) bool { return c.told() && c.Reading == ReadingOwner && c.covers(r.Type) })
	}
	for _, r := range x.Records(e.Name) {
		if about(mine, r) && !about(others, r) {
			b.Deletes = append(b.Deletes, r)
		}
	}
	for _, c := range mine {
		b.Deletes = append(b.Deletes, c.Record)
	}
	return b, done()
}

// isOf reports whether the claim is that of a task's owner and server.
func (c Claim) isOf(d fleet.DNSChange) bool {
	return c.told() && c.Reading == ReadingOwner && c.TXT.Owner == d.Owner && c.TXT.Resource == d.Resource
}

// ofAnotherServer reports whether kurad wrote the claim for another server: it may be of
// another host, whose ownership record has the name of this one.
func (c Claim) ofAnotherServer(d fleet.DNSChange) bool {
	_, _, ok := ParseResource(c.TXT.Resource)
	return ok && c.TXT.Resource != d.Resource
}

// leadsTo reports whether a record leads where another does, however that is written.
func leadsTo(r, other fleet.DNSRecord) bool {
	if r.Type != other.Type {
		return false
	}
	if r.Type == TypeCNAME {
		return canonical(r.Content) == canonical(other.Content)
	}
	a, errA := netip.ParseAddr(r.Content)
	b, errB := netip.ParseAddr(other.Content)
	return errA == nil && errB == nil && a == b
}

// apart divides a list in two.
func apart[T any](all []T, first func(T) bool) (yes, no []T) {
	for _, t := range all {
		if first(t) {
			yes = append(yes, t)
		} else {
			no = append(no, t)
		}
	}
	return yes, no
}
