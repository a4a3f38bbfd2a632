package fleet

import (
	"fmt"
	"strings"
	"testing"
)

func TestH6_instanceNames(t *testing.T) {
	for _, c := range [][3]string{
		{"acme", "eu-central-1", "kura-acme-eu-central-1"},
		{"7", "1", "kura-7-1"},
		{strings.Repeat("a", 40), "eu-cent", "kura-" + strings.Repeat("a", 40) + "-eu-cent"}, // 53
	} {
		if got, err := InstanceName(c[0], c[1]); err != nil || got != c[2] {
			t.Errorf("InstanceName(%q, %q): got %q, %v, want %q", c[0], c[1], got, err, c[2])
		}
	}
	for _, c := range []struct {
		account, cluster string
		want             []string
	}{
		{strings.Repeat("a", 40), "eu-centr", []string{`account "aaaa`, "54 characters", "at most 53", "shorten"}},
		{"", "eu", []string{`account ""`, "empty"}},
		{"acme", "", []string{`account "acme"`, "cluster id is empty"}},
		{"Acme", "eu", []string{`account "Acme"`, `"A" at character 1`}},
		{"acme", "eu.1", []string{`account "acme"`, "cluster id", `"."`}},
		{"acme-", "eu", []string{`account "acme-"`, "starts or ends"}},
		{strings.Repeat("a", 64), "eu", []string{"64 characters"}},
	} {
		_, err := InstanceName(c.account, c.cluster)
		wantError(t, err, c.want...)
	}
}

func TestH6_serverKeysAreParsed(t *testing.T) {
	key, err := ParseServerKey("acme/eu-central")
	if err != nil || key != (ServerKey{"acme", "eu-central"}) || key.String() != "acme/eu-central" {
		t.Errorf("got %v, %v", key, err)
	}
	for in, want := range map[string]string{
		"":                                "is not a server",
		"acme":                            "<account>/<region>",
		"acme/":                           "region is empty",
		"/eu":                             "account is empty",
		"acme/eu/x":                       `"/"`,
		"Acme/eu":                         `"A"`,
		"acme /eu":                        `" "`,
		"acme/eu\n":                       `"\n"`,
		"acme/../eu":                      `"."`,
		strings.Repeat("x", 5000) + "/eu": "…",
	} {
		_, err := ParseServerKey(in)
		wantError(t, err, want)
		if len(err.Error()) > 2000 {
			t.Errorf("an error of %d characters", len(err.Error()))
		}
	}
}

// The names of containers, their temporary names included, and of volumes are told
// apart whatever environments, accounts, clusters and services there are.
func TestH6_namesOfDifferentServersAreNeverEqual(t *testing.T) {
	others := map[string]string{"preview": "-pre-view", "demo": "-cache-demo"}
	environments := map[string]string{"production": "", "staging": "", "preview": "-pre-view", "demo": "-cache-demo"}
	words := []string{"a", "cache", "a-cache", "a-staging", "staging", "next", "old", "view", "pre", "demo", "a-pre", "cache-next", "a-cache-demo"}
	seen := map[string]string{}
	count := 0
	for name, suffix := range environments {
		e := mustEnvironment(t, name, suffix, others)
		// Instance names are unique within an environment (H4); one of several spellings is kept.
		instances := map[string]bool{}
		for _, account := range words {
			for _, cluster := range words {
				instance, err := InstanceName(account, cluster)
				if err != nil {
					t.Fatal(err)
				}
				instances[instance] = true
			}
		}
		for instance := range instances {
			for _, service := range words {
				if e.checkService(service) != nil {
					continue
				}
				d := ServiceDocument{Name: instance + "-" + service + e.Suffix}
				owner := fmt.Sprintf("%s %s %s", name, instance, service)
				for _, n := range []string{d.Name, d.TemporaryName(), d.RetiredName()} {
					count++
					if other, taken := seen[n]; taken && other != owner {
						t.Errorf("%s and %s both name a container %s", owner, other, n)
					}
					seen[n] = owner
				}
			}
		}
	}
	if count < 500 {
		t.Errorf("only %d names; the test proves little", count)
	}
}

func TestH6_serviceAndVolumeNamesThatReadLikeOtherNamesAreRefused(t *testing.T) {
	e := mustEnvironment(t, "production", "", map[string]string{"preview": "-pre-view"})
	for name, want := range map[string]string{
		"":                      "no service name",
		"a-b":                   `no "-"`,
		"Cache":                 "no service name",
		"1cache":                "no service name",
		strings.Repeat("a", 21): "no service name",
		"next":                  "reserved",
		"old":                   "reserved",
		"staging":               `environment "staging"`,
		"canary":                `environment "canary"`,
		"view":                  `environment "preview"`,
	} {
		if err := e.checkService(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("service %q: got %v, want %q", name, err, want)
		}
		if err := e.checkVolume(name); name != strings.Repeat("a", 21) && err == nil {
			t.Errorf("volume %q: got no error", name)
		}
	}
	for _, name := range []string{"cache", "pre", "stagingx", "production", "a1"} {
		if err := e.checkService(name); err != nil {
			t.Errorf("service %q: %v", name, err)
		}
		if err := e.checkVolume(name + "_x"); err != nil {
			t.Errorf("volume %q: %v", name, err)
		}
	}
}
