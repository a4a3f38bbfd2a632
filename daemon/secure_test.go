package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestServe_withAGeneratedAuthorityTheOtherCommandsFindIt(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	o.tls = tlsOptions{generate: true, hosts: []string{"kurad.example.dev"}}
	p := startInProcess(t, o) // its client finds the authority in the data directory
	if got, err := os.ReadFile(filepath.Join(o.dataDir, endpointFile)); err != nil || !strings.HasPrefix(string(got), "https://127.0.0.1:") {
		t.Errorf("the endpoint is %q, %v", got, err)
	}
	ok(t, "token", "list", "--data-dir", o.dataDir)
	ca := filepath.Join(o.dataDir, tlsFolder, server.CAFile)
	token, elsewhere := filepath.Join(o.dataDir, tokenFile), t.TempDir()
	ok(t, "token", "list", "--data-dir", elsewhere, "--endpoint", p.url(), "--token-file", token, "--ca-certificate", ca)
	refused(t, []string{"token", "list", "--data-dir", elsewhere, "--endpoint", p.url(), "--token-file", token}, "certificate")
	t.Setenv("KURA_CA_CERTIFICATE", ca)
	ok(t, "token", "list", "--data-dir", elsewhere, "--endpoint", p.url(), "--token-file", token)
	refused(t, []string{"token", "list", "--data-dir", o.dataDir, "--ca-certificate", filepath.Join(elsewhere, "no.pem")}, "no.pem", "--ca-certificate")
	if err := p.end(); err != nil {
		t.Error(err)
	}
	// The same pair, given by name.
	o.tls = tlsOptions{cert: filepath.Join(o.dataDir, tlsFolder, "cert.pem"), key: filepath.Join(o.dataDir, tlsFolder, "key.pem")}
	p = startInProcess(t, o)
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestServe_refusesTLSFlagsThatDoNotGoTogether(t *testing.T) {
	for want, c := range map[string]struct {
		listen string
		tls    tlsOptions
	}{
		"--tls-generate":             {"0.0.0.0:0", tlsOptions{}},
		"give both":                  {"127.0.0.1:0", tlsOptions{cert: "cert.pem"}},
		"leave one of them out":      {"127.0.0.1:0", tlsOptions{cert: "cert.pem", key: "key.pem", generate: true}},
		"--tls-host is for":          {"127.0.0.1:0", tlsOptions{hosts: []string{"a"}}},
		"add --tls-host with":        {"0.0.0.0:0", tlsOptions{generate: true}},
		"no name and no address":     {"127.0.0.1:0", tlsOptions{generate: true, hosts: []string{"https://a"}}},
		"missing.pem: no such file":  {"127.0.0.1:0", tlsOptions{cert: "missing.pem", key: "missing.pem"}},
		"without TLS it must be a l": {":7433", tlsOptions{}},
	} {
		o := optionsFor(t)
		o.listen, o.tls = c.listen, c.tls
		if d, err := newDaemon(t.Context(), o, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", c, err, want)
			if err == nil {
				d.close()
			}
		}
	}
}

func TestAudit_asAnOperatorChecksIt(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	refused(t, []string{"audit", "verify", "--data-dir", o.dataDir}, "no audit log", "--data-dir")
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	whole := regexp.MustCompile(`^\S+/audit.log\n4 lines in 1 files are whole\nfirst  1  \S+\nlast   4  \S+  [0-9a-f]{64}\n\S+/audit-denied.log\n0 lines in 1 files are whole\n$`)
	if got := ok(t, "audit", "verify", "--data-dir", o.dataDir); !whole.MatchString(got) {
		t.Errorf("while it runs: %s", got)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if got := ok(t, "audit", "verify", "--data-dir", o.dataDir); !whole.MatchString(got) {
		t.Errorf("while it is stopped: %s", got)
	}
	path := filepath.Join(o.dataDir, auditFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(bytes.SplitN(text, []byte("\n"), 2)[0], &line); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"method": "PUT", "path": "/v1/host-templates/public", "token_name": "bootstrap", "scope": "admin", "status": float64(201), "dry_run": false, "prev": "", "seq": float64(1)} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"path":"/v1/accounts/acme"`), []byte(`"path":"/v1/accounts/other"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"audit", "verify", path}, "not whole", path+":2: line 2 of the chain was changed")
}

