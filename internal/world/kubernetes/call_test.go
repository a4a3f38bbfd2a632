package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCall_isNamedAsARoleNamesIt(t *testing.T) {
	const all = "/apis/kura.tuist.dev/v1alpha1/namespaces/kura/kurainstances"
	of := func(verb, name, sub string) Call {
		return Call{Verb: verb, Group: "kura.tuist.dev", Resource: "kurainstances", Namespace: "kura", Name: name, Subresource: sub}
	}
	applied := of("patch", "a", "")
	applied.Apply = true
	for _, c := range []struct {
		method, path, kind string
		want               Call
	}{
		{"GET", all, "", of("list", "", "")},
		{"GET", all + "?watch=true&resourceVersion=7", "", of("watch", "", "")},
		{"GET", all + "?watch=false", "", of("list", "", "")},
		{"GET", all + "/a", "", of("get", "a", "")},
		{"POST", all, "", of("create", "", "")},
		{"PUT", all + "/a", "", of("update", "a", "")},
		{"PATCH", all + "/a/status", "application/merge-patch+json", of("patch", "a", "status")},
		{"PATCH", all + "/a?fieldManager=kurad", "application/apply-patch+yaml; charset=utf-8", applied},
		{"DELETE", all + "/a", "", of("delete", "a", "")},
		{"DELETE", all, "", of("deletecollection", "", "")},
		{"GET", "/apis/kura.tuist.dev/v1alpha1/kurainstances", "", Call{Verb: "list", Group: "kura.tuist.dev", Resource: "kurainstances"}},
		{"GET", "/api/v1/namespaces/kura", "", Call{Verb: "get", Resource: "namespaces", Name: "kura"}},
		{"GET", "/api/v1/namespaces/kura/secrets/s", "", Call{Verb: "get", Resource: "secrets", Namespace: "kura", Name: "s"}},
		{"GET", "/openapi/v3/apis/kura.tuist.dev/v1alpha1", "", Call{}},
		{"GET", "/readyz", "", Call{}},
	} {
		r := httptest.NewRequest(c.method, c.path, http.NoBody)
		r.Header.Set("Content-Type", c.kind)
		got := callOf(r)
		c.want.Path = r.URL.Path
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.method, c.path, diff)
		}
	}
}
