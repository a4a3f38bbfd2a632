package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type openAPI struct {
	OpenAPI string                          `json:"openapi"`
	Info    struct{ Title, Version string } `json:"info"`
	Paths   map[string]map[string]operation `json:"paths"`
	Comp    struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	OperationID string                     `json:"operationId"`
	Summary     string                     `json:"summary"`
	Scope       fleet.Scope                `json:"x-kura-scope"`
	Accounts    string                     `json:"x-kura-accounts"`
	Security    []map[string][]string      `json:"security"`
	Responses   map[string]json.RawMessage `json:"responses"`
	Parameters  []struct{ Name, In string }
}

func (w *world) openAPI() (openAPI, []byte) {
	w.t.Helper()
	resp, b := w.do("GET", "/v1/openapi.json", "", w.admin)
	var doc openAPI
	if err := json.Unmarshal(b, &doc); err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("%d %v %s", resp.StatusCode, err, b)
	}
	return doc, b
}

// TestRoutes_everyRouteDemandsItsScope walks every route with every token that must not
// do, and with one that must.
func TestRoutes_everyRouteDemandsItsScope(t *testing.T) {
	w := newWorld(t)
	read, write := w.token("reader", fleet.ScopeRead), w.token("writer", fleet.ScopeWrite)
	revoked := w.token("revoked", fleet.ScopeAdmin)
	w.must(nil, w.tokens.Revoke(t.Context(), strings.Split(revoked, "_")[1]))
	_, short, err := w.tokens.Create(t.Context(), "test", api.TokenRequest{Name: "short", Scope: fleet.ScopeAdmin, ExpiresIn: fleet.Duration(time.Hour)})
	w.must(nil, err)
	w.clock.advance(time.Hour)
	w.must(nil, putLimited(w))
	limited := w.limited("limited", fleet.ScopeWrite, "team-a-")
	parts := strings.Split(w.admin, "_")
	unknown := map[string]string{
		"not a token": "hunter2", "no such id": "kura_aaaaaaaa_" + parts[2], "another secret": parts[0] + "_" + parts[1] + "_" + strings.Repeat("a", 52),
		"half a token": parts[0] + "_" + parts[1], "a path": "kura_../../x_y",
	}
	doc, _ := w.openAPI()
	routes := 0
	for path, operations := range doc.Paths {
		for method, op := range operations {
			routes++
			method, url := strings.ToUpper(method), regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "aaaaaaaa")
			refused := func(what, token string, status int, code fleet.Code, words ...string) {
				t.Helper()
				before := len(w.audit.Entries())
				p := w.problem(method, url, "", token)
				w.audited(before, method, url, p)
				if p.Status != status || p.Code != code || slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(p.Detail, word) }) {
					t.Errorf("%s %s with %s: %+v, want %d %s with %q", method, path, what, p, status, code, words)
				}
			}
			if op.Scope == "public" {
				if resp, _ := w.do(method, url, "", ""); resp.StatusCode != 200 || !slices.Contains([]string{"/healthz", "/readyz"}, path) {
					t.Errorf("%s %s is public: %d", method, path, resp.StatusCode)
				}
				continue
			}
			if !op.Scope.Covers(fleet.ScopeRead) {
				t.Errorf("%s %s declares scope %q", method, path, op.Scope)
			}
			before := len(w.audit.Entries())
			if p := w.problem(method, url, "", w.admin, api.HeaderEnvironment, "production"); p.Status != 421 || p.Code != api.CodeWrongEnvironment {
				t.Errorf("%s %s for another environment: %+v", method, path, p)
			} else {
				w.audited(before, method, url, p)
			}
			switch shared := method == "GET" && op.Accounts == "none"; {
			case op.Scope == fleet.ScopeAdmin:
				refused("another scope and prefix", limited, 403, fleet.CodeForbidden, "needs admin")
			case op.Accounts == "daemon":
				refused("a prefix", limited, 403, fleet.CodeForbidden, `begins with "team-a-"`, "daemon as a whole")
			case op.Accounts == "unlabelled":
				refused("a prefix", limited, 403, fleet.CodeForbidden, `begins with "team-a-"`, "containers and instances without labels are nobody's", "use a token without that limit")
			case op.Accounts == "id", op.Accounts == "account":
				refused("another prefix", limited, 403, fleet.CodeForbidden, `begins with "team-a-"`, `account "aaaaaaaa" is none of them`)
			case op.Accounts == "none" && !shared:
				refused("a prefix", limited, 403, fleet.CodeForbidden, `begins with "team-a-"`, "shared with all others")
			case op.Accounts == "listed" && method == "GET", shared:
				if resp, b := w.do(method, url, "", limited); resp.StatusCode == 401 || resp.StatusCode == 403 || strings.Contains(string(b), "umbra") {
					t.Errorf("%s %s with a prefix: %d %s", method, path, resp.StatusCode, b)
				}
			default:
				t.Errorf("%s %s does not say which accounts it is about: %q", method, path, op.Accounts)
			}
			refused("no token", "", 401, fleet.CodeUnauthorized, "no token was sent", "Authorization: Bearer")
			refused("a revoked token", revoked, 401, fleet.CodeUnauthorized, `"revoked" was revoked at`, "kurad token create")
			refused("an expired token", short.Reveal(), 401, fleet.CodeUnauthorized, `"short" expired at`, "kurad token create")
			for what, token := range unknown {
				refused(what, token, 401, fleet.CodeUnauthorized, "does not know the token")
			}
			for token, scope := range map[string]fleet.Scope{read: fleet.ScopeRead, write: fleet.ScopeWrite} {
				if scope.Covers(op.Scope) {
					if resp, b := w.do(method, url, "", token); resp.StatusCode == 401 || resp.StatusCode == 403 {
						t.Errorf("%s %s refuses scope %s: %s", method, path, scope, b)
					}
					continue
				}
				refused("scope "+string(scope), token, 403, fleet.CodeForbidden, "has scope "+string(scope), "needs "+string(op.Scope))
			}
		}
	}
	if routes < 25 {
		t.Errorf("only %d routes were walked", routes)
	}
	log := w.logged.String() + fmt.Sprint(w.audit.Entries())
	for _, token := range []string{w.admin, read, write, revoked, short.Reveal()} {
		if strings.Contains(log, strings.Split(token, "_")[2]) {
			t.Error("the log holds a secret")
		}
	}
}

