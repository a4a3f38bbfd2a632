package dns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	domain = "kura.example.dev"
	host   = "acme-eu-staging." + domain
)

var read = time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)

func staging(t testing.TB) fleet.Environment {
	t.Helper()
	e, err := fleet.NewEnvironment("staging", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// zone reads records as "type name content", each name without the zone's; an id is the line's
// number.
func zone(lines ...string) Listing {
	l := Listing{Begun: read}
	for i, line := range lines {
		f := strings.SplitN(line, " ", 3)
		l.Records = append(l.Records, fleet.DNSRecord{ID: fmt.Sprint(i + 1), Type: f[0], Name: f[1] + "." + domain, Content: f[2], TTL: 30})
	}
	return l
}

func owned(owner string) string { return TXT{Owner: owner, Resource: "ingress/kura/acme"}.String() }

func TestD3_whoseAHostIs(t *testing.T) {
	const a, txt, old = "A acme-eu-staging 192.0.2.1", "TXT a-acme-eu-staging ", "TXT acme-eu-staging "
	for _, c := range []struct {
		source string
		naming Naming
		lines  []string
		want   fleet.Ownership
		owners string
		detail string
	}{
		{"nothing", Naming{}, nil, fleet.OwnershipAbsent, "", "has no record"},
		{"of another host", Naming{}, []string{"A other 192.0.2.1", "TXT a-other " + owned("prod")}, fleet.OwnershipAbsent, "", ""},
		{"registry/txt 0.23: typed", Naming{}, []string{a, txt + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"registry/txt 0.13: both forms", Naming{}, []string{a, txt + owned("us"), old + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"before 0.12: the old form", Naming{}, []string{a, old + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"RFC 4343: case", Naming{}, []string{"A ACME-eu-staging 192.0.2.1", "TXT A-acme-EU-staging " + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"owner ids compare with case, as external-dns' do", Naming{}, []string{a, txt + owned("Us")}, fleet.OwnershipForeign, "Us", `belongs to "Us"`},
		{"another's", Naming{}, []string{a, txt + owned("prod")}, fleet.OwnershipForeign, "prod", `belongs to "prod" (TXT a-acme-eu-staging.kura.example.dev)`},
		{"another's, by the old form", Naming{}, []string{a, old + owned("prod")}, fleet.OwnershipForeign, "prod", `(TXT acme-eu-staging.kura.example.dev)`},
		{"an ownership record without a record is one", Naming{}, []string{txt + owned("prod")}, fleet.OwnershipForeign, "prod", ""},
		{"ours without a record", Naming{}, []string{txt + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"dns-practice.md: the newest form decides, the disagreement is said", Naming{}, []string{a, txt + owned("us"), old + owned("prod")}, fleet.OwnershipOurs, "", `names "prod" and does not count`},
		{"the same, other way round", Naming{}, []string{a, txt + owned("prod"), old + owned("us")}, fleet.OwnershipForeign, "prod", `names "us" and does not count`},
		{"the old form is overruled of the same type only", Naming{}, []string{a, "CNAME acme-eu-staging x.dev", txt + owned("us"), old + owned("prod")}, fleet.OwnershipForeign, "prod us", "claimed by"},
		{"registry/txt: AAAA exists in the new form only", Naming{}, []string{"AAAA acme-eu-staging 2001:db8::1", old + owned("us")}, fleet.OwnershipForeign, "", "an AAAA record (2001:db8::1) that no ownership record claims"},
		{"the old form of another beside our AAAA", Naming{}, []string{"AAAA acme-eu-staging 2001:db8::1", "TXT aaaa-acme-eu-staging " + owned("us"), old + owned("prod")}, fleet.OwnershipForeign, "prod us", "claimed by"},
		{"both families", Naming{}, []string{a, "AAAA acme-eu-staging 2001:db8::1", txt + owned("us"), "TXT aaaa-acme-eu-staging " + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"one of two families without a TXT (D4)", Naming{}, []string{a, "AAAA acme-eu-staging 2001:db8::1", txt + owned("us")}, fleet.OwnershipForeign, "", "AAAA record"},
		{"issue 5457: two owners of one name and type", Naming{}, []string{a, txt + owned("prod"), txt + owned("us")}, fleet.OwnershipForeign, "prod us", `is claimed by "prod" (TXT a-acme-eu-staging.kura.example.dev) and by "us", which is ours,`},
		{"issue 5457: neither is ours", Naming{}, []string{a, txt + owned("prod"), txt + owned("canary")}, fleet.OwnershipForeign, "canary prod", "delete the TXT records of all but one"},
		{"D4: a record without a TXT", Naming{}, []string{a}, fleet.OwnershipForeign, "", "has an A record (192.0.2.1) that no ownership record claims; whoever made it can delete it"},
		{"a CNAME without one", Naming{}, []string{"CNAME acme-eu-staging lb.example.com"}, fleet.OwnershipForeign, "", "has a CNAME record (lb.example.com)"},
		{"issue 6617: without its TXT beside a foreign one", Naming{}, []string{a, "TXT cname-acme-eu-staging " + owned("prod")}, fleet.OwnershipForeign, "prod", "of an A record (192.0.2.1) no ownership record tells"},
		{"issue 4358: the TXT of a CNAME", Naming{}, []string{"CNAME acme-eu-staging lb.example.com", "TXT cname-acme-eu-staging " + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"a leftover of another type names its owner", Naming{}, []string{a, txt + owned("us"), "TXT cname-acme-eu-staging " + owned("prod")}, fleet.OwnershipForeign, "prod us", ""},
		{"pull request 3735: encrypted", Naming{}, []string{a, txt + sealedTXT}, fleet.OwnershipUnreadable, "", "TXT a-acme-eu-staging.kura.example.dev is encrypted"},
		{"encrypted beside ours", Naming{}, []string{a, txt + owned("us"), txt + sealedTXT}, fleet.OwnershipUnreadable, "", ""},
		{"encrypted beside another's", Naming{}, []string{a, txt + owned("prod"), txt + sealedTXT}, fleet.OwnershipForeign, "prod", ""},
		{"pull request 3735: none in the old form, so a token there is a token", Naming{}, []string{a, txt + owned("us"), old + sealedTXT}, fleet.OwnershipOurs, "", ""},
		{"an ownership record without an owner", Naming{}, []string{a, txt + "heritage=external-dns"}, fleet.OwnershipUnreadable, "", "names no owner"},
		{"other TXT of the name", Naming{}, []string{a, txt + owned("us"), old + "v=spf1 -all"}, fleet.OwnershipOurs, "", ""},
		{"the zone's prefix", Naming{Prefix: "_e.%{record_type}."}, []string{a, "TXT _e.a.acme-eu-staging " + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"the zone's suffix", Naming{Suffix: "-txt"}, []string{a, "TXT a-acme-eu-staging-txt " + owned("us")}, fleet.OwnershipOurs, "", ""},
		{"another external-dns without the zone's prefix", Naming{Prefix: "_e."}, []string{a, txt + owned("prod"), "TXT _e.a-acme-eu-staging " + owned("us")}, fleet.OwnershipForeign, "prod us", ""},
		{"dns-practice.md: an unknown prefix, anywhere below the name", Naming{}, []string{a, "TXT _e.x.acme-eu-staging " + owned("prod")}, fleet.OwnershipForeign, "prod", "give kurad it as txt-prefix"},
		{"the same with the type behind it", Naming{}, []string{a, "TXT _e.a-acme-eu-staging " + owned("us")}, fleet.OwnershipOurs, "", "give kurad it as txt-prefix"},
		{"what is below is of a host of its own", Naming{}, []string{a, txt + owned("us"), "A www.acme-eu-staging 192.0.2.9", "TXT a-www.acme-eu-staging " + owned("prod")}, fleet.OwnershipOurs, "", ""},
		{"an unknown prefix beside it: whose it may be", Naming{}, []string{a, "TXT txt-a-acme-eu-staging " + owned("prod")}, fleet.OwnershipForeign, "prod", `TXT txt-a-acme-eu-staging.kura.example.dev names "prod"`},
		{"an unknown suffix beside it", Naming{}, []string{a, "TXT a-acme-eu-staging-txt " + owned("prod")}, fleet.OwnershipForeign, "prod", ""},
		{"beside it is never ours (D4)", Naming{}, []string{a, "TXT txt-a-acme-eu-staging " + owned("us")}, fleet.OwnershipForeign, "", `names "us"; then give kurad the same txt-prefix`},
		{"the TXT of another host is none beside it", Naming{}, []string{"A eu-staging 192.0.2.1", a, txt + owned("prod"), "TXT a-eu-staging " + owned("us")}, fleet.OwnershipForeign, "prod", ""},
		{"an NS record: other servers answer", Naming{}, []string{a, txt + owned("us"), "NS acme-eu-staging ns1.example.net"}, fleet.OwnershipForeign, "", "leads to ns1.example.net"},
		{"whose server it was made for", Naming{}, []string{a, txt + TXT{Owner: "x", Resource: "kura-production/eu/acme"}.String()}, fleet.OwnershipForeign, "x", `"x" of environment "production"`},
		{"our owner id, and another environment's server", Naming{}, []string{a, txt + made("us", "production")}, fleet.OwnershipForeign, "us", `belongs to environment "production", which has the same owner id "us" (TXT a-acme-eu-staging.kura.example.dev)`},
		{"the same beside ours", Naming{}, []string{a, txt + made("us", "production"), txt + made("us", "staging")}, fleet.OwnershipForeign, "us", "give each environment an owner id of its own"},
		{"G11: text of others", Naming{}, []string{a, txt + owned("p\u202e\x1b[2J")}, fleet.OwnershipForeign, `p\u202e\x1b[2J`, `belongs to "p\u202e\x1b[2J" (`},
	} {
		t.Run(c.source, func(t *testing.T) {
			got := Judge(host, "us", zone(c.lines...), Zone{Domain: domain, TXT: c.naming}, staging(t))
			if got.Ownership != c.want || strings.Join(got.Owners, " ") != c.owners || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("got  %s of %q: %s\nwant %s of %q: …%s…", got.Ownership, got.Owners, got.Detail, c.want, c.owners, c.detail)
			}
			if c.want == fleet.OwnershipOurs && c.detail == "" && got.Detail != "" {
				t.Errorf("of a host that is plainly ours it says: %s", got.Detail)
			}
		})
	}
}

func TestD3_aLoadBalancerShadowsRecords(t *testing.T) {
	l := zone("A acme-eu-staging 192.0.2.1", "TXT a-acme-eu-staging "+owned("us"))
	for description, want := range map[string]fleet.Ownership{
		"":                     fleet.OwnershipForeign,
		"made by hand\x00":     fleet.OwnershipForeign,
		"kura-production/acme": fleet.OwnershipForeign,
		"kura-staging/acme/eu": fleet.OwnershipForeign,
		"kura-staging/acme":    fleet.OwnershipOurs,
	} {
		l.Balancers = []Balancer{{Name: strings.ToUpper(host), Description: description}}
		got := Judge(host, "us", l, Zone{Domain: domain}, staging(t))
		if got.Ownership != want || want == fleet.OwnershipForeign && !strings.Contains(got.Detail, "load balancer") || strings.Contains(got.Detail, "\x00") {
			t.Errorf("%q: got %s: %s; want %s", description, got.Ownership, got.Detail, want)
		}
		l := Listing{Balancers: l.Balancers}
		if got := Judge(host, "us", l, Zone{Domain: domain}, staging(t)); got.Ownership != want {
			t.Errorf("%q without a record: got %s, want %s", description, got.Ownership, want)
		}
	}
}

func TestD3_whatARecordWasMadeForIsFound(t *testing.T) {
	key := fleet.ServerKey{Account: "acme", Region: "eu"}
	ours := TXT{Owner: "us", Resource: fleet.ResourceOf("staging", key)}
	x := NewIndex(zone("A b 192.0.2.1", "TXT a-b "+ours.String(), "AAAA b ::1", "TXT aaaa-b "+ours.String(), "TXT cname-a "+ours.String(), "TXT a-c "+owned("us")), Zone{Domain: domain}, staging(t))
	if got, want := x.Of(ours.Resource), []string{"a." + domain, "b." + domain}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := x.Host("b."+domain, "us"); got.Resource != ours.Resource || len(got.Records) != 2 || !got.Begun.Equal(read) {
		t.Errorf("got %+v", got)
	}
	environment, back, ok := ParseResource(ours.Resource)
	if !ok || environment != "staging" || back != key {
		t.Errorf("read back: %q %v %v", environment, back, ok)
	}
}

func TestD6_anOwnerIDInTwoEnvironmentsIsKnown(t *testing.T) {
	x := NewIndex(zone("TXT a-x "+made("us", "production"), "TXT a-y-canary "+owned("us"), "TXT a-z-staging "+owned("us"), "TXT a-z-staging "+made("us", "staging"), "TXT a-w-canary "+made("us", "staging"), "TXT a-v-canary "+owned("them")), Zone{Domain: domain}, staging(t))
	if got, want := x.Environments("us"), []string{"canary", "production"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := x.Environments("nobody"); len(got) > 0 {
		t.Errorf("an owner id that is not there: %q", got)
	}
}

// randomZone is a listing about few names, so that they meet.
func randomZone(random *rand.Rand) Listing {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var lines []string
	for range random.IntN(9) {
		name := pick("acme-eu-staging", "a-acme-eu-staging", "x.acme-eu-staging", "acme-eu-staging-x", "eu-staging")
		switch random.IntN(3) {
		case 0:
			lines = append(lines, pick("A", "AAAA", "CNAME", "NS")+" "+name+" "+pick("192.0.2.1", "::1", "x.dev"))
		default:
			lines = append(lines, "TXT "+pick("", "a-", "aaaa-", "cname-", "txt-", "txt-a-", "_e.", "_e.a-")+name+" "+pick(owned("us"), owned("us"), owned("prod"), owned("canary"), sealedTXT, "heritage=external-dns", "v=spf1"))
		}
	}
	l := zone(lines...)
	if random.IntN(6) == 0 {
		l.Balancers = append(l.Balancers, Balancer{ID: pick("1", "2"), Name: host, Description: pick("", "kura-staging/acme", "kura-production/acme")})
	}
	return l
}

// TestD4_oursOnlyWhereNobodyElseIsNamed holds for any listing: the verdict is the same in any
// order of its records (issue 5457), and ours needs an ownership record of ours for each record,
// and none of another owner that counts.
func TestD4_oursOnlyWhereNobodyElseIsNamed(t *testing.T) {
	random, e, ours := rand.New(rand.NewPCG(11, 3)), staging(t), 0
	for range 8_000 {
		l := randomZone(random)
		z := Zone{Domain: domain, TXT: Naming{Prefix: []string{"", "", "txt-"}[random.IntN(3)]}}
		got := Judge(host, "us", l, z, e)
		for range 2 {
			random.Shuffle(len(l.Records), func(i, j int) { l.Records[i], l.Records[j] = l.Records[j], l.Records[i] })
			if again := Judge(host, "us", l, z, e); !cmp.Equal(got, again) {
				t.Fatalf("the order of the listing decides: %s\n%+v", cmp.Diff(got, again), l)
			}
		}
		if got.Ownership != fleet.OwnershipOurs {
			if got.Detail == "" {
				t.Fatalf("%s without a word: %+v", got.Ownership, l)
			}
			continue
		}
		ours++
		at := map[string]string{} // the owner that the newest form of each type names
		for _, ofType := range []string{TypeA, TypeAAAA, TypeCNAME} {
			for _, r := range l.Records {
				if t, reading := ParseTXT(r.Content); r.Type == "TXT" && r.Name == z.TXT.Name(host, ofType) && reading != ReadingOther {
					at[ofType] += t.Owner + " "
				}
			}
			if strings.ReplaceAll(at[ofType], "us ", "") != "" {
				t.Fatalf("ours, though %q is named of its %s record: %+v", at[ofType], ofType, l)
			}
		}
		if len(got.Owners) > 0 {
			t.Fatalf("ours, and of %q: %+v", got.Owners, l)
		}
		for _, b := range l.Balancers {
			if b.Description != "kura-staging/acme" {
				t.Fatalf("ours behind the load balancer %q", b.Description)
			}
		}
	}
	if ours < 200 {
		t.Errorf("only %d of the listings had the host as ours: the test says little", ours)
	}
}

// FuzzJudge: no listing panics or has two answers, and what is ours is so by a record that says so.
func FuzzJudge(f *testing.F) {
	f.Add("A acme-eu-staging 192.0.2.1\nTXT a-acme-eu-staging "+owned("us"), "")
	f.Add("CNAME acme-eu-staging x\nTXT _e.cname-acme-eu-staging "+sealedTXT, "_e.")
	f.Add("NS . .\nTXT * \"\nAAAA a-. x\nTXT .. heritage=external-dns", "%{record_type}.")
	e := staging(f)
	f.Fuzz(func(t *testing.T, text, prefix string) {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Count(line, " ") >= 2 && len(lines) < 30 {
				lines = append(lines, line)
			}
		}
		l, z := zone(lines...), Zone{Domain: domain, TXT: Naming{Prefix: prefix}}
		got := Judge(host, "us", l, z, e)
		slices.Reverse(l.Records)
		if again := Judge(host, "us", l, z, e); !cmp.Equal(got, again) {
			t.Fatalf("the order decides: %s", cmp.Diff(got, again))
		}
		auditOf(t, l, wants("acme-eu-staging"))
		if got.Ownership == fleet.OwnershipOurs && !slices.ContainsFunc(l.Records, func(r fleet.DNSRecord) bool {
			txt, _ := ParseTXT(r.Content)
			return strings.EqualFold(r.Type, "TXT") && txt.Owner == "us"
		}) {
			t.Fatalf("ours by nobody's word: %q", lines)
		}
		for _, s := range append([]string{got.Detail}, got.Owners...) {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x202e }) {
				t.Fatalf("%q is shown as it came", s)
			}
		}
	})
}

// BenchmarkIndex judges all hosts of a zone: twice the hosts take twice the time.
func BenchmarkIndex(b *testing.B) {
	for _, hosts := range []int{1000, 10_000, 20_000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			var lines []string
			for i := range hosts {
				lines = append(lines, fmt.Sprintf("A h%d-staging 192.0.2.1", i), fmt.Sprintf("TXT a-h%d-staging %s", i, owned("us")))
			}
			l, e := zone(lines...), staging(b)
			for b.Loop() {
				x := NewIndex(l, Zone{Domain: domain}, e)
				for i := range hosts {
					if got := x.Host(fmt.Sprintf("h%d-staging.%s", i, domain), "us"); got.Ownership != fleet.OwnershipOurs {
						b.Fatalf("%+v", got)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(hosts), "µs/host")
		})
	}
}

func TestG8_whatIsSaidOfAHostIsBoundedHoweverManyClaimIt(t *testing.T) {
	lines := []string{"A acme-eu-staging 192.0.2.1"}
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("TXT a-acme-eu-staging %s", owned(fmt.Sprintf("%0200d", i))))
	}
	read := Judge(host, "us", zone(lines...), Zone{Domain: domain}, staging(t))
	if read.Ownership != fleet.OwnershipForeign || !strings.Contains(read.Detail, "delete the TXT records of all but one") || len(read.Detail) > 4*mostDetail {
		t.Errorf("%s, in %d bytes: %.100s", read.Ownership, len(read.Detail), read.Detail)
	}
	for _, w := range [][]Wanted{nil, {{Host: host, Kind: HostPublic, Owner: "us"}}} {
		x := NewIndex(zone(lines...), Zone{Domain: domain}, staging(t))
		for _, f := range Audit(AuditInput{Environment: staging(t), Zones: []ZoneRead{{Zone: Zone{Domain: domain}, Index: x}}, Wanted: w})[0].Findings {
			if len(f.Why) > 4*mostDetail {
				t.Errorf("%s: %d bytes", f.Kind, len(f.Why))
			}
		}
	}
}
