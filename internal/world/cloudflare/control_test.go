package cloudflare_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestControl_doesWhatTheMethodsDo(t *testing.T) {
	r := start(t, nil)
	server := httptest.NewServer(r.Control())
	defer server.Close()
	tell := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, strings.TrimSpace(string(text))
	}
	for _, step := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/records?by=somebody", `[{"name": "a.kura.test", "type": "A", "content": "192.0.2.1"}]`, 204, ""},
		{"PATCH", "/records?name=a.kura.test&type=A&content=192.0.2.2", "", 200, `{"records":1}`},
		{"GET", "/table", "", 200, "a.kura.test  A 192.0.2.2 ttl=1"},
		{"GET", "/history", "", 200, `"by":"somebody"`},
		{"PUT", "/tokens", `{"value": "another", "name": "n", "permissions": ["Zone:Read"]}`, 204, ""},
		{"PUT", "/limit", `{"calls": 3, "window": "1m", "form": "10100"}`, 204, ""},
		{"PUT", "/propagation", `{"delay": "30s"}`, 204, ""},
		{"PUT", "/places", `{"here": {"latitude": 50, "longitude": 8}, "networks": {"198.51.100.0/24": {"latitude": 1, "longitude": 2}}}`, 204, ""},
		{"PUT", "/zones", `{"name": "kura.test", "quota": {"records": 1}}`, 204, ""},
		{"POST", "/faults", `{"kind": "slow", "only": "GET zones", "delay": "1ms", "times": 1}`, 204, ""},
		{"GET", "/counters", "", 200, `"calls":{}`},
		{"POST", "/faults", `{"kind": "gravity"}`, 400, "gravity"},
		{"POST", "/faults", `{"knd": "slow"}`, 400, "knd"},
		{"PUT", "/zones", `{"name": "none.test"}`, 400, "none.test"},
		{"PUT", "/zones", `{"name": "kura.test", "plan": "gold"}`, 400, "gold"},
		{"POST", "/records", `[{"name": "a.none.test"}]`, 400, "a.none.test"},
		{"PUT", "/limit", `{"window": "soon"}`, 400, "soon"},
	} {
		if status, text := tell(step.method, step.path, step.body); status != step.status || !strings.Contains(text, step.says) {
			t.Errorf("%s %s: %d %s, want %d and %s", step.method, step.path, status, text, step.status, step.says)
		}
	}
	if a := r.call("POST", zonePath+"/dns_records", record("A", "b", "192.0.2.1")); a.code() != 81045 {
		t.Errorf("the quota: %s", a.Text)
	}
	if a, err := r.try("another", "GET", "/zones", nil); err != nil || !a.Success {
		t.Errorf("the token: %s %v", a.Text, err)
	}
	r.call("GET", "/zones", nil)
	if a := r.call("GET", "/zones", nil); a.code() != 10100 {
		t.Errorf("the limit: %s", a.Text)
	}
	tell("PUT", "/limit", `{"calls": -1}`)
	tell("POST", "/faults", `{"kind": "unavailable", "only": "zones"}`)
	if a := r.call("GET", "/zones", nil); a.Status != http.StatusServiceUnavailable {
		t.Errorf("the fault: %d", a.Status)
	}
	tell("DELETE", "/faults", "")
	tell("DELETE", "/tokens?value=another", "")
	if a, err := r.try("another", "GET", "/zones", nil); err != nil || a.Status != http.StatusForbidden {
		t.Errorf("the token that was taken back: %d %v", a.Status, err)
	}
	tell("PUT", "/propagation", `{"held": true}`)
	tell("DELETE", "/records?name=a.kura.test", "")
	if reply := r.ask("udp", "a.kura.test", dns.TypeA, ""); r.Table() != "" || len(reply.Answer) != 1 {
		t.Errorf("propagation: %v beside %q", reply, r.Table())
	}
	if tell("DELETE", "/counters", ""); r.Counters().Total() != 0 {
		t.Errorf("counters: %v", r.Counters())
	}
}
