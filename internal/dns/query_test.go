package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
)

// answering is a DNS server on loopback, UDP and TCP, that answers as it is told.
type answering struct {
	addr string
	mu   sync.Mutex
	how  func(w dns.ResponseWriter, q *dns.Msg)
	seen int
	odd  int // questions for recursion, or without EDNS
}

func (a *answering) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	a.mu.Lock()
	a.seen++
	if q.RecursionDesired || q.IsEdns0() == nil {
		a.odd++
	}
	how := a.how
	a.mu.Unlock()
	how(w, q)
}

func (a *answering) asked() (seen, odd int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen, a.odd
}

func (a *answering) set(how func(w dns.ResponseWriter, q *dns.Msg)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.how = how
}

func answerDNS(t *testing.T, how func(w dns.ResponseWriter, q *dns.Msg)) *answering {
	t.Helper()
	a := &answering{how: how}
	for range 20 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err != nil { // somebody else has the port
			tcp.Close()
			continue
		}
		a.addr = tcp.Addr().String()
		for _, s := range []*dns.Server{{Listener: tcp, Handler: a}, {PacketConn: udp, Handler: a}} {
			started := make(chan struct{})
			s.NotifyStartedFunc = func() { close(started) }
			go func() { _ = s.ActivateAndServe() }() // it ends with Shutdown
			<-started
			t.Cleanup(func() { _ = s.Shutdown() })
		}
		return a
	}
	t.Fatal("no port is free for TCP and UDP")
	return nil
}

// zoneOf answers with records of the zone as an authoritative server.
func zoneOf(records ...string) func(w dns.ResponseWriter, q *dns.Msg) {
	return func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(reply(q, records...)) }
}

func reply(q *dns.Msg, records ...string) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	exists := false
	for _, text := range records {
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		if !strings.EqualFold(rr.Header().Name, q.Question[0].Name) {
			continue
		}
		exists = true
		if t := rr.Header().Rrtype; t == q.Question[0].Qtype || t == dns.TypeCNAME {
			m.Answer = append(m.Answer, rr)
		}
	}
	if !exists {
		m.Rcode = dns.RcodeNameError
	}
	return m
}

func querier(t *testing.T, allow ...string) *Querier {
	t.Helper()
	prefixes, err := readiness.ParseAllow(allow)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewQuerier(QuerierConfig{Allow: readiness.NewPolicy(prefixes).Check})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestD3_aHostIsReadFromTheZonesOwnServer(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		records []string
		want    []fleet.DNSRecord
	}{
		"nothing": {nil, nil},
		"in every form, in any case, TXT in several strings and with quotes in it": {[]string{
			strings.ToUpper(host) + ". 30 IN A 192.0.2.1", host + ". 30 IN AAAA 2001:db8::1", host + `. 30 IN TXT "heritage=external-dns,external-dns/owner=" "a"`,
			"a-" + host + `. 300 IN TXT "\"heritage=external-dns\"" ",\195\164"`,
		}, []fleet.DNSRecord{
			{Name: host, Type: "A", Content: "192.0.2.1", TTL: 30}, {Name: host, Type: "AAAA", Content: "2001:db8::1", TTL: 30},
			{Name: host, Type: "TXT", Content: "heritage=external-dns,external-dns/owner=a", TTL: 30}, {Name: "a-" + host, Type: "TXT", Content: `"heritage=external-dns",ä`, TTL: 300},
		}},
		"a CNAME, which every question is answered with": {[]string{host + ". 30 IN CNAME LB.example.dev.", "cname-" + host + `. 30 IN TXT "owner"`}, []fleet.DNSRecord{
			{Name: host, Type: "CNAME", Content: "lb.example.dev", TTL: 30}, {Name: "cname-" + host, Type: "TXT", Content: "owner", TTL: 30},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := answerDNS(t, zoneOf(c.records...))
			got, err := querier(t).Read(t.Context(), Zone{Domain: "kura.test", Name: "kura", Server: a.addr}, host)
			byName := func(a, b fleet.DNSRecord) int { return compareRecords(a, b) }
			slices.SortFunc(c.want, byName)
			slices.SortFunc(got, byName)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, c.want)
			}
			if seen, odd := a.asked(); seen == 0 || odd > 0 {
				t.Errorf("of %d questions %d were for recursion, or without EDNS", seen, odd)
			}
		})
	}
	t.Run("cut short by UDP it comes by TCP", func(t *testing.T) {
		t.Parallel()
		var records []string
		for i := range 30 {
			records = append(records, fmt.Sprintf(`a-%s. 30 IN TXT "%d%s"`, host, i, long))
		}
		a := answerDNS(t, func(w dns.ResponseWriter, q *dns.Msg) {
			m := reply(q, records...)
			if w.LocalAddr().Network() == "udp" {
				m.Truncate(int(q.IsEdns0().UDPSize()))
			}
			_ = w.WriteMsg(m)
		})
		got, err := querier(t).Read(t.Context(), Zone{Domain: "kura.test", Server: a.addr}, host)
		if err != nil || len(got) != 30 {
			t.Errorf("%d records, %v", len(got), err)
		}
	})
}

