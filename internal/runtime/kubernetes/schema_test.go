package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestK3_whatTheSchemaLacksIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		schema, spec, want string
		dropped            []string
	}{
		"all is declared": {
			schema: `{"properties":{"image":{},"replicas":{}}}`,
			spec:   `{"image":"a","replicas":2}`, want: `{"image":"a","replicas":2}`,
		},
		"a field, wherever it is": {
			schema: `{"properties":{"mesh":{"properties":{"a":{}}},"list":{"items":{"properties":{"b":{}}}}}}`,
			spec:   `{"x":1,"mesh":{"a":1,"y":2},"list":[{"b":1},{"b":2,"z":3}]}`, want: `{"mesh":{"a":1},"list":[{"b":1},{"b":2}]}`,
			dropped: []string{"spec.list[1].z", "spec.mesh.y", "spec.x"},
		},
		"unknown fields are kept where the schema says so": {
			schema: `{"properties":{"mesh":{"x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"properties":{"b":{}}}}}}}`,
			spec:   `{"mesh":{"y":{"z":1},"a":{"b":1,"c":2}}}`, want: `{"mesh":{"y":{"z":1},"a":{"b":1}}}`, dropped: []string{"spec.mesh.a.c"},
		},
		"keys that are free": {
			schema: `{"properties":{"nodeSelector":{"additionalProperties":{"type":"string"}},"o":{"additionalProperties":{"properties":{"a":{}}}},"p":{"additionalProperties":true},"q":{"additionalProperties":false}}}`,
			spec:   `{"nodeSelector":{"kubernetes.io/arch":"x"},"o":{"k":{"a":1,"b":2}},"p":{"k":{"v":1}},"q":{"k":1}}`, want: `{"nodeSelector":{"kubernetes.io/arch":"x"},"o":{"k":{"a":1}},"p":{"k":{"v":1}}}`,
			dropped: []string{"spec.o.k.b", "spec.q.k"},
		},
		"an object of which nothing is declared": {
			schema: `{"properties":{"a":{"type":"object"},"b":{"type":"object"}}}`,
			spec:   `{"a":{"x":1},"b":{}}`, want: `{"b":{}}`, dropped: []string{"spec.a.x"},
		},
		"an embedded resource": {
			schema: `{"properties":{"a":{"x-kubernetes-embedded-resource":true}}}`,
			spec:   `{"a":{"kind":"X","y":1}}`, want: `{"a":{"kind":"X","y":1}}`,
		},
		"a value of another type": {
			schema: `{"properties":{"a":{"type":"object","properties":{"b":{}}},"c":{"type":"string"}}}`,
			spec:   `{"a":"x","c":[1]}`, want: `{"a":"x","c":[1]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept, dropped := openAPI(t, c.schema).prune(data(t, c.spec))
			if diff := cmp.Diff(data(t, c.want), kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if !slices.Equal(dropped, c.dropped) {
				t.Errorf("dropped %q, want %q", dropped, c.dropped)
			}
		})
	}
}

func TestK3_onlyAChangeOfTheInstancesSchemaIsTold(t *testing.T) {
	var spec, others string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"components":{"schemas":{"I":{"x-kubernetes-group-version-kind":[{"group":"kura.tuist.dev","version":"v1alpha1","kind":"KuraInstance"}],
			"properties":{"spec":{"properties":{"image":{"type":"string"}%s}}}}%s}}}`, spec, others)
	}))
	defer server.Close()
	c, err := Open(Config{Name: "eu", REST: &rest.Config{Host: server.URL}, Environment: fleet.Environment{Name: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, told := c.cache("kura"), 0
	p.notify(func(string) { told++ })
	if err := p.Replace(nil, "5"); err != nil {
		t.Fatal(err)
	}
	p.begun = c.cfg.Now()
	for _, step := range []struct {
		what, spec, others string
		told               int
	}{
		{"it is read first", "", "", 1},
		{"it is read again", "", "", 0},
		{"another type of the group changes", "", `,"Other":{"properties":{"x":{}}}`, 0},
		{"a field is new", `,"mesh":{}`, "", 1},
		{"a description is new", `,"mesh":{"description":"m"}`, "", 0},
	} {
		spec, others, told = step.spec, step.others, 0
		c.readSchema(t.Context())
		if told != step.told {
			t.Errorf("%s: told %d times, want %d", step.what, told, step.told)
		}
	}
}

func TestK3_aSchemaThatIsNotKnownHasEveryField(t *testing.T) {
	const kinds = `"x-kubernetes-group-version-kind":[{"group":"kura.tuist.dev","version":"v1alpha1","kind":"KuraInstance"}]`
	for name, text := range map[string]string{
		"without the kind":         `{"components":{"schemas":{"X":{"properties":{"spec":{}}}}}}`,
		"of another version":       `{"components":{"schemas":{"X":{"x-kubernetes-group-version-kind":[{"group":"kura.tuist.dev","version":"v1","kind":"KuraInstance"}],"properties":{"spec":{}}}}}}`,
		"without properties":       `{"components":{"schemas":{"X":{` + kinds + `,"type":"object"}}}}`,
		"that keeps every field":   `{"components":{"schemas":{"X":{` + kinds + `,"x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{}}}}}}`,
		"that refers to itself":    `{"components":{"schemas":{"X":{` + kinds + `,"properties":{"spec":{"$ref":"#/components/schemas/Y"}}},"Y":{"$ref":"#/components/schemas/Y"}}}}`,
		"that refers to nothing":   `{"components":{"schemas":{"X":{` + kinds + `,"properties":{"spec":{"$ref":"#/components/schemas/Y"}}}}}}`,
		"that is empty altogether": `{}`,
	} {
		s, err := parseSchema([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		spec := map[string]any{"a": map[string]any{"b": int64(1)}}
		if kept, dropped := s.prune(spec); len(dropped) > 0 || !cmp.Equal(kept, spec) {
			t.Errorf("%s: kept %v, dropped %v", name, kept, dropped)
		}
	}
	for _, text := range []string{"", "x", "[]", `{"components":{"schemas":{"X":{"properties":[]}}}}`} {
		if _, err := parseSchema([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	s := openAPI(t, `{"allOf":[{"$ref":"#/components/schemas/meta"}]}`)
	if _, dropped := s.prune(map[string]any{"a": int64(1)}); !slices.Equal(dropped, []string{"spec.a"}) {
		t.Errorf("a reference in allOf: dropped %v", dropped)
	}
}
