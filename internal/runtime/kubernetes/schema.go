package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// schema is the part of a served OpenAPI v3 schema that tells which fields exist. A nil
// one is not known, and has every field.
type schema struct {
	Ref             string             `json:"$ref"`
	AllOf           []*schema          `json:"allOf"`
	Properties      map[string]*schema `json:"properties"`
	Additional      *additional        `json:"additionalProperties"`
	Items           *schema            `json:"items"`
	PreserveUnknown bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Embedded        bool               `json:"x-kubernetes-embedded-resource"`
	Kinds           []kind             `json:"x-kubernetes-group-version-kind"`
}

type kind struct{ Group, Version, Kind string }

// additional is additionalProperties: a schema, or true or false.
type additional struct {
	allowed bool
	schema  *schema
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &a.allowed); err == nil {
		return nil
	}
	a.allowed = true
	return json.Unmarshal(b, &a.schema)
}

// parseSchema returns the schema of a KuraInstance's spec from an OpenAPI v3 document;
// nil, if it has none.
func parseSchema(text []byte) (*schema, error) {
	var doc struct {
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("the OpenAPI document cannot be read: %w", err)
	}
	wanted := kind{fleet.KubeGroup, fleet.KubeVersion, fleet.KubeKind}
	for _, name := range sortedKeys(doc.Components.Schemas) {
		s := doc.Components.Schemas[name]
		if s == nil || !slices.Contains(s.Kinds, wanted) {
			continue
		}
		s = s.resolve(doc.Components.Schemas, maxDepth)
		if s == nil || s.PreserveUnknown || s.Properties["spec"] == nil {
			return nil, nil
		}
		return s.Properties["spec"], nil
	}
	return nil, nil
}

// maxDepth bounds how deep schemas refer to one another.
const maxDepth = 32

// resolve puts what is referred to in its place. Below maxDepth it knows nothing.
func (s *schema) resolve(all map[string]*schema, depth int) *schema {
	if s == nil || depth == 0 {
		return nil
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return all[name].resolve(all, depth-1)
	}
	// A reference with a description beside it is written as the one element of allOf.
	if len(s.AllOf) == 1 && s.AllOf[0] != nil && s.AllOf[0].Ref != "" && s.Properties == nil {
		return s.AllOf[0].resolve(all, depth-1)
	}
	out := *s
	if s.Properties != nil {
		out.Properties = maps.Clone(s.Properties)
		for name, prop := range out.Properties {
			out.Properties[name] = prop.resolve(all, depth-1)
		}
	}
	out.Items = s.Items.resolve(all, depth-1)
	if s.Additional != nil {
		out.Additional = &additional{s.Additional.allowed, s.Additional.schema.resolve(all, depth-1)}
	}
	return &out
}

// prune returns spec without the fields that the schema lacks, and their paths, sorted.
func (s *schema) prune(spec map[string]any) (kept map[string]any, dropped []string) {
	kept, _ = s.value(path{}.field("spec"), spec, &dropped).(map[string]any)
	slices.Sort(dropped)
	return kept, dropped
}

func (s *schema) value(at path, v any, dropped *[]string) any {
	if s == nil {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		return s.object(at, x, dropped)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = s.Items.value(at.index(i), x[i], dropped)
		}
		return out
	default:
		return v
	}
}

func (s *schema) object(at path, v map[string]any, dropped *[]string) map[string]any {
	if s.Embedded {
		return v
	}
	out := make(map[string]any, len(v))
	for _, key := range sortedKeys(v) {
		prop, declared := s.Properties[key]
		switch {
		case declared:
		case s.Additional != nil && s.Additional.allowed:
			prop = s.Additional.schema
		case s.PreserveUnknown:
		default:
			*dropped = append(*dropped, at.field(key).text)
			continue
		}
		kept := prop.value(at.field(key), v[key], dropped)
		if empty(kept) && !empty(v[key]) {
			continue // nothing of it is left to say
		}
		out[key] = kept
	}
	return out
}

// servedSchema is the schema that a cluster serves; nil: it has not been read.
type servedSchema struct{ spec *schema }

// schema returns the schema that the cluster serves now.
func (c *Cluster) schema() *schema {
	if served := c.served.Load(); served != nil {
		return served.spec
	}
	return nil
}

const schemaWithin = 5 * time.Second

// readSchema reads the schema that is served now. Where it cannot be read, what was
// known stays; where it has changed, all who watch are notified.
func (c *Cluster) readSchema(ctx context.Context) {
	if c.readingSchema.Acquire(ctx, 1) != nil { // whoever reads may wait longer than this one wants to (G9)
		return
	}
	defer c.readingSchema.Release(1)
	ctx, cancel := context.WithTimeout(ctx, schemaWithin)
	defer cancel()
	text, err := c.rest.Get().AbsPath("/openapi/v3/apis/" + fleet.KubeGroup + "/" + fleet.KubeVersion).Do(ctx).Raw()
	var spec *schema
	if err == nil {
		spec, err = parseSchema(text)
	}
	if err != nil {
		c.log.Debug("schema not read", "error", err)
		return
	}
	was := c.served.Swap(&servedSchema{spec})
	if was != nil && reflect.DeepEqual(spec, was.spec) { // what else the group serves is no news
		return
	}
	c.log.Debug("schema read")
	for _, cache := range c.allCaches() {
		cache.newSchema()
	}
}
