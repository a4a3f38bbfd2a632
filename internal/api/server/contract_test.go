package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestContract_theDocumentOfTheAPIIsAsItWasReviewed compares the OpenAPI document with the one in
// testdata: every route, parameter and field that clients were promised. Run it with -update after
// a change that is meant, and read the difference as a client would.
func TestContract_theDocumentOfTheAPIIsAsItWasReviewed(t *testing.T) {
	_, b := newWorld(t).openAPI()
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", text.String())
}

// TestContract_anAnswerIsByteForByteAsItWasReviewed sends calls of every kind, those that are refused
// among them, and compares status, headers and body with testdata/answers.txt.
func TestContract_anAnswerIsByteForByteAsItWasReviewed(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme", "team-a-x")
	w.put(srv("acme", "eu", "v1"))
	w.clock.advance(time.Second) // tokens are listed in the order of their times
	limited := w.limited("a <b> & c", fleet.ScopeWrite, "team-a-")
	w.clock.advance(time.Second)
	reader := w.token("<reader>", fleet.ScopeRead)
	random := regexp.MustCompile(`[A-Z2-7]{16}|kura_[a-z2-7]+_[a-z2-7]+|"id":"[a-z0-9]{8}"|(next|cursor)":"[^"]+"`)
	var got strings.Builder
	call := func(token, method, path, body string, header ...string) {
		t.Helper()
		resp, b := w.do(method, path, body, token, header...)
		fmt.Fprintf(&got, "%s %s %v\n%s\n%d\n", method, path, header, strings.TrimSpace(body), resp.StatusCode)
		for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
			if name != "Date" && name != "Content-Length" && name != "X-Request-Id" {
				fmt.Fprintf(&got, "%s: %s\n", name, strings.Join(resp.Header[name], ", "))
			}
		}
		fmt.Fprintf(&got, "%s\n\n", random.ReplaceAll(b, []byte("$1*")))
	}
	for _, path := range []string{
		"/healthz", "/readyz", "/v1/version", "/v1/accounts", "/v1/accounts/acme", "/v1/accounts/acme/endpoints", "/v1/cache-endpoints", "/v1/cache-endpoints?technology=x&account=acme",
		"/v1/host-templates", "/v1/host-templates/public", "/v1/regions", "/v1/regions/eu", "/v1/servers", "/v1/servers?limit=1", "/v1/servers?verdict=converged", "/v1/servers/acme/eu", "/v1/servers?wait=0s", "/v1/servers/acme/eu?wait=0s",
		"/v1/servers/acme/eu?observe=now", "/v1/servers/acme/eu/deployments", "/v1/events", "/v1/events?wait=0s", "/v1/orphans", "/v1/dns/audit", "/v1/dns/audit?zone=none", "/v1/clusters", "/v1/audit-anchors", "/v1/tokens",
		"/v1/accounts/none", "/v1/accounts/a%2Fb", "/v1/regions/none", "/v1/servers/none/eu", "/v1/servers/acme/eu?observe=later", "/v1/servers/acme/eu?observe=now&wait=1s", "/v1/servers?wait=1s&account=acme", "/v1/servers?wait=never",
		"/v1/accounts?limit=0", "/v1/accounts?limit=2000&x=1", "/v1/accounts?page=AAAA", "/v1/servers?page=AAAA", "/v1/servers?wait=0s&after=AAAA", "/v1/events?wait=0s&after=AAAA", "/v1/none", "//v1/none", "/v1//accounts", "/v1/servers/acme/eu:redeploy", "/v1/servers/acme/eu:none/x",
	} {
		call(w.admin, "GET", path, "")
	}
	call("", "GET", "/v1/version", "")
	call("kura_aaaaaaaa_b", "GET", "/v1/version", "")
	call("", "GET", "/v1/version", "", "Authorization", "Basic x")
	call(w.admin, "GET", "/v1/version", "", "Kura-Environment", "production")
	call(w.admin, "GET", "/v1/servers/acme/eu", "", "If-None-Match", "*")
	call(w.admin, "PATCH", "/v1/servers/acme/eu", "")
	call(w.admin, "POST", "/v1/none", "{}")
	call(limited, "GET", "/v1/accounts", "")
	call(limited, "GET", "/v1/accounts/acme", "")
	call(limited, "GET", "/v1/tokens", "")
	call(limited, "PUT", "/v1/regions/eu", "{}")
	call(limited, "POST", "/v1/servers/team-a-x/eu:adopt", "{}")
	call(reader, "PUT", "/v1/accounts/acme", "{}")
	for _, body := range []string{
		"", "{", "[]", "null", "{} {}", `{"id":"acme"}`, `{"id":"acme","labels":{"a":"b"}}`, `{"id":"other"}`, `{"ID":"acme"}`, `{"id":1,"labels":[],"deletion_protection":"x"}`, `{"id":"acme","labels":{"a":null,"b/~":1}}`,
		`{"id":"acme","handle":"a_b","labels":{"dev.kura/x":"y","-":"\u0000"}}`,
	} {
		call(w.admin, "PUT", "/v1/accounts/acme", body)
	}
	call(w.admin, "PUT", "/v1/accounts/acme", strings.Repeat(" ", 1<<20)+"{}")
	call(w.admin, "PUT", "/v1/accounts/new", `{"id":"new"}`, "If-None-Match", "*")
	call(w.admin, "PUT", "/v1/accounts/new", `{"id":"new"}`, "If-None-Match", "*")
	call(w.admin, "PUT", "/v1/accounts/new", `{"id":"new"}`, "If-None-Match", "x")
	call(w.admin, "PUT", "/v1/accounts/new", `{"id":"new"}`, "If-Match", `"7"`)
	call(w.admin, "PUT", "/v1/accounts/new", `{"id":"new"}`, "If-Match", `x`)
	call(w.admin, "PUT", "/v1/accounts/dry?dry_run=true", `{"id":"dry"}`)
	call(w.admin, "DELETE", "/v1/accounts/new", "", "If-Match", `"7"`)
	call(w.admin, "DELETE", "/v1/accounts/new", "")
	call(w.admin, "DELETE", "/v1/accounts/new", "")
	call(w.admin, "PUT", "/v1/host-templates/public", `{"name":"public","pattern":"x.y"}`)
	call(w.admin, "PUT", "/v1/regions/eu", `{"name":"eu","hosts":{"public":"","grpc":"-","global":"_"},"cluster_id":"A","location":{"latitude":91,"longitude":1e999},"readiness":{"path":"x","timeout":"1m","port":-1},"stall_after":5}`)
	call(w.admin, "PUT", "/v1/regions/eu", `{"name":"eu","hosts":{"public":"","grpc":"-","global":"_"},"cluster_id":"A","location":{"latitude":91,"longitude":181},"readiness":{"path":"x","timeout":"1m","port":-1},"dns":{"mode":"managed","owner_id":"!","target":"_"},"sidecar":{"port":0},"containers":{"endpoint":"","services":{"A":{"image":"","volumes":[{"path":"x"}],"ports":{"X":{"container":0,"bind":"x"}}},"b":{"image":"c:{image_tag}-x","user":"?","stop_signal":"x","memory":"1","cpus":-1}}}}`)
	call(w.admin, "PUT", "/v1/regions/k", `{"name":"k","hosts":{"public":"public"},"kubernetes":{"cluster":"","namespace":"_","image":"x:1","storage":{"class":"_","size":"0"},"ingress_class":"_","node_selector":{"_":"-"},"tolerations":[{}],"env":{"1":"x"},"env_from":["a","a"],"extra_spec":"x"}}`)
	call(w.admin, "PUT", "/v1/servers/acme/eu", `{"account":"acme","region":"us","image_tag":"v1"}`)
	call(w.admin, "PUT", "/v1/servers/acme/eu", `{"account":"acme","region":"eu","image_tag":"a:b","overrides":{"containers":{"services":{"_":{"memory":"x"}}},"kubernetes":{"replicas":-1,"storage_size":"x"}}}`)
	call(w.admin, "PUT", "/v1/servers/acme/eu", `{"account":"acme","region":"eu","image_tag":"v1","overrides":{"containers":{"services":{"none":{}}}}}`)
	call(w.admin, "PUT", "/v1/servers/acme/eu", `{"account":"acme","region":"eu","image_tag":"v2"}`)
	call(w.admin, "POST", "/v1/servers/acme/eu:redeploy", "")
	call(w.admin, "POST", "/v1/servers/acme/eu:redeploy", "", "Idempotency-Key", "k")
	call(w.admin, "POST", "/v1/servers/acme/eu:none", "")
	call(w.admin, "POST", "/v1/servers/acme/eu:adopt", "{}")
	call(w.admin, "DELETE", "/v1/servers/acme/eu", "")
	call(w.admin, "POST", "/v1/tokens", `{"name":"","scope":"x","account_prefix":"_","expires_in":"-1s"}`)
	call(w.admin, "POST", "/v1/tokens", `{"name":"n","scope":"admin","account_prefix":"a"}`)
	call(w.admin, "POST", "/v1/tokens", `{"name":"n","scope":"read"}`)
	call(w.admin, "DELETE", "/v1/tokens/x", "")
	call(w.admin, "POST", "/v1/clusters/a/b:accept", `{"uid":"x"}`)
	golden(t, "answers.txt", got.String())
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
