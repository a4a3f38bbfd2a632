package containers_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Somebody may take a name between our look and our call. Docker answers 409 and
// Podman 500: who holds the name then decides.
func TestC4_nameTakenMeanwhile(t *testing.T) {
	create := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: "kura-acme-eu-cache", Digest: "d1"}}
	rename := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: someID, Name: "kura-acme-eu-cache"}}
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
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}, document())
			if refused := o.Reason == fleet.ReasonPortTaken && o.Port == 20001 && o.Class == fleet.ClassRefused; refused != c.refused || !refused && o.Class != fleet.ClassOK {
				t.Errorf("%+v, want refused %t", o, c.refused)
			}
		})
	}
}

// A process of the host shows in the engine's words only; which port they are about is said
// as a number, and who has it where that can be seen.
func TestC12_theEnginesWordsTellThePortThatAProcessHas(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	me := fmt.Sprintf("in use by process %d (", os.Getpid())
	created := inspected("kura-acme-eu-cache", "created")
	created["HostConfig"] = map[string]any{"PortBindings": map[string]any{
		"8080/tcp": []map[string]string{{"HostIp": "127.0.0.1", "HostPort": strconv.Itoa(port)}},
		"9090/tcp": []map[string]string{{"HostIp": "127.0.0.1", "HostPort": "1"}},
	}}
	for says, c := range map[string]struct {
		reason fleet.Reason
		port   int
		who    string
	}{
		"cannot listen on the TCP port: listen tcp4 127.0.0.1:%d: bind: address already in use":                               {fleet.ReasonPortTaken, port, me},
		"rootlessport listen tcp 0.0.0.0:%d: bind: address already in use":                                                    {fleet.ReasonPortTaken, port, me},
		"pasta failed with exit code 1: Failed to bind port %d (Address already in use) for option '-t'":                      {fleet.ReasonPortTaken, port, me},
		"driver failed programming external connectivity: Bind for 127.0.0.1:%d failed: port is already allocated":            {fleet.ReasonPortTaken, port, me},
		"listen tcp4 127.0.0.1:1: bind: address already in use; %d":                                                           {fleet.ReasonPortTaken, 1, ""},
		"aardvark-dns failed to start: failed to bind udp listener on 10.89.0.1:53: Address already in use (container of %d)": {fleet.ReasonStartFailed, 0, ""},
		"listen tcp4 127.0.0.1:%d: bind: cannot assign requested address":                                                     {fleet.ReasonStartFailed, 0, ""},
		"listen tcp4 127.0.0.1:%d9: bind: address already in use":                                                             {fleet.ReasonStartFailed, 0, ""},
	} {
		words := fmt.Sprintf(says, port)
		t.Run(words, func(t *testing.T) {
			e := fakeEngine(t, map[string]http.HandlerFunc{
				"GET /containers/" + someID + "/json":   answer(200, created),
				"GET /containers/json":                  answer(200, []any{}),
				"POST /containers/" + someID + "/start": refusal(500, words),
			})
			o := e.Execute(t.Context(), acme, "kura-acme-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}, document())
			if o.Class != fleet.ClassRefused || o.Reason != c.reason || o.Port != c.port || !o.Answered || !strings.Contains(o.Message, words) {
				t.Errorf("%+v, want %s of port %d with the engine's words", o, c.reason, c.port)
			}
			if runtime.GOOS == "linux" && !strings.Contains(o.Message, c.who) {
				t.Errorf("%s: does not say %q", o.Message, c.who)
			}
		})
	}
}
