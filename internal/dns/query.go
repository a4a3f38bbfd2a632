package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/dns/wire"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	readWithin = 8 * time.Second  // two servers of which the first is silent
	keepFound  = 10 * time.Minute // the servers of a zone
	keepLost   = 30 * time.Second // those that did not answer, and that none were found
	maxServers = 8                // of a zone that are tried
	ednsSize   = 1232             // bytes of an answer by UDP that no path cuts (DNS flag day 2020)
)

// QuerierConfig is what an operator sets for queries.
type QuerierConfig struct {
	// Resolver is host:port of the DNS server that finds the servers of a zone; "": the system's.
	Resolver string
	// Allow refuses an address that a zone's NS records lead to. A server that the operator
	// gave (Zone.Server) is asked wherever it is.
	Allow func(netip.Addr) error
}

// Querier reads hosts by queries to the servers of their zones. No resolver's cache stands in
// between: only what the zone itself says counts (D3).
type Querier struct {
	resolver *net.Resolver
	allow    func(netip.Addr) error

	mu    sync.Mutex
	found map[string]*found // by domain
}

// found are the servers of a zone, or why none could be found.
type found struct {
	done    chan struct{} // closed when what follows is known
	begun   time.Time
	servers []string // host:port; the one that answered last is the first
	err     error
	lost    bool // none of them answered
}

// NewQuerier returns a Querier that has asked nobody yet.
func NewQuerier(cfg QuerierConfig) (*Querier, error) {
	q := &Querier{resolver: &net.Resolver{PreferGo: true}, allow: cfg.Allow, found: map[string]*found{}}
	if cfg.Resolver != "" {
		server, err := hostPort(cfg.Resolver)
		if err != nil {
			return nil, err
		}
		q.resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server)
		}
	}
	return q, nil
}

// Read asks for all there is of a host: its addresses, where it leads, and the TXT records of
// every name under which its ownership may stand. None of it is an answer too; an error says that
// no server of the zone answered for all of it (D5).
func (q *Querier) Read(ctx context.Context, z Zone, host string) ([]fleet.DNSRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	servers, err := q.servers(ctx, z)
	if err != nil {
		return nil, err
	}
	var last error
	for _, server := range servers {
		records, err := readFrom(ctx, server, z, host)
		if err == nil {
			q.answered(z, server)
			return records, nil
		}
		last = cmp.Or(last, err)
		if ctx.Err() != nil {
			break
		}
	}
	q.lose(z)
	return nil, fmt.Errorf("zone %s: %w", z.Name, last)
}

// readFrom asks one server for everything at once.
func readFrom(ctx context.Context, server string, z Zone, host string) ([]fleet.DNSRecord, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	questions := []dns.Question{{Name: host, Qtype: dns.TypeA}, {Name: host, Qtype: dns.TypeAAAA}} // either answers with a CNAME
	for _, name := range z.TXT.Names(host) {
		questions = append(questions, dns.Question{Name: name, Qtype: dns.TypeTXT})
	}
	type answer struct {
		records []fleet.DNSRecord
		err     error
	}
	answers := make(chan answer, len(questions))
	for _, question := range questions {
		go func() {
			records, err := ask(ctx, server, question)
			answers <- answer{records, err}
		}()
	}
	var all []fleet.DNSRecord
	for range questions {
		a := <-answers
		if a.err != nil {
			return nil, a.err
		}
		for _, record := range a.records {
			if !slices.Contains(all, record) { // a CNAME comes with every answer
				all = append(all, record)
			}
		}
	}
	slices.SortFunc(all, func(a, b fleet.DNSRecord) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Content, b.Content))
	})
	return all, nil
}

// ask puts one question. Only what the server says of its own zone about this very name is an
// answer; that there is nothing, too.
func ask(ctx context.Context, server string, question dns.Question) ([]fleet.DNSRecord, error) {
	fail := func(format string, args ...any) ([]fleet.DNSRecord, error) {
		return nil, fmt.Errorf("the DNS server %s %s when asked for %s of %s", server, fmt.Sprintf(format, args...), dns.TypeToString[question.Qtype], question.Name)
	}
	name := dns.Fqdn(question.Name)
	m := new(dns.Msg).SetQuestion(name, question.Qtype)
	m.RecursionDesired = false
	m.SetEdns0(ednsSize, false)
	answer, err := wire.Ask(ctx, server, m)
	switch {
	case err != nil:
		return fail("did not answer (%s)", shortly(err))
	case answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError:
		return fail("answered %s", cmp.Or(dns.RcodeToString[answer.Rcode], fmt.Sprint("code ", answer.Rcode)))
	case !answer.Authoritative:
		return fail("answered not as a server of the zone (it is none, or the name is delegated to others)")
	}
	var records []fleet.DNSRecord
	about := len(answer.Answer) == 0
	for _, rr := range answer.Answer {
		if strings.EqualFold(rr.Header().Name, name) {
			about = true
			records = append(records, recordsOf(rr, question)...)
		}
	}
	if !about {
		return fail("answered about another name, %s,", strings.TrimSuffix(answer.Answer[0].Header().Name, "."))
	}
	return records, nil
}

