package readiness

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// MaxTimeout bounds a whole probe, from resolution to the end of the body (R1).
const MaxTimeout = 5 * time.Second

// Config is what an operator sets for probes.
type Config struct {
	// Resolver is the address of a DNS server, host or host:port (--resolver). It is
	// asked directly: no hosts file, no search list. Empty: the system's resolver.
	Resolver string
	// AllowCIDR lists addresses that may be probed although they are private,
	// loopback or otherwise refused (--probe-allow-cidr, R4).
	AllowCIDR []netip.Prefix
	// RootCAs are trusted to sign endpoints' certificates; nil: the system's.
	RootCAs *x509.CertPool
}

// Target is one endpoint to probe.
type Target = fleet.ProbeTarget

// ParseAllow reads the values of --probe-allow-cidr: prefixes such as
// 10.0.0.0/8, or single addresses.
func ParseAllow(texts []string) ([]netip.Prefix, error) {
	var allowed []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("--probe-allow-cidr %q is neither a prefix such as 10.0.0.0/8 nor an address such as 127.0.0.1", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix != prefix.Masked() {
			return nil, fmt.Errorf("--probe-allow-cidr %q has bits set after its length: did you mean %s?", text, prefix.Masked())
		}
		allowed = append(allowed, prefix)
	}
	return allowed, nil
}

// LoadRoots returns the system's certificate authorities with those of the PEM
// files added (--probe-ca); without files it returns nil, the system's alone.
func LoadRoots(files ...string) (*x509.CertPool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // a machine without any: the named ones are enough
		pool = x509.NewCertPool()
	}
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read --probe-ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--probe-ca %s holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", file)
		}
	}
	return pool, nil
}

// clip shortens a message to what a condition may carry, on a rune's boundary.
func clip(message string) string {
	const most, end = 256, "…"
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-len(end)], "") + end
}