func TestRoutes_aRequestWithoutBearerIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.problem("GET", "/v1/version", "", "", "Authorization", "Basic "+w.admin)
	if p.Status != 401 || !strings.Contains(p.Detail, "no bearer token") {
		t.Errorf("%+v", p)
	}
}

func TestOpenAPI_isWholeAndTellsTheTruth(t *testing.T) {
	w := newWorld(t)
	doc, raw := w.openAPI()
	if doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version != "1.2.3" {
		t.Errorf("%s %+v", doc.OpenAPI, doc.Info)
	}
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			name := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || op.Scope == "" {
				t.Errorf("%s: %+v", name, op)
			}
			ids[op.OperationID] = true
			if public := op.Scope == "public"; public == (len(op.Security) > 0) {
				t.Errorf("%s: scope %s, security %v", name, op.Scope, op.Security)
			}
			if len(op.Responses) < 2 || !strings.Contains(string(op.Responses["default"]), "#/components/schemas/Problem") {
				t.Errorf("%s: responses %s", name, op.Responses)
			}
			for _, m := range regexp.MustCompile(`\{([a-z]+)\}`).FindAllStringSubmatch(path, -1) {
				if !slices.ContainsFunc(op.Parameters, func(p struct{ Name, In string }) bool { return p.Name == m[1] && p.In == "path" }) {
					t.Errorf("%s: no parameter %s", name, m[1])
				}
			}
		}
	}
	for _, ref := range regexp.MustCompile(`"\$ref":"([^"]+)"`).FindAllSubmatch(raw, -1) {
		name, ok := strings.CutPrefix(string(ref[1]), "#/components/schemas/")
		if _, exists := doc.Comp.Schemas[name]; !ok || !exists {
			t.Errorf("%s leads nowhere", ref[1])
		}
	}
	for _, path := range []string{"/v1/servers/{account}/{region}:redeploy", "/v1/accounts/{id}/endpoints", "/v1/tokens/{id}"} {
		if doc.Paths[path] == nil {
			t.Errorf("no %s", path)
		}
	}
	if strings.Contains(string(raw), "http://") || strings.Contains(string(raw), "https://") {
		t.Error("the document points to other hosts")
	}
}

func TestTokens_areMadeListedAndRevokedWithoutShowingSecrets(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	made, err := w.client.CreateToken(ctx, api.TokenRequest{Name: "terraform", Scope: fleet.ScopeWrite, ExpiresIn: fleet.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if made.CreatedBy != "admin" || made.ExpiresAt == nil || !made.ExpiresAt.Equal(w.clock.now().Add(time.Hour)) {
		t.Errorf("%+v", made)
	}
	if !regexp.MustCompile(`^kura_[a-z2-7]{8}_[a-z2-7]{52}$`).MatchString(made.Token.Reveal()) {
		t.Errorf("token %q", made.Token.Reveal())
	}
	for _, text := range []string{fmt.Sprint(made), fmt.Sprintf("%+v %#v %s", made, made, made.Token)} {
		if strings.Contains(text, made.Token.Reveal()) {
			t.Errorf("it prints: %s", text)
		}
	}
	if _, err := w.clientWith(made.Token.Reveal()).Version(ctx); err != nil {
		t.Error(err)
	}
	resp, b := w.do("GET", "/v1/tokens", "", w.admin)
	secret := strings.Split(made.Token.Reveal(), "_")[2]
	stored, err := w.records.Token(ctx, made.ID)
	if err != nil || stored.Value.Hash == "" || strings.Contains(string(b), stored.Value.Hash) || strings.Contains(string(b), secret) || strings.Contains(stored.Value.Hash, secret) || resp.StatusCode != 200 {
		t.Errorf("%d %s, %v", resp.StatusCode, b, err)
	}
	if list, err := w.client.ListTokens(ctx); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	for range 2 { // once more is fine
		if err := w.client.RevokeToken(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.clientWith(made.Token.Reveal()).Version(ctx)
	wantFault(t, err, fleet.CodeUnauthorized, "", `"terraform" was revoked`)
	wantFault(t, w.client.RevokeToken(ctx, "zzzzzzzz"), fleet.CodeNotFound, "", `token "zzzzzzzz" does not exist`)
	_, err = w.client.CreateToken(ctx, api.TokenRequest{Scope: "root", ExpiresIn: -1})
	wantFault(t, err, fleet.CodeInvalid, "/name", "/scope", "read, write or admin", "/expires_in")
}

func TestHTTPServer_hasEveryTimeout(t *testing.T) {
	s := newHTTPServer(http.NotFoundHandler())
	if s.ReadHeaderTimeout == 0 || s.ReadTimeout == 0 || s.IdleTimeout == 0 || s.WriteTimeout <= api.MaxWait || s.MaxHeaderBytes == 0 {
		t.Errorf("%+v", s)
	}
}
