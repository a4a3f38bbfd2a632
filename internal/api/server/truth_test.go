package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// schemaOf returns what the document says that an answer looks like; nil: it has no body.
func (w *world) schemaOf(method, path string, status int, contentType string) *huma.Schema {
	w.t.Helper()
	item := w.api.OpenAPI().Paths[path]
	if item == nil {
		w.t.Fatalf("the document has no %s", path)
	}
	op := map[string]*huma.Operation{"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete}[method]
	if op == nil {
		w.t.Fatalf("the document has no %s %s", method, path)
	}
	r := op.Responses[fmt.Sprint(status)]
	if r == nil && status >= 400 {
		r = op.Responses["default"]
	}
	if r == nil {
		w.t.Errorf("%s %s answers %d, which the document does not say", method, path, status)
		return nil
	}
	if len(r.Content) == 0 {
		return nil
	}
	media := r.Content[contentType]
	if media == nil {
		w.t.Errorf("%s %s answers %d in %q, and the document says %v", method, path, status, contentType, r.Content)
		return nil
	}
	return media.Schema
}

// wantBody checks a body that was taken against what the document says is.
func (w *world) wantBody(method, path, body string) {
	w.t.Helper()
	item := w.api.OpenAPI().Paths[path]
	op := map[string]*huma.Operation{"PUT": item.Put, "POST": item.Post}[method]
	if op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		w.t.Errorf("the document says of no body of %s %s", method, path)
		return
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		w.t.Fatal(err)
	}
	res := &huma.ValidateResult{}
	huma.Validate(w.api.OpenAPI().Components.Schemas, op.RequestBody.Content["application/json"].Schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, res)
	for _, err := range res.Errors {
		w.t.Errorf("%s %s takes what the document does not: %v in %s", method, path, err, body)
	}
}

