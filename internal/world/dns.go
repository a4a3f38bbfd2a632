package world

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// DNS is an authoritative server for one zone, on loopback, by UDP and TCP.
type DNS struct {
	zone, address string
	servers       []*dns.Server
	closed        chan struct{}
	once          sync.Once

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

// StartDNS serves zone, for example kura.test, on a free port.
func StartDNS(zone string) (*DNS, error) {
	d := &DNS{zone: dns.CanonicalName(zone), closed: make(chan struct{}), records: map[string][]netip.Addr{}, hidden: map[string]bool{}}
	udp, tcp, err := listenBoth()
	if err != nil {
		return nil, fmt.Errorf("serve DNS for %s: %w", zone, err)
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
			return nil, errors.Join(fmt.Errorf("serve DNS for %s: %w", zone, err), d.Close())
		}
	}
	return d, nil
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
	if len(question.Question) != 1 {
		return
	}
	q := question.Question[0]
	d.mu.Lock()
	d.queries++
	fault := d.fault
	addrs, exists := d.lookup(dns.CanonicalName(q.Name))
	d.mu.Unlock()

	if fault.Drop || (fault.DropAAAA && q.Qtype == dns.TypeAAAA) {
		return
	}
	if fault.Delay > 0 {
		delay := time.NewTimer(fault.Delay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-d.closed:
			return
		}
	}
	answer := new(dns.Msg).SetReply(question)
	answer.Authoritative = true
	switch {
	case fault.ServFail:
		answer.Rcode = dns.RcodeServerFailure
	case !dns.IsSubDomain(d.zone, dns.CanonicalName(q.Name)):
		answer.Authoritative, answer.Rcode = false, dns.RcodeRefused
	case !exists:
		answer.Rcode = dns.RcodeNameError
	default:
		answer.Answer = resources(q, addrs)
	}
	if answer.Rcode == dns.RcodeNameError || (answer.Rcode == dns.RcodeSuccess && len(answer.Answer) == 0) {
		answer.Ns = []dns.RR{d.soa()}
	}
	if w.LocalAddr().Network() == "udp" {
		answer.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(answer) // the asker may be gone
}

// lookup returns the addresses of a name and whether it exists.
func (d *DNS) lookup(name string) ([]netip.Addr, bool) {
	if d.hidden[name] {
		return nil, false
	}
	if addrs, ok := d.records[name]; ok {
		return addrs, true
	}
	if name == d.zone {
		return nil, true
	}
	addrs, ok := d.records["*"]
	return addrs, ok && strings.HasSuffix(name, "."+d.zone)
}

// resources returns the records of the question's type; nobody may keep them (TTL 0).
func resources(q dns.Question, addrs []netip.Addr) []dns.RR {
	var records []dns.RR
	header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET}
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

func (d *DNS) soa() dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: d.zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET},
		Ns:  "ns." + d.zone, Mbox: "hostmaster." + d.zone,
		Serial: 1, Refresh: 60, Retry: 60, Expire: 60,
	}
}
