package fleet

import (
	"errors"
	"strings"
	"testing"
)

func TestCacheEndpoint_oneEndpointHasOneSpelling(t *testing.T) {
	for _, url := range []string{
		"https://cache.example.dev", "https://cache.example.dev:8443", "https://cache.example.dev/bazel", "https://cache.example.dev/a%2Fb/c", "https://10.0.0.7:8443", "https://cache",
		"https://cache.example.dev:1", "https://cache.example.dev:65535", "https://" + strings.Repeat("a", 63) + ".dev",
	} {
		if err := (CacheEndpoint{Account: "acme", URL: url}).Validate(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for url, words := range map[string]string{
		"":                                            "is required",
		"cache.example.dev":                           "is not an https url",
		"http://cache.example.dev":                    "is not an https url",
		"https:cache.example.dev":                     "is not an https url",
		"https://":                                    "names no host",
		"https://:8443":                               "names no host",
		"https://a b.dev":                             "is no url",
		"https://u:p@cache.dev":                       "user name or password",
		"https://cache.dev?x=1":                       "holds a query",
		"https://cache.dev?":                          "holds a query",
		"https://cache.dev#top":                       "holds a fragment",
		"https://cache.dev#":                          "holds a fragment",
		"https://Cache.dev":                           "is no DNS name",
		"https://cache.dev.":                          "is no DNS name",
		"https://ca_che.dev":                          "is no DNS name",
		"https://[::1]":                               "is no DNS name",
		"https://cache.dev:":                          "the port",
		"https://cache.dev:0":                         "the port",
		"https://cache.dev:65536":                     "the port",
		"https://cache.dev:08443":                     "the port",
		"https://cache.dev:443":                       "leave it out",
		"https://cache.dev/":                          `write "https://cache.dev"`,
		"https://cache.dev/a/":                        `write "https://cache.dev/a"`,
		"https://cache.dev/a//b":                      `write "https://cache.dev/a/b"`,
		"https://cache.dev/a/../b":                    `write "https://cache.dev/b"`,
		"HTTPS://cache.dev":                           `write "https://cache.dev"`,
		"https://cache.dev/ä":                         "another spelling",
		"https://" + strings.Repeat("a", 64) + ".dev": "at most 63",
		"https://cache.dev/" + strings.Repeat("a", maxURL-17): "at most 1024",
	} {
		err := (CacheEndpoint{Account: "acme", URL: url}).Validate()
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.Code != CodeInvalid || len(fault.Fields) != 1 || fault.Fields[0].Pointer != "/url" || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: got %v, want %q at /url", url, err, words)
		}
	}
}

func TestCacheEndpoint_theTechnologyKuraIsTheDaemonsOwn(t *testing.T) {
	for technology, words := range map[string]string{TechnologyKura: "kurad derives from its servers", "Bazel": "use a-z", "a/b": "use a-z"} {
		err := (CacheEndpoint{Account: "acme", Technology: technology, URL: "https://cache.dev"}).Validate()
		if err == nil || !strings.Contains(err.Error(), "/technology") || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", technology, err)
		}
	}
	if err := (CacheEndpoint{Account: "Acme", Technology: "bazel", URL: "https://cache.dev"}).Validate(); err == nil || !strings.Contains(err.Error(), "/account") {
		t.Errorf("a bad account: %v", err)
	}
}

// The key is part of urls and of the store's keys: it never changes.
func TestCacheEndpoint_theKeyIsTheSameForEver(t *testing.T) {
	c := CacheEndpoint{Account: "acme", URL: "https://cache.example.dev"}
	const want = "36d5ec78b4f7b0a2"
	if got := c.Key(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := c.WithDefaults().Key(); got != want {
		t.Errorf("with the default spelled out it is %s", got)
	}
	c.Technology = "bazel"
	if c.Key() == want {
		t.Error("another technology has the same key")
	}
}

func TestCacheEndpoint_readsAsItIsWritten(t *testing.T) {
	for _, text := range []string{"acme/default/https://cache.example.dev", "acme/bazel/https://cache.example.dev:8443/a/b"} {
		c, err := ParseCacheEndpoint(text)
		if err != nil || c.String() != text {
			t.Errorf("%s: got %v, %v", text, c, err)
		}
	}
	if got := (CacheEndpoint{Account: "acme", URL: "https://cache.dev"}).String(); got != "acme/default/https://cache.dev" {
		t.Error(got)
	}
	for _, text := range []string{"", "acme", "acme/default", "https://cache.dev", "acme/https://cache.dev", "acme/kura/https://cache.dev", "acme/default/http://cache.dev"} {
		if c, err := ParseCacheEndpoint(text); CodeOf(err) != CodeInvalid {
			t.Errorf("%q: got %v, %v", text, c, err)
		}
	}
}

func TestH9_anEndpointOfAnotherEnvironmentIsStale(t *testing.T) {
	templates := []HostTemplate{{Name: "other", Pattern: "{account_handle}{env_suffix}.other.test"}, {Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}}
	for _, c := range []struct {
		environment, url string
		stale            bool
	}{
		{"staging", "https://acme-eu-central-1.kura.test", true},
		{"staging", "https://acme-eu-central-1-staging.kura.test:8443", false},
		{"staging", "https://my-staging-eu-central-1.kura.test", true},
		{"staging", "https://acme-eu-canary.kura.test/x", true},
		{"staging", "https://cache.example.dev", false},
		{"staging", "https://kura.test", false},
		{"canary", "https://acme-eu-canary.kura.test", false},
		{"production", "https://acme-eu-staging.kura.test", false},
		{"staging", "not a url", false},
	} {
		e, err := NewEnvironment(c.environment, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = CacheEndpoint{Account: "acme", URL: c.url}.CheckStale(e, templates)
		if !c.stale && err != nil {
			t.Errorf("%s in %s: %v", c.url, c.environment, err)
		}
		if c.stale && (CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), `/url: host "`) || !strings.Contains(err.Error(), `zone "kura.test" of host template "public"`)) {
			t.Errorf("%s in %s is stale, got %v", c.url, c.environment, err)
		}
	}
}
