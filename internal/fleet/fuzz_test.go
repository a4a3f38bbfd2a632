package fleet

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

var dnsName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$`)

func FuzzRenderHost(f *testing.F) {
	for _, pattern := range []string{mainPattern, "{account_handle}{env_suffix}.k.dev", "{{a}{env_suffix}.x", "{env_suffix}.x", "a{env_suffix}", "{", "é{env_suffix}.x", "{region}-staging{env_suffix}.x"} {
		for _, value := range []string{"acme", "Acme", "a-staging", "", "a.b", "-", "\u212a", strings.Repeat("a", 64)} {
			f.Add(pattern, value, "eu-central-1", "eu")
		}
	}
	var environments []Environment
	for _, name := range []string{"production", "staging", "canary"} {
		environments = append(environments, mustEnvironment(f, name, "", map[string]string{"preview": "-preview"}))
	}
	f.Fuzz(func(t *testing.T, pattern, handle, cluster, region string) {
		hosts := map[string]string{}
		for _, e := range environments {
			host, err := e.RenderHost(pattern, HostInput{handle, cluster, region})
			if err != nil {
				if CodeOf(err) != CodeInvalid {
					t.Fatalf("%v is not for the user", err)
				}
				continue
			}
			if CheckPattern(pattern) != nil {
				t.Fatalf("%q is not valid and renders %q", pattern, host)
			}
			label, zone, _ := strings.Cut(host, ".")
			switch {
			case len(host) > 253 || !dnsName.MatchString(host):
				t.Fatalf("%q is no DNS name", host)
			case zone != Zone(pattern):
				t.Fatalf("%q is not one label under %q", host, Zone(pattern))
			case !strings.HasSuffix(label, e.Suffix) || StaleHost(e, Zone(pattern), host):
				t.Fatalf("%q does not end in %q", host, e.Suffix)
			case hosts[host] != "":
				t.Fatalf("%s and %s both render %q", hosts[host], e.Name, host)
			}
			hosts[host] = e.Name
		}
	})
}

func FuzzCheckPattern(f *testing.F) {
	for _, s := range []string{mainPattern, "", "{", "{{", "}", "{env_suffix}", "x{env_suffix}.y", "x{env_suffix}{env_suffix}.y", "\xff{env_suffix}.y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if CheckPattern(pattern) == nil {
			label, zone, dotted := strings.Cut(pattern, ".")
			if !dotted || strings.Count(pattern, "{env_suffix}") != 1 || !strings.HasSuffix(label, "{env_suffix}") || strings.ContainsAny(zone, "{}") {
				t.Fatalf("%q is taken for valid", pattern)
			}
		}
	})
}

func FuzzParseImage(f *testing.F) {
	for _, s := range []string{"kura", "kura:1", "localhost:5001/x:1", "localhost:5001/x", "a/b:1@" + someDigest, someDigest, "[::1]:1/x", ":", "/", "@", "a@b:c", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tag, ok := TagOf(s)
		if ok && CheckImageTag(tag) != nil {
			t.Fatalf("TagOf(%q) is %q, which is no tag", s, tag)
		}
		ref, err := ParseImage(s)
		if err != nil {
			return
		}
		if ref.Tag != tag && !imageIDFormat.MatchString(s) {
			t.Fatalf("%q: ParseImage says %q, TagOf %q", s, ref.Tag, tag)
		}
		out := ref.Repository
		if ref.Registry != "" {
			out = ref.Registry + "/" + out
		}
		if ref.Tag != "" {
			out += ":" + ref.Tag
		}
		if ref.Digest != "" {
			out += "@" + ref.Digest
		}
		if out != s {
			t.Fatalf("%q became %q", s, out)
		}
	})
}

func FuzzCheckImageTag(f *testing.F) {
	for _, s := range []string{"1", "a b", "", ".x", "_x", "ü", longTag(129)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckImageTag(s) != nil {
			return
		}
		for _, ref := range []string{"x:" + s, "localhost:5001/a/b:" + s, "x:" + s + "@" + someDigest} {
			if tag, ok := TagOf(ref); !ok || tag != s {
				t.Fatalf("TagOf(%q): got %q, %v", ref, tag, ok)
			}
		}
	})
}

func FuzzParseServerKey(f *testing.F) {
	for _, s := range []string{"acme/eu", "acme", "/", "a/b/c", "", "A/b", "a/b\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if key, err := ParseServerKey(s); err == nil && key.String() != s {
			t.Fatalf("%q became %q", s, key)
		}
		if name, err := InstanceName(s, "eu"); err == nil && (len(name) > maxInstance || checkLabel(name) != nil) {
			t.Fatalf("%q is no instance name", name)
		}
	})
}

func FuzzParseMemory(f *testing.F) {
	for _, s := range []string{"256Mi", "1Gi", "", "Mi", "-1", "1.5Gi", "9223372036854775807Ti", "٣Mi", "6291456"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseMemory(s); err == nil && n < minMemory {
			t.Fatalf("%q is %d bytes", s, n)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "15m", "", "1", "-1h", "1e9s", "9999999h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, again Duration
		if d.UnmarshalText([]byte(s)) != nil {
			return
		}
		b, err := d.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != d {
			t.Fatalf("%q: %s was written as %s and read as %s", s, d, b, again)
		}
		if s, err := time.ParseDuration(d.Short()); err != nil || Duration(s) != d {
			t.Fatalf("%s reads %q", d, d.Short())
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "{a}", "{{a}", "{", "}", "{{{a}}}", "{port:x}", "x{a}y{a}", "{a{a}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := tokenValues{text: map[string]string{"a": "A"}, ports: map[string]int{"x": 1}}
		out, err := expand(s, v.lookup)
		if err != nil {
			return
		}
		// What expanded is what it says, brace by brace.
		plain := strings.NewReplacer("{{", "{", "{a}", "A", "{port:x}", "1").Replace(s)
		if out != plain {
			t.Fatalf("%q became %q, want %q", s, out, plain)
		}
		// What is written with doubled braces is never a token.
		escaped, err := expand(strings.ReplaceAll(s, "{", "{{"), v.lookup)
		if err != nil || escaped != s {
			t.Fatalf("%q, escaped, became %q, %v", s, escaped, err)
		}
	})
}

func FuzzNewEnvironment(f *testing.F) {
	for _, s := range []string{"-preview", "", "-staging", "-x-staging", "preview", "-next", "--", "-a-", "-\xff"} {
		f.Add("preview", s)
		f.Add("staging", s)
	}
	f.Fuzz(func(t *testing.T, name, suffix string) {
		e, err := NewEnvironment(name, suffix, nil)
		if err != nil {
			return
		}
		if e.usable() != nil {
			t.Fatalf("%+v would render production's hosts", e)
		}
		for a, x := range e.Suffixes {
			for b, y := range e.Suffixes {
				if a != b && y != "" && strings.HasSuffix(x, y) {
					t.Fatalf("%q of %s ends in %q of %s", x, a, y, b)
				}
			}
		}
	})
}

// What JSON can say is validated, completed and rendered without a panic, and what
// is valid stays valid with its defaults.
func FuzzRegion(f *testing.F) {
	for _, r := range []Region{sampleRegion(), kubernetesRegion(), {}, {Containers: &Containers{Services: map[string]Service{"": {}}}}} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"name":"a","containers":{"services":{"a":{"image":"{","volumes":[{}],"ports":{"":{}}}}}}`))
	f.Add([]byte(`{"kubernetes":{},"containers":null,"sidecar":{},"location":{"latitude":1e308}}`))
	e := staging(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Region
		if json.Unmarshal(b, &r) != nil {
			return
		}
		in := sampleIntent()
		in.Ports = map[string]int{}
		for _, n := range PortNeeds(r) {
			in.Ports[n.Key()] = 20000
		}
		valid := r.Validate()
		if err := r.WithDefaults().Validate(); (err == nil) != (valid == nil) {
			t.Fatalf("valid: %v, with defaults: %v", valid, err)
		}
		d, err := Render(e, Gathered{Account: &Account{ID: "a"}, Region: &r, Intent: in, Templates: map[string]HostTemplate{
			r.Hosts.Public: {Pattern: mainPattern}, r.Hosts.GRPC: {Pattern: mainPattern}, r.Hosts.Global: {Pattern: mainPattern},
		}})
		if valid == nil && err == nil {
			if len(d.Revision) != 64 || d.URL == "" {
				t.Fatalf("rendered %+v", d)
			}
		}
		_ = in.Server.ValidateIn(r)
	})
}

func FuzzServer(f *testing.F) {
	f.Add([]byte(`{"account":"a","region":"b","image_tag":"1","overrides":{"containers":{"services":{"cache":{"env":{"A":"{"},"memory":"1Gi"}}}}}`))
	f.Add([]byte(`{"overrides":{"kubernetes":{"replicas":-1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Server
		if json.Unmarshal(b, &s) != nil {
			return
		}
		if s.Validate() == nil {
			if key, err := ParseServerKey(s.Key().String()); err != nil || key != s.Key() {
				t.Fatalf("a valid server has the key %q: %v", s.Key(), err)
			}
		}
		for _, r := range []Region{sampleRegion(), kubernetesRegion()} {
			_ = s.ValidateIn(r)
		}
	})
}
