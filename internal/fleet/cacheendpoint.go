package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Technologies of cache endpoints.
const (
	// TechnologyKura is that of the endpoints that the daemon derives from servers.
	TechnologyKura = "kura"
	// TechnologyDefault is that of a declared endpoint that names no other.
	TechnologyDefault = "default"
)

// MaxCacheEndpoints is how many endpoints may be declared of one account.
const MaxCacheEndpoints = 64

// maxURL is the most bytes that a declared url has.
const maxURL = 1024

// CacheEndpoint is a url that clients of an account may use although no server of the
// daemon answers there. What it is made of is its identity: a change is another endpoint.
type CacheEndpoint struct {
	Account    string `json:"account"`
	Technology string `json:"technology,omitempty"` // empty: TechnologyDefault
	URL        string `json:"url"`
}

// WithDefaults returns the endpoint with its technology filled in, as it is stored.
func (c CacheEndpoint) WithDefaults() CacheEndpoint {
	if c.Technology == "" {
		c.Technology = TechnologyDefault
	}
	return c
}

// Key names the endpoint among those of its account: 16 hexadecimal digits of a hash of
// technology and url, the same for ever.
func (c CacheEndpoint) Key() string {
	sum := sha256.Sum256([]byte(c.WithDefaults().Technology + "\x00" + c.URL))
	return hex.EncodeToString(sum[:8])
}

// String writes the endpoint as account/technology/url; see ParseCacheEndpoint.
func (c CacheEndpoint) String() string {
	return c.Account + "/" + c.WithDefaults().Technology + "/" + c.URL
}

// ParseCacheEndpoint parses account/technology/url. Neither an account nor a technology
// holds a slash, so what follows the second one is the url, slashes and all.
func ParseCacheEndpoint(s string) (CacheEndpoint, error) {
	parts := strings.SplitN(s, "/", 3)
	if len(parts) < 3 || !strings.Contains(parts[2], "://") {
		return CacheEndpoint{}, Errorf(CodeInvalid, "%s is not a cache endpoint; write <account>/<technology>/<url>, such as acme/%s/https://cache.example.dev", quote(s), TechnologyDefault)
	}
	c := CacheEndpoint{Account: parts[0], Technology: parts[1], URL: parts[2]}
	return c, c.Validate()
}

// Validate checks a declared endpoint. One endpoint has one way to be written, so that
// nobody declares it twice.
func (c CacheEndpoint) Validate() error {
	var v Invalid
	v.note("/account", checkLabel(c.Account))
	if c.Technology == TechnologyKura {
		v.Add("/technology", "%q is that of the endpoints that kurad derives from its servers; leave it out or name another", TechnologyKura)
	} else if c.Technology != "" {
		v.note("/technology", checkLabel(c.Technology))
	}
	_, err := parseEndpointURL(c.URL)
	v.note("/url", err)
	return v.Err("cache endpoint of account " + quote(c.Account))
}

// CheckStale refuses an endpoint whose host is another environment's (H9) by a host
// template that this environment knows.
func (c CacheEndpoint) CheckStale(e Environment, templates []HostTemplate) error {
	u, err := parseEndpointURL(c.URL)
	if err != nil {
		return nil // Validate says so
	}
	for _, t := range templates {
		zone := Zone(t.Pattern)
		if !StaleHost(e, zone, u.Hostname()) {
			continue
		}
		var v Invalid
		v.Add("/url", "host %q is stale in environment %q: it lies in zone %q of host template %q, where this environment's hosts end in %q before the zone, so it is another environment's host; "+
			"write the url of this environment's host, or declare the endpoint to the daemon of the environment that the host belongs to", u.Hostname(), e.Name, zone, t.Name, e.Suffix)
		return v.Err("cache endpoint of account " + quote(c.Account))
	}
	return nil
}

// parseEndpointURL parses a declared url and refuses every spelling but one.
func parseEndpointURL(raw string) (*url.URL, error) {
	const such = "write one such as https://cache.example.dev"
	if raw == "" {
		return nil, fmt.Errorf("is required; %s", such)
	}
	if len(raw) > maxURL {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is no url; %s", quote(raw), such)
	}
	switch {
	case u.Scheme != SchemeHTTPS || u.Opaque != "":
		return nil, fmt.Errorf("%s is not an https url; %s", quote(raw), such)
	case u.User != nil:
		return nil, fmt.Errorf("holds a user name or password, which everybody who reads endpoints would see; leave it out and give it to the clients themselves")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, fmt.Errorf("holds a query (from the %q on); leave it out, for clients append their paths", "?")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, fmt.Errorf("holds a fragment (from the %q on), which no server ever sees; leave it out", "#")
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host; %s", quote(raw), such)
	}
	if err := CheckHost(u.Hostname()); err != nil {
		return nil, fmt.Errorf("the host %s %w", quote(u.Hostname()), err)
	}
	if err := checkEndpointPort(u); err != nil {
		return nil, err
	}
	clean := u.JoinPath()
	clean.Path, clean.RawPath = strings.TrimSuffix(clean.Path, "/"), strings.TrimSuffix(clean.RawPath, "/")
	if want := clean.String(); want != raw {
		return nil, fmt.Errorf("%s has another spelling for the same; write %s", quote(raw), quote(want))
	}
	return u, nil
}

func checkEndpointPort(u *url.URL) error {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return nil
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port:
		return fmt.Errorf("the port %s is none; write a number from 1 to 65535, or none for 443", quote(port))
	case n == 443:
		return fmt.Errorf("names port 443, which https has anyway; leave it out")
	}
	return nil
}
