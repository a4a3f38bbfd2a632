package dns

import (
	"slices"
	"strings"
)

// Types of records that lead clients somewhere.
const (
	TypeA     = "A"
	TypeAAAA  = "AAAA"
	TypeCNAME = "CNAME"
)

// ownedTypes are those whose ownership a record's name can carry, as external-dns tries them
// (registry/mapper of 0.23).
var ownedTypes = []string{TypeA, TypeAAAA, TypeCNAME, "NS", "MX", "PTR", "SRV", "NAPTR", "TXT", "DNAME", "TLSA"}

// Name is where the ownership record of the host's record of that type is written: since 0.18
// that of the type only.
func (n Naming) Name(host, ofType string) string {
	ofType = strings.ToLower(ofType)
	label, rest, dotted := strings.Cut(n.key(canonical(host)), ".")
	if !n.typed() {
		label = ofType + "-" + label
	}
	return n.affixed(label, rest, dotted, ofType)
}

// old is where versions before 0.18 wrote it, for all types but AAAA.
func (n Naming) old(host string) string {
	label, rest, dotted := strings.Cut(n.key(canonical(host)), ".")
	return n.affixed(label, rest, dotted, "")
}

func (n Naming) affixed(label, rest string, dotted bool, ofType string) string {
	name := fill(n.Prefix, ofType) + label + fill(n.Suffix, ofType)
	if dotted {
		name += "." + rest
	}
	return name
}

// Names are all names at which the ownership of the host may be written: of the zone's naming,
// and of an external-dns without one. It is for zones that are read by queries.
func (n Naming) Names(host string) []string {
	var names []string
	for _, each := range []Naming{n, {Wildcard: n.Wildcard}} {
		for _, t := range []string{TypeA, TypeAAAA, TypeCNAME} {
			names = append(names, each.Name(host, t))
		}
		names = append(names, each.old(host))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Host is the host of whose ownership a TXT record of that name tells, and of which type; ""
// in the old form, which tells of all types but AAAA. Each name is read in one way, as
// external-dns does: a-b.example.dev is of the A record of b.example.dev. A name without the
// prefix or suffix is read as of an external-dns that has none.
func (n Naming) Host(name string) (host, ofType string) {
	name = canonical(name)
	for _, t := range ownedTypes {
		if !n.typed() {
			break
		}
		if host, ok := n.strip(name, strings.ToLower(t)); ok {
			return host, t
		}
	}
	if host, ok := n.strip(name, ""); ok {
		name = host
	}
	first, rest, _ := strings.Cut(name, "-")
	if i := slices.Index(ownedTypes, strings.ToUpper(first)); i >= 0 && rest != "" && !strings.HasPrefix(rest, ".") {
		return rest, ownedTypes[i]
	}
	return name, ""
}

// strip takes prefix or suffix from a name; false: it has neither.
func (n Naming) strip(name, ofType string) (string, bool) {
	if n.Prefix != "" {
		host, ok := strings.CutPrefix(name, fill(n.Prefix, ofType))
		return host, ok && host != "" && host[0] != '.'
	}
	// A suffix stands behind the first label, and may bring labels of its own.
	suffix := fill(n.Suffix, ofType)
	if suffix == "" {
		return "", false
	}
	end := len(name)
	for i, dots := 0, strings.Count(suffix, "."); i < len(name); i++ {
		if name[i] == '.' {
			if dots == 0 {
				end = i
				break
			}
			dots--
		}
	}
	label, ok := strings.CutSuffix(name[:end], suffix)
	return label + name[end:], ok && label != "" && !strings.Contains(label, ".")
}

func (n Naming) typed() bool {
	return strings.Contains(n.Prefix, recordType) || strings.Contains(n.Suffix, recordType)
}

// key is the host as the names of its ownership records have it.
func (n Naming) key(host string) string {
	if rest, ok := strings.CutPrefix(host, "*."); ok && n.Wildcard != "" {
		return n.Wildcard + "." + rest
	}
	return host
}

func fill(affix, ofType string) string {
	return strings.ReplaceAll(strings.ToLower(affix), recordType, ofType)
}

// canonical is a name as names are compared: without case (RFC 4343) and the dot at the end.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
