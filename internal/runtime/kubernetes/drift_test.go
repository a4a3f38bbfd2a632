package kubernetes

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// data reads JSON as client-go does.
func data(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := utiljson.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// live reads an object from its JSON.
func live(t *testing.T, text string) *object {
	t.Helper()
	return new(ownerSets).object(&unstructured.Unstructured{Object: data(t, text)})
}

func openAPI(t *testing.T, spec string) *schema {
	t.Helper()
	s, err := parseSchema([]byte(`{"components":{"schemas":{
		"meta":{"type":"object"},
		"KuraInstance":{"type":"object",
			"x-kubernetes-group-version-kind":[{"group":"kura.tuist.dev","version":"v1alpha1","kind":"KuraInstance"}],
			"properties":{"metadata":{"allOf":[{"$ref":"#/components/schemas/meta"}]},"spec":` + spec + `}}}}}`))
	if err != nil || s == nil {
		t.Fatalf("schema %s: %v, %v", spec, s, err)
	}
	return s
}

func TestP14_onlyWhatWeDeclareAndNobodyElseAppliesIsADifference(t *testing.T) {
	type differences = []fleet.FieldDifference
	held := func(manager, operation, fields string) string {
		return `{"manager":"` + manager + `","operation":"` + operation + `","fieldsV1":` + fields + `}`
	}
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	noMesh := []fleet.Alteration{{Path: "spec.mesh", Sent: digest(map[string]any{"x": 1})}}
	for name, c := range map[string]struct {
		labels, annotations string // desired
		spec                string // desired
		meta                string // live, besides managedFields
		managed             string // live
		live                string // live spec
		schema              string
		known               []fleet.Alteration
		force               bool
		want                comparison
	}{
		"equal":                                             {spec: `{"image":"a:1","replicas":2}`, live: `{"image":"a:1","replicas":2}`},
		"defaults and what is not ours":                     {spec: `{"image":"a:1"}`, live: `{"image":"a:1","replicas":1,"mesh":{"x":1}}`},
		"a number that is written otherwise":                {spec: `{"cloudflarePoolLatitude":40}`, live: `{"cloudflarePoolLatitude":40.0}`},
		"a default within an object of ours":                {spec: `{"mesh":{"peer":"x"}}`, live: `{"mesh":{"peer":"x","port":7}}`},
		"a default within an element of a list":             {spec: `{"extraEnv":[{"name":"A"}]}`, live: `{"extraEnv":[{"name":"A","value":""}]}`},
		"empty is absent":                                   {spec: `{"mesh":{},"tolerations":[],"x":null}`, live: `{}`},
		"another value":                                     {spec: `{"replicas":2}`, live: `{"replicas":3}`, want: comparison{differs: differences{{Path: "spec.replicas", Have: "3", Want: "2"}}}},
		"another type":                                      {spec: `{"storageSize":"5"}`, live: `{"storageSize":5}`, want: comparison{differs: differences{{Path: "spec.storageSize", Have: "5", Want: `"5"`}}}},
		"an object that is none there":                      {spec: `{"mesh":{"a":1}}`, live: `{"mesh":"no"}`, want: comparison{differs: differences{{Path: "spec.mesh", Have: `"no"`, Want: `{"a":1}`}}}},
		"a field that is gone":                              {spec: `{"nodeSelector":{"disk":"ssd","kubernetes.io/arch":"arm64"}}`, live: `{"nodeSelector":{"disk":"ssd"}}`, want: comparison{differs: differences{{Path: "spec.nodeSelector[kubernetes.io/arch]", Want: `"arm64"`}}}},
		"all of an object is gone":                          {spec: `{"nodeSelector":{"disk":"ssd"}}`, live: `{}`, want: comparison{differs: differences{{Path: "spec.nodeSelector", Want: `{"disk":"ssd"}`}}}},
		"more in an element of a list that somebody edited": {spec: `{"extraEnv":[{"name":"A"}]}`, live: `{"extraEnv":[{"name":"A","value":"x"}]}`, managed: held("kubectl-edit", "Update", `{"f:spec":{"f:extraEnv":{}}}`), want: comparison{differs: differences{{Path: "spec.extraEnv", Have: `[{"name":"A","value":"x"}]`, Want: `[{"name":"A"}]`, Manager: "kubectl-edit"}}}},
		"an element of a list":                              {spec: `{"extraEnv":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`, live: `{"extraEnv":[{"name":"A","value":"1"},{"name":"B","value":"3"}]}`, want: comparison{differs: differences{{Path: "spec.extraEnv[1].value", Have: `"3"`, Want: `"2"`}}}},
		"a list that is longer":                             {spec: `{"clientHostAliases":["a"]}`, live: `{"clientHostAliases":["a","b"]}`, want: comparison{differs: differences{{Path: "spec.clientHostAliases", Have: `["a","b"]`, Want: `["a"]`}}}},
		"a label, and none of the revision":                 {labels: `{"tuist.dev/account":"acme"}`, spec: `{}`, live: `{}`, meta: `"annotations":{"tuist.dev/kura-manifest-revision":"old"}`, want: comparison{differs: differences{{Path: "metadata.labels[tuist.dev/account]", Want: `"acme"`}}}},
		"an annotation":                                     {annotations: `{"dev.kura/restart-mark":"2"}`, spec: `{}`, live: `{}`, meta: `"annotations":{"dev.kura/restart-mark":"1","other.dev/x":"y"}`, want: comparison{differs: differences{{Path: "metadata.annotations[dev.kura/restart-mark]", Have: `"1"`, Want: `"2"`}}}},
		"an annotation that another applied":                {annotations: `{"dev.kura/restart-mark":"2"}`, spec: `{}`, live: `{}`, meta: `"annotations":{"dev.kura/restart-mark":"1"}`, managed: held("hpa", "Apply", `{"f:metadata":{"f:annotations":{".":{},"f:dev.kura/restart-mark":{},"f:x":{}}}}`), want: comparison{held: differences{{Path: "metadata.annotations[dev.kura/restart-mark]", Have: `"1"`, Want: `"2"`, Manager: "hpa"}}}},
		"an annotation beside one that another applied":     {annotations: `{"dev.kura/restart-mark":"2"}`, spec: `{}`, live: `{}`, meta: `"annotations":{"dev.kura/restart-mark":"1"}`, managed: held("hpa", "Apply", `{"f:metadata":{"f:annotations":{".":{},"f:x":{}}}}`), want: comparison{differs: differences{{Path: "metadata.annotations[dev.kura/restart-mark]", Have: `"1"`, Want: `"2"`}}}},
		"edited by hand":                                    {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: held("kubectl-edit", "Update", replicas), want: comparison{differs: differences{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "kubectl-edit"}}}},
		"applied by another":                                {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: held("hpa", "Apply", replicas), want: comparison{held: differences{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "hpa"}}}},
		"applied by another and edited":                     {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: held("kubectl-edit", "Update", replicas) + "," + held("hpa", "Apply", replicas), want: comparison{held: differences{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "hpa"}}}},
		"applied by another, to be forced":                  {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: held("hpa", "Apply", replicas), force: true, want: comparison{differs: differences{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "hpa"}}}},
		"applied by another with the same value":            {spec: `{"replicas":2}`, live: `{"replicas":2}`, managed: held("hpa", "Apply", replicas)},
		"applied by us":                                     {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: held("kurad", "Apply", replicas), want: comparison{differs: differences{{Path: "spec.replicas", Have: "3", Want: "2"}}}},
		"a status that was applied":                         {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: `{"manager":"c","operation":"Apply","subresource":"status","fieldsV1":` + replicas + `}`, want: comparison{differs: differences{{Path: "spec.replicas", Have: "3", Want: "2"}}}},
		"a list that another applied as a whole":            {spec: `{"tolerations":[{"key":"a"}]}`, live: `{"tolerations":[{"key":"b"}]}`, managed: held("t", "Apply", `{"f:spec":{"f:tolerations":{}}}`), want: comparison{held: differences{{Path: "spec.tolerations[0].key", Have: `"b"`, Want: `"a"`, Manager: "t"}}}},
		"more in an element of a list that another applied": {spec: `{"extraEnv":[{"name":"A"}]}`, live: `{"extraEnv":[{"name":"A","value":"x"}]}`, managed: held("t", "Apply", `{"f:spec":{"f:extraEnv":{}}}`),
			want: comparison{held: differences{{Path: "spec.extraEnv", Have: `[{"name":"A","value":"x"}]`, Want: `[{"name":"A"}]`, Manager: "t"}}}},
		"more in an element that another applied": {spec: `{"extraEnv":[{"name":"A"}]}`, live: `{"extraEnv":[{"name":"A","value":"x"}]}`, managed: held("t", "Apply", `{"f:spec":{"f:extraEnv":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}`),
			want: comparison{held: differences{{Path: "spec.extraEnv", Have: `[{"name":"A","value":"x"}]`, Want: `[{"name":"A"}]`, Manager: "t"}}}},
		"more in an element of a list that another applied, to be forced": {spec: `{"extraEnv":[{"name":"A"}]}`, live: `{"extraEnv":[{"name":"A","value":"x"}]}`, managed: held("t", "Apply", `{"f:spec":{"f:extraEnv":{}}}`), force: true,
			want: comparison{differs: differences{{Path: "spec.extraEnv", Have: `[{"name":"A","value":"x"}]`, Want: `[{"name":"A"}]`, Manager: "t"}}}},
		"a list that another applied as we do": {spec: `{"extraEnv":[{"name":"A","n":1}]}`, live: `{"extraEnv":[{"name":"A","n":1.0}]}`, managed: held("t", "Apply", `{"f:spec":{"f:extraEnv":{}}}`)},
		"scaled by an apply":                   {spec: `{"replicas":2}`, live: `{"replicas":3}`, managed: `{"manager":"s","operation":"Apply","subresource":"scale","fieldsV1":` + replicas + `}`, want: comparison{held: differences{{Path: "spec.replicas", Have: "3", Want: "2", Manager: "s"}}}},
		"a list of which another applied an element": {spec: `{"extraEnv":[{"name":"A","value":"1"}]}`, live: `{"extraEnv":[{"name":"A","value":"2"}]}`, managed: held("t", "Apply", `{"f:spec":{"f:extraEnv":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}`),
			want: comparison{held: differences{{Path: "spec.extraEnv[0].value", Have: `"2"`, Want: `"1"`, Manager: "t"}}}},
		"a key beside the one that another applied": {spec: `{"nodeSelector":{"a":"1"}}`, live: `{"nodeSelector":{"a":"2","b":"3"}}`, managed: held("t", "Apply", `{"f:spec":{"f:nodeSelector":{".":{},"f:b":{}}}}`),
			want: comparison{differs: differences{{Path: "spec.nodeSelector.a", Have: `"2"`, Want: `"1"`}}}},
		"what the schema lacks":                    {spec: `{"image":"a","mesh":{"x":1}}`, live: `{"image":"a"}`, schema: `{"type":"object","properties":{"image":{"type":"string"}}}`, want: comparison{dropped: []string{"spec.mesh"}}},
		"what the answer to an apply lacked":       {spec: `{"image":"a","mesh":{"x":1},"private":true}`, live: `{"image":"a"}`, known: noMesh, want: comparison{differs: differences{{Path: "spec.private", Want: "true"}}, altered: differences{{Path: "spec.mesh", Want: `{"x":1}`}}}},
		"what it lacked and is there, with others": {spec: `{"mesh":{"x":1}}`, live: `{"mesh":{"x":2}}`, known: noMesh, want: comparison{differs: differences{{Path: "spec.mesh.x", Have: "2", Want: "1"}}}},
		"what it lacked and is to be otherwise":    {spec: `{"mesh":{"x":2}}`, live: `{}`, known: noMesh, want: comparison{differs: differences{{Path: "spec.mesh", Want: `{"x":2}`}}}},
	} {
		t.Run(name, func(t *testing.T) {
			doc := fleet.KubeDocument{Spec: data(t, c.spec), Force: c.force, Revision: "r"}
			for text, into := range map[string]*map[string]string{c.labels: &doc.Labels, c.annotations: &doc.Annotations} {
				if text != "" {
					if err := json.Unmarshal([]byte(text), into); err != nil {
						t.Fatal(err)
					}
				}
			}
			meta := `"managedFields":[` + c.managed + `]`
			if c.meta != "" {
				meta += "," + c.meta
			}
			var s *schema
			if c.schema != "" {
				s = openAPI(t, c.schema)
			}
			before := show(doc.Spec)
			got := compare(live(t, `{"metadata":{`+meta+`},"spec":`+c.live+`}`), doc, s, c.known)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(comparison{}), cmpopts.IgnoreFields(comparison{}, "yields"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if show(doc.Spec) != before {
				t.Errorf("the document was changed: %s", show(doc.Spec))
			}
		})
	}
}

