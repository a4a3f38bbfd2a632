package fleet

import (
	"strings"
	"testing"
)

const mainPattern = "{account_handle}-{cluster_id}{env_suffix}.kura.example.dev"

func TestH2_patternsAreChecked(t *testing.T) {
	for _, good := range []string{
		mainPattern,
		"{account_handle}{env_suffix}.kura.test",
		"grpc-{account_handle}-{region}{env_suffix}.kura.example.dev",
		"{account_handle}-{cluster_id}-{region}{env_suffix}.k.dev",
		"cache{env_suffix}.dev",
	} {
		if err := CheckPattern(good); err != nil {
			t.Errorf("CheckPattern(%q): %v", good, err)
		}
	}
	for pattern, want := range map[string][]string{
		"":                             {"is required"},
		"{account_handle}{env_suffix}": {"no zone", ".kura.example.dev"},
		"{account_handle}.kura.dev":    {"holds no {env_suffix}", "end of the first label"},
		"{account_handle}.x{env_suffix}.kura.dev":              {"behind the first label", "wildcard certificate"},
		"{account_handle}{env_suffix}.x{env_suffix}.kura.dev":  {"2 times"},
		"{account_handle}{env_suffix}{env_suffix}.kura.dev":    {"2 times"},
		"{env_suffix}{account_handle}.kura.dev":                {"within the first label", "label's end"},
		"{account_handle}{env_suffix}x.kura.dev":               {"within the first label"},
		"{env_suffix}.kura.dev":                                {"nothing before {env_suffix}"},
		"{account_handle}{env_suffix}.{region}.kura.dev":       {"token behind the first label", "one template per zone"},
		"{handle}{env_suffix}.kura.dev":                        {`"{handle}" is no known token`, "{account_handle} {cluster_id} {env_suffix} {region}"},
		"{account_handle{env_suffix}.kura.dev":                 {"is no known token"},
		"{account_handle}{env_suffix}.kura.dev{":               {"never closed"},
		"{account_handle}{env_suffix}.kura..dev":               {"is empty"},
		"{account_handle}{env_suffix}.kura.dev.":               {"is empty"},
		"{account_handle}{env_suffix}.Kura.dev":                {`"K"`, "a-z"},
		"{account_handle}_{cluster_id}{env_suffix}.kura.dev":   {`"_"`},
		"{{account_handle}}{env_suffix}.kura.dev":              {`"{"`},
		"{account_handle}}{env_suffix}.kura.dev":               {`"}"`},
		"-{account_handle}{env_suffix}.kura.dev":               {"starts or ends with"},
		"{account_handle}-{env_suffix}.kura.dev":               {"starts or ends with"},
		"{account_handle}{env_suffix}." + longHost(260):        {"at most 253"},
		strings.Repeat("a", 64) + "{env_suffix}.kura.dev":      {"64 characters", "at most 63"},
		"{account_handle}{env_suffix}.küra.dev":                {`"ü" at character 2`},
		"{account_handle} {cluster_id}{env_suffix}.kura.dev":   {`" "`},
		"*.{account_handle}{env_suffix}.kura.dev":              {"behind the first label"},
		"{ACCOUNT_HANDLE}{env_suffix}.kura.dev":                {"no known token"},
		"{account_handle}{env_suffix }.kura.dev":               {"no known token"},
		"https://{account_handle}{env_suffix}.kura.dev":        {`":"`},
		"{account_handle}{env_suffix}.kura.dev:8443":           {`":"`},
		"{account_handle}{env_suffix}.kura.dev/up":             {`"/"`},
		"{account_handle}{env_suffix}.{unknown}.kura.dev":      {"no known token"},
		"{account_handle}-{image_tag}{env_suffix}.kura.dev":    {"no known token"},
		"{account_handle}-{cluster_id}{env_suffix}.-kura.dev":  {"starts or ends with"},
		"{account_handle}-{cluster_id}{env_suffix}.kura-.dev":  {"starts or ends with"},
		"{account_handle}-{cluster_id}.{env_suffix}.kura.dev":  {"behind the first label"},
		"{account_handle}-{cluster_id}.kura.dev.{env_suffix}x": {"behind the first label"},
	} {
		t.Run(pattern, func(t *testing.T) {
			err := CheckPattern(pattern)
			wantError(t, err, append(want, "/pattern: ")...)
			if pattern != "" {
				_, err = mustEnvironment(t, "staging", "", nil).RenderHost(pattern, HostInput{"acme", "eu", "eu"})
				wantError(t, err)
			}
		})
	}
}

// longHost returns a host of n characters.
func longHost(n int) string {
	return strings.Repeat(strings.Repeat("z", 62)+".", n/63+1)[:n-1] + "z"
}

