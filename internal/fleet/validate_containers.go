package fleet

import (
	"cmp"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a container region.
const (
	maxServices = 16
	maxItems    = 256 // of a command, variables, volumes or ports
	maxValue    = 32 << 10
	// Labels of a container may be whole rules for a proxy.
	maxServiceLabel = 4 << 10
	maxGracePeriod  = Duration(10 * time.Minute)
)

var (
	envKeyFormat   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`)
	portNameFormat = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)
	userFormat     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$`)
	signalFormat   = regexp.MustCompile(`^SIG(HUP|INT|QUIT|ABRT|KILL|USR1|USR2|ALRM|TERM|CONT|WINCH|PWR|RTMIN(\+[0-9]{1,2})?)$`)
)

func (v *Invalid) containers(e Environment, r Region) {
	c := r.Containers
	v.required("/containers/endpoint", c.Endpoint, "a --container-endpoint of the daemon")
	oneOf(v, "/containers/pull", c.Pull, PullMissing, PullAlways, PullNever)
	const at = "/containers/services"
	switch n := len(c.Services); {
	case n == 0:
		v.Add(at, "is required; declare at least one service")
		return
	case n > maxServices:
		v.Add(at, "has %d services; at most %d are allowed", n, maxServices)
		return
	}
	carriers := 0
	for _, name := range sortedKeys(c.Services) {
		s := c.Services[name]
		p := join(at, name)
		v.note(p, e.checkService(name))
		v.service(e, p, sampleTokens(r, s), s)
		if holdsToken(s.Image, tokenImageTag) {
			carriers++
		}
	}
	if carriers == 0 {
		v.Add(at, "has no image that holds {image_tag}, so no server could change its version; write it in the image of at least one service, such as registry.example.dev/kura/cache:{image_tag}")
	}
	v.endpoints(r)
	v.hostPorts(c.Services)
}

// sampleTokens gives every token a value, so that what a string would become can be
// checked before there is a server. No two values are equal, so that paths differ
// where their tokens do; {env_suffix} is empty, as in production: the one value that
// can make a path shorter than it looks.
func sampleTokens(r Region, s Service) tokenValues {
	t := tokenValues{ports: map[string]int{}, text: map[string]string{
		tokenAccountHandle: "x1", tokenClusterID: "x2", tokenEnvSuffix: "", tokenRegion: "x3", tokenImageTag: "x4",
		tokenAccount: "x5", tokenEnvironment: "x6", tokenInstance: "x7", tokenPublicHost: "x8.example", tokenGRPCHost: "", tokenGlobalHost: "",
	}}
	if r.Hosts.GRPC != "" {
		t.text[tokenGRPCHost] = "x9.example"
	}
	if r.Hosts.Global != "" {
		t.text[tokenGlobalHost] = "x10.example"
	}
	for name := range s.Ports {
		t.ports[name] = 1
	}
	return t
}

func (v *Invalid) service(e Environment, at string, t tokenValues, s Service) {
	if s.Image == "" {
		v.Add(at+"/image", "is required; write one such as registry.example.dev/kura/cache:{image_tag}")
	} else if image, ok := v.expanded(at+"/image", t, s.Image); ok {
		v.image(at+"/image", s.Image, image, t.text[tokenImageTag])
	}
	v.count(at+"/command", len(s.Command))
	for i, arg := range s.Command {
		v.value(join(at, "command", strconv.Itoa(i)), arg, &t)
	}
	v.env(at+"/env", s.Env, &t)
	v.sets(at+"/env_from", s.EnvFrom)
	v.volumes(e, at+"/volumes", t, s.Volumes)
	v.ports(at+"/ports", s.Ports)
	v.boundedLabels(at+"/labels", s.Labels, maxServiceLabel)
	for _, key := range sortedKeys(s.Labels) {
		v.expanded(join(at, "labels", key), t, s.Labels[key])
	}
	if user, ok := v.expanded(at+"/user", t, s.User); ok && s.User != "" && !userFormat.MatchString(user) {
		v.Add(at+"/user", "%s is no user; write a name or a number, with an optional group behind a colon, such as 1000:1000", quote(s.User))
	}
	v.limits(at, s.Memory, s.CPUs)
	v.matches(at+"/stop_signal", s.StopSignal, signalFormat, "signal that can stop a container; write one such as SIGTERM, SIGINT or SIGQUIT")
	v.duration(at+"/grace_period", s.GracePeriod, 0, maxGracePeriod)
}