// A webhook that rewrites what is applied would be applied against for ever.
func TestK10_whatAdmissionMakesOfAFieldIsNoDifferenceUntilItOrTheFieldChanges(t *testing.T) {
	is := func(image, tolerations string) *object {
		return live(t, `{"metadata":{"labels":{"app.kubernetes.io/name":"KURA"}},"spec":{"image":"`+image+`","storageSize":"1Gi","tolerations":`+tolerations+`}}`)
	}
	doc := func(size string) fleet.KubeDocument {
		return fleet.KubeDocument{Force: true, Labels: map[string]string{"app.kubernetes.io/name": "kura"},
			Spec: data(t, `{"image":"a:1","storageSize":"`+size+`","tolerations":[{"key":"a"}],"mesh":{"x":1}}`)}
	}
	const injected, declared = `[{"key":"a"},{"key":"injected"}]`, "1024Mi"
	// What is stored is what another process reads.
	var known []fleet.Alteration
	if stored, err := json.Marshal(echoed(is("mirror/a:1", injected), doc(declared), nil)); err != nil || json.Unmarshal(stored, &known) != nil {
		t.Fatal(err)
	}
	paths := func(ds []fleet.FieldDifference) (all []string) {
		for _, d := range ds {
			all = append(all, d.Path+d.Manager)
		}
		return all
	}
	const label, image, mesh, size, tolerations = "metadata.labels[app.kubernetes.io/name]", "spec.image", "spec.mesh", "spec.storageSize", "spec.tolerations"
	for name, c := range map[string]struct {
		live    *object
		size    string
		altered []string
		differs []string
	}{
		"as it was answered":           {is("mirror/a:1", injected), declared, []string{label, image, mesh, size, tolerations}, nil},
		"somebody edits it":            {is("mirror/a:2", `[{"key":"b"}]`), declared, []string{label, mesh, size}, []string{image, "spec.tolerations[0].key"}},
		"as it was applied":            {is("a:1", `[{"key":"a"}]`), declared, []string{label, mesh, size}, nil},
		"one field is to be otherwise": {is("mirror/a:1", injected), "2Gi", []string{label, image, mesh, tolerations}, []string{size}},
	} {
		got := compare(c.live, doc(c.size), nil, known)
		if diff := cmp.Diff([][]string{c.altered, c.differs}, [][]string{paths(got.altered), paths(got.differs)}, cmpopts.EquateEmpty()); diff != "" || len(got.held)+len(got.dropped) > 0 {
			t.Errorf("%s: %+v (-want +got):\n%s", name, got, diff)
		}
	}
}