func TestH2_hostsRenderInEveryEnvironment(t *testing.T) {
	in := HostInput{AccountHandle: "acme", ClusterID: "eu-central-1", Region: "eu"}
	for _, c := range []struct{ environment, suffix, pattern, want string }{
		{"production", "", mainPattern, "acme-eu-central-1.kura.example.dev"},
		{"staging", "", mainPattern, "acme-eu-central-1-staging.kura.example.dev"},
		{"canary", "", mainPattern, "acme-eu-central-1-canary.kura.example.dev"},
		{"preview", "-preview", mainPattern, "acme-eu-central-1-preview.kura.example.dev"},
		{"staging", "", "grpc-{account_handle}-{region}{env_suffix}.k.dev", "grpc-acme-eu-staging.k.dev"},
		{"staging", "", "cache{env_suffix}.k.dev", "cache-staging.k.dev"},
	} {
		got, err := mustEnvironment(t, c.environment, c.suffix, nil).RenderHost(c.pattern, in)
		if err != nil || got != c.want {
			t.Errorf("%s: RenderHost(%q): got %q, %v, want %q", c.environment, c.pattern, got, err, c.want)
		}
	}
}

func TestH2_labelThatReadsLikeAnotherEnvironmentsIsRefused(t *testing.T) {
	const pattern = "{account_handle}{env_suffix}.kura.dev"
	others := map[string]string{"preview": "-preview"}
	for _, c := range []struct{ environment, suffix, handle, other string }{
		{"production", "", "acme-staging", "staging"},
		{"production", "", "acme-canary", "canary"},
		{"production", "", "Acme-Canary", "canary"},
		{"production", "", "acme-preview", "preview"},
		{"staging", "", "acme-canary", "canary"},
		{"staging", "", "acme-staging", "staging"}, // its own, twice
		{"preview", "-preview", "acme-staging", "staging"},
	} {
		e := mustEnvironment(t, c.environment, c.suffix, others)
		_, err := e.RenderHost(pattern, HostInput{AccountHandle: c.handle})
		wantError(t, err, `environment "`+c.environment+`" collides with environment "`+c.other+`"`, strings.ToLower(c.handle)+e.Suffix+".kura.dev", "choose")
	}
	production := mustEnvironment(t, "production", "", nil)
	for _, handle := range []string{"staging", "stagingx", "acmestaging", "acme-staging-1", "acme-preview"} {
		if host, err := production.RenderHost(pattern, HostInput{AccountHandle: handle}); err != nil {
			t.Errorf("RenderHost(%q): got %q, %v, want the host: it reads like no other environment's", handle, host, err)
		}
	}
	// What ends the label decides, not the handle.
	if host, err := production.RenderHost(mainPattern, HostInput{AccountHandle: "acme-staging", ClusterID: "eu"}); err != nil || host != "acme-staging-eu.kura.example.dev" {
		t.Errorf("got %q, %v", host, err)
	}
	_, err := production.RenderHost(mainPattern, HostInput{AccountHandle: "acme", ClusterID: "staging"})
	wantError(t, err, `"staging"`, "cluster id")
}

