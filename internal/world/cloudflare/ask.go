package cloudflare

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/miekg/dns"
)

// Ask returns the addresses that a resolver hears of a host which asks for a client at that IPv4 address (RFC 7871).
func (e *Emulator) Ask(ctx context.Context, host string, client netip.Addr) (found []netip.Addr, err error) {
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(host), dns.TypeA)
	question.SetEdns0(1232, false)
	question.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 32, Address: client.AsSlice()}}
	answer, err := e.dns.Exchange(ctx, question, "udp")
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", host, err)
	}
	for _, record := range answer.Answer {
		if a, ok := record.(*dns.A); ok {
			addr, _ := netip.AddrFromSlice(a.A.To4())
			found = append(found, addr)
		}
	}
	return found, nil
}
