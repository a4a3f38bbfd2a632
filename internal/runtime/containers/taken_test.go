package containers_test

import (
	"net/http"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Somebody may take a name between our look and our call. Docker answers 409 and
// Podman 500: who holds the name then decides.
func TestC4_nameTakenMeanwhile(t *testing.T) {
	create := fleet.Task{Kind: fleet.TaskCreate, Name: "kura-acme-eu-cache", Digest: "d1"}
	rename := fleet.Task{Kind: fleet.TaskRename, ContainerID: someID, Name: "kura-acme-eu-cache"}
	foreigner := inspected("kura-acme-eu-cache", "running")
	foreigner["Config"] = map[string]any{"Labels": map[string]string{"dev.kura/environment": "production"}}
	another := inspected("kura-acme-eu-cache", "running")
	another["Id"] = "another" + someID[7:]
	for name, c := range map[string]struct {
		task   fleet.Task
		status int
		holder any
		class  fleet.Class
		reason fleet.Reason
	}{
		"create, ours":                   {create, 409, inspected("kura-acme-eu-cache", "created"), fleet.ClassOK, ""},
		"create, ours, as Podman says":   {create, 500, inspected("kura-acme-eu-cache", "created"), fleet.ClassOK, ""},
		"create, foreign":                {create, 409, foreigner, fleet.ClassRefused, fleet.ReasonForeignInstance},
		"rename, ours":                   {rename, 409, another, fleet.ClassTransient, fleet.ReasonDrifted},
		"rename, ours, as Podman says":   {rename, 500, another, fleet.ClassTransient, fleet.ReasonDrifted},
		"rename, nobody: something else": {rename, 500, nil, fleet.ClassTransient, fleet.ReasonRuntimeError},
	} {
		t.Run(name, func(t *testing.T) {
			taken := false
			take := func(w http.ResponseWriter, r *http.Request) {
				taken = true
				refusal(c.status, "the name is in use")(w, r)
			}
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /images/{name...}":                  answer(200, map[string]string{"Id": "sha256:1"}),
				"GET /containers/" + someID + "/json":    answer(200, inspected("kura-acme-eu-cache-next", "exited")),
				"POST /containers/create":                take,
				"POST /containers/" + someID + "/rename": take,
				"GET /containers/kura-acme-eu-cache/json": func(w http.ResponseWriter, r *http.Request) {
					if !taken || c.holder == nil {
						refusal(404, "no such container")(w, r)
						return
					}
					answer(200, c.holder)(w, r)
				},
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", c.task, document())
			if o.Class != c.class || o.Reason != c.reason || !o.Answered {
				t.Errorf("%+v, want %s %s", o, c.class, c.reason)
			}
		})
	}
}

// A start that must fail is not tried: with Podman it would take the port away from
// the container that has it.
func TestC12_takenPortIsRefusedBeforeTheStart(t *testing.T) {
	binding := func(ip string) map[string]any {
		c := inspected("kura-acme-eu-cache", "created")
		c["HostConfig"] = map[string]any{"PortBindings": map[string]any{"8080/tcp": []map[string]string{{"HostIp": ip, "HostPort": "20001"}}}}
		return c
	}
	for name, c := range map[string]struct {
		bind, protocol string
		state          string
		refused        bool
	}{
		"same address":           {"127.0.0.1", "tcp", "running", true},
		"all addresses":          {"0.0.0.0", "tcp", "running", true},
		"another address":        {"127.0.0.2", "tcp", "running", false},
		"another protocol":       {"127.0.0.1", "udp", "running", false},
		"a container that ended": {"127.0.0.1", "tcp", "exited", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := listed("database", c.state, nil)
			other["Ports"] = []map[string]any{{"IP": "127.0.0.1", "PrivatePort": 5432, "PublicPort": 20001, "Type": c.protocol}}
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/" + someID + "/json":   answer(200, binding(c.bind)),
				"GET /containers/json":                  answer(200, []any{other}),
				"POST /containers/" + someID + "/start": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Kind: fleet.TaskStart, ContainerID: someID}, document())
			if refused := o.Reason == fleet.ReasonStartFailed && o.Class == fleet.ClassRefused; refused != c.refused || !refused && o.Class != fleet.ClassOK {
				t.Errorf("%+v, want refused %t", o, c.refused)
			}
		})
	}
}
