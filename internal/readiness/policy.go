package readiness

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Policy says which addresses may be probed (R4): public ones, and those that the
// operator listed.
type Policy struct{ allow []netip.Prefix }

// NewPolicy returns the policy that allows the listed prefixes besides public addresses.
func NewPolicy(allow []netip.Prefix) Policy {
	var p Policy
	for _, prefix := range allow {
		// Addresses are compared unmapped, so ::ffff:10.0.0.0/104 has to become 10.0.0.0/8.
		if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		p.allow = append(p.allow, prefix.Masked())
	}
	return p
}

// DeniedError says that an address may not be probed, and how to allow it.
type DeniedError struct {
	Addr netip.Addr
	Kind string // for example "loopback"
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s is a %s address, which is not probed unless kurad runs with --probe-allow-cidr %s",
		e.Addr, e.Kind, netip.PrefixFrom(e.Addr.WithZone(""), e.Addr.BitLen()))
}

// Check returns a *DeniedError unless addr may be probed.
func (p Policy) Check(addr netip.Addr) error {
	addr = addr.Unmap()
	reached := wrapped(addr)
	kind := cmp.Or(kindOf(addr), kindOf(reached))
	if kind == "" || p.allows(addr) || p.allows(reached) {
		return nil
	}
	return &DeniedError{Addr: addr, Kind: kind}
}

func (p Policy) allows(addr netip.Addr) bool {
	addr = addr.WithZone("") // no prefix contains an address with a zone
	return slices.ContainsFunc(p.allow, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// Prefixes under which an IPv6 address leads to the IPv4 address inside it.
var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixTo4   = netip.MustParsePrefix("2002::/16")    // RFC 3056
	v4Compat = netip.MustParsePrefix("::/96")        // RFC 4291, deprecated
)

// wrapped returns the IPv4 address that addr leads to, or addr itself.
func wrapped(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	bytes := addr.As16()
	switch {
	case nat64.Contains(addr), v4Compat.Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixTo4.Contains(addr):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	return addr
}

// special lists ranges that netip has no method for; the first match names the kind.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata"},  // AWS
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},   // Azure, though a public address
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},   // Google
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},             // RFC 6890; Oracle's metadata is inside
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},   // RFC 6598
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},             // Linux connects to the machine itself
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark"},           // RFC 2544
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},              // with the broadcast address
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local-use NAT64"},    // RFC 8215: the address inside cannot be told
	{netip.MustParsePrefix("2001::/32"), "Teredo"},                  // RFC 4380: leads to an IPv4 address
	{netip.MustParsePrefix("fec0::/10"), "site-local"},              // RFC 3879
	{netip.MustParsePrefix("100::/64"), "discard"},                  // RFC 6666
}

// kindOf names the kind of an address that is not public, or returns "".
func kindOf(addr netip.Addr) string {
	addr = addr.WithZone("")
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.kind
		}
	}
	switch {
	case !addr.IsValid():
		return "invalid"
	case addr.IsUnspecified():
		return "unspecified"
	case addr.IsLoopback():
		return "loopback"
	case addr.IsLinkLocalUnicast():
		return "link-local"
	case addr.IsMulticast():
		return "multicast"
	case addr.IsPrivate():
		return "private"
	}
	return ""
}
