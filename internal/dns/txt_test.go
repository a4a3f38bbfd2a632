package dns

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An encrypted record of external-dns' own tests (endpoint/labels_test.go).
const sealedTXT = `+lvP8q9KHJ6BS6O81i2Q6DLNdf2JSKy8j/gbZKviTZlGYj7q+yDoYMgkQ1hPn6urtGllM5bfFMcaaHto52otQtiOYrX8990J3kQqg4s47m3bH3Ejl8RSxSSuWJM3HJtPghQzYg0/LSOsdQ0=`

func TestD3_ownershipRecordsAreReadLeniently(t *testing.T) {
	acme := TXT{Owner: "prod", Resource: "ingress/kura/acme"}
	for _, c := range []struct {
		source, content string
		want            TXT
		reading         Reading
	}{
		{"registry/txt documentation", `heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/kura/acme`, acme, ReadingOwner},
		{"dns-practice.md: quotes are part of it", `"heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/kura/acme"`, acme, ReadingOwner},
		{"quoted twice: RFC 1035 5.1 over such a value", `"\"heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/kura/acme\""`, acme, ReadingOwner},
		{"dns-practice.md: pairs in any order", `external-dns/resource=ingress/kura/acme,external-dns/owner=prod,heritage=external-dns`, acme, ReadingOwner},
		{"RFC 1035 3.3.14: split strings", `"heritage=external-dns,external-dns/ow" "ner=prod,external-dns/resource=ingress/kura/acme"`, acme, ReadingOwner},
		{"RFC 1035 5.1: \\DDD", `"heritage\061external-dns,external-dns/owner=prod"`, TXT{Owner: "prod"}, ReadingOwner},
		{"labels_test.go: gibberish between", `heritage=external-dns,,external-dns/owner=bar-owner,external-dns/resource=bar-resource,external-dns/new-key=bar-new-key,random=stuff,no-equal-sign,,`,
			TXT{Owner: "bar-owner", Resource: "bar-resource", More: []string{"external-dns/new-key=bar-new-key", "no-equal-sign", "random=stuff"}}, ReadingOwner},
		{"written by hand, with spaces", `heritage=external-dns, external-dns/owner=prod`, TXT{Owner: "prod"}, ReadingOwner},
		{"half a quote", `"heritage=external-dns,external-dns/owner=prod`, TXT{Owner: "prod"}, ReadingOwner},
		{"labels_test.go: no heritage", `external-dns/owner=random-owner`, TXT{}, ReadingOther},
		{"labels_test.go: another's heritage", `heritage=mate,external-dns/owner=random-owner`, TXT{}, ReadingOther},
		{"labels_test.go: two heritages", `heritage=mate,heritage=external-dns,external-dns/owner=random-owner`, TXT{}, ReadingOther},
		{"labels.go: any place of the other heritage", `heritage=external-dns,heritage=mate,external-dns/owner=random-owner`, TXT{}, ReadingOther},
		{"no owner", `heritage=external-dns`, TXT{}, ReadingNobody},
		{"an empty owner", `heritage=external-dns,external-dns/owner=`, TXT{}, ReadingNobody},
		{"two owners in one record", `heritage=external-dns,external-dns/owner=a,external-dns/owner=b`, TXT{}, ReadingNobody},
		{"labels_test.go: encrypted", sealedTXT, TXT{}, ReadingSealed},
		{"labels_test.go: encrypted, quoted", `"` + sealedTXT + `"`, TXT{}, ReadingSealed},
		{"short base64 is no encrypted record", "aGVyaXRhZ2U=", TXT{}, ReadingOther},
		{"SPF", "v=spf1 include:spf.protection.outlook.com -all", TXT{}, ReadingOther},
		{"nothing", "", TXT{}, ReadingOther},
	} {
		t.Run(c.source, func(t *testing.T) {
			got, reading := ParseTXT(c.content)
			if d := cmp.Diff(c.want, got); d != "" || reading != c.reading {
				t.Errorf("%q: got %q and %+v, want %q\n%s", c.content, reading, got, c.reading, d)
			}
		})
	}
}

