package dns

import (
	"crypto/sha256"
	"encoding/hex"
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

// maxPoolName is ours: the API's documentation names the characters of a pool's name (letters,
// digits, - and _), not how many there may be.
const maxPoolName = 63

// PoolName is the name of a server's pool. A pool belongs to the provider's account, so the
// environment is part of it. Labels hold no _, so no two servers have one name; one that is too
// long ends in its hash.
func PoolName(environment string, key fleet.ServerKey) string {
	name := "kura_" + environment + "_" + key.Account + "_" + key.Region
	if len(name) <= maxPoolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxPoolName-33] + "_" + hex.EncodeToString(sum[:16])
}
