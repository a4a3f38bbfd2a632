package fleet

import (
	"slices"
	"strings"
)

// HostOf returns the host name of a url that kurad made; "" where there is none.
func HostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, ":")
	return host
}

// ClientHosts are the hosts by which clients may still come: the aliases, those whose time is
// over included until nothing routes them any more, and the published one. No other server
// can have them.
func (s *Status) ClientHosts() []string { return s.clientHosts(func(Alias) bool { return true }) }

func (s *Status) clientHosts(counts func(Alias) bool) (hosts []string) {
	if s == nil {
		return nil
	}
	for _, a := range s.Aliases {
		if a.Host != "" && counts(a) {
			hosts = append(hosts, a.Host)
		}
	}
	if host := HostOf(s.PublishedURL); host != "" && !slices.Contains(hosts, host) {
		hosts = append(hosts, host)
	}
	return hosts
}

// RoutedHosts are the hosts that stay routed beside the declared ones (H8, K7), sorted: the
// published one until the declared one is published in its place, and then the alias that
// it becomes. So the list is the same before and after the switch, and ends once.
func (s *Status) RoutedHosts(declared Hosts) []string {
	hosts := slices.DeleteFunc(s.clientHosts(func(a Alias) bool { return !a.Ended }), declared.Has)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Has reports whether a host is one of them.
func (h Hosts) Has(host string) bool { return host == h.Public || host == h.GRPC || host == h.Global }