func TestD4_ownershipRecordsAreWrittenAsExternalDNSWritesThem(t *testing.T) {
	got := TXT{Owner: "staging", Resource: "kura-staging/eu/acme"}.String()
	if want := "heritage=external-dns,external-dns/owner=staging,external-dns/resource=kura-staging/eu/acme"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestD3_whatIsWrittenIsReadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 11))
	word := func() string {
		const letters = "abcXYZ019._-/"
		b := make([]byte, 1+random.IntN(40))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for range 5_000 {
		want := TXT{Owner: word()}
		if random.IntN(2) == 0 {
			want.Resource = word()
		}
		for i := range random.IntN(3) {
			want.More = append(want.More, fmt.Sprintf("external-dns/more%d=%s", i, word()))
		}
		for _, content := range []string{want.String(), `"` + want.String() + `"`, halves(want.String(), random.IntN(len(want.String())))} {
			if got, reading := ParseTXT(content); !cmp.Equal(got, want) || reading != ReadingOwner {
				t.Fatalf("%s: got %q %+v, want %+v", content, reading, got, want)
			}
		}
	}
}

// halves is the value in two strings.
func halves(s string, at int) string { return fmt.Sprintf(`"%s" "%s"`, s[:at], s[at:]) }

// naming is external-dns' own table (registry/mapper/mapper_test.go of 0.23), and what its
// documentation says of prefixes.
func naming() []struct {
	naming             Naming
	host, ofType, name string
} {
	return []struct {
		naming             Naming
		host, ofType, name string
	}{
		{Naming{}, "foo.example.com", TypeA, "a-foo.example.com"},
		{Naming{}, "foo.example.com", TypeAAAA, "aaaa-foo.example.com"},
		{Naming{}, "foo.example.com", TypeCNAME, "cname-foo.example.com"},
		{Naming{}, "a-foo.example.com", TypeA, "a-a-foo.example.com"},
		{Naming{Prefix: "%{record_type}-"}, "foo.example.com", TypeAAAA, "aaaa-foo.example.com"},
		{Naming{Prefix: "foo"}, "example.com", TypeA, "fooa-example.com"},
		{Naming{Suffix: "foo"}, "example.com", TypeAAAA, "aaaa-examplefoo.com"},
		{Naming{Prefix: "foo-"}, "example.com", TypeA, "foo-a-example.com"},
		{Naming{Suffix: "-foo"}, "example.com", TypeCNAME, "cname-example-foo.com"},
		{Naming{Prefix: "foo."}, "example.com", TypeCNAME, "foo.cname-example.com"},
		{Naming{Suffix: ".foo"}, "example.com", TypeCNAME, "cname-example.foo.com"},
		{Naming{Prefix: "foo.bar."}, "example.com", TypeCNAME, "foo.bar.cname-example.com"},
		{Naming{Suffix: ".foo.bar.test"}, "example.com", TypeCNAME, "cname-example.foo.bar.test.com"},
		{Naming{Prefix: "%{record_type}-foo"}, "example.com", TypeA, "a-fooexample.com"},
		{Naming{Suffix: "foo-%{record_type}"}, "example.com", TypeA, "examplefoo-a.com"},
		{Naming{Prefix: "%{record_type}foo."}, "example.com", TypeCNAME, "cnamefoo.example.com"},
		{Naming{Suffix: ".foo%{record_type}"}, "example.com", TypeA, "example.fooa.com"},
		{Naming{Prefix: "bar.%{record_type}.foo."}, "example.com", TypeCNAME, "bar.cname.foo.example.com"},
		{Naming{Suffix: ".foo%{record_type}.bar"}, "example.com", TypeA, "example.fooa.bar.com"},
		{Naming{Prefix: "%{record_type}-abc-."}, "www.ex.com", TypeCNAME, "cname-abc-.www.ex.com"},
		{Naming{Suffix: "-.%{record_type}"}, "www.ex.com", TypeCNAME, "www-.cname.ex.com"},
		{Naming{Prefix: "TXT-%{record_type}-"}, "Foo.Example.com.", TypeA, "txt-a-foo.example.com"},
	}
}

