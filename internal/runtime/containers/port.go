package containers

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/moby/moby/api/types/container"
	"github.com/prometheus/procfs"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// binding is a host port that a container publishes on.
type binding struct {
	ip       netip.Addr
	port     int
	protocol string
}

// bindings are the host ports of a container, lowest first.
func bindings(c *container.InspectResponse) (list []binding) {
	if c.HostConfig == nil {
		return nil
	}
	for port, bound := range c.HostConfig.PortBindings {
		for _, b := range bound {
			if n, err := strconv.Atoi(b.HostPort); err == nil && n != 0 {
				list = append(list, binding{b.HostIP, n, string(port.Proto())})
			}
		}
	}
	slices.SortFunc(list, func(a, b binding) int { return cmp.Compare(a.port, b.port) })
	return list
}

// inUse is how engines say that somebody has a port: Podman, and Docker's proxy, as the
// kernel does, Docker itself where another container of its has it.
var inUse = regexp.MustCompile(`(?i)address already in use|port is already allocated`)

// refusedPort tells the port that made the engine refuse a start: one of the container's that
// its words name, for the address of something else may be in use, too. A process of the host
// is seen nowhere else: kurad may be in another network namespace than the engine.
func refusedPort(c *container.InspectResponse, o fleet.Outcome) (binding, bool) {
	if o.Reason != fleet.ReasonStartFailed || !inUse.MatchString(o.Message) {
		return binding{}, false
	}
	for _, b := range bindings(c) {
		if regexp.MustCompile(fmt.Sprintf(`(:|port )%d\b`, b.port)).MatchString(o.Message) {
			return b, true
		}
	}
	return binding{}, false
}

// holder says which process has a port of the host, where the engine is on kurad's and kurad
// may see it.
func (e *Endpoint) holder(b binding) string {
	if e.cfg.Socket == "" || b.protocol != "tcp" {
		return ""
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return ""
	}
	sockets, _ := proc.NetTCP() // of kurad's network namespace
	overV6, _ := proc.NetTCP6()
	processes, _ := proc.AllProcs()
	const listening = 0x0A
	for _, s := range append(sockets, overV6...) {
		local, _ := netip.AddrFromSlice(s.LocalAddr)
		if s.St != listening || s.LocalPort != uint64(b.port) || !overlap(local.Unmap(), b.ip) {
			continue
		}
		for _, p := range processes {
			files, err := p.FileDescriptorTargets()
			if err != nil || !slices.Contains(files, fmt.Sprintf("socket:[%d]", s.Inode)) {
				continue
			}
			if name, err := p.Comm(); err == nil {
				return fmt.Sprintf(" by process %d (%s)", p.PID, name)
			}
		}
	}
	return ""
}
