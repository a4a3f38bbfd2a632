package dns

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Zones are those that the daemon was given.
type Zones []Zone

// Operations that one batch may hold, by plan (Cloudflare's API documentation, dns_records/batch).
const (
	batchFree = 200
	batchPaid = 3500
)

const zoneExample = "kura.example.dev,cloudflare=/etc/kurad/cloudflare.token or kura.example.dev,server=192.0.2.53:53"

// ParseZones reads zones as they are given on the command line:
//
//	kura.example.dev[=name][,server=host:port][,txt-prefix=…|txt-suffix=…]
//	kura.example.dev[=name],cloudflare=/file|env:NAME[,account=…][,plan=free|paid][,api=url][,…]
//
// No two are of one domain or one name. No file is opened.
func ParseZones(flags []string) (Zones, error) {
	var zs Zones
	for _, flag := range flags {
		z, err := parseZone(flag)
		if err == nil {
			err = zs.clash(z)
		}
		if err != nil {
			return nil, fmt.Errorf("--zone %s: %w", secret.ReplaceAllString(flag, "$1=***"), err)
		}
		zs = append(zs, z)
	}
	return zs, nil
}

// secret is a token where the file with it belongs, also under a key that is mistyped.
var secret = regexp.MustCompile(`(?i)\b(c[a-z]*f[a-z]*|[a-z_-]*token)=[^/,][^,]*`)

func (zs Zones) clash(z Zone) error {
	for _, other := range zs {
		switch {
		case other.Domain == z.Domain:
			return fmt.Errorf("the zone %s is given twice; give it once, with all that holds of it", z.Domain)
		case other.Name == z.Name:
			return fmt.Errorf("the name %q is that of zone %s; choose another", z.Name, other.Domain)
		}
	}
	return nil
}

// Of returns the zone that has the host: of one within another, the inner.
func (zs Zones) Of(host string) (z Zone, ok bool) {
	for _, each := range zs {
		if strings.HasSuffix(host, "."+each.Domain) && len(each.Domain) > len(z.Domain) {
			z = each
		}
	}
	return z, z.Domain != ""
}

// Has returns the domain of the zone that has the host, "" where none has, and whether it was given
// with a token.
func (zs Zones) Has(host string) (domain string, token bool) {
	z, _ := zs.Of(host)
	return z.Domain, z.Token != ""
}

// Modes are what a region's dns.mode may be with these zones, besides none.
func (zs Zones) Modes() (modes []fleet.DNSMode) {
	if len(zs) > 0 {
		modes = append(modes, fleet.DNSExternalDNS)
	}
	if slices.ContainsFunc(zs, func(z Zone) bool { return z.Token != "" }) {
		modes = append(modes, fleet.DNSManaged)
	}
	return modes
}

// Domains lists the zones, sorted.
func (zs Zones) Domains() []string {
	var domains []string
	for _, z := range zs {
		domains = append(domains, z.Domain)
	}
	slices.Sort(domains)
	return domains
}

func parseZone(flag string) (z Zone, err error) {
	first, err := fleet.ParseFlag(flag, z.set)
	if err != nil {
		return z, fmt.Errorf("%w; write one such as %s", err, zoneExample)
	}
	domain, name, named := strings.Cut(first, "=")
	z.Domain = strings.TrimSuffix(strings.ToLower(domain), ".")
	z.Name = cmp.Or(name, z.Domain)
	switch err := fleet.CheckHost(z.Domain); {
	case err != nil:
		return z, fmt.Errorf("the zone %q %w; begin with one such as kura.example.dev", domain, err)
	case named && !nameFormat.MatchString(name):
		return z, fmt.Errorf("the name %q may hold only lower-case letters, digits, - and ., at most 63", name)
	case z.TXT.Prefix != "" && z.TXT.Suffix != "":
		return z, fmt.Errorf("both txt-prefix and txt-suffix are given; external-dns has one of them: give the same")
	case z.Token == "" && (z.Account != "" || z.BatchLimit != 0 || z.API != ""):
		return z, fmt.Errorf("account=, plan= and api= are of the API, and no token for it is given; add cloudflare=<file with the token>, or leave them out")
	}
	z.BatchLimit = cmp.Or(z.BatchLimit, batchFree)
	return z, nil
}

var (
	nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	envFormat  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// affixFormat is what external-dns puts before or behind the first label. A dot makes a label
	// of its own.
	affixFormat = regexp.MustCompile(`^[a-z0-9._-]{0,63}$`)
)

func (z *Zone) set(key, value string) error {
	if value == "" && key != "" {
		return fmt.Errorf("%s= has no value", key)
	}
	switch key {
	case "cloudflare":
		if name, env := strings.CutPrefix(value, "env:"); env && !envFormat.MatchString(name) || !env && !filepath.IsAbs(value) {
			return fmt.Errorf("cloudflare= is neither the absolute path of a file with the token nor env:NAME; the token itself never stands in a flag, where ps shows it")
		}
		z.Token = value
	case "account":
		z.Account = value
	case "server":
		server, err := hostPort(value)
		if err != nil {
			return err
		}
		z.Server = server
	case "txt-prefix", "txt-suffix":
		if !affixFormat.MatchString(strings.ReplaceAll(value, recordType, "")) {
			return fmt.Errorf("%s %q holds more than lower-case letters, digits, . _ - and %s; write it as external-dns was given it", key, value, recordType)
		}
		*map[string]*string{"txt-prefix": &z.TXT.Prefix, "txt-suffix": &z.TXT.Suffix}[key] = value
	case "plan":
		z.BatchLimit = map[string]int{"free": batchFree, "paid": batchPaid}[value]
		if z.BatchLimit == 0 {
			return fmt.Errorf("plan %q is neither free nor paid", value)
		}
	case "api":
		if err := CheckAPI(value); err != nil {
			return err
		}
		z.API = strings.TrimSuffix(value, "/")
	case "":
		return fmt.Errorf("an empty part between commas")
	default:
		return fmt.Errorf("%q is none of cloudflare, account, server, txt-prefix, txt-suffix, plan, api", key)
	}
	return nil
}

// recordType stands in a prefix or suffix for the type of the record that is owned.
const recordType = "%{record_type}"

// hostPort adds the port 53 where there is none.
func hostPort(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = strings.Trim(server, "[]"), "53"
	}
	_, notAddr := netip.ParseAddr(host)
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || notAddr != nil && fleet.CheckHost(host) != nil {
		return "", fmt.Errorf("server %q is no DNS server; write an address or a name, and a port unless it is 53: 192.0.2.53:5353", server)
	}
	return net.JoinHostPort(host, port), nil
}

// CheckAPI refuses the base of an API that a token may not be sent to: it is reached by https, or by
// http on the loopback.
func CheckAPI(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("api %q is not the https:// URL of an API", base)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return fmt.Errorf("api %q is not the https:// URL of an API: the token would cross the network in the clear", base)
	}
	return nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
