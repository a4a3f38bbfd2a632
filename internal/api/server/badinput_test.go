package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// TestBadInput_namesTheFieldTheReasonAndTheNextStep sends what people get wrong.
func TestBadInput_namesTheFieldTheReasonAndTheNextStep(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	body := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	pattern := func(p string) string { return body(fleet.HostTemplate{Name: "t", Pattern: p}) }
	with := func(change func(*fleet.Region)) string {
		r := region("r")
		change(&r)
		return body(r)
	}
	const templates, regions, servers = "/v1/host-templates/t", "/v1/regions/r", "/v1/servers/acme/eu"
	for _, c := range []struct {
		name, path, body string
		status           int
		code             fleet.Code
		pointer          string
		words            []string
	}{
		{"a template without the suffix", templates, pattern("{account_handle}.kura.test"), 422, "invalid", "/pattern", []string{"{env_suffix}"}},
		{"the suffix in the second label", templates, pattern("{account_handle}.x{env_suffix}.kura.test"), 422, "invalid", "/pattern", []string{"first label"}},
		{"the suffix not at the end", templates, pattern("{env_suffix}-{account_handle}.kura.test"), 422, "invalid", "/pattern", []string{"end"}},
		{"a label that ends in another environment's suffix", templates, pattern("{account_handle}-canary{env_suffix}.kura.test"), 422, "invalid", "/pattern", []string{"canary"}},
		{"an unknown token", templates, pattern("{acount_handle}{env_suffix}.kura.test"), 422, "invalid", "/pattern", []string{"acount_handle"}},
		{"an unknown account", "/v1/servers/nobody/eu", body(srv("nobody", "eu", "v1")), 422, "invalid", "/account", []string{`account "nobody" does not exist`, "kura_account"}},
		{"an unknown region", "/v1/servers/acme/mars", body(srv("acme", "mars", "v1")), 422, "invalid", "/region", []string{`region "mars" does not exist`, "kura_region"}},
		{"an unknown template", regions, with(func(r *fleet.Region) { r.Hosts.Public = "nope" }), 422, "invalid", "/hosts/public", []string{`host template "nope" does not exist`, "declare it first"}},
		{"an unknown endpoint", regions, with(func(r *fleet.Region) { r.Containers.Endpoint = "dock" }), 422, "invalid", "/containers/endpoint", []string{`"dock"`, "podman"}},
		{"a cluster that was not given", regions, with(func(r *fleet.Region) {
			r.Containers, r.Kubernetes = nil, &fleet.Kubernetes{Cluster: "prod", Image: "kura:{image_tag}"}
		}), 422, "invalid", "/kubernetes/cluster", []string{`this kurad was given no cluster named "prod"`}},
		{"two runtimes", regions, with(func(r *fleet.Region) { r.Kubernetes = &fleet.Kubernetes{Cluster: "prod", Image: "kura:{image_tag}"} }), 422, "invalid", "", []string{"kubernetes", "containers"}},
		{"no runtime", regions, with(func(r *fleet.Region) { r.Containers = nil }), 422, "invalid", "", []string{"kubernetes", "containers"}},
		{"a host path that is not allowed", regions, with(func(r *fleet.Region) {
			s := r.Containers.Services["cache"]
			s.Volumes = []fleet.Volume{{HostPath: "/etc", Path: "/data"}}
			r.Containers.Services["cache"] = s
		}), 422, "invalid", "/containers/services/cache/volumes/0/host_path", []string{"/etc", "/srv/kura"}},
		{"hosts in no zone that kurad was given", regions, with(func(r *fleet.Region) { r.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: "me", Target: "192.0.2.1"} }), 422, "invalid", "/hosts/public", []string{`dns.mode = "none"`}},
		{"a sidecar that kurad cannot probe", regions, with(func(r *fleet.Region) { r.Sidecar = &fleet.Sidecar{Port: 7000} }), 422, "invalid", "/sidecar", []string{"leave sidecar out"}},
		{"a tag with a space", servers, body(srv("acme", "eu", "v 1")), 422, "invalid", "/image_tag", []string{"v 1"}},
		{"a digest instead of a tag", servers, body(srv("acme", "eu", "v1@sha256:abc")), 422, "invalid", "/image_tag", nil},
		{"an override of no service", servers, `{"account":"acme","region":"eu","image_tag":"v1","overrides":{"containers":{"services":{"cash":{"memory":"64Mi"}}}}}`, 422, "invalid", "/overrides/containers/services/cash", []string{"cache", "correct the name"}},
		{"another server than the URL's", servers, body(srv("acme", "us", "v1")), 422, "invalid", "/region", []string{"as in the URL"}},
		{"an unknown field", servers, `{"account":"acme","region":"eu","image_tag":"v1","imagetag":"v2"}`, 422, "invalid", "/imagetag", []string{"not a field", "image_tag"}},
		{"a field in another case", servers, `{"account":"acme","region":"eu","Image_Tag":"v1"}`, 422, "invalid", "/Image_Tag", []string{"not a field"}},
		{"an unknown field deep inside", regions, `{"name":"r","hosts":{"public":"public"},"containers":{"endpoint":"podman","services":{"a/b":{"image":"x","cmd":[]}}}}`, 422, "invalid", "/containers/services/a~1b/cmd", []string{"command"}},
		{"a list where an object belongs", regions, `{"name":"r","hosts":[]}`, 422, "invalid", "/hosts", []string{"an object, not a list"}},
		{"text where a number belongs", regions, `{"name":"r","max_unsettled":"many"}`, 422, "invalid", "/max_unsettled", []string{"a whole number, not text"}},
		{"half a number", regions, `{"name":"r","max_unsettled":1.5}`, 422, "invalid", "/max_unsettled", []string{"whole number"}},
		{"a number where time belongs", regions, `{"name":"r","stall_after":15}`, 422, "invalid", "/stall_after", []string{"text"}},
		{"text that is no time", regions, `{"name":"r","stall_after":"soon"}`, 422, "invalid", "/stall_after", []string{`"15m"`}},
		{"null in a map", servers, `{"account":"acme","region":"eu","image_tag":"v1","labels":{"a":null}}`, 422, "invalid", "/labels/a", []string{"leave the key out"}},
		{"no JSON", servers, `{"account":`, 422, "invalid", "", []string{"not JSON"}},
		{"two values", servers, `{} {}`, 422, "invalid", "", []string{"more than one"}},
		{"no object", servers, `[]`, 422, "invalid", "", []string{"not a JSON object"}},
		{"no body", servers, ``, 400, "invalid", "", []string{"body is required"}},
		{"a body too large", servers, `{"account":"` + strings.Repeat("a", api.MaxBody) + `"}`, 413, "too_large", "", []string{"1 MiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.t = t
			p := w.problem(http.MethodPut, c.path, c.body, w.admin)
			if p.Status != c.status {
				t.Errorf("status %d, want %d", p.Status, c.status)
			}
			wantFault(t, p.Err(), c.code, c.pointer, c.words...)
		})
	}
	if list, err := w.client.ListServers(t.Context(), api.ServerFilter{}); len(list) > 0 || err != nil {
		t.Errorf("something was written: %v, %v", list, err)
	}
}

