package fleet

import (
	"cmp"
	"fmt"
	"slices"
)

// documents renders the document of one server.
type documents struct {
	env         Environment
	account     Account
	region      Region // with defaults
	intent      Intent
	restartMark string
	status      *Status // nil before the first turn
	desired     Desired // names, hosts and image tag
}

// containers renders the containers of the server.
func (d documents) containers() (*ContainerDocument, error) {
	c := d.region.Containers
	doc := &ContainerDocument{Endpoint: c.Endpoint, Pull: c.Pull}
	for _, name := range sortedKeys(c.Services) {
		s, err := d.service(name, c.Services[name])
		if err != nil {
			return nil, fmt.Errorf("service %q: %w", name, err)
		}
		doc.Services = append(doc.Services, s)
	}
	return doc, nil
}

// remains is the part of the document that holds whatever else is declared by now.
func (d documents) remains() *ContainerDocument {
	doc := &ContainerDocument{Endpoint: d.region.Containers.Endpoint}
	for _, name := range sortedKeys(d.region.Containers.Services) {
		s := d.region.Containers.Services[name]
		out := ServiceDocument{Service: name, Name: d.name(name), GracePeriod: s.GracePeriod}
		for _, v := range s.Volumes {
			if v.HostPath == "" {
				out.Volumes = append(out.Volumes, VolumeDocument{Source: d.name(v.Name), Retain: v.Retain})
			}
		}
		doc.Services = append(doc.Services, out)
	}
	return doc
}

// name is that of a container or a volume (H6).
func (d documents) name(part string) string { return d.desired.Instance + "-" + part + d.env.Suffix }

// tokens returns what the tokens of strings that are the same for all services
// stand for.
func (d documents) tokens() map[string]string {
	return map[string]string{
		tokenAccountHandle: lowerHandle(d.account.PublicHandle()),
		tokenClusterID:     d.region.ClusterID,
		tokenEnvSuffix:     d.env.Suffix,
		tokenRegion:        d.region.Name,
		tokenImageTag:      d.desired.ImageTag,
		tokenAccount:       d.account.ID,
		tokenEnvironment:   d.env.Name,
		tokenInstance:      d.desired.Instance,
		tokenPublicHost:    d.desired.Hosts.Public,
		tokenGRPCHost:      d.desired.Hosts.GRPC,
		tokenGlobalHost:    d.desired.Hosts.Global,
	}
}

func (d documents) service(name string, s Service) (ServiceDocument, error) {
	if err := d.env.checkPart(name); err != nil {
		return ServiceDocument{}, err
	}
	ports, err := d.ports(name, s)
	if err != nil {
		return ServiceDocument{}, err
	}
	if o := d.intent.Overrides; o != nil && o.Containers != nil {
		over := o.Containers.Services[name]
		s.Env = merge(s.Env, over.Env)
		s.Memory = cmp.Or(over.Memory, s.Memory)
		s.CPUs = cmp.Or(over.CPUs, s.CPUs)
	}
	hostPorts := map[string]int{}
	for _, p := range ports {
		hostPorts[p.Name] = p.Host
	}
	x := expander{values: tokenValues{text: d.tokens(), ports: hostPorts}}
	out := ServiceDocument{
		Service:     name,
		Name:        d.name(name),
		Image:       x.text("image", s.Image),
		Carrier:     holdsToken(s.Image, tokenImageTag),
		Command:     x.list("command", s.Command),
		Env:         x.dict("env", s.Env),
		EnvFrom:     slices.Clone(s.EnvFrom),
		Volumes:     d.volumes(&x, s),
		Ports:       ports,
		Labels:      x.dict("labels", s.Labels),
		User:        x.text("user", s.User),
		CPUs:        s.CPUs,
		StopSignal:  s.StopSignal,
		GracePeriod: s.GracePeriod,
		RestartMark: d.restartMark,
		Pull:        d.region.Containers.Pull,
	}
	if s.Memory != "" {
		out.MemoryBytes, err = ParseMemory(s.Memory)
		x.note("memory", err)
	}
	x.note("cpus", checkCPUs(s.CPUs))
	if x.err != nil {
		return ServiceDocument{}, x.err
	}
	out.Digest = DigestService(out)
	return out, nil
}

// volumes are sorted by path: the order of mounts means nothing.
func (d documents) volumes(x *expander, s Service) []VolumeDocument {
	var out []VolumeDocument
	for i, v := range s.Volumes {
		field := fmt.Sprintf("volumes[%d]", i)
		doc := VolumeDocument{Path: x.text(field, v.Path), ReadOnly: v.ReadOnly}
		if v.HostPath != "" {
			doc.Source, doc.HostPath = x.text(field, v.HostPath), true
		} else {
			x.note(field, d.env.checkPart(v.Name))
			doc.Source, doc.Retain = d.name(v.Name), v.Retain
		}
		out = append(out, doc)
	}
	slices.SortFunc(out, func(a, b VolumeDocument) int { return cmp.Compare(a.Path, b.Path) })
	for i := 1; i < len(out); i++ {
		if out[i].Path == out[i-1].Path {
			x.note("volumes", fmt.Errorf("two of them are mounted at %q; choose another path for one", out[i].Path))
		}
	}
	return out
}

func (d documents) ports(service string, s Service) ([]PortDocument, error) {
	var out []PortDocument
	for _, name := range sortedKeys(s.Ports) {
		p := s.Ports[name]
		host := d.hostPort(service, name)
		if host == 0 {
			return nil, fmt.Errorf("port %q has no host port yet; the daemon assigns one when it stores the server", name)
		}
		out = append(out, PortDocument{Name: name, Container: p.Container, Host: host, Bind: p.Bind, Protocol: p.Protocol})
	}
	return out, nil
}

// hostPort returns the declared host port, or the assigned one, or 0.
func (d documents) hostPort(service, port string) int {
	return cmp.Or(d.region.Containers.Services[service].Ports[port].Host, d.intent.Ports[portKey(service, port)])
}

// endpointHostPort returns the host port that serves an endpoint, "public" or "grpc"; 0: none.
func (d documents) endpointHostPort(endpoint string) int {
	for service, s := range d.region.Containers.Services {
		for port, p := range s.Ports {
			if p.Endpoint == endpoint {
				return d.hostPort(service, port) // validation allows only one
			}
		}
	}
	return 0
}

// Carries reports whether the service's image is the one that a server declares: its
// containers carry the tag (H7).
func (s Service) Carries() bool { return holdsToken(s.Image, tokenImageTag) }

// holdsToken reports whether s holds the token; a brace written {{ begins none.
func holdsToken(s, token string) bool {
	found := false
	_, err := expand(s, func(t string) (string, error) {
		found = found || t == token
		return "", nil
	})
	return found && err == nil
}

// expander expands the strings of one service and keeps the first error.
type expander struct {
	values tokenValues
	err    error
}

func (x *expander) note(field string, err error) {
	if err != nil && x.err == nil {
		x.err = fmt.Errorf("%s: %w", field, err)
	}
}

func (x *expander) text(field, s string) string {
	out, err := expand(s, x.values.lookup)
	x.note(field, err)
	return out
}

func (x *expander) list(field string, in []string) []string {
	var out []string
	for i, s := range in {
		out = append(out, x.text(fmt.Sprintf("%s[%d]", field, i), s))
	}
	return out
}

func (x *expander) dict(field string, in map[string]string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, k := range sortedKeys(in) {
		out[k] = x.text(field+"."+k, in[k])
	}
	return out
}
