package provider

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// told is a daemon that answers what a test told it to, by "METHOD /path", and notes what
// it was asked. A dry run is "DRY /path".
type told struct {
	mu      sync.Mutex
	answers map[string]any
	asked   []string
}

func (d *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := r.Method + " " + r.URL.Path
	if r.URL.Query().Get("dry_run") == "true" {
		what = "DRY " + r.URL.Path
	}
	d.mu.Lock()
	d.asked = append(d.asked, what)
	if r.URL.Query().Get("again") == "true" {
		d.asked = append(d.asked, what+" again")
	}
	answer, ok := d.answers[what]
	d.mu.Unlock()
	switch p, refuses := answer.(api.Problem); {
	case !ok:
		problem(fleet.CodeNotFound, what+" is not there")(w, r)
	case refuses:
		problem(p.Code, p.Detail)(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// say changes what the daemon answers.
func (d *told) say(what string, answer any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[what] = answer
}

// count returns how often the daemon was asked that.
func (d *told) count(what string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if a == what {
			n++
		}
	}
	return n
}

// core drives the provider over the plugin protocol, as Terraform's and OpenTofu's core do.
type core struct {
	t        *testing.T
	provider tfprotov6.ProviderServer
	types    map[string]tftypes.Object
}

// newCore returns a core whose provider is configured for the daemon, as for one plan or
// apply.
func newCore(t *testing.T, d *told) *core {
	t.Helper()
	clearEnvironment(t)
	web := httptest.NewServer(d)
	t.Cleanup(web.Close)
	d.say("GET /v1/version", api.VersionInfo{Environment: "staging", Suffix: "-staging", Suffixes: fleet.DefaultSuffixes(), APIVersion: api.APIVersion})
	made, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	c := &core{t: t, provider: made, types: map[string]tftypes.Object{}}
	schemas, err := made.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	object := func(s *tfprotov6.Schema) tftypes.Object {
		o, ok := s.ValueType().(tftypes.Object)
		if !ok {
			t.Fatalf("a schema is a %T", s.ValueType())
		}
		return o
	}
	for name, s := range schemas.ResourceSchemas {
		c.types[name] = object(s)
	}
	c.types["provider"] = object(schemas.Provider)
	config := c.object("provider", nil, map[string]tftypes.Value{"endpoint": hcl(web.URL), "token": hcl("t"), "environment": hcl("staging")})
	configured, err := made.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: c.wire("provider", config)})
	if err != nil || len(configured.Diagnostics) > 0 {
		t.Fatal(err, spoken(configured.Diagnostics))
	}
	return c
}

func hcl(text string) tftypes.Value { return tftypes.NewValue(tftypes.String, text) }

// object is base with some attributes set; those of a nil base are null.
func (c *core) object(of string, base map[string]tftypes.Value, set map[string]tftypes.Value) map[string]tftypes.Value {
	all := map[string]tftypes.Value{}
	for name, t := range c.types[of].AttributeTypes {
		all[name] = tftypes.NewValue(t, nil)
	}
	maps.Copy(all, base)
	maps.Copy(all, set)
	return all
}

func (c *core) wire(of string, attributes map[string]tftypes.Value) *tfprotov6.DynamicValue {
	c.t.Helper()
	var v any = attributes
	if attributes == nil {
		v = nil
	}
	d, err := tfprotov6.NewDynamicValue(c.types[of], tftypes.NewValue(c.types[of], v))
	if err != nil {
		c.t.Fatal(err)
	}
	return &d
}

func (c *core) read(of string, d *tfprotov6.DynamicValue) map[string]tftypes.Value {
	c.t.Helper()
	v, err := d.Unmarshal(c.types[of])
	all := map[string]tftypes.Value{}
	if err == nil {
		err = v.As(&all)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// plan plans an object; prior is nil where it is to be created.
func (c *core) plan(of string, prior, config map[string]tftypes.Value, private []byte) *tfprotov6.PlanResourceChangeResponse {
	c.t.Helper()
	proposed := config
	if prior != nil {
		proposed = map[string]tftypes.Value{}
		for name, v := range config {
			if proposed[name] = v; v.IsNull() {
				proposed[name] = prior[name] // computed
			}
		}
	}
	p, err := c.provider.PlanResourceChange(c.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: of, PriorState: c.wire(of, prior), ProposedNewState: c.wire(of, proposed), Config: c.wire(of, config), PriorPrivate: private,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// apply applies what was planned.
func (c *core) apply(of string, prior, config map[string]tftypes.Value, p *tfprotov6.PlanResourceChangeResponse) *tfprotov6.ApplyResourceChangeResponse {
	c.t.Helper()
	a, err := c.provider.ApplyResourceChange(c.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: of, PriorState: c.wire(of, prior), PlannedState: p.PlannedState, Config: c.wire(of, config), PlannedPrivate: p.PlannedPrivate,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// refresh reads an object.
func (c *core) refresh(of string, prior map[string]tftypes.Value, private []byte) *tfprotov6.ReadResourceResponse {
	c.t.Helper()
	r, err := c.provider.ReadResource(c.t.Context(), &tfprotov6.ReadResourceRequest{TypeName: of, CurrentState: c.wire(of, prior), Private: private})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func spoken(all []*tfprotov6.Diagnostic) string {
	var b strings.Builder
	for _, d := range all {
		b.WriteString(d.Severity.String() + ": " + d.Summary + ": " + d.Detail + "\n")
	}
	return b.String()
}

func contains(text string, all ...string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}
