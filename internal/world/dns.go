package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DNS is an authoritative server on loopback, by UDP and TCP, for one zone whose names are set here, or for
// zones whose names somebody else knows (ServeDNS).
type DNS struct {
	zones   []string
	answers Answers
	address string
	servers []*dns.Server
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	records map[string][]netip.Addr // by name; "*" answers for names without their own
	hidden  map[string]bool         // names that do not exist, whatever the records say
	fault   DNSFault
	queries int
}

// DNSFault is how the server misbehaves; zero: it does not.
type DNSFault struct {
	ServFail bool          // answers SERVFAIL
	Drop     bool          // answers nothing
	DropAAAA bool          // answers nothing when asked for AAAA
	Delay    time.Duration // before every answer
}

// Answers says what is answered to a question for a canonical name within the zones, and whether the name
// exists. Client is the address of an EDNS client subnet (RFC 7871); without one it is not valid.
type Answers func(q dns.Question, client netip.Addr) (records []dns.RR, exists bool)

// StartDNS serves zone, for example kura.test, on a free port.
func StartDNS(zone string) (*DNS, error) {
	d := NewDNS(nil, zone)
	d.answers = d.set
	return d, d.listen()
}

// ServeDNS serves zones on a free port with what answers says; it adds their SOA records.
func ServeDNS(answers Answers, zones ...string) (*DNS, error) {
	d := NewDNS(answers, zones...)
	return d, d.listen()
}

// NewDNS is a server that listens nowhere: Exchange asks it, in a synctest bubble too.
func NewDNS(answers Answers, zones ...string) *DNS {
	d := &DNS{answers: answers, closed: make(chan struct{}), records: map[string][]netip.Addr{}, hidden: map[string]bool{}}
	for _, zone := range zones {
		d.zones = append(d.zones, dns.CanonicalName(zone))
	}
	return d
}

func (d *DNS) listen() error {
	udp, tcp, err := listenBoth()
	if err != nil {
		return fmt.Errorf("serve DNS for %s: %w", strings.Join(d.zones, ", "), err)
	}
	d.address = udp.LocalAddr().String()
	d.servers = []*dns.Server{{PacketConn: udp, Handler: d}, {Listener: tcp, Handler: d}}
	for _, server := range d.servers {
		started := make(chan error, 1)
		server.NotifyStartedFunc = func() { started <- nil }
		go func() {
			if err := server.ActivateAndServe(); err != nil {
				select {
				case started <- err:
				default:
				}
			}
		}()
		if err := <-started; err != nil {
			return errors.Join(fmt.Errorf("serve DNS for %s: %w", strings.Join(d.zones, ", "), err), d.Close())
		}
	}
	return nil
}

// listenBoth finds a port that is free for UDP and for TCP.
func listenBoth() (net.PacketConn, net.Listener, error) {
	var last error
	for range 20 {
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err == nil {
			return udp, tcp, nil
		}
		udp.Close()
		last = err
	}
	return nil, nil, fmt.Errorf("no port is free for UDP and TCP: %w", last)
}

// Addr returns the server's address, host:port.
func (d *DNS) Addr() string { return d.address }

// Close stops the server. It may be called again.
func (d *DNS) Close() error {
	var err error
	d.once.Do(func() {
		close(d.closed)
		for _, server := range d.servers {
			err = errors.Join(err, server.Shutdown())
		}
	})
	return err
}

// SetWildcard sets the addresses of every name of the zone without records of its own.
func (d *DNS) SetWildcard(addrs ...netip.Addr) { d.put("*", addrs) }

// Set gives name its own addresses, A and AAAA mixed; none at all: the name
// exists and has no address.
func (d *DNS) Set(name string, addrs ...netip.Addr) { d.put(dns.CanonicalName(name), addrs) }

// Hide makes name not exist (NXDOMAIN), though the wildcard would answer for it.
func (d *DNS) Hide(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hidden[dns.CanonicalName(name)] = true
}

func (d *DNS) put(name string, addrs []netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[name] = addrs
}

// Remove takes away what was set of name, or that it is hidden: the wildcard answers for
// it again.
func (d *DNS) Remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.records, dns.CanonicalName(name))
	delete(d.hidden, dns.CanonicalName(name))
}

// SetFault makes the server misbehave, or behave again.
func (d *DNS) SetFault(fault DNSFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// Queries returns how many questions arrived.
func (d *DNS) Queries() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queries
}

// ServeDNS implements dns.Handler.
func (d *DNS) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	if answer := d.ask(context.Background(), question, w.LocalAddr().Network()); answer != nil {
		_ = w.WriteMsg(answer) // the asker may be gone
	}
}

