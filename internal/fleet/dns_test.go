package fleet

import (
	"strings"
	"testing"
)

// A pool's name is its server's and its environment's alone, within what an API takes.
func TestD1_noTwoServersHaveOnePool(t *testing.T) {
	long := strings.Repeat("a", 63)
	named := map[string]ServerKey{}
	for _, environment := range []string{"staging", "production", "production-2"} {
		for _, key := range []ServerKey{{"acme", "eu"}, {"acme-eu", "eu"}, {"acme", "eu-eu"}, {"eu", "acme"}, {long, "eu"}, {long + "b", "eu"}, {long, long}} {
			name := PoolName(environment, key)
			if other, taken := named[name]; taken {
				t.Errorf("%s of %s is that of %s and of %s", name, environment, key, other)
			}
			named[name] = key
			if len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("pool %q", name)
			}
		}
	}
}
