package containers

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// PortRange are the host ports the daemon may assign on an endpoint, both included (C12).
type PortRange struct{ First, Last int }

// Config describes one endpoint.
type Config struct {
	Name string
	// Socket is the path of the engine's unix socket. Where it is empty, TCP is the
	// engine's host:port, over TLS where the files of TLS are given.
	Socket string
	TCP    string
	TLS    TLSFiles
	// Address is the IP address where published ports are reached, and bound by
	// default: the engine's own where TCP names one, else 127.0.0.1.
	Address string
	Ports   PortRange // zero: no port can be assigned, all are declared
	// Mounts are the folders of the host below which a document may mount paths; none
	// by default (C10).
	Mounts []string
	// EnvSets are the variables that documents name by env_from; their values are the
	// operator's and appear in no document.
	EnvSets map[string]map[string]string
}

// String names the endpoint and its engine. It shows no variable: they may be secret.
func (c Config) String() string { return c.Name + "=" + c.host() }

// leastSecret is how long a value is at least that hide looks for: of shorter ones,
// such as 1 and true, every text is full.
const leastSecret = 6

// hide takes the values of the variable sets out of what an engine says: it may repeat
// in an error what it was given, and errors are stored and shown.
func (c Config) hide(s string) string {
	var values []string
	for _, set := range c.EnvSets {
		for _, value := range set {
			if len(value) >= leastSecret && strings.Contains(s, value) {
				values = append(values, value)
			}
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, value := range values {
		s = strings.ReplaceAll(s, value, "***")
	}
	return s
}

const endpointExample = "name=unix:///run/podman.sock,address=127.0.0.1,ports=20000-29999,mounts=/srv/kura" +
	" or name=tcp://10.0.0.7:2376,ca=/ca.pem,cert=/cert.pem,key=/key.pem,ports=20000-29999"

// ParseEndpoint reads an endpoint as it is given on the command line:
//
//	name=unix:///run/podman.sock,address=127.0.0.1,ports=20000-29999,mounts=/srv/kura[:/more]
//	name=tcp://engine.example:2376,ca=/ca.pem,cert=/cert.pem,key=/key.pem,address=10.0.0.7,ports=20000-29999
//
// Only the name and the engine are required. Without TLS, tcp:// leads to a loopback
// address only: who reaches an engine's API is root on its machine.
func ParseEndpoint(s string) (Config, error) {
	fail := func(format string, args ...any) (Config, error) {
		return Config{}, fmt.Errorf("container endpoint %q: %s; write one such as %s", s, fmt.Sprintf(format, args...), endpointExample)
	}
	var c Config
	name, engine, err := runtime.ParseFlag(s, "name=unix:///path or name=tcp://host:port", c.set)
	if err == nil {
		err = c.setEngine(engine)
	}
	if err == nil {
		err = c.checkTCP()
	}
	if err != nil {
		return fail("%v", err)
	}
	c.Name = name
	c.Address = cmp.Or(c.Address, c.ownAddress())
	if c.Address == "" {
		return fail("address is missing: the IP address of %s where its containers publish ports", c.TCP)
	}
	return c, nil
}

func (c *Config) setEngine(engine string) error {
	if tcp, ok := strings.CutPrefix(engine, "tcp://"); ok {
		host, port, err := net.SplitHostPort(tcp)
		if n, nerr := strconv.Atoi(port); err != nil || host == "" || nerr != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not tcp:// with a host and a port", engine)
		}
		c.TCP = tcp
		return nil
	}
	path, ok := strings.CutPrefix(engine, "unix://")
	switch {
	case !ok:
		return fmt.Errorf("%q is neither unix:// and a path nor tcp:// and host:port", engine)
	case !filepath.IsAbs(path):
		return fmt.Errorf("the socket's path %q is not absolute (three slashes: unix:///run/podman.sock)", path)
	case len(path) > 107:
		return fmt.Errorf("the socket's path has %d bytes, and the system allows 107", len(path))
	}
	c.Socket = filepath.Clean(path)
	return nil
}

func (c *Config) set(key, value string) error {
	switch key {
	case "address":
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fmt.Errorf("the address %q is not an IP address", value)
		}
		c.Address = addr.String()
	case "ports":
		first, last, _ := strings.Cut(value, "-")
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 1 || b > 65535 || a > b {
			return fmt.Errorf("the ports %q are not a range such as 20000-29999 within 1-65535", value)
		}
		c.Ports = PortRange{First: a, Last: b}
	case "mounts":
		for dir := range strings.SplitSeq(value, ":") {
			if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
				return fmt.Errorf("mounts holds %q, which is not the absolute path of a folder below /", dir)
			}
			c.Mounts = append(c.Mounts, filepath.Clean(dir))
		}
	case "ca", "cert", "key":
		if !filepath.IsAbs(value) {
			return fmt.Errorf("%s is %q, which is not the absolute path of a PEM file", key, value)
		}
		*map[string]*string{"ca": &c.TLS.CA, "cert": &c.TLS.Cert, "key": &c.TLS.Key}[key] = filepath.Clean(value)
	case "":
		return fmt.Errorf("an empty part between commas")
	default:
		return fmt.Errorf("%q is none of address, ports, mounts, ca, cert, key", key)
	}
	return nil
}

// AllowsRegion tells whether the endpoint would take region r's document, before
// anything of it is rendered: an error names the fields that reach beyond what the
// operator allowed (C10).
func (e *Endpoint) AllowsRegion(r fleet.Region) error {
	if r.Containers == nil {
		return fleet.Errorf(fleet.CodeInvalid, "region %q has no containers document for endpoint %q", r.Name, e.cfg.Name)
	}
	var v fleet.Invalid
	if r.Containers.Endpoint != e.cfg.Name {
		v.Add("/containers/endpoint", "names endpoint %q, not %q", r.Containers.Endpoint, e.cfg.Name)
	}
	for _, name := range sortedKeys(r.Containers.Services) {
		service := r.Containers.Services[name]
		at := "/containers/services/" + escape(name)
		for i, vol := range service.Volumes {
			if vol.HostPath == "" {
				continue
			}
			if _, err := e.cfg.hostPath(vol.HostPath); err != nil {
				v.Add(fmt.Sprintf("%s/volumes/%d/host_path", at, i), "%v", err)
			}
		}
		for i, set := range service.EnvFrom {
			if _, ok := e.cfg.EnvSets[set]; !ok {
				v.Add(fmt.Sprintf("%s/env_from/%d", at, i), "%s", e.cfg.unknownSet(set))
			}
		}
		for _, port := range sortedKeys(service.Ports) {
			p := service.Ports[port]
			if p.Bind != "" {
				if _, err := netip.ParseAddr(p.Bind); err != nil {
					v.Add(at+"/ports/"+escape(port)+"/bind", "%q is not an IP address; leave it out for the endpoint's %s", p.Bind, e.cfg.Address)
				}
			}
			if p.Host == 0 && e.cfg.Ports == (PortRange{}) {
				v.Add(at+"/ports/"+escape(port)+"/host", "endpoint %q has no range of ports to assign one from; set host, or start kurad with ports=20000-29999 for it", e.cfg.Name)
			}
		}
	}
	return v.Err(fmt.Sprintf("region %q", r.Name))
}

func (c Config) unknownSet(set string) string {
	return fmt.Sprintf("kurad was given no variable set named %q (known: %s)", set, runtime.OrNone(sortedKeys(c.EnvSets)))
}

// escape makes s a part of a JSON pointer.
func escape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }
