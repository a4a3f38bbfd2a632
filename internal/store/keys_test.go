package store

import "testing"

func TestKeys_readAsWhatTheyName(t *testing.T) {
	for key, want := range map[string]string{
		"schema":                            "the schema record",
		"accounts/acme":                     `account "acme"`,
		"templates/default":                 `host template "default"`,
		"regions/eu":                        `region "eu"`,
		"endpoints/acme/1f":                 "cache endpoint acme/1f",
		"endpoints/acme":                    "record endpoints/acme",
		"tokens/t1":                         `token "t1"`,
		"servers/eu/acme/intent":            "server acme/eu",
		"servers/eu/acme/status":            "the status of server acme/eu",
		"servers/eu/acme/claims":            "the reservations of server acme/eu",
		"deployments/eu/acme/0000000012":    "deployment 12 of server acme/eu",
		"events/eu/acme/07":                 "the events of server acme/eu",
		"hosts/a.b":                         `host "a.b"`,
		"instances/containers/local/kura-a": `instance name "kura-a" on containers/local`,
		"ports/local/20000":                 `port 20000 of container endpoint "local"`,
		"refs/accounts/acme/eu":             "the reference accounts/acme/eu",
		"servers/eu/acme/other":             "record servers/eu/acme/other",
		"servers/eu/acme":                   "record servers/eu/acme",
		"deployments/eu/acme/last":          "record deployments/eu/acme/last",
		"other/eu/acme/last":                "record other/eu/acme/last",
		"accounts/":                         "record accounts/",
		"nothing":                           "record nothing",
	} {
		if got := describe(key); got != want {
			t.Errorf("%s reads %s, want %s", key, got, want)
		}
	}
}
