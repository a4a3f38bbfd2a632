package dns

import (
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// BalancerOf is the description of the load balancer of an account's global host: whose it is.
func BalancerOf(environment, account string) string { return "kura-" + environment + "/" + account }

// PoolOf is the description of a server's pool: whose it is.
func PoolOf(environment string, key fleet.ServerKey) string {
	return fleet.ResourceOf(environment, key)
}

// ParseBalancer reads a description that BalancerOf wrote.
func ParseBalancer(description string) (environment, account string, ok bool) {
	environment, account, ok = parseOurs(description)
	return environment, account, ok && label(account)
}

// ParseResource reads the resource of an ownership record, or the description of a pool, that
// fleet.ResourceOf or PoolOf wrote.
func ParseResource(resource string) (environment string, key fleet.ServerKey, ok bool) {
	environment, rest, ok := parseOurs(resource)
	region, account, _ := strings.Cut(rest, "/")
	return environment, fleet.ServerKey{Account: account, Region: region}, ok && label(account) && label(region)
}

func parseOurs(s string) (environment, rest string, ok bool) {
	first, rest, _ := strings.Cut(s, "/")
	environment, ok = strings.CutPrefix(first, "kura-")
	return environment, rest, ok && label(environment)
}

func label(s string) bool { return !strings.Contains(s, ".") && fleet.CheckHost(s) == nil }
