package cloudflare

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Record is one DNS record, as the API tells it.
type Record struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Content    string    `json:"content"`
	Proxiable  bool      `json:"proxiable"`
	Proxied    bool      `json:"proxied"`
	TTL        int       `json:"ttl"` // seconds; 1: automatic, which is 300
	Priority   *float64  `json:"priority,omitempty"`
	Comment    Comment   `json:"comment"`
	Tags       []string  `json:"tags"`
	Settings   struct{}  `json:"settings"`
	Meta       struct{}  `json:"meta"`
	CreatedOn  time.Time `json:"created_on"`
	ModifiedOn time.Time `json:"modified_on"`
}

// Comment is null where there is none.
type Comment string

// MarshalJSON implements json.Marshaler.
func (c Comment) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// input is what a caller says of a record: nil where nothing is said. Numbers are any JSON number (cloudflare-go
// sends the TTL as a float).
type input struct {
	ID       string    `json:"id"`
	Name     *string   `json:"name"`
	Type     *string   `json:"type"`
	Content  *string   `json:"content"`
	TTL      *float64  `json:"ttl"`
	Proxied  *bool     `json:"proxied"`
	Priority *float64  `json:"priority"`
	Comment  *string   `json:"comment"`
	Tags     *[]string `json:"tags"`
}

// over returns r with what in says of it.
func (in input) over(r Record) Record {
	set(&r.Name, in.Name)
	set(&r.Type, in.Type)
	set(&r.Content, in.Content)
	set(&r.Proxied, in.Proxied)
	set(&r.Tags, in.Tags)
	if in.TTL != nil {
		r.TTL = int(*in.TTL)
	}
	if in.Priority != nil {
		r.Priority = in.Priority
	}
	if in.Comment != nil {
		r.Comment = Comment(*in.Comment)
	}
	return r
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// normalize brings a record into the form that Cloudflare keeps: names are complete, in lower case and without a dot
// at the end, "@" is the zone itself; addresses are in their shortest form; TTL 0 and that of a proxied record is 1.
func (z *zone) normalize(r Record) Record {
	r.Type = strings.ToUpper(r.Type)
	r.Name = strings.ToLower(strings.TrimSuffix(r.Name, "."))
	if r.Name == "@" {
		r.Name = z.Name
	}
	if r.Name != "" && !z.holds(r.Name) {
		r.Name += "." + z.Name
	}
	switch r.Type {
	case "A", "AAAA":
		if addr, err := netip.ParseAddr(r.Content); err == nil {
			r.Content = addr.String()
		}
	case "CNAME", "NS":
		r.Content = strings.ToLower(strings.TrimSuffix(r.Content, "."))
	}
	r.Proxiable = r.Type == "A" || r.Type == "AAAA" || r.Type == "CNAME"
	if r.TTL == 0 || r.Proxied {
		r.TTL = 1
	}
	if r.Tags == nil {
		r.Tags = []string{}
	}
	return r
}

// check refuses what no record may be. Codes and texts: answers of the API in issues of its clients (9005:
// cloudflare-api-v4-ddns 16; 9021: API documentation of ttl, Cloudflare-CNAME-Setup 16).
func (z *zone) check(r Record) *failure {
	addr, notAddr := netip.ParseAddr(r.Content)
	switch {
	case !hostname(r.Name):
		return invalid(9000, "DNS name is invalid.")
	case !slices.Contains([]string{"A", "AAAA", "CNAME", "TXT", "NS", "MX"}, r.Type):
		return invalid(1004, "DNS Validation Error: the emulator has no records of type %q", r.Type)
	case r.Type == "A" && (notAddr != nil || !addr.Is4()):
		return invalid(9005, "Content for A record must be a valid IPv4 address.")
	case r.Type == "AAAA" && (notAddr != nil || !addr.Is6()):
		return invalid(9006, "Content for AAAA record must be a valid IPv6 address.")
	case (r.Type == "CNAME" || r.Type == "NS") && !hostname(r.Content):
		return invalid(9007, "Content for %s record is invalid.", r.Type)
	case r.Type == "CNAME" && r.Content == r.Name:
		return invalid(9039, "CNAME content cannot reference itself.")
	case r.Type == "TXT" && (r.Content == "" || len(r.Content) > 2048):
		return invalid(1004, "DNS Validation Error: the content of a TXT record has 1 to 2048 characters")
	case r.TTL != 1 && (r.TTL < z.leastTTL() || r.TTL > 86400):
		return invalid(9021, "Invalid TTL. Must be between %d and 86400 seconds, or 1 for Automatic.", z.leastTTL())
	case len(r.Comment) > z.longestComment():
		return invalid(1004, "DNS Validation Error: a comment has at most %d characters", z.longestComment())
	case r.Proxied && !r.Proxiable:
		return invalid(9004, "This record type cannot be proxied.")
	case r.Proxied && notAddr == nil && (addr.IsPrivate() || addr.IsLoopback()):
		return invalid(9003, "Target %s is not allowed for a proxied record.", r.Content)
	}
	return nil
}

func (z *zone) leastTTL() int {
	if z.Plan == PlanEnterprise {
		return 30
	}
	return 60
}

// longestComment: documentation of record attributes; external-dns trims its own by it.
func (z *zone) longestComment() int {
	if z.Plan == PlanFree {
		return 100
	}
	return 500
}

// hostname tells whether name can be one: labels of 1 to 63 characters, 253 in all, the first may be *. TXT names
// have underscores.
func hostname(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for i, label := range strings.Split(name, ".") {
		if label == "*" && i == 0 {
			continue
		}
		strange := strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
		if label == "" || len(label) > 63 || strange || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// conflict refuses what may not stand beside the other records of the name. The texts name A, AAAA and CNAME only;
// that a CNAME has no sibling of any type is RFC 1034's, and external-dns' issue 4358 met it. Identical is what has
// the same content: 81058 if all the rest is the same too, else 81057, which clients treat alike (certbot 10725).
func (z *zone) conflict(r *Record) *failure {
	for _, other := range z.byName[r.Name] {
		switch {
		case other.ID == r.ID:
		case other.Type == r.Type && same(other, r) && other.TTL == r.TTL && other.Proxied == r.Proxied:
			return invalid(81058, "An identical record already exists.")
		case other.Type == r.Type && same(other, r):
			return invalid(81057, "Record already exists.")
		case r.Type == "CNAME":
			return invalid(81053, "An A, AAAA, or CNAME record with that host already exists.")
		case other.Type == "CNAME":
			return invalid(81054, "A CNAME record with that host already exists.")
		case (other.Type == "NS") != (r.Type == "NS"):
			return invalid(81056, "NS records with that host already exist.")
		}
	}
	return nil
}

// same compares contents; a TXT is the same with quotes and without.
func same(a, b *Record) bool {
	if a.Type == "TXT" {
		return slices.Equal(characterStrings(a.Content), characterStrings(b.Content))
	}
	return a.Content == b.Content
}

func unknownRecord() *failure {
	return &failure{status: http.StatusNotFound, Code: 81044, Message: "Record does not exist."}
}
