package server

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// route is a row of the route table. A row without a scope, or that does not say which
// accounts it is about, does not start.
type route struct {
	id      string
	method  string
	path    string
	scope   fleet.Scope
	about   subject
	summary string
	status  int // of a success; 0: 200
}

// register fills the route table.
func (s *Server) register() {
	const read, write, admin = fleet.ScopeRead, fleet.ScopeWrite, fleet.ScopeAdmin

	answer(s, route{"live", "GET", "/healthz", scopePublic, ofNone, "The process answers.", 0}, s.healthz)
	answer(s, route{"ready", "GET", "/readyz", scopePublic, ofNone, "The store answers and the daemon serves.", 0}, s.readyz)
	answer(s, route{"version", "GET", "/v1/version", read, ofNone, "Which daemon this is: environment, suffixes, version, capabilities.", 0}, s.getVersion)
	answer(s, route{"openapi", "GET", "/v1/openapi.json", read, ofNone, "This document.", 0}, s.getOpenAPI)

	answer(s, route{"list-accounts", "GET", "/v1/accounts", read, ofListed, "All accounts, by id.", 0}, listObjects(s, s.accounts()))
	answer(s, route{"get-account", "GET", "/v1/accounts/{id}", read, ofID, "One account.", 0}, getObject[IDPath](s.accounts()))
	handle(s, route{"put-account", "PUT", "/v1/accounts/{id}", write, ofID, "Declare an account. A new handle moves the hosts of its servers.", 0}, putObject[putAccountInput](s.accounts()))
	handle(s, route{"delete-account", "DELETE", "/v1/accounts/{id}", write, ofID, "Remove an account that has no servers.", http.StatusNoContent}, deleteObject[deleteIDInput](s.accounts()))
	answer(s, route{"list-endpoints", "GET", "/v1/accounts/{id}/endpoints", read, ofID, "What clients of the account use, those that answer first.", 0}, s.listEndpoints)

	answer(s, route{"list-cache-endpoints", "GET", "/v1/cache-endpoints", read, ofListed, "All declared cache endpoints, by account and key.", 0}, s.listCacheEndpoints)
	answer(s, route{"get-cache-endpoint", "GET", "/v1/cache-endpoints/{account}/{key}", read, ofAccount, "One declared cache endpoint.", 0}, getObject[EndpointPath](s.cacheEndpoints()))
	handle(s, route{"put-cache-endpoint", "PUT", "/v1/cache-endpoints/{account}/{key}", write, ofAccount, "Declare a cache endpoint.", 0}, putObject[putCacheEndpointInput](s.cacheEndpoints()))
	handle(s, route{"delete-cache-endpoint", "DELETE", "/v1/cache-endpoints/{account}/{key}", write, ofAccount, "Remove a declared cache endpoint.", http.StatusNoContent}, deleteObject[deleteEndpointInput](s.cacheEndpoints()))

	answer(s, route{"list-host-templates", "GET", "/v1/host-templates", read, ofNone, "All host templates, by name.", 0}, listObjects(s, s.templates()))
	answer(s, route{"get-host-template", "GET", "/v1/host-templates/{name}", read, ofNone, "One host template.", 0}, getObject[NamePath](s.templates()))
	handle(s, route{"put-host-template", "PUT", "/v1/host-templates/{name}", write, ofNone, "Declare a host template. A new pattern moves the hosts of the servers that use it.", 0}, putObject[putTemplateInput](s.templates()))
	handle(s, route{"delete-host-template", "DELETE", "/v1/host-templates/{name}", write, ofNone, "Remove a host template that no region names.", http.StatusNoContent}, deleteObject[deleteNameInput](s.templates()))

	answer(s, route{"list-regions", "GET", "/v1/regions", read, ofNone, "All regions, by name.", 0}, listObjects(s, s.regions()))
	answer(s, route{"get-region", "GET", "/v1/regions/{name}", read, ofNone, "One region.", 0}, getObject[NamePath](s.regions()))
	handle(s, route{"put-region", "PUT", "/v1/regions/{name}", write, ofNone, "Declare a region. Its servers follow within max_unsettled.", 0}, putObject[putRegionInput](s.regions()))
	handle(s, route{"delete-region", "DELETE", "/v1/regions/{name}", write, ofNone, "Remove a region in which no server is.", http.StatusNoContent}, deleteObject[deleteNameInput](s.regions()))

	answer(s, route{"list-servers", "GET", "/v1/servers", read, ofListed, "Servers, by region and account; with wait, what changed in a region.", 0}, s.listServers)
	handle(s, route{"get-server", "GET", "/v1/servers/{account}/{region}", read, ofAccount, "One server; with wait, once it has changed; with observe=now, after a fresh look.", 0}, s.getServer)
	handle(s, route{"put-server", "PUT", "/v1/servers/{account}/{region}", write, ofAccount, "Declare a server.", 0}, s.putServer)
	answer(s, route{"delete-server", "DELETE", "/v1/servers/{account}/{region}", write, ofAccount, "Ask for the destruction of a server; it is gone once reading it answers 404.", http.StatusAccepted}, s.deleteServer)
	handle(s, route{"redeploy-server", "POST", "/v1/servers/{account}/{region}:redeploy", write, ofAccount, "Make a new deployment of the present image.", 0}, s.redeploy)
	handle(s, route{"adopt-server", "POST", "/v1/servers/{account}/{region}:adopt", write, ofUnlabelled, "Declare a server and take what runs already over as its own: containers without labels, or the KuraInstance of its name.", 0}, s.adopt)
	answer(s, route{"list-deployments", "GET", "/v1/servers/{account}/{region}/deployments", read, ofAccount, "The kept deployments of a server, newest first.", 0}, s.listDeployments)

	answer(s, route{"list-events", "GET", "/v1/events", read, ofListed, "The newest events, newest first; with wait, what happened after a cursor.", 0}, s.listEvents)

	answer(s, route{"list-orphans", "GET", "/v1/orphans", read, ofListed, "Containers and KuraInstances of this environment that belong to no declared server.", 0}, s.listOrphans)

	answer(s, route{"list-dns-audit", "GET", "/v1/dns/audit", read, ofListed, "What in the DNS zones is not as the servers want it, by zone, host and kind, from the newest listing of each.", 0}, s.auditDNS)
	answer(s, route{"prune-dns", "POST", "/v1/dns/prune", admin, ofDaemon, "Delete hosts that are ours and wanted by nobody, as they are read now.", 0}, s.pruneDNS)
	answer(s, route{"take-host", "POST", "/v1/dns/take", admin, ofDaemon, "Move a host that a server wants from another owner to the region's, where it is exactly that owner's.", 0}, s.takeHost)

	answer(s, route{"list-clusters", "GET", "/v1/clusters", admin, ofDaemon, "Namespaces of Kubernetes clusters: which were observed, and which are there now.", 0}, s.listNamespaces)
	handle(s, route{"accept-cluster", "POST", "/v1/clusters/{cluster}/{namespace}:accept", admin, ofDaemon, "Make the namespace that is there now the one that is observed: kurad acts in it from then on.", http.StatusNoContent}, s.acceptNamespace)

	handle(s, route{"save-snapshot", "GET", "/v1/snapshot", admin, ofDaemon, "All records at one revision, for kurad snapshot restore.", 0}, s.getSnapshot)

	answer(s, route{"list-audit-anchors", "GET", "/v1/audit-anchors", admin, ofDaemon, "Where the audit logs of all kurads of the store ended when that was last stored.", 0}, s.listAnchors)

	answer(s, route{"list-tokens", "GET", "/v1/tokens", admin, ofDaemon, "All tokens, without their secrets.", 0}, s.listTokens)
	answer(s, route{"create-token", "POST", "/v1/tokens", admin, ofDaemon, "Make a token; its secret is shown this once.", http.StatusCreated}, s.createToken)
	handle(s, route{"revoke-token", "DELETE", "/v1/tokens/{id}", admin, ofDaemon, "End a token for good.", http.StatusNoContent}, s.revokeToken)
}