// What is no answer of the zone about the name is none: not that there is nothing (D5).
func TestD5_whatIsNoAnswerOfTheZoneIsNotTakenForAnEmptyOne(t *testing.T) {
	with := func(change func(m *dns.Msg)) func(w dns.ResponseWriter, q *dns.Msg) {
		return func(w dns.ResponseWriter, q *dns.Msg) {
			m := reply(q, "a-"+host+`. 30 IN TXT "heritage=external-dns,external-dns/owner=a"`)
			change(m)
			_ = w.WriteMsg(m)
		}
	}
	for name, c := range map[string]struct {
		how  func(w dns.ResponseWriter, q *dns.Msg)
		want string
	}{
		"SERVFAIL":    {with(func(m *dns.Msg) { m.Rcode, m.Answer = dns.RcodeServerFailure, nil }), "answered SERVFAIL"},
		"REFUSED":     {with(func(m *dns.Msg) { m.Rcode, m.Answer = dns.RcodeRefused, nil }), "answered REFUSED"},
		"an odd code": {with(func(m *dns.Msg) { m.Rcode, m.Answer = 14, nil }), "answered"},
		"of a cache":  {with(func(m *dns.Msg) { m.Authoritative = false }), "not as a server of the zone"},
		"a referral": {with(func(m *dns.Msg) {
			m.Authoritative, m.Answer, m.Rcode = false, nil, dns.RcodeSuccess
			m.Ns = []dns.RR{&dns.NS{Hdr: dns.RR_Header{Name: host + ".", Rrtype: dns.TypeNS, Class: dns.ClassINET}, Ns: "ns.elsewhere.test."}}
		}), "not as a server of the zone"},
		"about another name": {with(func(m *dns.Msg) {
			m.Rcode = dns.RcodeSuccess
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "umbra.kura.test.", Rrtype: dns.TypeA, Class: dns.ClassINET}, A: []byte{192, 0, 2, 9}}}
		}), "about another name, umbra.kura.test"},
		"to another question": {with(func(m *dns.Msg) { m.Question[0].Name = "umbra.kura.test." }), "did not answer (timeout)"},
		"silence":             {func(dns.ResponseWriter, *dns.Msg) {}, "did not answer (timeout)"},
		"silence of one type": {func(w dns.ResponseWriter, q *dns.Msg) {
			if q.Question[0].Qtype != dns.TypeTXT {
				_ = w.WriteMsg(reply(q))
			}
		}, "asked for TXT"},
		"cut short, and no TCP": {func(w dns.ResponseWriter, q *dns.Msg) {
			if w.LocalAddr().Network() == "udp" {
				m := reply(q)
				m.Truncated = true
				_ = w.WriteMsg(m)
			}
		}, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := answerDNS(t, c.how)
			begun := time.Now()
			got, err := querier(t).Read(t.Context(), Zone{Domain: "kura.test", Name: "kura", Server: a.addr}, host)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "zone kura: ") || !strings.Contains(err.Error(), a.addr) {
				t.Errorf("%+v, %v; want an error with the zone, the server and %q", got, err, c.want)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("it took %s (G9)", took)
			}
		})
	}
}

