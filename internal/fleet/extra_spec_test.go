package fleet

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func extraSpecOf(t testing.TB, s string) (Region, error) {
	t.Helper()
	r := sampleKube(t).region
	r.Kubernetes.ExtraSpec = s
	return r, r.Validate()
}

func TestExtraSpecMayNotHoldAFieldThatKuradWrites(t *testing.T) {
	for field, instead := range kubeFields() {
		for _, value := range []string{`"x"`, `""`, `false`, `[]`, `{}`, `0`} {
			_, err := extraSpecOf(t, `{"private":true,"`+field+`":`+value+`}`)
			wantField(t, err, "/kubernetes/extra_spec", `"`+field+`"`)
			wantField(t, err, "/kubernetes/extra_spec", instead)
		}
	}
	// Every one of them is told at once.
	_, err := extraSpecOf(t, `{"extraEnv":[],"replicas":1}`)
	wantField(t, err, "/kubernetes/extra_spec", "set env, or env_from for secrets")
	wantError(t, err, "set replicas")
}

func TestExtraSpecFaultsSayWhatToWrite(t *testing.T) {
	for name, c := range map[string]struct{ spec, text string }{
		"not JSON":           {`{`, "jsonencode"},
		"null":               {`null`, "jsonencode"},
		"a list":             {`[]`, "jsonencode"},
		"a text":             {`"x"`, "jsonencode"},
		"two objects":        {`{} {}`, "jsonencode"},
		"more behind it":     {`{"a":1}]`, "jsonencode"},
		"null field":         {`{"a":null}`, `null as "a"`},
		"null further in":    {`{"a":{"b":[1,{"c":null}]}}`, `null as "a.b[1].c"`},
		"too large a number": {`{"a":[1e999]}`, `"1e999" as "a[0]"`},
		"too long":           {`{"a":"` + strings.Repeat("x", 40000) + `"}`, "at most 32768"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := extraSpecOf(t, c.spec)
			wantField(t, err, "/kubernetes/extra_spec", c.text)
		})
	}
}

func TestExtraSpecIsRenderedAsWritten(t *testing.T) {
	in := sampleKube(t)
	without := func() map[string]any {
		in.region.Kubernetes.ExtraSpec = ""
		return in.render(t).Spec
	}()
	in.region.Kubernetes.ExtraSpec = `{"private":false,"podAnnotations":{"a":""},"mesh":{"peers":[],"zones":["b","a"],"weight":0.5,"n":3}}`
	got := in.render(t).Spec
	maps.Copy(without, map[string]any{
		"private": false, "podAnnotations": map[string]any{"a": ""},
		"mesh": map[string]any{"peers": []any{}, "zones": []any{"b", "a"}, "weight": 0.5, "n": int64(3)},
	})
	if diff := cmp.Diff(without, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is valid renders: to data that Kubernetes reads as it was written, with every field
// of ours as it is without it.
func FuzzExtraSpec(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"private":true}`, `{"private":false,"a":{"b":[1,2.0,-0.0,1e30,"x",{}]}}`, `{"image":"x"}`, `{"a":null}`, `{"a":1e999}`, `[]`, `{}{}`, `{"":0}`, "{\"a\":\"\xff\"}",
		`{"a":9223372036854775807,"b":9223372036854775808,"c":-9223372036854775808,"d":1e18,"e":1e-400}`, `{"a":1,"a":2}`, `{"Image":"x"}`,
	} {
		f.Add(s)
	}
	base := sampleKube(f)
	base.region.Kubernetes.ExtraSpec = ""
	ours := base.render(f)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := extraSpecOf(t, s)
		if err != nil {
			if CodeOf(err) != CodeInvalid {
				t.Fatalf("%v is not for the user", err)
			}
			return
		}
		in := base
		in.region = r
		doc := in.render(t)
		if diff := cmp.Diff(doc.Manifest(), throughJSON(t, doc.Manifest())); diff != "" {
			t.Fatalf("written and read again (-was +is)\n%s", diff)
		}
		var fields map[string]json.RawMessage
		if s != "" && json.Unmarshal([]byte(s), &fields) != nil {
			t.Fatalf("%q is taken for an object", s)
		}
		if len(doc.Spec) != len(ours.Spec)+len(fields) {
			t.Fatalf("%d fields of ours and %d of extra_spec made %d", len(ours.Spec), len(fields), len(doc.Spec))
		}
		for field, want := range ours.Spec {
			if diff := cmp.Diff(want, doc.Spec[field]); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", field, diff)
			}
		}
		if (doc.Revision == ours.Revision) != (len(fields) == 0) {
			t.Fatalf("%q: revision %s, without it %s", s, doc.Revision, ours.Revision)
		}
	})
}