// Whoever may write kurad's files while it is stopped cannot take lines away unseen.
func TestG10_anAuditLogThatWasCutOffWhileKuradWasStoppedIsFound(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	path := filepath.Join(o.dataDir, auditFile)
	verify := []string{"audit", "verify", "--data-dir", o.dataDir}
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	if err := p.end(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A restart, in order or not, is no reason to cry.
	p = startInProcess(t, o)
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if got := ok(t, verify...); !strings.Contains(got, "4 lines in 1 files are whole") {
		t.Errorf("after a restart: %s", got)
	}
	if err := os.WriteFile(path, bytes.Join(bytes.SplitAfter(text, []byte("\n"))[:2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, verify, "not whole", "lines 3 to 4, which kurad has written, are gone")
	said := &lockedBuffer{}
	d, err := newDaemon(t.Context(), o, hclog.New(&hclog.LoggerOptions{Output: said}))
	if err != nil {
		t.Fatal(err)
	}
	p = runInProcess(t, o, d)
	if got := said.String(); !strings.Contains(got, "TAMPERED") || !strings.Contains(got, "lines 3 to 4 are gone") {
		t.Errorf("the start does not say it:\n%s", got)
	}
	refused(t, verify, "not whole", "line 5 says that kurad found the log tampered with: lines 3 to 4 are gone")
	if got := ok(t, append(verify, "--after", "5")...); !strings.Contains(got, "lines up to 5 were left out") {
		t.Errorf("behind it: %s", got)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestToken_recoverMakesAnAdminTokenOfAStoppedDaemon(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	recover := []string{"token", "recover", "--environment", "staging", "--data-dir", o.dataDir}
	refused(t, []string{"token", "recover", "--environment", "staging", "--data-dir", filepath.Join(o.dataDir, "nowhere")}, "nowhere", "--data-dir")
	p := startInProcess(t, o)
	refused(t, recover, "another kurad", "is the daemon stopped?")
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.dataDir, tokenFile)
	lost, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"token", "recover", "--environment", "production", "--data-dir", o.dataDir}, `this store holds environment "staging"`)
	if got := ok(t, recover...); !strings.Contains(got, path) {
		t.Errorf("%s", got)
	}
	p = startInProcess(t, o)
	list, err := p.client.ListTokens(t.Context())
	at := slices.IndexFunc(list, func(k api.TokenInfo) bool { return k.Name == "recovered" && k.Scope == fleet.ScopeAdmin })
	if err != nil || len(list) != 2 || at < 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	if now, err := os.ReadFile(path); err != nil || bytes.Equal(now, lost) {
		t.Errorf("the token is the lost one (%v)", err)
	}
	if text, err := os.ReadFile(filepath.Join(o.dataDir, auditFile)); err != nil || !strings.Contains(string(text), `"event":"command"`) || !strings.Contains(string(text), list[at].ID) {
		t.Errorf("the audit log does not say so: %s, %v", text, err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestToken_createWithAPrefix(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	token := strings.TrimSpace(ok(t, "token", "create", "ci", "--scope", "write", "--account-prefix", "team-a-", "--data-dir", o.dataDir))
	if got := ok(t, "token", "list", "--data-dir", o.dataDir); !strings.Contains(got, "write team-a-*") {
		t.Errorf("%s", got)
	}
	refused(t, []string{"token", "create", "ci", "--scope", "admin", "--account-prefix", "team-a-", "--data-dir", o.dataDir}, "/account_prefix")
	t.Setenv("KURA_TOKEN", token)
	if got := ok(t, "status", "--data-dir", o.dataDir); strings.Contains(got, "acme") {
		t.Errorf("%s", got)
	}
	refused(t, []string{"status", "acme/eu", "--data-dir", o.dataDir}, `begins with "team-a-"`)
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Secrets are planted wherever the daemon is given one, and where one is sent by mistake.
// Nothing that it prints, keeps or answers holds any of them.
func TestSecrets_plantedOnesAppearNowhere(t *testing.T) {
	noEnvironment(t)
	const variable = "pl4nted-variable-value"
	o := optionsFor(t)
	o.tls = tlsOptions{generate: true}
	o.envSets = map[string]string{"license": file(t, "LICENSE_KEY="+variable+"\n")}
	said := &lockedBuffer{}
	log := hclog.New(&hclog.LoggerOptions{Name: "kurad", Level: hclog.Trace, Output: said})
	d, err := newDaemon(t.Context(), o, log)
	if err != nil {
		t.Fatal(err)
	}
	p := runInProcess(t, o, d)
	declareAcme(t, p.client)
	made, err := p.client.CreateToken(t.Context(), api.TokenRequest{Name: "planted", Scope: fleet.ScopeAdmin})
	if err != nil {
		t.Fatal(err)
	}
	token := made.Token.Reveal()
	first, err := os.ReadFile(filepath.Join(o.dataDir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"a variable": variable, "a token": secretOf(token), "the first token": secretOf(string(first))}
	for _, name := range []string{"key.pem", "ca-key.pem"} {
		pem, err := os.ReadFile(filepath.Join(o.dataDir, tlsFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = strings.Split(string(pem), "\n")[1]
	}
	region := fleet.Region{Name: "us", Hosts: fleet.RegionHosts{Public: "public"}, Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"cache": {
		Image: "localhost/cache:{image_tag}", EnvFrom: []string{"license"}, Ports: map[string]fleet.Port{"https": {Container: 8443, Endpoint: fleet.EndpointPublic}},
	}}}}
	if _, err := p.client.PutRegion(t.Context(), region, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.PutServer(t.Context(), fleet.Server{Account: acme.Account, Region: "us", ImageTag: "v1"}, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	unobserved(t, p.client)

	authority, err := os.ReadFile(filepath.Join(o.dataDir, tlsFolder, server.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	ask := func(method, path, bearer string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, p.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if bearer != "" {
			req.Header.Set("Authorization", "Bearer "+bearer)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	places := map[string]string{}
	var doc struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(ask("GET", "/v1/openapi.json", token)), &doc); err != nil || len(doc.Paths) < 15 {
		t.Fatalf("%d routes, %v", len(doc.Paths), err)
	}
	for path, operations := range doc.Paths {
		if operations["get"] != nil {
			at := strings.NewReplacer("{id}", "acme", "{account}", "acme", "{region}", "us", "{name}", "us", "{key}", "0123456789abcdef").Replace(path)
			places["the answer of "+path] = ask("GET", at, token)
		}
	}
	// Where none belongs; what was sent may come back to who sent it.
	ask("GET", "/v1/version?token="+token, "")
	ask("DELETE", "/v1/tokens/"+token, token)
	ask("PUT", "/v1/accounts/"+token, token)
	ask("GET", "/v1/nowhere/"+token, token)
	ask("POST", "/v1/servers/acme/eu:"+token, token)
	ask("GET", "/v1/version", token+"x")
	places["the metrics"], places["the page"] = ask("GET", "/metrics", token), ask("GET", "/", token)
	for _, args := range [][]string{{"status"}, {"status", "acme/us"}, {"events"}, {"token", "list"}, {"audit", "verify"}} {
		places["kurad "+strings.Join(args, " ")] = ok(t, append(args, "--data-dir", o.dataDir)...)
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	places["the log"] = said.String()
	err = filepath.Walk(o.dataDir, func(path string, info os.FileInfo, err error) error {
		name := filepath.Base(path)
		if err != nil || info.IsDir() || name == tokenFile || strings.HasSuffix(name, "key.pem") {
			return err
		}
		text, err := os.ReadFile(path)
		places["the file "+strings.TrimPrefix(path, o.dataDir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range places {
		for what, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s", where, what)
			}
		}
	}
	for _, where := range []string{"the log", "the file /" + auditFile, "the answer of /v1/openapi.json", "kurad audit verify"} {
		if places[where] == "" {
			t.Errorf("%s is empty: nothing was searched", where)
		}
	}
}

// secretOf is the part of a token that only its owner knows.
func secretOf(token string) string {
	parts := strings.Split(strings.TrimSpace(token), "_")
	return parts[len(parts)-1]
}