// The servers that NS records name are asked where an operator's policy lets addresses be asked,
// and one that he gave wherever it is (R4).
func TestR4_whereNSRecordsLeadIsAskedOnlyIfAllowed(t *testing.T) {
	resolver := answerDNS(t, zoneOf("example.test. 30 IN NS ns1.inside.test.", "example.test. 30 IN NS ns2.outside.test.", "ns1.inside.test. 30 IN A 127.0.0.1", "ns2.outside.test. 30 IN A 203.0.113.53",
		"inside.test. 30 IN NS ns1.inside.test."))
	find := func(domain string, allow ...string) ([]string, error) {
		q := querier(t, allow...)
		other, err := NewQuerier(QuerierConfig{Resolver: resolver.addr, Allow: q.allow})
		if err != nil {
			t.Fatal(err)
		}
		return other.servers(t.Context(), Zone{Domain: domain, Name: "z"})
	}
	if got, err := find("kura.example.test"); err != nil || !slices.Equal(got, []string{"203.0.113.53:53"}) {
		t.Errorf("%v, %v: want the one outside, of the zone above", got, err)
	}
	if got, err := find("example.test", "127.0.0.0/8"); err != nil || len(got) != 2 {
		t.Errorf("%v, %v: want both", got, err)
	}
	got, err := find("inside.test")
	if err == nil || !strings.Contains(err.Error(), "loopback") || !strings.Contains(err.Error(), "server= of --zone") {
		t.Errorf("%v, %v: want the reason and the next step", got, err)
	}
	if got, err := find("nowhere.example"); err == nil || !strings.Contains(err.Error(), "no NS records") {
		t.Errorf("%v, %v", got, err)
	}
}

// Of several servers one that is silent costs its time once, and those that say different things do
// not take turns.
func TestD3_theServerThatAnsweredLastIsAskedFirst(t *testing.T) {
	silent := answerDNS(t, func(dns.ResponseWriter, *dns.Msg) {})
	good := answerDNS(t, zoneOf(host+". 30 IN A 192.0.2.1"))
	q, z := querier(t), Zone{Domain: "kura.test", Name: "kura"}
	done := make(chan struct{})
	close(done)
	q.found["kura.test"] = &found{done: done, begun: time.Now(), servers: []string{silent.addr, good.addr}}
	for range 3 {
		if got, err := q.Read(t.Context(), z, host); err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	asked, _ := silent.asked()
	if names := len(Naming{}.Names(host)) + 2; asked > 3*names {
		t.Errorf("the silent one was asked %d times, of %d questions", asked, names)
	}
	good.set(func(w dns.ResponseWriter, q *dns.Msg) { m := reply(q); m.Rcode = dns.RcodeRefused; _ = w.WriteMsg(m) })
	if _, err := q.Read(t.Context(), z, host); err == nil || !q.found["kura.test"].lost {
		t.Errorf("%v: want an error, and the servers looked for again", err)
	}
}

func TestG9_aResolverThatHangsEndsNoLaterThanItsTime(t *testing.T) {
	hangs := answerDNS(t, func(dns.ResponseWriter, *dns.Msg) {})
	q, err := NewQuerier(QuerierConfig{Resolver: hangs.addr, Allow: func(netip.Addr) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := q.Read(ctx, Zone{Domain: "kura.test", Name: "kura"}, host); err == nil || time.Since(begun) > readWithin {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}