// recordsOf takes a record of the name that was asked for; none where it is of a type that nobody
// asked for, such as a signature.
func recordsOf(rr dns.RR, question dns.Question) []fleet.DNSRecord {
	record := fleet.DNSRecord{Name: question.Name, Type: dns.TypeToString[rr.Header().Rrtype], TTL: int(rr.Header().Ttl)}
	switch rr := rr.(type) {
	case *dns.A:
		addr, _ := netip.AddrFromSlice(rr.A.To4())
		record.Content = addr.String()
	case *dns.AAAA:
		addr, _ := netip.AddrFromSlice(rr.AAAA)
		record.Content = addr.String()
	case *dns.CNAME:
		record.Content = strings.ToLower(strings.TrimSuffix(rr.Target, "."))
	case *dns.TXT:
		for _, part := range rr.Txt {
			record.Content += unescape(part)
		}
	default:
		return nil
	}
	return []fleet.DNSRecord{record}
}

// unescape turns a character string of RFC 1035's text form (5.1), which is how the library
// shows what came, into its bytes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case i+3 < len(s) && digits(s[i+1:i+4]):
			b.WriteByte((s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0')
			i += 3
		default:
			i++
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func digits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// servers returns where the zone's servers are: as given, or as found not long ago.
func (q *Querier) servers(ctx context.Context, z Zone) ([]string, error) {
	if z.Server != "" {
		return []string{z.Server}, nil
	}
	q.mu.Lock()
	f := q.found[z.Domain]
	if f == nil || f.over() {
		f = &found{done: make(chan struct{}), begun: time.Now()}
		q.found[z.Domain] = f
		go q.find(f, z)
	}
	q.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("zone %s: its DNS servers were not found within %s", z.Name, readWithin)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(f.servers), f.err
}

// over reports whether the servers are looked for again; the querier's lock is held.
func (f *found) over() bool {
	select {
	case <-f.done:
	default:
		return false
	}
	age := time.Since(f.begun)
	return age > keepFound || (f.lost || f.err != nil) && age > keepLost
}

// find asks the resolver for the servers of the zone, or of the one that it is a part of.
func (q *Querier) find(f *found, z Zone) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	servers, err := q.lookup(ctx, z.Domain)
	if err != nil {
		err = fmt.Errorf("zone %s: its DNS servers cannot be found: %w; give one with server= of --zone", z.Name, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	f.servers, f.err = servers, err
	close(f.done)
}

func (q *Querier) lookup(ctx context.Context, domain string) (servers []string, err error) {
	var names []*net.NS
	for at := domain; ; {
		names, err = q.resolver.LookupNS(ctx, dns.Fqdn(at))
		_, parent, more := strings.Cut(at, ".")
		if len(names) > 0 || ctx.Err() != nil || !more || !strings.Contains(parent, ".") {
			break
		}
		at = parent
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no NS records of %s: %s", domain, shortly(err))
	}
	var refused []error
	for _, ns := range names[:min(len(names), maxServers)] {
		addrs, err := q.resolver.LookupNetIP(ctx, "ip", ns.Host)
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %s", strings.TrimSuffix(ns.Host, "."), shortly(err)))
		}
		for _, addr := range addrs {
			if err := q.allow(addr); err != nil {
				refused = append(refused, fmt.Errorf("%s: %w", strings.TrimSuffix(ns.Host, "."), err))
			} else if len(servers) < maxServers {
				servers = append(servers, netip.AddrPortFrom(addr.Unmap(), 53).String())
			}
		}
	}
	if len(servers) == 0 {
		return nil, errors.Join(refused...)
	}
	return servers, nil
}

// answered puts the server that answered before the others: one that is silent costs time, and
// two that do not know the same must not take turns.
func (q *Querier) answered(z Zone, server string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.found[z.Domain]; f != nil {
		if i := slices.Index(f.servers, server); i > 0 {
			f.servers = slices.Insert(slices.Delete(f.servers, i, i+1), 0, server)
		}
		f.lost = false
	}
}

// lose has the servers of a zone looked for again.
func (q *Querier) lose(z Zone) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.found[z.Domain]; f != nil {
		f.lost = true
	}
}

// shortly is a network error without the addresses that the message names already.
func shortly(err error) string {
	if err == nil {
		return "none"
	}
	if failure, ok := errors.AsType[*net.DNSError](err); ok {
		return failure.Err
	}
	if failure, ok := errors.AsType[net.Error](err); ok && failure.Timeout() {
		return "timeout"
	}
	if failure, ok := errors.AsType[*net.OpError](err); ok {
		return failure.Err.Error()
	}
	return err.Error()
}
