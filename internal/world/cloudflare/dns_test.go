package cloudflare_test

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestDNS_answersWhatIsInTheZone(t *testing.T) {
	r := start(t, nil)
	long := strings.Repeat("x", 300)
	err := r.Seed(cloudflare.ByHand,
		cloudflare.Record{Name: "a.kura.test", Type: "A", Content: "192.0.2.1", TTL: 60},
		cloudflare.Record{Name: "a.kura.test", Type: "AAAA", Content: "2001:db8::1"},
		cloudflare.Record{Name: "alias.kura.test", Type: "CNAME", Content: "a.kura.test"},
		cloudflare.Record{Name: "away.kura.test", Type: "CNAME", Content: "example.test"},
		cloudflare.Record{Name: "lost.kura.test", Type: "CNAME", Content: "none.kura.test"},
		cloudflare.Record{Name: "round.kura.test", Type: "CNAME", Content: "round.kura.test"},
		cloudflare.Record{Name: "text.kura.test", Type: "TXT", Content: `"a \"b\"" "c"`},
		cloudflare.Record{Name: "long.kura.test", Type: "TXT", Content: long},
		cloudflare.Record{Name: "proxied.kura.test", Type: "A", Content: "192.0.2.1", Proxied: true},
		cloudflare.Record{Name: "*.wild.kura.test", Type: "A", Content: "192.0.2.7"},
		cloudflare.Record{Name: "own.wild.kura.test", Type: "TXT", Content: "x"},
		cloudflare.Record{Name: "deep.below.kura.test", Type: "A", Content: "192.0.2.8"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		kind  uint16
		rcode int
		want  []string // the data of the answers; none: a SOA is in the authority section
	}{
		{"a.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"60 192.0.2.1"}},
		{"A.Kura.Test", dns.TypeAAAA, dns.RcodeSuccess, []string{"300 2001:db8::1"}},
		{"a.kura.test", dns.TypeTXT, dns.RcodeSuccess, nil},
		{"none.kura.test", dns.TypeA, dns.RcodeNameError, nil},
		{"alias.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"300 a.kura.test.", "60 192.0.2.1"}},
		{"alias.kura.test", dns.TypeCNAME, dns.RcodeSuccess, []string{"300 a.kura.test."}},
		{"away.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"300 example.test."}},
		{"lost.kura.test", dns.TypeA, dns.RcodeNameError, []string{"300 none.kura.test."}},
		{"text.kura.test", dns.TypeTXT, dns.RcodeSuccess, []string{`300 "a \"b\"c"`}},
		{"long.kura.test", dns.TypeTXT, dns.RcodeSuccess, []string{`300 "` + long[:255] + `" "` + long[255:] + `"`}},
		{"proxied.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"300 104.16.132.229"}},
		{"any.wild.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"300 192.0.2.7"}},
		{"own.wild.kura.test", dns.TypeA, dns.RcodeSuccess, nil},
		{"x.own.wild.kura.test", dns.TypeA, dns.RcodeNameError, nil},
		{"below.kura.test", dns.TypeA, dns.RcodeSuccess, nil},
		{"kura.test", dns.TypeA, dns.RcodeSuccess, nil},
		{"kura.test", dns.TypeNS, dns.RcodeSuccess, []string{"300 ns.kura.test."}},
		{"ns.kura.test", dns.TypeA, dns.RcodeSuccess, []string{"300 127.0.0.1"}},
		{"kura.test", dns.TypeSOA, dns.RcodeSuccess, []string{"0 ns.kura.test. hostmaster.kura.test. 1 60 60 60 0"}},
		{"example.org", dns.TypeA, dns.RcodeRefused, nil},
	} {
		for _, network := range []string{"udp", "tcp"} {
			reply := r.ask(network, test.name, test.kind, "")
			var got []string
			for _, rr := range reply.Answer {
				fields := strings.SplitN(rr.String(), "\t", 5)
				got = append(got, fields[1]+" "+fields[4])
			}
			if reply.Rcode != test.rcode || strings.Join(got, "|") != strings.Join(test.want, "|") {
				t.Errorf("%s %s by %s: %s %q, want %s %q", test.name, dns.TypeToString[test.kind], network,
					dns.RcodeToString[reply.Rcode], got, dns.RcodeToString[test.rcode], test.want)
			}
			if len(test.want) == 0 && test.rcode != dns.RcodeRefused && len(reply.Ns) != 1 {
				t.Errorf("%s %s: no SOA says how long nothing may be kept", test.name, dns.TypeToString[test.kind])
			}
		}
	}
	if reply := r.ask("tcp", "round.kura.test", dns.TypeA, ""); len(reply.Answer) == 0 {
		t.Error("a round of aliases is not answered")
	}
}

func TestDNS_comesAfterTheAPI(t *testing.T) {
	r := start(t, nil)
	one := r.made(record("A", "a", "192.0.2.1"))
	r.SetPropagation(cloudflare.Propagation{Delay: time.Minute})
	r.call("PATCH", zonePath+"/dns_records/"+one.ID, map[string]any{"content": "192.0.2.2"})
	r.made(record("A", "b", "192.0.2.1"))
	seen := func(name string) string {
		if reply := r.ask("udp", name, dns.TypeA, ""); len(reply.Answer) > 0 {
			return strings.Fields(reply.Answer[0].String())[4]
		}
		return ""
	}
	if as[cloudflare.Record](t, r.call("GET", zonePath+"/dns_records/"+one.ID, nil)).Content != "192.0.2.2" {
		t.Error("the API says the old address")
	}
	r.clock.add(29 * time.Second)
	if a, b := seen("a.kura.test"), seen("b.kura.test"); a != "192.0.2.1" || b != "" {
		t.Errorf("before half of the delay: %q %q, want the old answers", a, b)
	}
	r.clock.add(31 * time.Second)
	if a, b := seen("a.kura.test"), seen("b.kura.test"); a != "192.0.2.2" || b != "192.0.2.1" {
		t.Errorf("after the delay: %q %q, want the new answers", a, b)
	}
	r.SetPropagation(cloudflare.Propagation{Held: true})
	r.call("DELETE", zonePath+"/dns_records/"+one.ID, nil)
	r.clock.add(time.Hour)
	if a := seen("a.kura.test"); a != "192.0.2.2" {
		t.Errorf("held: %q, want the old answer", a)
	}
	r.SetPropagation(cloudflare.Propagation{})
	if reply := r.ask("udp", "a.kura.test", dns.TypeA, ""); reply.Rcode != dns.RcodeNameError {
		t.Errorf("let go: %v", reply)
	}
}
