package server

import (
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Global hosts belong to an account, not to a server, so no reservation of a server
// holds them. Writes that could make two accounts share one run alone and look at the
// whole fleet.

// globalHosts reports whether any region has a global host.
func (s *Server) globalHosts() bool {
	for _, r := range s.view.Regions() {
		if r.Value.Hosts.Global != "" {
			return true
		}
	}
	return false
}

// checkGlobalHosts checks the hosts that some servers are to have against those of all
// others: a global host is shared by the servers of one account, and is nobody's own.
func (s *Server) checkGlobalHosts(changed map[fleet.ServerKey]fleet.Hosts, at func(fleet.ServerKey) place) error {
	global := map[string]fleet.ServerKey{}
	for _, h := range changed {
		if h.Global != "" {
			global[h.Global] = fleet.ServerKey{}
		}
	}
	if len(global) == 0 && !s.globalHosts() {
		return nil
	}
	all := map[fleet.ServerKey]fleet.Hosts{}
	list, _ := s.view.Servers(nil)
	for _, g := range list {
		all[g.Intent.Key()] = s.hosts(g)
	}
	for k, h := range changed {
		all[k] = h
	}
	own := map[string]fleet.ServerKey{}
	for k, h := range all {
		for _, host := range ownHosts(h) {
			own[host] = k
		}
	}
	clear(global)
	for k, h := range all {
		if h.Global == "" {
			continue
		}
		other, shared := global[h.Global]
		if owner, owned := own[h.Global]; owned {
			other = owner
		} else if !shared || other.Account == k.Account {
			global[h.Global] = k
			continue
		}
		blamed := k
		if _, is := changed[k]; !is {
			blamed, other = other, k
		}
		return at(blamed).collision(fmt.Sprintf("host %q", h.Global), other)
	}
	return nil
}

// hosts renders the hosts of a server and nothing else.
func (s *Server) hosts(g fleet.Gathered) (h fleet.Hosts) {
	if g.Account == nil || g.Region == nil || g.Intent.Deleting != nil {
		return h
	}
	in := fleet.HostInput{AccountHandle: g.Account.PublicHandle(), ClusterID: g.Region.Cluster(), Region: g.Region.Name}
	for name, host := range map[string]*string{g.Region.Hosts.Public: &h.Public, g.Region.Hosts.GRPC: &h.GRPC, g.Region.Hosts.Global: &h.Global} {
		if t, ok := g.Templates[name]; ok {
			*host, _ = s.env.RenderHost(t.Pattern, in)
		}
	}
	return h
}
