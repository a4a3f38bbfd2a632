package containers

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening names the process that listens on a TCP port of this network namespace; empty
// where there is none that kurad may see.
func listening(ip netip.Addr, port int) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sl local_address rem_address st … inode
			if len(f) < 10 || f[3] != "0A" {
				continue
			}
			address, hexPort, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(hexPort, 16, 16); err != nil || int(n) != port || !overlap(kernelAddr(address), ip) {
				continue
			}
			if who := ownerOfSocket(f[9]); who != "" {
				return who
			}
		}
	}
	return ""
}

// kernelAddr reads an address as /proc/net/tcp writes it: words of 32 bits in the order of
// the host, which is little-endian wherever kurad runs.
func kernelAddr(s string) netip.Addr {
	var b []byte
	for ; len(s) >= 8; s = s[8:] {
		word, err := strconv.ParseUint(s[:8], 16, 32)
		if err != nil {
			return netip.Addr{}
		}
		b = append(b, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	ip, _ := netip.AddrFromSlice(b)
	return ip.Unmap()
}

// ownerOfSocket names the process that has a socket open.
func ownerOfSocket(inode string) string {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || to != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
	}
	return ""
}
