package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// shelf is an API server with one object, which deletes as kube-apiserver does: only at the
// UID and the version that the preconditions name.
type shelf struct {
	*testing.T
	environment string // of the label
	version     string
	looked      func() // after each look
	gone        bool
}

func (s *shelf) answer(w http.ResponseWriter, r *http.Request) {
	const uid = "uid-1"
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int, reason metav1.StatusReason) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
			Details: &metav1.StatusDetails{Name: "a", Group: gvr.Group, Kind: gvr.Resource}})
	}
	switch {
	case s.gone:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		fmt.Fprintf(w, `{"apiVersion":"kura.tuist.dev/v1alpha1","kind":"KuraInstance","metadata":{"name":"a","namespace":"kura","uid":%q,"resourceVersion":%q,
			"labels":{"dev.kura/environment":%q,"tuist.dev/account":"acme","tuist.dev/region":"eu"}}}`, uid, s.version, s.environment)
		if s.looked != nil {
			s.looked()
		}
	case r.Method == http.MethodDelete:
		var o metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			s.Error(err)
		}
		p := o.Preconditions
		if p == nil || p.UID == nil || *p.UID != uid || p.ResourceVersion != nil && *p.ResourceVersion != s.version {
			refuse(http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		s.gone = true
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	default:
		s.Errorf("%s %s", r.Method, r.URL)
	}
}

// A deletion is for what was looked at. What changed since is looked at again, and is left
// alone where it has become somebody else's.
func TestK4_whatWasRelabelledSinceItWasLookedAtIsNotDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		becomes string // the environment of its label
		changes int    // how often
		class   fleet.Class
		reason  fleet.Reason
		gone    bool
	}{
		"another environment's":   {"production", 1, fleet.ClassRefused, fleet.ReasonForeignInstance, false},
		"the same one's":          {"test", looks - 1, fleet.ClassOK, "", true},
		"it changes all the time": {"test", 1000, fleet.ClassTransient, fleet.ReasonDrifted, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{T: t, environment: "test", version: "5"}
			server := httptest.NewServer(http.HandlerFunc(s.answer))
			defer server.Close()
			cluster, err := Open(Config{Name: "prod", REST: &rest.Config{Host: server.URL}, Environment: fleet.Environment{Name: "test"}})
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			remove := func() fleet.Outcome {
				return cluster.Execute(t.Context(), fleet.ServerKey{Account: "acme", Region: "eu"}, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: "a", UID: "uid-1"}}, fleet.KubeDocument{Namespace: "kura", Name: "a"})
			}
			changes := 0
			s.looked = func() {
				if changes < c.changes {
					changes++
					s.environment, s.version = c.becomes, fmt.Sprint(5+changes)
				}
			}
			if o := remove(); o.Class != c.class || o.Reason != c.reason || !o.Answered || s.gone != c.gone {
				t.Errorf("%+v, gone %t; want %s %s, gone %t", o, s.gone, c.class, c.reason, c.gone)
			}
		})
	}
}