func TestD3_namesOfOwnershipRecordsAreThoseOfExternalDNS(t *testing.T) {
	for _, c := range naming() {
		if got := c.naming.Name(c.host, c.ofType); got != c.name {
			t.Errorf("%+v: the %s record of %s: got %s, want %s", c.naming, c.ofType, c.host, got, c.name)
		}
		if host, ofType := c.naming.Host(c.name); host != canonical(c.host) || ofType != c.ofType {
			t.Errorf("%+v: %s: got %s %q, want %s %q", c.naming, c.name, host, ofType, c.host, c.ofType)
		}
	}
	for _, c := range []struct {
		naming             Naming
		name, host, ofType string
	}{
		{Naming{}, "foo.example.com", "foo.example.com", ""},                                     // the old form
		{Naming{Prefix: "foo-%{record_type}-"}, "foo--test.example.com", "test.example.com", ""}, // TestDropPrefix
		{Naming{Suffix: "-%{record_type}-foo"}, "test--foo.example.com", "test.example.com", ""}, // TestDropSuffix
		{Naming{Prefix: "foo-"}, "foo-test.example.com", "test.example.com", ""},
		{Naming{Prefix: "foo-"}, "a-test.example.com", "test.example.com", TypeA}, // of an external-dns without a prefix
		{Naming{Suffix: ".foo.bar"}, "a-example.foo", "example.foo", TypeA},       // too few labels
		{Naming{}, "naptr-foo.example.com", "foo.example.com", "NAPTR"},
		{Naming{}, "tlsa-foo.example.com", "foo.example.com", "TLSA"},
		{Naming{}, "a-.example.com", "a-.example.com", ""},
		{Naming{}, "abc-foo.example.com", "abc-foo.example.com", ""},
		{Naming{}, "", "", ""},
		{Naming{Prefix: "foo"}, "foo", "foo", ""},
	} {
		if host, ofType := c.naming.Host(c.name); host != c.host || ofType != c.ofType {
			t.Errorf("%+v: %s: got %s %q, want %s %q", c.naming, c.name, host, ofType, c.host, c.ofType)
		}
	}
}

func TestD3_allNamesOfAHostAreAskedFor(t *testing.T) {
	got := Naming{Prefix: "_edns."}.Names("acme-eu.kura.example.dev")
	want := []string{
		"_edns.a-acme-eu.kura.example.dev", "_edns.aaaa-acme-eu.kura.example.dev", "_edns.acme-eu.kura.example.dev", "_edns.cname-acme-eu.kura.example.dev",
		"a-acme-eu.kura.example.dev", "aaaa-acme-eu.kura.example.dev", "acme-eu.kura.example.dev", "cname-acme-eu.kura.example.dev",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	wild := Naming{Prefix: "txt-", Wildcard: "wild"} // mapper_test.go
	if got := wild.Name("*.example.com", TypeA); got != "txt-a-wild.example.com" {
		t.Errorf("a wildcard's: %s", got)
	}
}

// FuzzParseTXT: no value panics, what is read is written and read again as the same, and no
// value without the heritage names an owner.
func FuzzParseTXT(f *testing.F) {
	for _, s := range []string{
		"", `"`, `""`, `"\`, `"\0`, `"\061"`, "heritage=external-dns", sealedTXT, `"heritage=external-dns,external-dns/owner=a,external-dns/resource=b/c/d"`,
		`"a" "b"`, "heritage=external-dns,external-dns/owner=\u202e", strings.Repeat(`"\"`, 9), "external-dns/owner=,,=,heritage=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, reading := ParseTXT(s)
		switch reading {
		case ReadingOwner:
			if got.Owner == "" || !strings.Contains(JoinTXT(s), "heritage=external-dns") {
				t.Fatalf("%q names %+v", s, got)
			}
			if again, r := ParseTXT(got.String()); !strings.ContainsAny(got.String(), `"\ `+"\t\n\v\f\r\u0085\u00a0") && (r != ReadingOwner || !cmp.Equal(got, again)) {
				t.Fatalf("%q: %+v is written as %q and read as %+v", s, got, got, again)
			}
		case ReadingSealed:
			if _, err := base64.StdEncoding.DecodeString(JoinTXT(s)); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
		case ReadingOther, ReadingNobody:
			if !cmp.Equal(got, TXT{}) {
				t.Fatalf("%q is %q and says %+v", s, reading, got)
			}
		}
	})
}