// handle registers a route whose errors all become problems.
func handle[I, O any](s *Server, r route, h func(context.Context, *I) (*O, error)) {
	if err := r.check(); err != nil {
		panic(err)
	}
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: r.path, Summary: r.summary, DefaultStatus: r.status,
		Extensions:       map[string]any{"x-kura-scope": string(r.scope), "x-kura-accounts": string(r.about)},
		Middlewares:      huma.Middlewares{s.authorize(r), s.readBody, s.countList(r), s.passOn(r)},
		SkipValidateBody: true,
		MaxBodyBytes:     api.MaxBody + 1, // readBody has checked it
		BodyReadTimeout:  -1,              // and read it; a deadline would end the request's context in the middle of a write
		Security:         []map[string][]string{{"token": {}}},
		Responses:        map[string]*huma.Response{"default": s.problemResponse()},
	}
	if r.scope == scopePublic {
		s.public[r.method+" "+r.path] = true
		op.Security = []map[string][]string{}
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return out, nil
	})
}

// output is an answer that is nothing but its body.
type output[B any] struct{ Body B }

// answer registers a route whose answer is nothing but its body.
func answer[I, B any](s *Server, r route, h func(context.Context, *I) (B, error)) {
	handle(s, r, func(ctx context.Context, in *I) (*output[B], error) {
		body, err := h(ctx, in)
		return &output[B]{body}, err
	})
}

