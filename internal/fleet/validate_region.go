package fleet

import (
	"math"
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// Bounds of a region.
const (
	minStallAfter   = Duration(time.Second)
	maxStallAfter   = Duration(24 * time.Hour)
	maxMaxUnsettled = 1000
	maxPath         = 1024
	minTimeout      = Duration(10 * time.Millisecond)
	maxPort         = 65535
)

// Validate checks a region, with or without its defaults. It knows the built-in
// environments; ValidateFor knows all that share the zone.
func (r Region) Validate() error { return r.ValidateFor(builtin) }

// ValidateFor checks a region, that names of its containers can be told from those of
// every environment that shares the zone with e, and that e has the variable sets which a
// Kubernetes region names.
func (r Region) ValidateFor(e Environment) error {
	var v Invalid
	v.name("/name", r.Name)
	v.text("/display_name", r.DisplayName, maxText)
	v.optional("/cluster_id", r.ClusterID, checkLabel)
	v.hosts(r)
	v.location(r)
	v.readiness(r)
	v.dns(r.DNS)
	v.duration("/stall_after", r.StallAfter, minStallAfter, maxStallAfter)
	v.number("/max_unsettled", r.MaxUnsettled, 0, maxMaxUnsettled)
	v.remediation("/remediation", r.Remediation)
	v.labels("/labels", r.Labels)
	if r.Sidecar != nil {
		v.sidecar(*r.Sidecar)
	}
	switch {
	case r.Kubernetes != nil && r.Containers != nil:
		v.Add("/containers", "is set beside kubernetes; a region has exactly one runtime, so remove one of the two")
	case r.Kubernetes != nil:
		v.kubernetes(e, *r.Kubernetes)
		v.size("/kubernetes", r, maxRegion)
	case r.Containers != nil:
		v.containers(e, r)
		v.size("/containers", r, maxRegion)
	default:
		v.Add("/containers", "is not set, and neither is kubernetes; a region has exactly one runtime, so declare one of the two")
	}
	return v.Err("region " + quote(r.Name))
}

func (v *Invalid) hosts(r Region) {
	v.required("/hosts/public", r.Hosts.Public, "the host template of the region's public hosts")
	v.optional("/hosts/grpc", r.Hosts.GRPC, checkLabel)
	v.optional("/hosts/global", r.Hosts.Global, checkLabel)
	// gRPC may share the public host: it has its own port. The global host leads to
	// servers of several regions and cannot be one of theirs.
	if r.Hosts.Global != "" && (r.Hosts.Global == r.Hosts.Public || r.Hosts.Global == r.Hosts.GRPC) {
		v.Add("/hosts/global", "names the template of another host of the region, so both would be one host; name another template or leave it out")
	}
}

func (v *Invalid) location(r Region) {
	if r.Location == nil {
		if r.Hosts.Global != "" {
			v.Add("/location", "is required with a global host, which is steered by it; write latitude and longitude")
		}
		return
	}
	v.degrees("/location/latitude", r.Location.Latitude, 90)
	v.degrees("/location/longitude", r.Location.Longitude, 180)
}

func (v *Invalid) degrees(pointer string, d, most float64) {
	if math.IsNaN(d) || d < -most || d > most {
		v.Add(pointer, "is %v; write degrees from -%v to %v", d, most, most)
	}
}

func (v *Invalid) readiness(r Region) {
	p := r.Readiness
	v.path("/readiness/path", p.Path)
	oneOf(v, "/readiness/scheme", p.Scheme, SchemeHTTPS, SchemeHTTP)
	if p.Scheme == SchemeHTTP && r.Kubernetes != nil {
		v.Add("/readiness/scheme", `is "http", which only container regions may use; use "https"`)
	}
	v.number("/readiness/port", p.Port, 0, maxPort)
	v.duration("/readiness/timeout", p.Timeout, minTimeout, MaxReadinessTimeout)
	oneOf(v, "/readiness/global", p.Global, GlobalRequired, GlobalAdvisory)
}

// path checks the path of a request; empty takes the default.
func (v *Invalid) path(pointer, p string) {
	switch {
	case p == "":
	case len(p) > maxPath:
		v.Add(pointer, "has %d characters; at most %d are allowed", len(p), maxPath)
	case !strings.HasPrefix(p, "/"):
		v.Add(pointer, "%s is no path of a url; start it with %q", quote(p), "/")
	case strings.ContainsFunc(p, func(c rune) bool { return c <= ' ' || c > '~' || c == '#' }):
		v.Add(pointer, "%s holds a character that a request's path cannot; escape it as %%XX", quote(p))
	}
}

func (v *Invalid) sidecar(s Sidecar) {
	v.number("/sidecar/port", s.Port, 1, maxPort)
	v.path("/sidecar/ready_path", s.ReadyPath)
	v.path("/sidecar/mark_ready_path", s.MarkReadyPath)
	oneOf(v, "/sidecar/scheme", s.Scheme, SchemeHTTP, SchemeHTTPS)
	v.duration("/sidecar/timeout", s.Timeout, minTimeout, MaxReadinessTimeout)
}

// ownerFormat is what stands in external-dns' TXT records without quoting.
var ownerFormat = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func (v *Invalid) dns(d DNS) {
	oneOf(v, "/dns/mode", d.Mode, DNSNone, DNSExternalDNS, DNSManaged)
	published := d.Mode == DNSExternalDNS || d.Mode == DNSManaged
	v.matches("/dns/owner_id", d.OwnerID, ownerFormat, "owner id; use letters, digits and . _ -")
	if d.OwnerID == "" && published {
		v.Add("/dns/owner_id", "is required with dns mode %q, which tells our records from others' by it; write the owner id of the TXT records", d.Mode)
	}
	switch {
	case d.Target != "" && !isAddress(d.Target):
		v.Add("/dns/target", "%s is neither an IP address nor a host name; write what the records shall point to", quote(d.Target))
	case d.Target == "" && d.Mode == DNSManaged:
		v.Add("/dns/target", "is required with dns mode %q; write the IP address or host name that the records shall point to", d.Mode)
	}
}

func isAddress(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return CheckHost(strings.TrimSuffix(s, ".")) == nil
}
