package kubernetes

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestK1_onlyTheFieldThatAnotherManagerAppliedIsLeftOut(t *testing.T) {
	at := func(parts ...any) fieldpath.Path { return fieldpath.MakePathOrDie(append([]any{"spec"}, parts...)...) }
	for name, c := range map[string]struct {
		spec string
		path fieldpath.Path
		want string
	}{
		"a field":                      {`{"image":"a","replicas":2}`, at("replicas"), `{"image":"a"}`},
		"one that is not there":        {`{"image":"a"}`, at("replicas"), `{"image":"a"}`},
		"one within another":           {`{"nodeSelector":{"a":"1","b":"2"}}`, at("nodeSelector", "a"), `{"nodeSelector":{"b":"2"}}`},
		"the only one within another":  {`{"image":"a","nodeSelector":{"a":"1"}}`, at("nodeSelector", "a"), `{"image":"a"}`},
		"an element, named by its key": {`{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`, at("env", fieldpath.KeyByFields("name", "A")), `{"env":[{"name":"B","value":"2"}]}`},
		"a field of it":                {`{"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`, at("env", fieldpath.KeyByFields("name", "A"), "value"), `{"env":[{"name":"A"},{"name":"B","value":"2"}]}`},
		"a list that is one field":     {`{"image":"a","tolerations":[{"key":"a"},{"key":"b"}]}`, at("tolerations", 1, "key"), `{"image":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := without(map[string]any{"kind": "K", "spec": data(t, c.spec)}, c.path).(map[string]any)
			got := o["spec"]
			if got == nil {
				got = map[string]any{}
			}
			if !equal(got, data(t, c.want)) || o["kind"] != "K" {
				t.Errorf("without %s: %s, want %s", c.path, show(got), c.want)
			}
		})
	}
}
