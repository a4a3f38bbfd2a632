package fleet

import (
	"cmp"
	"maps"
	"slices"
)

// PortNeed is a host port that every server of a region takes on its endpoint.
type PortNeed struct {
	Service  string
	Port     string
	Protocol string
	Fixed    int // the declared host port; 0: to be assigned (C12)
}

// Key names the port as Intent.Ports does.
func (n PortNeed) Key() string { return portKey(n.Service, n.Port) }

func portKey(service, port string) string { return service + "/" + port }

// PortNeeds returns the host ports to assign or to claim, sorted by key.
func PortNeeds(r Region) []PortNeed {
	if r.Containers == nil {
		return nil
	}
	var needs []PortNeed
	for service, s := range r.Containers.Services {
		for port, p := range s.withDefaults().Ports {
			needs = append(needs, PortNeed{Service: service, Port: port, Protocol: p.Protocol, Fixed: p.Host})
		}
	}
	slices.SortFunc(needs, func(a, b PortNeed) int { return cmp.Compare(a.Key(), b.Key()) })
	return needs
}

// PortMove gives a server that never served another host port in the place of an assigned
// one that somebody else has (C12).
type PortMove struct {
	Endpoint string
	Need     string // as Intent.Ports names it
	From, To int
}

// MovedPort is the intent after the move: the port that it had may be one that was offered.
func (in Intent) MovedPort(m PortMove) Intent {
	in.Ports, in.Offered = merge(in.Ports, map[string]int{m.Need: m.To}), maps.Clone(in.Offered)
	delete(in.Offered, m.Need)
	return in
}

// Accepted is the intent in its region as it is now: of the ports that were offered those
// that the region needs are the server's own, and the others never were.
func (in Intent) Accepted(r Region) Intent {
	if len(in.Offered) == 0 {
		return in
	}
	own := map[string]int{}
	for _, need := range PortNeeds(r) {
		if port := in.Offered[need.Key()]; port != 0 && need.Fixed == 0 && in.Ports[need.Key()] == 0 {
			own[need.Key()] = port
		}
	}
	in.Ports, in.Offered = merge(in.Ports, own), nil
	return in
}
