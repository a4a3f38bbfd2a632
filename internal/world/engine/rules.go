package engine

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// removeRules removes the firewall rules of this network that were left behind.
// Netavark removes a container's rules when it ends, but not always where it was
// killed at once with others; a rule that is left would catch the packets of whoever
// publishes that port next.
func (n network) removeRules() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil // then netavark made none
	}
	var errs []error
	for _, table := range []string{"nat", "filter"} {
		out, err := exec.Command("iptables", "-w", "-t", table, "-S").Output()
		if err != nil {
			return fmt.Errorf("list the firewall rules of table %s: %w", table, err)
		}
		for _, args := range n.removals(string(out)) {
			if said, err := exec.Command("iptables", append([]string{"-w", "-t", table}, args...)...).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("iptables -t %s %s: %w: %s", table, strings.Join(args, " "), err, said))
			}
		}
	}
	return errors.Join(errs...)
}

// removals reads a table as `iptables -S` prints it and returns the arguments that
// remove what belongs to the network: its own chains and every rule that names one of
// them or its addresses.
func (n network) removals(table string) [][]string {
	prefix := strings.TrimSuffix(n.subnet().Addr().String(), "0")
	var rules [][]string
	own := map[string]bool{}
	for line := range strings.Lines(table) {
		args := words(line)
		if len(args) < 2 || args[0] != "-A" {
			continue
		}
		rules = append(rules, args)
		chain := args[1]
		if strings.HasPrefix(chain, "NETAVARK-") && !strings.HasPrefix(chain, "NETAVARK-HOSTPORT-") && names(args, prefix) {
			own[chain] = true
		}
	}
	var out, flush, drop [][]string
	for _, args := range rules {
		last := args[len(args)-1]
		if !own[args[1]] && (own[last] || names(args, prefix)) {
			out = append(out, append([]string{"-D"}, args[1:]...))
		}
	}
	for _, chain := range slices.Sorted(maps.Keys(own)) {
		flush, drop = append(flush, []string{"-F", chain}), append(drop, []string{"-X", chain})
	}
	return append(append(out, flush...), drop...)
}

// names reports whether one of a rule's arguments is an address of the network.
func names(args []string, prefix string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, prefix) {
			return true
		}
	}
	return false
}

// words splits a line of `iptables -S`, where a comment stands in double quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