// image checks an image whose tokens have become samples. {image_tag} is the whole
// tag or nothing: what an observed image says of its version is its tag (H7).
func (v *Invalid) image(pointer, image, sample, tag string) {
	ref, err := ParseImage(sample)
	switch {
	case err != nil:
		v.note(pointer, err)
	case holdsToken(image, tokenImageTag) && (ref.Tag != tag || ref.Digest != ""):
		v.Add(pointer, "%s holds {image_tag} elsewhere than as its whole tag, so what runs could not be compared with it; write <repository>:{image_tag}", quote(image))
	}
}

func (v *Invalid) limits(at, memory string, cpus float64) {
	v.optional(at+"/memory", memory, func(m string) error { _, err := ParseMemory(m); return err })
	v.note(at+"/cpus", checkCPUs(cpus))
}

// expanded returns a string with its tokens replaced by samples.
func (v *Invalid) expanded(pointer string, t tokenValues, s string) (string, bool) {
	out, err := expand(s, t.lookup)
	v.note(pointer, err)
	return out, err == nil
}

// value checks a string that a program is given: an argument or a variable. Its
// tokens are checked where t knows them.
func (v *Invalid) value(pointer, s string, t *tokenValues) {
	if t != nil {
		v.expanded(pointer, *t, s)
	}
	switch {
	case len(s) > maxValue:
		v.Add(pointer, "has %d bytes; at most %d are allowed", len(s), maxValue)
	case strings.ContainsRune(s, 0):
		v.Add(pointer, "holds a NUL byte, which no program can be given; remove it")
	}
}

func (v *Invalid) count(pointer string, n int) {
	if n > maxItems {
		v.Add(pointer, "has %d entries; at most %d are allowed", n, maxItems)
	}
}

func (v *Invalid) env(at string, env map[string]string, t *tokenValues) {
	v.count(at, len(env))
	for _, key := range sortedKeys(env) {
		if !envKeyFormat.MatchString(key) {
			v.Add(join(at, key), "%s is no name of a variable; use a letter or %q, then letters, digits and _ . -", quote(key), "_")
		}
		v.value(join(at, key), env[key], t)
	}
}

// sets checks names of variable sets; their order means something, for a later set
// wins over an earlier one.
func (v *Invalid) sets(at string, names []string) {
	v.count(at, len(names))
	for i, name := range names {
		p := join(at, strconv.Itoa(i))
		v.name(p, name)
		if slices.Contains(names[:i], name) {
			v.Add(p, "names the set %q again; name it once", name)
		}
	}
}

func (v *Invalid) volumes(e Environment, at string, t tokenValues, volumes []Volume) {
	v.count(at, len(volumes))
	paths := map[string]bool{}
	for i, vol := range volumes {
		p := join(at, strconv.Itoa(i))
		switch {
		case vol.Name == "" && vol.HostPath == "":
			v.Add(p, "has neither name nor host_path; set exactly one")
		case vol.Name != "" && vol.HostPath != "":
			v.Add(p, "has both name and host_path; set exactly one")
		case vol.Name != "":
			v.note(p+"/name", e.checkVolume(vol.Name))
		default:
			v.mount(p+"/host_path", t, vol.HostPath)
			if vol.Retain {
				v.Add(p+"/retain", "is set on a path of the host, which is never removed; leave it out")
			}
		}
		mounted := v.mount(p+"/path", t, vol.Path)
		if mounted != "" && paths[mounted] {
			v.Add(p+"/path", "%s is mounted already by another volume of this service; choose another path", quote(vol.Path))
		}
		paths[mounted] = true
	}
}

// mount checks a path and returns it with sample tokens.
func (v *Invalid) mount(pointer string, t tokenValues, s string) string {
	out, ok := v.expanded(pointer, t, s)
	switch {
	case !ok:
		return ""
	case s == "":
		v.Add(pointer, "is required; write an absolute path such as /var/lib/kura")
	case !path.IsAbs(out) || path.Clean(out) != out || out == "/":
		v.Add(pointer, "%s is not an absolute path in its shortest form, without %q and doubled or final slashes, below %q; write one such as /var/lib/kura", quote(s), "..", "/")
	case len(out) > maxPath || strings.ContainsAny(out, ":,\x00\n"):
		v.Add(pointer, "%s holds a character that engines cannot mount (a colon, comma, line break or NUL) or is too long; choose another path", quote(s))
	default:
		return out
	}
	return ""
}

