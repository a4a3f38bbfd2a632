package kubecontroller

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

func TestControl_tellsWhatSetAndHealTell(t *testing.T) {
	ca, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	k, err := Start(Config{REST: &rest.Config{Host: "http://127.0.0.1:1"}, CA: ca}) // nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	say := func(method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		k.Control().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	fares := func(name string) Behaviour {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.behaves(key{"kura", name})
	}

	if code, body := say("PUT", "/behaviour?namespace=kura&name=a", `{"stuck": true, "roll_out": "5s", "notice": "10s"}`); code != 200 {
		t.Errorf("PUT for one: %d %s", code, body)
	}
	if code, body := say("PUT", "/behaviour", `{"down": true}`); code != 200 {
		t.Errorf("PUT for all: %d %s", code, body)
	}
	want := map[string]Behaviour{"a": {Stuck: true, RollOut: 5 * time.Second, Notice: 10 * time.Second}, "b": {Down: true, RollOut: defaultRollOut, Notice: defaultNotice}}
	if diff := cmp.Diff(want, map[string]Behaviour{"a": fares("a"), "b": fares("b")}); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	for path, body := range map[string]string{"/behaviour": `{"stuk": true}`, "/behaviour?name=a": `{}`, "/behaviour?namespace=kura": `{}`} {
		if code, text := say("PUT", path, body); code != 400 || !strings.Contains(text, "error") {
			t.Errorf("PUT %s %s: %d %s, want 400 with an error", path, body, code, text)
		}
	}
	if code, body := say("DELETE", "/behaviour", ""); code != 204 {
		t.Errorf("DELETE: %d %s", code, body)
	}
	if got := fares("a"); got != (Behaviour{RollOut: defaultRollOut, Notice: defaultNotice}) {
		t.Errorf("after DELETE: %+v", got)
	}
}
