package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// twin is an API server of which another one may answer at any time: it holds nothing but a
// namespace.
type twin struct {
	mu      sync.Mutex
	uid     string // "": there is no such namespace
	refuses bool   // to say which it is
	changes []string
	lists   int
}

func (s *twin) set(uid string, refuses bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uid, s.refuses = uid, refuses
}

func (s *twin) counted() (lists int, changes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.changes
}

func (s *twin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	uid, refuses := s.uid, s.refuses
	watching := r.URL.Query().Get("watch") != ""
	list := strings.HasSuffix(r.URL.Path, "/kurainstances") && r.Method == http.MethodGet && !watching
	if list {
		s.lists++
	}
	if r.Method != http.MethodGet {
		s.changes = append(s.changes, r.Method+" "+r.URL.Path)
	}
	s.mu.Unlock()
	answer := func(status int, v map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	refusal := func(status int, reason string, details map[string]any) {
		answer(status, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason, "message": reason, "details": details})
	}
	switch {
	case watching:
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case list:
		answer(200, map[string]any{"kind": "KuraInstanceList", "apiVersion": "kura.tuist.dev/v1alpha1", "metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}})
	case r.URL.Path == "/api/v1/namespaces/kura" && refuses:
		refusal(403, "Forbidden", map[string]any{"kind": "namespaces", "name": "kura"})
	case r.URL.Path == "/api/v1/namespaces/kura" && uid == "":
		refusal(404, "NotFound", map[string]any{"kind": "namespaces", "name": "kura"})
	case r.URL.Path == "/api/v1/namespaces/kura":
		answer(200, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kura", "uid": uid}})
	case strings.Contains(r.URL.Path, "/kurainstances/"):
		refusal(404, "NotFound", map[string]any{"group": fleet.KubeGroup, "kind": "kurainstances", "name": "i"})
	default:
		http.NotFound(w, r)
	}
}

func TestK9_anotherNamespaceOfTheNameIsNotReadAndNothingIsDoneInIt(t *testing.T) {
	twins := &twin{uid: "one"}
	server := httptest.NewServer(twins)
	t.Cleanup(server.Close)
	c, err := Open(Config{Name: "eu-1", Environment: fleet.Environment{Name: "staging"}, REST: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Watch(ctx, "kura", func(string) {}) }()
	t.Cleanup(func() { cancel(); <-ended })

	key, doc := fleet.ServerKey{Account: "acme", Region: "eu"}, fleet.KubeDocument{Cluster: "eu-1", Namespace: "kura", Name: "i"}
	observed := func(what string, is func(fleet.InstanceObservation) bool) {
		t.Helper()
		tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
		for {
			o := c.Observe(key, doc, fleet.KubeKnown{})
			if is(o) {
				return
			}
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: not within a minute; it shows %+v, %+v", what, o, o.Unreadable)
			}
		}
	}
	readable := func(o fleet.InstanceObservation) bool { return o.Unreadable == nil && !o.Begun.IsZero() }
	unreadable := func(reason fleet.Reason, words ...string) func(fleet.InstanceObservation) bool {
		return func(o fleet.InstanceObservation) bool {
			if o.Unreadable == nil || o.Unreadable.Reason != reason {
				return false
			}
			for _, word := range words {
				if !strings.Contains(o.Unreadable.Message, word) {
					t.Errorf("%s does not say %q: %s", reason, word, o.Unreadable.Message)
				}
			}
			return true
		}
	}
	refused := func(what string, reason fleet.Reason) {
		t.Helper()
		_, before := twins.counted()
		for _, task := range []fleet.Task{{Effect: fleet.Effect{Kind: fleet.TaskApply, Name: "i"}}, {Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: "i", UID: "x"}}} {
			if o := c.Execute(t.Context(), key, task, doc); o.Class != fleet.ClassTransient || o.Reason != reason || !o.Answered {
				t.Errorf("%s, %s: %+v, want %s", what, task.Kind, o, reason)
			}
		}
		if _, after := twins.counted(); len(after) != len(before) {
			t.Errorf("%s: %v was sent", what, after[len(before):])
		}
		if err := c.Refresh(t.Context(), "kura", "i"); fleet.CodeOf(err) != fleet.CodeUnavailable {
			t.Errorf("%s: that it is gone is taken for its absence (%v)", what, err)
		}
		if i, err := c.Read(t.Context(), key, doc, nil); i != nil || fleet.CodeOf(err) != fleet.CodeUnavailable {
			t.Errorf("%s: a plan reads %+v, %v", what, i, err)
		}
	}

	observed("the first one is read", readable)
	if uid := c.Unidentified("kura"); uid != "one" {
		t.Errorf("%q is to be stored, want one", uid)
	}
	c.Expect("kura", "one")
	if uid := c.Unidentified("kura"); uid != "" {
		t.Errorf("%q is to be stored, though it is", uid)
	}
	if err := c.Refresh(t.Context(), "kura", "i"); err != nil {
		t.Error(err)
	}

	twins.set("two", false) // for one call, while the watch stands
	refused("another one", fleet.ReasonClusterChanged)
	twins.set("one", false)
	observed("it was that one all along", readable)

	twins.set("two", false) // while the watch stands
	refused("another one", fleet.ReasonClusterChanged)
	observed("another one is not read", unreadable(fleet.ReasonClusterChanged, "one", "two", `kurad cluster accept eu-1`))
	server.CloseClientConnections()
	observed("nor after a new beginning", unreadable(fleet.ReasonClusterChanged))
	lists, _ := twins.counted()
	twins.set("", false)
	refused("none of the name", fleet.ReasonNamespaceGone)
	observed("none of the name", unreadable(fleet.ReasonNamespaceGone, "one"))
	twins.set("one", true)
	refused("nobody says which it is", fleet.ReasonRuntimeRefused)
	if now, _ := twins.counted(); now != lists {
		t.Errorf("%d lists meanwhile, want none", now-lists)
	}
	twins.set("one", false)
	observed("the first one is read again", readable)

	twins.set("two", false)
	server.CloseClientConnections()
	observed("another one", unreadable(fleet.ReasonClusterChanged))
	c.Expect("kura", "two")
	observed("the accepted one is read", readable)
	if err := c.Refresh(t.Context(), "kura", "i"); err != nil {
		t.Error(err)
	}
}

// The Role of an earlier release does not let kurad look at its namespace.
func TestK9_withoutTheRightToLookANamespaceIsReadAsBefore(t *testing.T) {
	twins := &twin{refuses: true}
	server := httptest.NewServer(twins)
	t.Cleanup(server.Close)
	c, err := Open(Config{Name: "eu-1", Environment: fleet.Environment{Name: "staging"}, REST: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shown := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(ctx, "kura", func(string) { shown <- fmt.Sprint(c.Listing("kura").Unreadable) })
	}()
	if got := <-shown; got != "<nil>" {
		t.Errorf("it cannot be read: %s", got)
	}
	if uid := c.Unidentified("kura"); uid != "" {
		t.Errorf("%q is to be stored", uid)
	}
	cancel()
	<-ended
}