func (v *Invalid) ports(at string, ports map[string]Port) {
	v.count(at, len(ports))
	published := map[string]string{}
	for _, name := range sortedKeys(ports) {
		port := ports[name]
		p := join(at, name)
		if !portNameFormat.MatchString(name) {
			v.Add(p, "%s is no port name; use a letter a-z, then at most 30 of a-z, 0-9 and %q", quote(name), "-")
		}
		v.number(p+"/container", port.Container, 1, maxPort)
		v.number(p+"/host", port.Host, 0, maxPort)
		if port.Bind != "" {
			if addr, err := netip.ParseAddr(port.Bind); err != nil || addr.Zone() != "" {
				v.Add(p+"/bind", "%s is no IP address; write one of the endpoint's, or leave it out for the endpoint's own", quote(port.Bind))
			}
		}
		oneOf(v, p+"/protocol", port.Protocol, "tcp", "udp")
		oneOf(v, p+"/endpoint", port.Endpoint, EndpointPublic, EndpointGRPC)
		if port.Endpoint != "" && port.Protocol == "udp" {
			v.Add(p+"/protocol", "is udp, but endpoint %q speaks tcp; leave the protocol out", port.Endpoint)
		}
		key := fmt.Sprintf("%d/%s", port.Container, cmp.Or(port.Protocol, DefaultProtocol))
		if first, taken := published[key]; taken {
			v.Add(p+"/container", "%s is published already as port %q; publish it once", key, first)
			continue
		}
		published[key] = name
	}
}

// endpoints checks that exactly one port is public and at most one serves gRPC.
func (v *Invalid) endpoints(r Region) {
	const at = "/containers/services"
	found := map[string][]string{}
	for _, service := range sortedKeys(r.Containers.Services) {
		ports := r.Containers.Services[service].Ports
		for _, port := range sortedKeys(ports) {
			if e := ports[port].Endpoint; e != "" {
				found[e] = append(found[e], portKey(service, port))
			}
		}
	}
	if public := found[EndpointPublic]; len(public) != 1 {
		v.Add(at, `exactly one port must have endpoint = "public", for it is the server's url; %s`, keepOne(public))
	}
	if grpc := found[EndpointGRPC]; len(grpc) > 1 {
		v.Add(at, `at most one port may have endpoint = "grpc"; %s`, keepOne(grpc))
	} else if len(grpc) == 0 && r.Hosts.GRPC != "" {
		v.Add("/hosts/grpc", `declares a host that no port serves; give one port of the services endpoint = "grpc" or leave the host out`)
	}
}

func keepOne(keys []string) string {
	if len(keys) == 0 {
		return "none has; mark one"
	}
	return strings.Join(keys, " and ") + " have; keep one"
}

// hostPorts refuses two ports that would take one port of the endpoint.
func (v *Invalid) hostPorts(services map[string]Service) {
	type claim struct{ key, bind string }
	taken := map[string][]claim{}
	for _, service := range sortedKeys(services) {
		ports := services[service].Ports
		for _, name := range sortedKeys(ports) {
			p := ports[name]
			if p.Host == 0 {
				continue
			}
			place := fmt.Sprintf("%d/%s", p.Host, cmp.Or(p.Protocol, DefaultProtocol))
			for _, c := range taken[place] {
				if c.bind == p.Bind || anyAddress(c.bind) || anyAddress(p.Bind) {
					v.Add(join("/containers/services", service, "ports", name, "host"), "%s is taken by %s already; choose another host port, or none to have one assigned", place, c.key)
				}
			}
			taken[place] = append(taken[place], claim{portKey(service, name), p.Bind})
		}
	}
}

// anyAddress reports whether a port is bound to all addresses, or to the endpoint's
// own, which is not known here.
func anyAddress(bind string) bool {
	addr, err := netip.ParseAddr(bind)
	return err != nil || addr.IsUnspecified()
}