// Exchange asks without a socket, as by udp or tcp, and waits as long as ctx does where nothing is answered.
func (d *DNS) Exchange(ctx context.Context, question *dns.Msg, network string) (*dns.Msg, error) {
	answer := d.ask(ctx, question, network)
	if answer != nil {
		return answer, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// ask returns the answer, or nil where there is to be none.
func (d *DNS) ask(ctx context.Context, question *dns.Msg, network string) *dns.Msg {
	if len(question.Question) != 1 {
		return nil
	}
	q := question.Question[0]
	q.Name = dns.CanonicalName(q.Name)
	d.mu.Lock()
	d.queries++
	fault := d.fault
	d.mu.Unlock()

	if fault.Drop || (fault.DropAAAA && q.Qtype == dns.TypeAAAA) {
		return nil
	}
	if fault.Delay > 0 {
		delay := time.NewTimer(fault.Delay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-ctx.Done():
			return nil
		case <-d.closed:
			return nil
		}
	}
	return d.answer(question, q, fault, network == "udp")
}

// answer makes the message that answers q, the question's with its name in canonical form.
func (d *DNS) answer(question *dns.Msg, q dns.Question, fault DNSFault, datagram bool) *dns.Msg {
	answer := new(dns.Msg).SetReply(question)
	answer.Authoritative = true
	size, client := uint16(dns.MinMsgSize), netip.Addr{}
	if opt := question.IsEdns0(); opt != nil {
		size = max(size, opt.UDPSize())
		client = echoEDNS(answer, opt)
	}
	zone := d.zoneOf(q.Name)
	switch {
	case fault.ServFail:
		answer.Rcode = dns.RcodeServerFailure
	case zone == "":
		answer.Authoritative, answer.Rcode = false, dns.RcodeRefused
	default:
		records, exists := d.answers(q, client)
		if answer.Answer = records; !exists {
			answer.Rcode = dns.RcodeNameError
		}
		if q.Name == zone && q.Qtype == dns.TypeSOA {
			answer.Answer = []dns.RR{soa(zone)}
		}
		if len(answer.Answer) == 0 {
			answer.Ns = []dns.RR{soa(zone)}
		}
	}
	if datagram {
		answer.Truncate(int(size))
	}
	return answer
}

// echoEDNS says in answer that EDNS was understood, its client subnet too (RFC 7871, 7.2.1), and returns that.
func echoEDNS(answer *dns.Msg, opt *dns.OPT) netip.Addr {
	answer.SetEdns0(opt.UDPSize(), false)
	for _, option := range opt.Option {
		if subnet, ok := option.(*dns.EDNS0_SUBNET); ok {
			scoped := *subnet
			scoped.SourceScope = subnet.SourceNetmask
			mine := answer.IsEdns0()
			mine.Option = append(mine.Option, &scoped)
			client, _ := netip.AddrFromSlice(subnet.Address)
			return client.Unmap()
		}
	}
	return netip.Addr{}
}

// zoneOf returns the closest of the zones that name is in; "": none.
func (d *DNS) zoneOf(name string) string {
	closest := ""
	for _, zone := range d.zones {
		if dns.IsSubDomain(zone, name) && len(zone) > len(closest) {
			closest = zone
		}
	}
	return closest
}

// set answers with what was set here.
func (d *DNS) set(q dns.Question, _ netip.Addr) ([]dns.RR, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	addrs, exists := d.lookup(q.Name)
	return Addresses(q, 0, addrs), exists
}

// lookup returns the addresses of a name and whether it exists.
func (d *DNS) lookup(name string) ([]netip.Addr, bool) {
	if d.hidden[name] {
		return nil, false
	}
	if addrs, ok := d.records[name]; ok {
		return addrs, true
	}
	if name == d.zones[0] {
		return nil, true
	}
	addrs, ok := d.records["*"]
	return addrs, ok
}

// Addresses returns the addresses of the question's type as its records, which may be kept for ttl seconds.
func Addresses(q dns.Question, ttl uint32, addrs []netip.Addr) []dns.RR {
	var records []dns.RR
	header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: ttl}
	for _, addr := range addrs {
		switch {
		case q.Qtype == dns.TypeA && addr.Is4():
			records = append(records, &dns.A{Hdr: header, A: addr.AsSlice()})
		case q.Qtype == dns.TypeAAAA && addr.Is6():
			records = append(records, &dns.AAAA{Hdr: header, AAAA: addr.AsSlice()})
		}
	}
	return records
}

func soa(zone string) dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET},
		Ns:  "ns." + zone, Mbox: "hostmaster." + zone,
		Serial: 1, Refresh: 60, Retry: 60, Expire: 60,
	}
}
