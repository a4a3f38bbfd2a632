package containers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

func TestParseEndpoint_readsTheFlag(t *testing.T) {
	got, err := containers.ParseEndpoint("local=unix:///run/podman.sock,address=127.0.0.1,ports=20000-29999,mounts=/srv/kura:/data/")
	if err != nil {
		t.Fatal(err)
	}
	want := containers.Config{
		Name: "local", Socket: "/run/podman.sock", Address: "127.0.0.1",
		Ports: containers.PortRange{First: 20000, Last: 29999}, Mounts: []string{"/srv/kura", "/data"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got, err := containers.ParseEndpoint("a=unix:///s"); err != nil || got.Address != "127.0.0.1" {
		t.Errorf("shortest: %+v, %v", got, err)
	}
}

func TestC9_parseEndpointReadsATCPEngine(t *testing.T) {
	files := containers.TLSFiles{CA: "/ca.pem", Cert: "/cert.pem", Key: "/key.pem"}
	for in, want := range map[string]containers.Config{
		"eu=tcp://10.0.0.7:2376,ca=/ca.pem,cert=/cert.pem,key=/key.pem":                      {Name: "eu", TCP: "10.0.0.7:2376", TLS: files, Address: "10.0.0.7"},
		"eu=tcp://engine.test:2376,ca=/ca.pem,cert=/cert.pem,key=/key.pem,address=192.0.2.1": {Name: "eu", TCP: "engine.test:2376", TLS: files, Address: "192.0.2.1"},
		"eu=tcp://[::1]:2375":                         {Name: "eu", TCP: "[::1]:2375", Address: "::1"},
		"eu=tcp://127.0.0.1:2375,mounts=/srv/kura":    {Name: "eu", TCP: "127.0.0.1:2375", Address: "127.0.0.1", Mounts: []string{"/srv/kura"}},
		"eu=tcp://10.0.0.7:2376,ca=/ca.pem,ports=1-2": {Name: "eu", TCP: "10.0.0.7:2376", TLS: containers.TLSFiles{CA: "/ca.pem"}, Address: "10.0.0.7", Ports: containers.PortRange{First: 1, Last: 2}},
	} {
		got, err := containers.ParseEndpoint(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
}

func TestParseEndpoint_saysWhatIsWrong(t *testing.T) {
	for in, says := range map[string]string{
		"":                                      "begins with no name=unix",
		"unix:///run/s":                         "begins with no name=unix",
		"Local=unix:///run/s":                   `the name "Local"`,
		"a=tcp://10.0.0.1:2375":                 "has no TLS",
		"a=tcp://localhost:2375":                "is no loopback address",
		"a=tcp://10.0.0.1":                      "with a host and a port",
		"a=tcp://:2375":                         "with a host and a port",
		"a=tcp://127.0.0.1:70000":               "with a host and a port",
		"a=tcp://10.0.0.1:2376,cert=/c,key=/k":  "ca is missing",
		"a=tcp://10.0.0.1:2376,ca=/c,cert=/c":   "belong together",
		"a=tcp://10.0.0.1:2376,ca=c":            "not the absolute path",
		"a=tcp://engine.test:2376,ca=/c":        "address is missing",
		"a=unix:///s,ca=/c":                     "this is a unix socket",
		"a=/run/s":                              "is neither unix://",
		"a=unix://run/s":                        "not absolute",
		"a=unix:///" + strings.Repeat("x", 110): "the system allows 107",
		"a=unix:///s,address=localhost":         "is not an IP address",
		"a=unix:///s,ports=20000":               "not a range",
		"a=unix:///s,ports=0-5":                 "not a range",
		"a=unix:///s,ports=9-5":                 "not a range",
		"a=unix:///s,ports=1-70000":             "not a range",
		"a=unix:///s,mounts=srv":                "not the absolute path",
		"a=unix:///s,mounts=/":                  "not the absolute path",
		"a=unix:///s,mounts=/a,mounts=/b":       "given twice",
		"a=unix:///s,host-namespaces=true":      `"host-namespaces" is none of`,
		"a=unix:///s,port=1-2":                  `"port" is none of`,
		"a=unix:///s,":                          "an empty part",
	} {
		_, err := containers.ParseEndpoint(in)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "write one such as") {
			t.Errorf("ParseEndpoint(%q): %v, want it to say %q", in, err, says)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	f.Add("local=unix:///run/podman.sock,address=127.0.0.1,ports=20000-29999,mounts=/srv/kura")
	f.Add("a=tcp://10.0.0.7:2376,ca=/ca.pem,cert=/cert.pem,key=/key.pem,ports=1-2")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := containers.ParseEndpoint(in)
		if err != nil {
			return
		}
		if c.Name == "" || filepath.IsAbs(c.Socket) == (c.TCP != "") || c.Address == "" || c.Ports.First > c.Ports.Last {
			t.Errorf("ParseEndpoint(%q) = %+v", in, c)
		}
	})
}

func TestC10_allowsRegionNamesTheFields(t *testing.T) {
	allowed, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(allowed, "link")); err != nil {
		t.Fatal(err)
	}
	e := open(t, containers.Config{Name: "local", Socket: "/none", Mounts: []string{allowed}, EnvSets: map[string]map[string]string{"known": nil}})
	region := func(s fleet.Service) fleet.Region {
		return fleet.Region{Name: "eu", Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"cache": s}}}
	}
	good := region(fleet.Service{
		EnvFrom: []string{"known"},
		Volumes: []fleet.Volume{{Name: "data"}, {HostPath: allowed}, {HostPath: allowed + "/{account}/not-there-yet"}},
		Ports:   map[string]fleet.Port{"http": {Container: 80, Host: 8080, Bind: "::1"}},
	})
	if err := e.AllowsRegion(good); err != nil {
		t.Errorf("a good region: %v", err)
	}
	bad := region(fleet.Service{
		EnvFrom: []string{"known", "secrets"},
		Volumes: []fleet.Volume{
			{HostPath: "/etc"}, {HostPath: allowed + "/../x"}, {HostPath: allowed + "/link/x"}, {HostPath: allowed + "{account}"},
		},
		Ports: map[string]fleet.Port{"http": {Container: 80, Host: 8080, Bind: "localhost"}, "admin": {Container: 81}},
	})
	err := e.AllowsRegion(bad)
	fault, ok := errors.AsType[*fleet.Error](err)
	if !ok || fault.Code != fleet.CodeInvalid {
		t.Fatalf("a bad region: %v, want an invalid *fleet.Error", err)
	}
	var got []string
	for _, f := range fault.Fields {
		got = append(got, f.Pointer)
	}
	const at = "/containers/services/cache"
	want := []string{
		at + "/volumes/0/host_path", at + "/volumes/1/host_path", at + "/volumes/2/host_path", at + "/volumes/3/host_path",
		at + "/env_from/1", at + "/ports/admin/host", at + "/ports/http/bind",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields (-want +got):\n%s\n%v", d, err)
	}
	for _, says := range []string{"host path /etc is not below an allowed folder; allowed on endpoint \"local\": " + allowed, "leads to " + outside, "holds ..", `no variable set named "secrets" (known: known)`} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v\ndoes not say %q", err, says)
		}
	}
	elsewhere := good
	elsewhere.Containers = &fleet.Containers{Endpoint: "other"}
	if err := e.AllowsRegion(elsewhere); err == nil || !strings.Contains(err.Error(), "/containers/endpoint") {
		t.Errorf("a region of another endpoint: %v", err)
	}
	if err := e.AllowsRegion(fleet.Region{Name: "k8s"}); err == nil {
		t.Error("a region without containers was allowed")
	}
}
