package cloudflare

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	records "github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// record is a DNS record as the API writes it.
type record struct {
	ID       string    `json:"id,omitempty"`
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Content  string    `json:"content"`
	TTL      float64   `json:"ttl"` // seconds; 1: automatic
	Proxied  bool      `json:"proxied"`
	Comment  string    `json:"comment,omitempty"`
	Modified time.Time `json:"modified_on,omitzero"`
}

// listed are the types that a listing has (dns.Listing).
var listed = []string{"A", "AAAA", "CNAME", "TXT", "NS"}

// List reads the whole zone. Records of other types are left out.
func (z *Zone) List(ctx context.Context, parts dns.Parts) (dns.Listing, error) {
	l := dns.Listing{Begun: time.Now()}
	if parts.Records {
		all, err := list(ctx, z, z.records())
		if err != nil {
			return dns.Listing{}, err
		}
		if len(all) == 0 {
			// Nothing is believed only of a zone that is there now.
			if _, err := z.find(ctx); err != nil {
				return dns.Listing{}, err
			}
		}
		for _, r := range all {
			if slices.Contains(listed, r.Type) {
				l.Records = append(l.Records, r.read())
			}
		}
	}
	if parts.Balancers {
		if err := z.listBalancers(ctx, &l); err != nil {
			return dns.Listing{}, err
		}
	}
	return l, nil
}

func (z *Zone) records() kind[record] {
	return kind[record]{
		name: "records", need: dnsEdit, perPage: 5000, // the most there is (API documentation)
		list: func(is identity, ctx context.Context, with ...option.RequestOption) error {
			var params records.RecordListParams
			set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
			_, err := z.client.records.List(ctx, params, with...)
			return err
		},
		get: func(id string) func(identity, context.Context, ...option.RequestOption) error {
			return func(is identity, ctx context.Context, with ...option.RequestOption) error {
				var params records.RecordGetParams
				set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
				_, err := z.client.records.Get(ctx, id, params, with...)
				return err
			}
		},
		is: func(r record) (string, time.Time) { return r.ID, r.Modified },
	}
}

// Apply makes the changes of b, all or none of them. Cloudflare does not say which one it refuses.
func (z *Zone) Apply(ctx context.Context, b dns.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	type deletion struct {
		ID string `json:"id"`
	}
	var body struct {
		Deletes []deletion `json:"deletes,omitempty"`
		Puts    []record   `json:"puts,omitempty"`
		Posts   []record   `json:"posts,omitempty"`
	}
	for _, r := range b.Deletes {
		body.Deletes = append(body.Deletes, deletion{r.ID})
	}
	for _, r := range b.Puts {
		body.Puts = append(body.Puts, write(r))
	}
	for _, r := range b.Posts {
		body.Posts = append(body.Posts, write(r))
		body.Posts[len(body.Posts)-1].ID = ""
	}
	for _, r := range slices.Concat(b.Deletes, b.Puts) {
		if r.ID == "" {
			return &dns.Error{
				Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true,
				Message: fmt.Sprintf("zone %s: change %s %s: it has no id", z.Domain, r.Type, r.Name),
			}
		}
	}
	_, err := change[struct{}](ctx, z, call{what: describe(b), need: dnsEdit}, body, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		var params records.RecordBatchParams
		set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
		_, err := z.client.records.Batch(ctx, params, with...)
		return err
	})
	return err
}

// describe names what a batch does: its first change, and how many more there are.
func describe(b dns.Batch) string {
	for _, part := range []struct {
		verb    string
		records []fleet.DNSRecord
	}{{"delete", b.Deletes}, {"change", b.Puts}, {"create", b.Posts}} {
		if len(part.records) == 0 {
			continue
		}
		what := fmt.Sprintf("%s %s %s", part.verb, part.records[0].Type, part.records[0].Name)
		if b.Len() > 1 {
			what += fmt.Sprintf(" and %d more changes", b.Len()-1)
		}
		return what
	}
	return "change nothing"
}

// change makes a call with a body.
func change[T any](ctx context.Context, z *Zone, c call, body any, do func(identity, context.Context, ...option.RequestOption) error) (T, error) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a type of ours that JSON does not know
	}
	c.write = true
	a, err := sent[T](ctx, z, c, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		return do(is, ctx, append(with, option.WithRequestBody("application/json", text))...)
	})
	return a.Result, err
}

func (r record) read() fleet.DNSRecord {
	out := fleet.DNSRecord{
		ID: r.ID, Name: hostOf(r.Name), Type: r.Type, Content: r.Content, TTL: int(r.TTL), Proxied: r.Proxied, Comment: r.Comment,
	}
	switch r.Type {
	case "TXT":
		out.Content = unquote(r.Content)
	case "CNAME", "NS":
		out.Content = hostOf(r.Content)
	}
	return out
}

func write(r fleet.DNSRecord) record {
	out := record{ID: r.ID, Name: r.Name, Type: r.Type, Content: r.Content, TTL: float64(cmp.Or(r.TTL, 1)), Proxied: r.Proxied, Comment: r.Comment}
	if r.Type == "TXT" {
		out.Content = quote(r.Content)
	}
	return out
}

// hostOf is a name as kurad writes it.
func hostOf(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// quote writes the content of a TXT in its presentation format: strings of at most 255 bytes in
// quotes (RFC 1035, 5.1; Cloudflare's documentation of TXT records).
func quote(text string) string {
	var b strings.Builder
	for first := true; first || text != ""; first = false {
		if !first {
			b.WriteByte(' ')
		}
		n := min(len(text), 255)
		b.WriteByte('"')
		for i := range n {
			switch c := text[i]; {
			case c == '"' || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, `\%03d`, c)
			default:
				b.WriteByte(c)
			}
		}
		b.WriteByte('"')
		text = text[n:]
	}
	return b.String()
}

// unquote reads a content that may be in the presentation format, and joins its strings. Records that
// were made before Cloudflare asked for quotes have none: they are taken as they are.
func unquote(content string) string {
	content = strings.TrimSpace(content)
	if !strings.HasPrefix(content, `"`) {
		return content
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
		case c == '\\' && i+3 < len(content) && decimal(content[i+1:i+4]) >= 0:
			b.WriteByte(byte(decimal(content[i+1 : i+4])))
			i += 3
		case c == '\\' && i+1 < len(content):
			i++
			b.WriteByte(content[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// decimal reads the three digits of a byte; -1: they are none.
func decimal(digits string) int {
	n := 0
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return -1
		}
		n = n*10 + int(d-'0')
	}
	if n > 255 {
		return -1
	}
	return n
}
