package readiness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/dns/wire"
)

// resolveFunc returns the A and AAAA addresses of a host, at least one or an error.
type resolveFunc func(ctx context.Context, host string) ([]netip.Addr, error)

// newResolve returns the resolution by a DNS server, or by the system where server is
// empty.
func newResolve(server string) resolveFunc {
	lookup := systemLookup
	if server != "" {
		if _, _, err := net.SplitHostPort(server); err != nil {
			server = net.JoinHostPort(strings.Trim(server, "[]"), "53")
		}
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) { return serverLookup(ctx, server, host) }
	}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		if addr, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{addr}, nil
		}
		addrs, err := lookup(ctx, host)
		if err == nil && len(addrs) == 0 {
			err = errors.New("it has no A or AAAA record")
		}
		return addrs, err
	}
}

func systemLookup(ctx context.Context, host string) ([]netip.Addr, error) {
	// A new resolver each time: one would share an answer between lookups of the same
	// host that are under way together, and a probe must not use one begun before it.
	// Go's own code, because the C library does not find a name with a final dot in
	// the hosts file.
	addrs, err := (&net.Resolver{PreferGo: true}).LookupNetIP(ctx, "ip", absolute(host))
	if failure, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case failure.IsNotFound:
			return nil, errors.New("it has no A or AAAA record")
		case failure.IsTimeout:
			return nil, errors.New("the system's resolver did not answer")
		}
		return nil, fmt.Errorf("the system's resolver says: %s", failure.Err)
	}
	return addrs, err
}

// absolute adds the final dot that keeps search lists out, where a wildcard might
// answer. A single label such as localhost has none in the hosts file either.
func absolute(host string) string {
	if strings.Contains(host, ".") {
		return dns.Fqdn(host)
	}
	return host
}

// familyGrace is for the other family's answer, once one has addresses.
const familyGrace = 250 * time.Millisecond

// serverLookup asks the DNS server for A and AAAA at the same time. One family is enough:
// servers exist that never answer for the other.
func serverLookup(ctx context.Context, server, host string) (addrs []netip.Addr, failure error) {
	type result struct {
		addrs []netip.Addr
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	families := []uint16{dns.TypeAAAA, dns.TypeA}
	results := make(chan result, len(families))
	for _, family := range families {
		go func() {
			addrs, err := query(ctx, server, host, family)
			results <- result{addrs, err}
		}()
	}
	var grace <-chan time.Time
	for range families {
		select {
		case r := <-results:
			addrs = append(addrs, r.addrs...)
			if r.err != nil {
				failure = r.err
			}
			if len(r.addrs) > 0 && grace == nil {
				grace = time.After(familyGrace)
			}
		case <-grace:
			return addrs, nil
		}
	}
	if len(addrs) > 0 {
		return addrs, nil
	}
	return nil, failure
}

// query puts one question to the server, again where an answer is lost.
func query(ctx context.Context, server, host string, family uint16) ([]netip.Addr, error) {
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(host), family)
	answer, err := wire.Ask(ctx, server, question)
	if err != nil {
		return nil, fmt.Errorf("the resolver %s did not answer: %s", server, errno(err))
	}
	switch answer.Rcode {
	case dns.RcodeSuccess, dns.RcodeNameError:
	default:
		return nil, fmt.Errorf("the resolver %s answered %s", server, dns.RcodeToString[answer.Rcode])
	}
	var addrs []netip.Addr
	for _, record := range answer.Answer {
		var ip net.IP
		switch r := record.(type) {
		case *dns.A:
			ip = r.A
		case *dns.AAAA:
			ip = r.AAAA
		}
		if addr, ok := netip.AddrFromSlice(ip); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs, nil
}