// Every answer looks as the document says, whose schemas are closed: one with a field
// too many is refused.
func TestOpenAPI_answersLookAsItSays(t *testing.T) {
	w, zones := newZonesWorld(t)
	pb := huma.NewPathBuffer(nil, 0)
	told := map[string]bool{}
	ask := func(method, path, url, body string, status int, header ...string) []byte {
		t.Helper()
		resp, b := w.do(method, url, body, w.admin, header...)
		if resp.StatusCode != status {
			t.Fatalf("%s %s: %d, want %d: %s", method, url, resp.StatusCode, status, b)
		}
		told[method+" "+path] = true
		if body != "" && status < 400 {
			w.wantBody(method, path, body)
		}
		schema := w.schemaOf(method, path, status, resp.Header.Get("Content-Type"))
		if schema == nil {
			if len(b) != 0 {
				t.Errorf("%s %s: a body that the document does not speak of: %s", method, url, b)
			}
			return b
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatalf("%s %s: %v in %s", method, url, err, b)
		}
		res := &huma.ValidateResult{}
		pb.Reset()
		huma.Validate(w.api.OpenAPI().Components.Schemas, schema, pb, huma.ModeReadFromServer, v, res)
		for _, err := range res.Errors {
			t.Errorf("%s %s: %v in %s", method, url, err, b)
		}
		if object, ok := v.(map[string]any); ok { // the check itself notices
			object["nobody's"] = 1
			res = &huma.ValidateResult{}
			huma.Validate(w.api.OpenAPI().Components.Schemas, schema, pb, huma.ModeReadFromServer, v, res)
			if len(res.Errors) == 0 {
				t.Errorf("%s %s: the schema takes any field", method, url)
			}
		}
		return b
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const server, servers = "/v1/servers/{account}/{region}", "/v1/servers"
	ask("PUT", "/v1/host-templates/{name}", "/v1/host-templates/public", text(template()), 201)
	full := region("eu")
	full.StallAfter, full.Labels, full.Location = fleet.Duration(time.Minute), map[string]string{"a": "b"}, &fleet.Location{Latitude: 1, Longitude: 2}
	cache := full.Containers.Services["cache"]
	cache.Env, cache.GracePeriod, cache.CPUs = map[string]string{"A": "1"}, fleet.Duration(time.Second), 0.5
	cache.Volumes = []fleet.Volume{{Name: "data", Path: "/data", Retain: true}}
	full.Containers.Services["cache"] = cache
	ask("PUT", "/v1/regions/{name}", "/v1/regions/eu", text(full), 201)
	ask("PUT", "/v1/accounts/{id}", "/v1/accounts/acme", text(fleet.Account{ID: "acme"}), 201)
	ask("PUT", "/v1/accounts/{id}", "/v1/accounts/acme", text(fleet.Account{ID: "acme", Handle: "apex"}), 200)
	ask("PUT", server, "/v1/servers/acme/eu", text(srv("acme", "eu", "v1")), 201)
	ask("GET", server, "/v1/servers/acme/eu", "", 200) // before its first turn
	now := w.clock.now()
	w.turn(key("acme", "eu"), func(s *fleet.Status) {
		active("v1", "https://acme-eu-staging.kura.test:20001")(s)
		until := now.Add(time.Hour)
		s.Aliases, s.Holds, s.Runtime.NextAttempt = []fleet.Alias{{Host: "old.kura.test", Until: &until}}, []fleet.Hold{{Kind: fleet.HoldPaused, Message: "m"}}, &now
		s.Containers = []fleet.Container{{ID: "x", Name: "kura-acme-eu-cache-staging", State: fleet.ContainerRunning, Ports: map[string]int{"8443/tcp": 20001}, Started: &now}}
		s.Runtime.Plan = &fleet.Plan{Kind: fleet.PlanReplace, Tasks: []fleet.Task{{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskStop, Grace: fleet.Duration(time.Second)}, State: fleet.TaskDone, Outcome: &fleet.Outcome{Class: fleet.ClassOK, At: now}}}}
		s.Runtime.Intended = s.Runtime.Plan
		s.Runtime.Failing = &fleet.Failing{Kind: fleet.TaskPull, Service: "cache", What: "pull image", Class: fleet.ClassRefused, Reason: fleet.ReasonImagePullFailed, Message: "m", Since: now, Count: 2}
		s.Conditions = append(s.Conditions, fleet.Condition{Type: fleet.ConditionProgressing, Status: fleet.True, Reason: fleet.ReasonRetrying})
	})
	w.turns.at, w.turns.failed, w.turns.waits = now, 2, "its turn"
	tx := w.records.Begin()
	tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", At: now, Type: fleet.EventNormal, Reason: "R", Message: "m"})
	w.must(tx.Commit(t.Context()))
	ask("POST", server+":redeploy", "/v1/servers/acme/eu:redeploy", "", 201, "Idempotency-Key", "k")
	ask("POST", server+":redeploy", "/v1/servers/acme/eu:redeploy", "", 200, "Idempotency-Key", "k")
	ask("GET", server, "/v1/servers/acme/eu", "", 200)
	ask("GET", server, "/v1/servers/acme/eu", "", 304, "If-None-Match", "*")
	ask("GET", server, "/v1/servers/acme/eu?observe=now", "", 200)
	ask("GET", server, "/v1/servers/acme/eu?wait=1s", "", 200)
	ask("GET", server, "/v1/servers/nobody/eu?wait=1s", "", 200)
	ask("GET", server, "/v1/servers/nobody/eu", "", 404)
	ask("GET", servers, "/v1/servers", "", 200)
	ask("GET", servers, "/v1/servers?region=eu&wait=1s", "", 200)
	ask("GET", server+"/deployments", "/v1/servers/acme/eu/deployments?limit=1", "", 200)
	declared := endpoint("acme", "https://cache.example.dev")
	const one = "/v1/cache-endpoints/{account}/{key}"
	at := "/v1/cache-endpoints/acme/" + declared.Key()
	ask("PUT", one, at, text(declared), 201)
	ask("PUT", one, at, text(declared), 200)
	ask("GET", one, at, "", 200)
	ask("GET", "/v1/cache-endpoints", "/v1/cache-endpoints", "", 200)
	ask("GET", "/v1/accounts/{id}/endpoints", "/v1/accounts/acme/endpoints", "", 200)
	ask("DELETE", one, at, "", 204)
	ask("GET", "/v1/events", "/v1/events", "", 200)
	ask("GET", "/v1/events", "/v1/events?wait=1s", "", 200)
	ask("PUT", "/v1/accounts/{id}", "/v1/accounts/beta", text(fleet.Account{ID: "beta"}), 201)
	w.lists(byHand(1, "made-by-hand", "v1", 31234))
	ask("POST", server+":adopt", "/v1/servers/beta/eu:adopt", text(api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": "made-by-hand"}}), 201)
	w.turns.listings = []fleet.Listing{{Endpoint: "podman", Begun: now, Containers: []fleet.Container{{Name: "n", ID: "x", Account: "gone", Region: "eu", State: fleet.ContainerRunning}}}}
	ask("GET", "/v1/orphans", "/v1/orphans", "", 200)
	row := finding("acme", "a.kura.test", fleet.FindingForeign)
	row.Owners, row.Contents, row.Environment, row.Resource, row.Prunable = []string{"prod"}, []string{"A 192.0.2.1"}, "production", "kura-production/eu/acme", true
	record := []fleet.DNSRecord{{ID: "1", Name: row.Host, Type: "A", Content: "192.0.2.1", TTL: 30, Proxied: true}}
	zones.audits = []fleet.ZoneAudit{{Zone: "kura.test", Listed: now, Failure: &fleet.ReadFailure{Reason: fleet.ReasonZoneUnreachable, Message: "m", Since: now}, Findings: []fleet.Finding{row}}}
	zones.pruned = fleet.Pruned{Items: []fleet.Finding{row}, Kept: []fleet.KeptHost{{Host: "b", Why: "w"}}, Unreadable: []fleet.AuditedZone{{Zone: "z", Reason: fleet.ReasonZoneUnreachable, Message: "m", Since: &now}}}
	zones.taken = fleet.Taken{Zone: "kura.test", Host: row.Host, From: "prod", To: "us", Account: "acme", Region: "eu", Before: record, After: record, Changed: true}
	ask("GET", "/v1/dns/audit", "/v1/dns/audit", "", 200)
	ask("POST", "/v1/dns/prune", "/v1/dns/prune", `{"zone":"kura.test","hosts":["a.kura.test"]}`, 200)
	ask("POST", "/v1/dns/take", "/v1/dns/take?dry_run=true", `{"host":"a.kura.test","from":"prod"}`, 200)
	w.must(w.records.PutAnchor(t.Context(), "audit.log", store.Versioned[fleet.AuditAnchor]{}, fleet.AuditAnchor{First: 1, Seq: 2, Hash: "x"}))
	ask("GET", "/v1/audit-anchors", "/v1/audit-anchors", "", 200)
	w.runtimes.uids = map[string]string{"prod/kura": "two"}
	w.must(nil, w.records.Identify(t.Context(), fleet.KubeIdentity{Cluster: "prod", Namespace: "kura", UID: "one", Since: now}))
	ask("GET", "/v1/clusters", "/v1/clusters", "", 200)
	ask("POST", "/v1/clusters/{cluster}/{namespace}:accept", "/v1/clusters/prod/kura:accept", `{"uid":"two"}`, 204)
	if resp, _ := w.do("GET", "/v1/snapshot", "", w.admin); resp.Header.Get("Content-Type") != api.ContentTypeSnapshot {
		t.Errorf("a snapshot is %q", resp.Header.Get("Content-Type")) // no JSON: TestG7_… reads it
	}
	told["GET /v1/snapshot"] = true
	for _, path := range []string{"/v1/version", "/healthz", "/readyz", "/v1/accounts", "/v1/regions", "/v1/host-templates", "/v1/tokens"} {
		ask("GET", path, path, "", 200)
	}
	ask("GET", "/v1/accounts/{id}", "/v1/accounts/acme", "", 200)
	ask("GET", "/v1/regions/{name}", "/v1/regions/eu", "", 200)
	ask("GET", "/v1/host-templates/{name}", "/v1/host-templates/public", "", 200)
	ask("PUT", server, "/v1/servers/acme/eu", `{"account":"acme","region":"eu","image_tag":"a b"}`, 422)
	var made api.CreatedToken
	b := ask("POST", "/v1/tokens", "/v1/tokens", `{"name":"t","scope":"read","expires_in":"1h"}`, 201)
	if err := json.Unmarshal(b, &made); err != nil {
		t.Fatal(err)
	}
	ask("DELETE", "/v1/tokens/{id}", "/v1/tokens/"+made.ID, "", 204)
	ask("DELETE", server, "/v1/servers/acme/eu", "", 202)
	ask("DELETE", server, "/v1/servers/beta/eu", "", 202)
	w.remove(key("acme", "eu"))
	w.remove(key("beta", "eu"))
	ask("DELETE", "/v1/regions/{name}", "/v1/regions/eu", "", 204)
	ask("DELETE", "/v1/accounts/{id}", "/v1/accounts/acme", "", 204)
	ask("DELETE", "/v1/host-templates/{name}", "/v1/host-templates/public", "", 204)

	doc, _ := w.openAPI()
	for path, operations := range doc.Paths {
		for method := range operations {
			if name := strings.ToUpper(method) + " " + path; !told[name] && path != "/v1/openapi.json" {
				t.Errorf("%s was not asked", name)
			}
		}
	}
}

// A list that is one page says so: it takes no cursor, and a limit means the newest.
func TestLists_thoseOfOnePageTakeNoCursor(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "eu", "v2"))
	w.token("another", fleet.ScopeRead)
	for _, path := range []string{"/v1/tokens", "/v1/servers/acme/eu/deployments"} {
		var all, one api.List[json.RawMessage]
		w.getJSON(path, &all)
		w.getJSON(path+"?limit=1", &one)
		if len(all.Items) != 2 || len(one.Items) != 1 || string(one.Items[0]) != string(all.Items[0]) || one.Next != "" {
			t.Errorf("%s: %s\nof %s", path, one.Items, all.Items)
		}
		if p := w.problem(http.MethodGet, path+"?page=x", "", w.admin); p.Code != fleet.CodeInvalid {
			t.Errorf("%+v", p)
		}
	}
}
