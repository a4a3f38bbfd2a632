package provider

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// described is what every kind of attribute has.
type described interface {
	GetDescription() string
	GetMarkdownDescription() string
	IsComputed() bool
	IsOptional() bool
	IsSensitive() bool
}

// attributes walks the attributes of every schema by path.
func attributes(t *testing.T, visit func(path string, a described)) {
	t.Helper()
	ctx := t.Context()
	p := New("test")()
	var ps provider.SchemaResponse
	p.Schema(ctx, provider.SchemaRequest{}, &ps)
	for name, a := range ps.Schema.Attributes {
		visit("provider."+name, a)
	}
	for _, r := range p.Resources(ctx) {
		var m resource.MetadataResponse
		var s resource.SchemaResponse
		r().Metadata(ctx, resource.MetadataRequest{}, &m)
		r().Schema(ctx, resource.SchemaRequest{}, &s)
		if d := s.Schema.ValidateImplementation(ctx); d.HasError() {
			t.Errorf("%s: %v", m.TypeName, d)
		}
		if !strings.HasSuffix(s.Schema.MarkdownDescription, ".") {
			t.Errorf("%s is not described", m.TypeName)
		}
		for name, a := range s.Schema.Attributes {
			walk("resource."+m.TypeName+"."+name, a, visit)
		}
	}
	for _, d := range p.DataSources(ctx) {
		var m datasource.MetadataResponse
		var s datasource.SchemaResponse
		d().Metadata(ctx, datasource.MetadataRequest{}, &m)
		d().Schema(ctx, datasource.SchemaRequest{}, &s)
		if !strings.HasSuffix(s.Schema.MarkdownDescription, ".") {
			t.Errorf("data source %s is not described", m.TypeName)
		}
		for name, a := range s.Schema.Attributes {
			walk("data."+m.TypeName+"."+name, a, visit)
		}
	}
}

func walk(path string, a described, visit func(string, described)) {
	visit(path, a)
	nested, ok := a.(schema.NestedAttribute)
	if !ok {
		return
	}
	for name, child := range nested.GetNestedObject().GetAttributes() {
		walk(path+"."+name, child, visit)
	}
}

func TestSchema_everyAttributeSaysWhatItIsAndWhatItsDefaultIs(t *testing.T) {
	seen := 0
	attributes(t, func(path string, a described) {
		seen++
		text := a.GetMarkdownDescription()
		if text == "" {
			text = a.GetDescription()
		}
		if len(text) < 12 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: description %q does not say what happens, in sentences", path, text)
		}
		if a.IsOptional() && !strings.Contains(text, "efault") && !strings.Contains(text, "onflicts with") && !strings.Contains(text, "Exactly one") && !strings.Contains(text, "Required") {
			t.Errorf("%s: description %q does not say what it is when left out", path, text)
		}
	})
	if seen < 120 {
		t.Errorf("only %d attributes were walked", seen)
	}
}

func TestSchema_everyComputedAttributeHasAClass(t *testing.T) {
	attributes(t, func(path string, a described) {
		if !strings.HasPrefix(path, "resource.") || !a.IsComputed() {
			return
		}
		switch a := a.(type) {
		case schema.BoolAttribute:
			if a.Default == nil {
				t.Errorf("%s is computed without a default", path)
			}
		case schema.StringAttribute:
			if a.Default != nil {
				return // always known
			}
			classes := 0
			for _, m := range a.PlanModifiers {
				switch m.(type) {
				case stableString, derivedString, endedString:
					classes++
				}
			}
			if classes != 1 || a.IsOptional() {
				t.Errorf("%s is computed and has %d classes; it must be stable, derived or ended, and not optional", path, classes)
			}
		default:
			t.Errorf("%s is computed and a %T, which has no class", path, a)
		}
	})
}

func TestSchema_nothingIsSensitiveButTheProvidersToken(t *testing.T) {
	attributes(t, func(path string, a described) {
		if want := path == "provider.token"; a.IsSensitive() != want {
			t.Errorf("%s: sensitive is %v, want %v", path, a.IsSensitive(), want)
		}
	})
}

func TestSchema_nothingVolatileIsInAResource(t *testing.T) {
	volatile := []string{"status", "verdict", "reason", "message", "active", "conditions", "containers_seen", "published_url", "observed_image_tag", "serving_image_tag", "last_observed_at", "generation"}
	attributes(t, func(path string, _ described) {
		parts := strings.Split(path, ".")
		if parts[0] == "resource" && slices.Contains(volatile, parts[len(parts)-1]) {
			t.Errorf("%s moves by itself and belongs into a data source", path)
		}
	})
}

func TestSchema_everyResourceHasAnIdentityOfItsNaturalKey(t *testing.T) {
	want := map[string][]string{
		"kura_account": {"id"}, "kura_host_template": {"name"}, "kura_region": {"name"}, "kura_server": {"account", "region"}, "kura_cache_endpoint": {"account", "technology", "url"},
	}
	for _, r := range New("test")().Resources(t.Context()) {
		var m resource.MetadataResponse
		r().Metadata(t.Context(), resource.MetadataRequest{}, &m)
		identified, ok := r().(resource.ResourceWithIdentity)
		if !ok {
			t.Errorf("%s has no identity", m.TypeName)
			continue
		}
		var s resource.IdentitySchemaResponse
		identified.IdentitySchema(t.Context(), resource.IdentitySchemaRequest{}, &s)
		var got []string
		for name, a := range s.IdentitySchema.Attributes {
			got = append(got, name)
			if a.GetDescription() == "" || !a.IsRequiredForImport() {
				t.Errorf("%s: identity attribute %s is not described or not required", m.TypeName, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want[m.TypeName]) {
			t.Errorf("%s: identity is %v, want %v", m.TypeName, got, want[m.TypeName])
		}
	}
}

func TestManifest_saysTheProtocolThatIsServed(t *testing.T) {
	b, err := os.ReadFile("../terraform-registry-manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Metadata struct {
			ProtocolVersions []string `json:"protocol_versions"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Metadata.ProtocolVersions, []string{"6.0"}) {
		t.Errorf("manifest says %v; main.go serves 6, the default of providerserver", m.Metadata.ProtocolVersions)
	}
}

// resourceSchema returns a resource's schema.
func resourceSchema(r resource.Resource) schema.Schema {
	var s resource.SchemaResponse
	r.Schema(context.Background(), resource.SchemaRequest{}, &s)
	return s.Schema
}