// describe returns the OpenAPI document, with what huma cannot know: a write answers 201
// where it made something, a read 304 where the client has it already, and no error has huma's own shape.
func (s *Server) describe() ([]byte, error) {
	doc := s.api.OpenAPI()
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Put, path.Post} {
			if op != nil && op.Responses["200"] != nil && !leaderDoes(op.OperationID) { // that makes nothing
				op.Responses["201"] = &huma.Response{Description: "It was made.", Content: op.Responses["200"].Content}
			}
		}
	}
	doc.Paths["/v1/servers/{account}/{region}"].Get.Responses["304"] = &huma.Response{Description: "It is as If-None-Match says."}
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
	return json.Marshal(doc)
}

func (s *Server) problemResponse() *huma.Response {
	schema := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Problem](), true, "Problem")
	return &huma.Response{Description: "A problem (RFC 9457).", Content: map[string]*huma.MediaType{api.ContentTypeProblem: {Schema: schema}}}
}

func humaConfig(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "kurad", Version: version,
				Description: "Declares cache servers and says what became of them. Writes are idempotent by natural key; If-Match carries a generation.",
				License:     &huma.License{Name: "MPL-2.0", Identifier: "MPL-2.0"},
			},
			Components: &huma.Components{
				Schemas:         registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "kura_<id>_<secret>"}},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{asProblem},
	}
}

// schemaName names a schema after its type. The domain's account is what is declared;
// the API's is what is shown.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[fleet.Account]() || t == reflect.TypeFor[fleet.HostTemplate]() || t == reflect.TypeFor[fleet.Region]() || t == reflect.TypeFor[fleet.Server]() || t == reflect.TypeFor[fleet.CacheEndpoint]() {
		return name + "Declaration"
	}
	return name
}

// verbMux lets a pattern end in a verb, as in {region}:redeploy, which net/http has no
// pattern for: the wildcard takes the whole segment, and what follows its last colon
// chooses the handler.
type verbMux struct {
	*http.ServeMux
	verbs map[string]map[string]http.HandlerFunc // by pattern without verb
}

