package containers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// What the operator keeps in a variable set reaches the container and nobody else: not
// the outcome of a task, which is stored and shown, not the log, and not what prints the
// endpoint. The engine may well repeat it.
func TestEnvSets_valuesAreOnlyTheContainers(t *testing.T) {
	const secret, longer = "planted-secret", "planted-secret-and-more"
	var given struct{ Env []string }
	log := &strings.Builder{}
	cfg := containers.Config{Name: "local", EnvSets: map[string]map[string]string{
		"upstream": {"A_TOKEN": secret, "B_TOKEN": longer, "DEBUG": "1"},
	}}
	refused := false
	e := fakeEngineOf(t, cfg, hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace}), map[string]http.HandlerFunc{
		"GET /images/{name...}": answer(200, map[string]string{"Id": "sha256:1"}),
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(body, &given)
			}
			if err != nil {
				t.Error(err)
			}
			if refused {
				refusal(400, fmt.Sprintf("invalid environment variable in %s", given.Env))(w, r)
				return
			}
			answer(201, map[string]any{"Id": someID, "Warnings": []string{fmt.Sprint(given.Env)}})(w, r)
		},
	})
	doc := document()
	doc.EnvFrom = []string{"upstream"}
	task := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name, Digest: doc.Digest}}
	for _, refused = range []bool{true, false} {
		o := e.Execute(t.Context(), acme, "kura-acme-eu", task, doc)
		if (o.Class == fleet.ClassOK) == refused {
			t.Fatalf("%+v", o)
		}
		if refused && !strings.Contains(o.Message, "A_TOKEN=*** B_TOKEN=*** DEBUG=1") {
			t.Errorf("message %q", o.Message)
		}
		for what, text := range map[string]string{
			"outcome": fmt.Sprintf("%+v", o), "log": log.String(), "document": fmt.Sprintf("%+v %s", *doc, fleet.DigestService(*doc)),
			"configuration": fmt.Sprintf("%v %+v %s", cfg, cfg, cfg),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds the secret: %s", what, text)
			}
		}
	}
	if env := strings.Join(given.Env, " "); !strings.Contains(env, "A_TOKEN="+secret) || !strings.Contains(env, "B_TOKEN="+longer) {
		t.Errorf("the container was given %q", env)
	}
	if !strings.Contains(log.String(), "engine warns") {
		t.Errorf("log: %s", log)
	}
}

// C9, C10: what every container is created with, whatever its document says.
func TestC10_everyContainerIsConfinedAndRestartedByNobodyElse(t *testing.T) {
	var given struct {
		HostConfig struct {
			RestartPolicy                                           struct{ Name string }
			CapAdd, CapDrop, SecurityOpt                            []string
			Privileged                                              bool
			NetworkMode, PidMode, IpcMode, UTSMode, UsernsMode      string
			CgroupnsMode                                            string
			Devices, DeviceRequests, VolumesFrom, Binds, ExtraHosts []any
		}
	}
	e := fakeEngine(t, map[string]http.HandlerFunc{
		"GET /images/{name...}": answer(200, map[string]string{"Id": "sha256:1"}),
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
				t.Error(err)
			}
			answer(201, map[string]any{"Id": someID})(w, r)
		},
	})
	doc := document()
	if o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name, Digest: doc.Digest}}, doc); o.Class != fleet.ClassOK {
		t.Fatalf("%+v", o)
	}
	h := given.HostConfig
	if h.RestartPolicy.Name != "no" {
		t.Errorf("restart policy %q, want no", h.RestartPolicy.Name)
	}
	if fmt.Sprint(h.CapDrop) != "[ALL]" || len(h.CapAdd) != 0 || fmt.Sprint(h.SecurityOpt) != "[no-new-privileges]" || h.Privileged {
		t.Errorf("%+v", h)
	}
	for _, mode := range []string{h.NetworkMode, h.PidMode, h.IpcMode, h.UTSMode, h.UsernsMode, h.CgroupnsMode} {
		if mode == "host" {
			t.Errorf("a namespace of the host: %+v", h)
		}
	}
	if len(h.Devices)+len(h.DeviceRequests)+len(h.VolumesFrom)+len(h.Binds)+len(h.ExtraHosts) != 0 {
		t.Errorf("%+v", h)
	}
}