func TestBadInput_ofParameters(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	for _, c := range []struct{ path, word string }{
		{"/v1/servers?limit=0", "limit"}, {"/v1/servers?limit=1001", "limit"}, {"/v1/servers?verdict=fine", "verdict"}, {"/v1/servers?colour=red", "colour"},
		{"/v1/servers?region=eu&account=a&wait=1s", "no other filter"}, {"/v1/servers/acme/eu?wait=soon", "duration"},
		{"/v1/servers/acme/eu?wait=1s&observe=now", "exclude each other"}, {"/v1/servers/acme/eu?observe=later", "observe"}, {"/v1/events?limit=5000", "limit"},
	} {
		p := w.problem("GET", c.path, "", w.admin)
		if p.Status != 422 || p.Code != fleet.CodeInvalid || !strings.Contains(p.Detail, c.word) {
			t.Errorf("%s: %+v, want 422 with %q", c.path, p, c.word)
		}
	}
	for _, header := range [][2]string{{"If-Match", "newest"}, {"If-None-Match", `"3"`}} {
		if p := w.problem("PUT", "/v1/accounts/acme", `{"id":"acme"}`, w.admin, header[0], header[1]); p.Code != fleet.CodeInvalid || !strings.Contains(p.Detail, header[0]) {
			t.Errorf("%v: %+v", header, p)
		}
	}
	for _, path := range []string{"/v1/accounts/a%2Fb", "/v1/servers/a%2Fb/eu", "/v1/regions/nope", "/v1/host-templates/x%2Fy", "/v1/accounts/nobody/endpoints"} {
		if p := w.problem("GET", path, "", w.admin); p.Code != fleet.CodeNotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
}