func TestH2_noTwoEnvironmentsRenderOneHost(t *testing.T) {
	others := map[string]string{"preview": "-preview", "demo": "-x"}
	environments := []Environment{
		mustEnvironment(t, "production", "", others), mustEnvironment(t, "staging", "", others), mustEnvironment(t, "canary", "", others),
		mustEnvironment(t, "preview", "-preview", others), mustEnvironment(t, "demo", "-x", others),
	}
	words := []string{"a", "x", "staging", "canary", "preview", "a-staging", "a-x", "x-preview", "a-x-staging", "staging-canary"}
	patterns := []string{mainPattern, "{account_handle}{env_suffix}.kura.example.dev", "{cluster_id}-{account_handle}{env_suffix}.kura.example.dev"}
	seen := map[string]string{}
	for _, e := range environments {
		for _, p := range patterns {
			for _, handle := range words {
				for _, cluster := range words {
					host, err := e.RenderHost(p, HostInput{AccountHandle: handle, ClusterID: cluster})
					if err != nil {
						continue
					}
					if other, taken := seen[host]; taken && other != e.Name {
						t.Errorf("%s and %s both render %s", e.Name, other, host)
					}
					seen[host] = e.Name
				}
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d hosts rendered; the test proves little", len(seen))
	}
}

func TestL14_hostsAreOneLabelUnderTheirZone(t *testing.T) {
	for _, pattern := range []string{mainPattern, "grpc-{account_handle}{env_suffix}.kura.dev"} {
		for name := range DefaultSuffixes() {
			host, err := mustEnvironment(t, name, "", nil).RenderHost(pattern, HostInput{"acme", "eu", "eu"})
			if err != nil {
				t.Fatal(err)
			}
			label, found := strings.CutSuffix(host, "."+Zone(pattern))
			if !found || strings.Contains(label, ".") {
				t.Errorf("%s is not one label under %s", host, Zone(pattern))
			}
		}
	}
	for _, in := range []HostInput{{"grpc.acme", "eu", ""}, {"acme", "eu.1", ""}} {
		_, err := mustEnvironment(t, "production", "", nil).RenderHost(mainPattern, in)
		wantError(t, err, `"."`)
	}
	if got := Zone("nothing"); got != "" {
		t.Errorf(`Zone("nothing"): got %q, want ""`, got)
	}
}

func TestH3_hostsAreValidDNSNames(t *testing.T) {
	e := mustEnvironment(t, "staging", "", nil)
	const pattern = "{account_handle}{env_suffix}.kura.dev"
	if _, err := e.RenderHost(pattern, HostInput{AccountHandle: strings.Repeat("a", 55)}); err != nil {
		t.Errorf("a label of 63 characters: %v", err)
	}
	_, err := e.RenderHost(pattern, HostInput{AccountHandle: strings.Repeat("a", 56)})
	wantError(t, err, "64 characters", "at most 63", "shorten")

	zone := longHost(253 - len("acme-staging."))
	if host, err := e.RenderHost("{account_handle}{env_suffix}."+zone, HostInput{AccountHandle: "acme"}); err != nil || len(host) != 253 {
		t.Errorf("a host of 253 characters: got %d, %v", len(host), err)
	}
	_, err = e.RenderHost("{account_handle}{env_suffix}."+zone, HostInput{AccountHandle: "acmee"})
	wantError(t, err, "254 characters", "at most 253")
}

func TestH5_handlesAreLowerCasedAndNothingElseIsRewritten(t *testing.T) {
	e := mustEnvironment(t, "production", "", nil)
	if host, err := e.RenderHost(mainPattern, HostInput{AccountHandle: "AcMe", ClusterID: "eu"}); err != nil || host != "acme-eu.kura.example.dev" {
		t.Errorf("got %q, %v", host, err)
	}
	for name, c := range map[string]struct {
		in   HostInput
		want []string
	}{
		"underscore":            {HostInput{AccountHandle: "ac_me", ClusterID: "eu"}, []string{"account handle", `"ac_me"`, `"_" at character 3`}},
		"space":                 {HostInput{AccountHandle: "ac me", ClusterID: "eu"}, []string{"account handle", `" "`}},
		"umlaut":                {HostInput{AccountHandle: "ÄCME", ClusterID: "eu"}, []string{`"Ä" at character 1`}},
		"kelvin sign":           {HostInput{AccountHandle: "\u212aura", ClusterID: "eu"}, []string{"account handle"}},
		"dash at the end":       {HostInput{AccountHandle: "acme-", ClusterID: "eu"}, []string{"account handle", "starts or ends"}},
		"no handle":             {HostInput{ClusterID: "eu"}, []string{"account handle is empty"}},
		"no cluster id":         {HostInput{AccountHandle: "acme"}, []string{"cluster id is empty"}},
		"upper-case cluster id": {HostInput{AccountHandle: "acme", ClusterID: "EU"}, []string{"cluster id", `"E"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.RenderHost(mainPattern, c.in)
			wantError(t, err, c.want...)
		})
	}
	_, err := e.RenderHost("{region}{env_suffix}.kura.dev", HostInput{Region: "EU"})
	wantError(t, err, "the region", `"E"`)
}

func TestH9_staleHosts(t *testing.T) {
	const zone = "kura.example.dev"
	for _, c := range []struct {
		environment, host string
		want              bool
	}{
		{"staging", "acme-eu-central-1." + zone, true},
		{"staging", "acme-eu-central-1-staging." + zone, false},
		{"staging", "my-staging-eu-central-1." + zone, true},
		{"staging", "my-staging-eu-central-1-staging." + zone, false},
		{"staging", "acme-eu-central-1-canary." + zone, true},
		{"staging", "acme-eu-central-1.other.dev", false},
		{"staging", "acme-eu-central-1.notkura.example.dev.evil", false},
		{"staging", "acme.xkura.example.dev", false},
		{"staging", zone, false},
		{"staging", "." + zone, false},
		{"staging", "ACME-EU." + strings.ToUpper(zone) + ".", true},
		{"staging", "ACME-EU-Staging." + zone + ".", false},
		{"staging", "_acme-challenge.acme-eu-staging." + zone, false},
		{"staging", "grpc.acme-eu." + zone, true},
		{"canary", "acme-eu-central-1." + zone, true},
		{"canary", "acme-eu-central-1-canary." + zone, false},
		{"canary", "acme-eu-central-1-staging." + zone, true},
		{"production", "acme-eu-central-1." + zone, false},
		{"production", "acme-eu-central-1-staging." + zone, false},
		{"production", "acme.other.dev", false},
		{"preview", "acme." + zone, true},
		{"preview", "acme-preview." + zone, false},
	} {
		suffix := ""
		if c.environment == "preview" {
			suffix = "-preview"
		}
		if got := StaleHost(mustEnvironment(t, c.environment, suffix, nil), zone, c.host); got != c.want {
			t.Errorf("%s: StaleHost(%q): got %v, want %v", c.environment, c.host, got, c.want)
		}
	}
	if StaleHost(mustEnvironment(t, "staging", "", nil), "", "acme.dev") {
		t.Error("a host under no zone is stale")
	}
}
