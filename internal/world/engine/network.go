package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// network is a bridge and its addresses, held by a lock file so that engines of other
// processes take another one. The engine's service inherits the lock: it is held for
// as long as the engine is there, whatever becomes of the process that started it.
type network struct {
	number int
	lock   *os.File
}

// reserveNetwork takes the first of 10.213.0.0/24 to 10.213.255.0/24 that no other
// engine holds and no interface of the machine uses.
func reserveNetwork() (network, error) {
	dir := filepath.Join(os.TempDir(), "kura-engines")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return network{}, err
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return network{}, fmt.Errorf("list the machine's addresses: %w", err)
	}
	for i := range 256 {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%d.lock", i)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return network{}, err
		}
		n := network{number: i, lock: f}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && !n.usedBy(addrs) {
			if err := n.removeRules(); err != nil {
				return network{}, errors.Join(err, f.Close())
			}
			return n, nil
		}
		_ = f.Close()
	}
	return network{}, errors.New("no free network for an engine among 10.213.0.0/24 to 10.213.255.0/24")
}

func (n network) subnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, byte(n.number), 0}), 24)
}

// name is that of the engine's only network, and of its bridge. Podman's own default
// network would be the bridge podman0 with the same addresses for every engine of the
// machine; and netavark names its firewall chains by the network's name, so that engines
// with networks of one name remove each other's rules.
func (n network) name() string { return fmt.Sprintf("kura%d", n.number) }

func (n network) usedBy(addrs []net.Addr) bool {
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Masked().Overlaps(n.subnet()) {
			return true
		}
	}
	return false
}

func (n network) gateway() string { return n.subnet().Addr().Next().String() }

// document is the network as Podman stores it.
func (n network) document() []byte {
	id := sha256.Sum256([]byte(n.name()))
	b, err := json.MarshalIndent(map[string]any{
		"name": n.name(), "id": hex.EncodeToString(id[:]), "driver": "bridge",
		"network_interface": n.name(), "created": "2026-01-01T00:00:00Z",
		"subnets":      []map[string]string{{"subnet": n.subnet().String(), "gateway": n.gateway()}},
		"ipv6_enabled": false, "internal": false, "dns_enabled": false,
		"ipam_options": map[string]string{"driver": "host-local"},
	}, "", "  ")
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return b
}

// release gives the network back. Podman removes the bridge with the last container,
// and leaves it where it was killed meanwhile.
func (n network) release() error {
	if n.lock == nil {
		return nil
	}
	return errors.Join(n.removeBridge(), n.removeRules(), n.lock.Close())
}

func (n network) removeBridge() error {
	if _, err := net.InterfaceByName(n.name()); err != nil {
		return nil
	}
	if out, err := exec.Command("ip", "link", "delete", n.name()).CombinedOutput(); err != nil {
		return fmt.Errorf("remove the left bridge %s: %w: %s", n.name(), err, out)
	}
	return nil
}
