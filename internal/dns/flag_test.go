package dns

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestZonesAreReadAsTheCommandLineGivesThem(t *testing.T) {
	got, err := ParseZones([]string{
		"Kura.Example.dev.",
		"example.dev=main,cloudflare=/etc/token,account=a1,plan=paid,api=https://api.test/v4/,txt-prefix=kura-%{record_type}.",
		"example.org,server=192.0.2.53,txt-suffix=-%{record_type}-owner,cloudflare=env:TOKEN",
		"example.net,server=[2001:db8::53]:5353",
		"example.com,server=ns.example.com",
	})
	want := Zones{
		{Domain: "kura.example.dev", Name: "kura.example.dev", BatchLimit: 200},
		{Domain: "example.dev", Name: "main", Token: "/etc/token", Account: "a1", BatchLimit: 3500, API: "https://api.test/v4", TXT: Naming{Prefix: "kura-%{record_type}."}},
		{Domain: "example.org", Name: "example.org", Server: "192.0.2.53:53", TXT: Naming{Suffix: "-%{record_type}-owner"}, Token: "env:TOKEN", BatchLimit: 200},
		{Domain: "example.net", Name: "example.net", Server: "[2001:db8::53]:5353", BatchLimit: 200},
		{Domain: "example.com", Name: "example.com", Server: "ns.example.com:53", BatchLimit: 200},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	for host, domain := range map[string]string{"acme.kura.example.dev": "kura.example.dev", "acme.example.dev": "example.dev", "kura.example.dev": "example.dev", "example.dev": "", "notexample.dev": "", "acme.example.io": ""} {
		if z, ok := got.Of(host); z.Domain != domain || ok != (domain != "") {
			t.Errorf("%s is in zone %q, want %q", host, z.Domain, domain)
		}
	}
}

func TestAZoneThatCannotBeIsRefusedWithTheReasonAndTheNextStep(t *testing.T) {
	for _, c := range []struct{ flag, want string }{
		{"", "begin with one such as kura.example.dev"},
		{"kura_example.dev", "kura.example.dev"},
		{"kura.example.dev=Big", "lower-case"},
		{"kura.example.dev,", "empty part"},
		{"kura.example.dev,token=x", "none of cloudflare, account"},
		{"kura.example.dev,cloudflare=", "no value"},
		{"kura.example.dev,cloudflare=v1.0-abcdef", "never stands in a flag"},
		{"kura.example.dev,cloudflare=env:", "env:NAME"},
		{"kura.example.dev,account=a", "cloudflare="},
		{"kura.example.dev,plan=paid", "cloudflare="},
		{"kura.example.dev,cloudflare=/t,plan=gold", "neither free nor paid"},
		{"kura.example.dev,cloudflare=/t,api=http://api.test", "in the clear"},
		{"kura.example.dev,cloudflare=/t,api=nonsense", "https://"},
		{"kura.example.dev,server=:53", "no DNS server"},
		{"kura.example.dev,server=192.0.2.1:0", "no DNS server"},
		{"kura.example.dev,txt-prefix=a,txt-suffix=b", "both"},
		{"kura.example.dev,txt-prefix=a b", "txt-prefix"},
		{"kura.example.dev,server=192.0.2.1,server=192.0.2.2", "given twice"},
	} {
		_, err := ParseZones([]string{c.flag})
		domain, _, _ := strings.Cut(c.flag, ",")
		if err == nil || !strings.Contains(err.Error(), "--zone "+domain) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want the flag and %q", c.flag, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "abcdef") {
			t.Errorf("%q: the message repeats the token: %v", c.flag, err)
		}
	}
	for _, pair := range [][]string{{"a.dev", "A.dev."}, {"a.dev=x", "b.dev=x"}} {
		if _, err := ParseZones(pair); err == nil {
			t.Errorf("%v are taken", pair)
		}
	}
}

func TestCheckAPI_aTokenIsSentByHTTPSOrOnTheLoopbackOnly(t *testing.T) {
	for base, good := range map[string]bool{
		"https://api.example.test/v4": true, "http://127.0.0.1:8080/client/v4": true, "http://[::1]:1": true, "http://localhost:1/x": true,
		"http://api.example.test": false, "http://10.0.0.1": false, "http://localhost.example.test": false, "ftp://localhost": false,
		"https://user:pass@api.test": false, "api.test": false, "": false, "https://": false, "https://a.test/?b": false, "http://127.0.0.1.nip.test": false,
	} {
		if err := CheckAPI(base); (err == nil) != good {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestG11_aTokenUnderAMistypedKeyIsNotShown(t *testing.T) {
	for _, key := range []string{"cloudflare", "cloudfare", "CloudFlare", "token", "api-token"} {
		if _, err := ParseZones([]string{"kura.example.dev," + key + "=s3cr3t"}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