func TestP14_whatTheServerSaysOfAnObjectIsKeptAsFarAsItIsShown(t *testing.T) {
	const text = `{"metadata":{"name":"a","namespace":"kura","uid":"u","resourceVersion":"7","generation":3,"deletionTimestamp":"2026-11-21T10:00:00Z",
		"labels":{"dev.kura/environment":"test","tuist.dev/account":"acme","tuist.dev/region":"eu"},
		"annotations":{"tuist.dev/kura-manifest-revision":"r1","dev.kura/restart-mark":"m","other.dev/x":"1"}},
		"spec":{"image":"a:1"},"status":{"phase":"Ready","observedImage":"a:0","readyReplicas":2,"publicURL":"https://a","message":"m","lastReconciledAt":"x"}}`
	o := live(t, text)
	want := fleet.KubeInstance{
		Namespace: "kura", Name: "a", UID: "u", Account: "acme", Region: "eu", Deleting: true, SpecImage: "a:1", ObservedImage: "a:0",
		Phase: "Ready", PublicURL: "https://a", ReadyReplicas: 2, Message: "m", Revision: "r1", RestartMark: "m",
		Generation: 3, Written: "9speyidfv7iw",
	}
	if diff := cmp.Diff(want, o.shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What is of another form than expected is not there.
	odd := live(t, `{"metadata":{"name":"a","managedFields":"x"},"spec":"x","status":{"phase":7,"readyReplicas":"2"}}`)
	if diff := cmp.Diff(fleet.KubeInstance{Name: "a", Foreign: fleet.NotByKurad, Written: "2gvtji4m2l0h"}, odd.foreign()); diff != "" {
		t.Errorf("odd (-want +got):\n%s", diff)
	}
}

func TestL47_onlyWhatIsShownIsNews(t *testing.T) {
	at := func(meta, status string) *object {
		return live(t, `{"metadata":{"name":"a","uid":"u","labels":{"l":"1"}`+meta+`},"spec":{"image":"a:1"},"status":{"phase":"Ready"`+status+`}}`)
	}
	edit := `,"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:x":{}}}}}]`
	apply := `,"managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:spec":{"f:image":{}}}}]`
	was := at("", "")
	for name, c := range map[string]struct {
		now  *object
		same bool
	}{
		"a newer version":               {at(`,"resourceVersion":"9"`, `,"lastReconciledAt":"x"`), true},
		"an annotation of another":      {at(`,"annotations":{"x":"y"}`+edit, ""), true},
		"another image is observed":     {at("", `,"observedImage":"a:1"`), false},
		"a message":                     {at("", `,"message":"m"`), false},
		"it is being deleted":           {at(`,"deletionTimestamp":"2026-11-21T10:00:00Z"`, ""), false},
		"the revision":                  {at(`,"annotations":{"tuist.dev/kura-manifest-revision":"r"}`, ""), false},
		"another manager holds a field": {at(apply, ""), false},
		"it is gone":                    {nil, false},
	} {
		if sameView(was, c.now) != c.same || sameView(c.now, was) != c.same {
			t.Errorf("%s: the same view: %t, want %t", name, !c.same, c.same)
		}
	}
	if !sameView(nil, nil) {
		t.Error("nothing is not nothing")
	}
}