func (m *verbMux) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	base, verb, ok := strings.Cut(pattern, "}:")
	if !ok {
		m.ServeMux.HandleFunc(pattern, h)
		return
	}
	base += "}"
	wildcard := strings.TrimSuffix(base[strings.LastIndex(base, "{")+1:], "}")
	if m.verbs[base] == nil {
		m.verbs[base] = map[string]http.HandlerFunc{}
		m.ServeMux.HandleFunc(base, func(w http.ResponseWriter, r *http.Request) {
			value := r.PathValue(wildcard)
			cut := strings.LastIndex(value, ":")
			verb := value[cut+1:]
			h, ok := m.verbs[base][verb]
			if cut < 0 || !ok {
				writeProblem(w, noRoute(r))
				return
			}
			r.SetPathValue(wildcard, value[:cut])
			h(w, r)
		})
	}
	m.verbs[base][verb] = h
}

// HealthOutputBody is how the process is; its name is that of a schema.
type HealthOutputBody struct {
	Status string       `json:"status"`
	Store  fleet.Reason `json:"store,omitempty" doc:"What is wrong with the store, of readyz."`
}

func (s *Server) healthz(context.Context, *struct{}) (HealthOutputBody, error) {
	return HealthOutputBody{Status: "ok"}, nil
}

func (s *Server) readyz(ctx context.Context, _ *struct{}) (out HealthOutputBody, err error) {
	if err := s.Ready(ctx); err != nil {
		return out, &fleet.Error{Code: fleet.CodeUnavailable, Message: "kurad does not serve yet", Err: err}
	}
	if d, stalled := s.Declare.Stalled(); stalled {
		return out, fleet.Errorf(fleet.CodeUnavailable, "no write has ended for %s: one does not give its turn back; restart kurad", d.Round(time.Second))
	}
	if _, err := s.Records.Revision(ctx); err != nil {
		return out, err
	}
	out.Status = "ready"
	// A store that refuses writes still reads: whoever balances load must not take kurad out.
	if _, healthy := s.storeHealth(ctx); healthy.Status != fleet.True {
		out.Store = healthy.Reason
	}
	return out, nil
}

func (s *Server) getVersion(ctx context.Context, _ *struct{}) (api.VersionInfo, error) {
	leader := api.Leader{Self: s.Leader.Leads()}
	leader.URL, _ = s.Leader.Address(ctx) // unknown while the store does not answer
	health, healthy := s.storeHealth(ctx)
	conditions := []api.DaemonCondition{healthy}
	if len(s.ZoneNames) > 0 && s.ZoneTrouble != nil && leader.Self {
		conditions = append(conditions, s.zonesUsable())
	}
	return api.VersionInfo{
		Environment: s.Environment.Name, Suffix: s.Environment.Suffix, Suffixes: s.Environment.Suffixes, Version: s.Version, APIVersion: api.APIVersion, Leader: leader,
		Store: health, Conditions: conditions,
		Capabilities: api.Capabilities{
			Runtimes:           []fleet.RuntimeKind{fleet.RuntimeContainers, fleet.RuntimeKubernetes},
			ContainerEndpoints: append([]string{}, s.Runtimes.ContainerEndpoints()...),
			Clusters:           append([]string{}, s.Runtimes.Clusters()...),
			DNSModes:           append([]fleet.DNSMode{fleet.DNSNone}, s.DNSModes...),
			Zones:              append([]string{}, s.ZoneNames...),
		},
	}, nil
}

func (s *Server) zonesUsable() api.DaemonCondition {
	c := api.DaemonCondition{Type: api.ConditionZonesUsable, Status: fleet.True, Reason: api.ReasonHealthy, Message: "every zone can be used as it was given"}
	if reason, messages := s.ZoneTrouble(); reason != "" {
		c.Status, c.Reason, c.Message = fleet.False, reason, strings.Join(messages, "; ")
	}
	return c
}

func (s *Server) getOpenAPI(context.Context, *struct{}) (json.RawMessage, error) {
	return s.document, nil
}
