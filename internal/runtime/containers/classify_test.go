package containers_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// step is a task whose one change of the engine is the call under test.
type step struct {
	task  fleet.Task
	call  string                      // the call under test
	world map[string]http.HandlerFunc // what else is asked
}

func steps() map[string]step {
	const at = "/containers/" + someID
	see := func(state string) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{
			"GET " + at + "/json":        answer(200, inspected("kura-acme-eu-cache", state)),
			"GET /containers/other/json": refusal(404, "no such container"),
			"GET /containers/json":       answer(200, []any{}),
		}
	}
	free := func(image int) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{
			"GET /containers/kura-acme-eu-cache/json": refusal(404, "no such container"),
			"GET /images/{name...}":                   answer(image, map[string]string{"message": "no such image"}),
		}
	}
	pull := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskPull, Digest: "d1"}}
	create := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: "kura-acme-eu-cache", Digest: "d1"}}
	return map[string]step{
		"inspect": {fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}, "GET " + at + "/json", nil},
		"pull":    {pull, "POST /images/create", free(404)},
		"create":  {create, "POST /containers/create", free(200)},
		"start":   {fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: someID}}, "POST " + at + "/start", see("created")},
		"stop":    {fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: someID}}, "POST " + at + "/kill", see("running")},
		"rename":  {fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: someID, Name: "other"}}, "POST " + at + "/rename", see("exited")},
		"remove":  {fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: someID}}, "DELETE " + at, see("exited")},
	}
}

func document() *fleet.ServiceDocument {
	return &fleet.ServiceDocument{Service: "cache", Name: "kura-acme-eu-cache", Image: "registry.test/kura:v1", Digest: "d1", StopSignal: "SIGTERM"}
}

func TestClassify_everyAnswerOfEveryOperation(t *testing.T) {
	const (
		transient = fleet.ClassTransient
		refused   = fleet.ClassRefused
	)
	type want struct {
		class  fleet.Class
		reason fleet.Reason
	}
	// The same whatever was asked.
	always := map[int]want{
		0:   {transient, fleet.ReasonEndpointUnreachable}, // no answer
		401: {transient, fleet.ReasonRuntimeRefused},
		403: {refused, fleet.ReasonForbidden},
		408: {transient, fleet.ReasonRuntimeError},
		429: {transient, fleet.ReasonRuntimeError},
		502: {transient, fleet.ReasonRuntimeError},
		503: {transient, fleet.ReasonRuntimeError},
		504: {transient, fleet.ReasonRuntimeError},
	}
	// By operation: 400, 404, 409, 422, 500.
	byOp := map[string][5]want{
		"inspect": {{refused, fleet.ReasonInvalid}, {transient, fleet.ReasonDrifted}, {transient, fleet.ReasonRuntimeError}, {refused, fleet.ReasonInvalid}, {transient, fleet.ReasonRuntimeError}},
		"pull":    {{refused, fleet.ReasonImagePullFailed}, {refused, fleet.ReasonImagePullFailed}, {refused, fleet.ReasonImagePullFailed}, {refused, fleet.ReasonImagePullFailed}, {refused, fleet.ReasonImagePullFailed}},
		"create":  {{refused, fleet.ReasonCreateFailed}, {refused, fleet.ReasonCreateFailed}, {refused, fleet.ReasonCreateFailed}, {refused, fleet.ReasonCreateFailed}, {refused, fleet.ReasonCreateFailed}},
		"start":   {{refused, fleet.ReasonStartFailed}, {refused, fleet.ReasonStartFailed}, {refused, fleet.ReasonStartFailed}, {refused, fleet.ReasonStartFailed}, {refused, fleet.ReasonStartFailed}},
		"stop":    {{refused, fleet.ReasonInvalid}, {transient, fleet.ReasonStopFailed}, {transient, fleet.ReasonStopFailed}, {refused, fleet.ReasonInvalid}, {transient, fleet.ReasonStopFailed}},
		"rename":  {{refused, fleet.ReasonInvalid}, {transient, fleet.ReasonDrifted}, {transient, fleet.ReasonRuntimeError}, {refused, fleet.ReasonInvalid}, {transient, fleet.ReasonRuntimeError}},
		"remove":  {{refused, fleet.ReasonInvalid}, {"ok", ""}, {transient, fleet.ReasonRemoveFailed}, {refused, fleet.ReasonInvalid}, {transient, fleet.ReasonRemoveFailed}},
	}
	for op, s := range steps() {
		rows := map[int]want{}
		for status, w := range always {
			rows[status] = w
		}
		for i, status := range []int{400, 404, 409, 422, 500} {
			rows[status] = byOp[op][i]
		}
		for status, w := range rows {
			t.Run(fmt.Sprintf("%s_%d", op, status), func(t *testing.T) {
				routes := map[string]http.HandlerFunc{}
				for route, h := range s.world {
					routes[route] = h
				}
				routes[s.call] = refusal(status, "the engine's own words")
				if status == 0 {
					routes[s.call] = hangUp
				}
				o := fakeEngine(t, routes).Execute(t.Context(), acme, "kura-acme-eu", s.task, document())
				if o.Class != w.class || o.Reason != w.reason || o.Answered != (status != 0) {
					t.Errorf("%+v, want %s %s, answered %t", o, w.class, w.reason, status != 0)
				}
				if o.Class != fleet.ClassOK && o.Reason != fleet.ReasonDrifted && status != 0 && !strings.Contains(o.Message, "the engine's own words") {
					t.Errorf("message %q lacks the engine's words", o.Message)
				}
			})
		}
	}
}

func TestClassify_pullRefusedWithinItsStream(t *testing.T) {
	s := steps()["pull"]
	routes := s.world
	routes[s.call] = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"status":"Trying to pull registry.test/kura:v1..."}`)
		fmt.Fprintln(w, `{"error":"manifest unknown","errorDetail":{"message":"manifest unknown"}}`)
	}
	o := fakeEngine(t, routes).Execute(t.Context(), acme, "kura-acme-eu", s.task, document())
	if want := "pull image registry.test/kura:v1: manifest unknown"; o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonImagePullFailed || o.Message != want {
		t.Errorf("%+v, want refused with %q", o, want)
	}
}

func TestClassify_messagesAreShort(t *testing.T) {
	s := steps()["start"]
	s.world[s.call] = refusal(500, "first\n"+strings.Repeat("word ", 1000)+"\n last")
	o := fakeEngine(t, s.world).Execute(t.Context(), acme, "kura-acme-eu", s.task, document())
	if len([]rune(o.Message)) > 500 || !strings.Contains(o.Message, "first word") || !strings.HasSuffix(o.Message, "word last") {
		t.Errorf("message of %d bytes: %q", len(o.Message), o.Message)
	}
}

// What was never sent cannot land later: an engine that is not there keeps nobody waiting
// for its effects. Any other silence does.
func TestP18_onlyWhatWasNeverSentCannotLandLater(t *testing.T) {
	refusing := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: refusing})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	garbled := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Write([]byte("hello\r\n\r\n"))
		_ = conn.Close()
	}
	s := steps()["start"]
	with := func(h http.HandlerFunc) *containers.Endpoint {
		routes := maps.Clone(s.world)
		routes[s.call] = h
		return fakeEngine(t, routes)
	}
	for name, c := range map[string]struct {
		endpoint *containers.Endpoint
		answered bool
	}{
		"no socket": {open(t, containers.Config{Name: "local", Socket: filepath.Join(t.TempDir(), "none")}), true},
		"refused":   {open(t, containers.Config{Name: "local", Socket: refusing}), true},
		"hung up":   {with(hangUp), false},
		"no HTTP":   {with(garbled), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.endpoint.Execute(t.Context(), acme, "kura-acme-eu", s.task, document())
			if o.Class != fleet.ClassTransient || o.Reason != fleet.ReasonEndpointUnreachable || o.Answered != c.answered {
				t.Errorf("%+v, want answered %t", o, c.answered)
			}
		})
	}
}

func TestP2_noAnswerIsNoAnswer(t *testing.T) {
	missing := open(t, containers.Config{Name: "local", Socket: filepath.Join(t.TempDir(), "none")})
	held := fakeEngine(t, map[string]http.HandlerFunc{
		"GET /containers/json": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	})
	for name, c := range map[string]struct {
		endpoint *containers.Endpoint
		want     fleet.Reason
	}{
		"no socket":      {missing, fleet.ReasonEndpointUnreachable},
		"no answer":      {held, fleet.ReasonEndpointUnreachable},
		"hung up":        {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": hangUp}), fleet.ReasonEndpointUnreachable},
		"401":            {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": refusal(401, "no")}), fleet.ReasonRuntimeRefused},
		"403":            {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": refusal(403, "no")}), fleet.ReasonRuntimeRefused},
		"404":            {fakeEngine(t, nil), fleet.ReasonRuntimeError},
		"429":            {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": refusal(429, "no")}), fleet.ReasonRuntimeError},
		"500":            {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": refusal(500, "no")}), fleet.ReasonRuntimeError},
		"not of the API": {fakeEngine(t, map[string]http.HandlerFunc{"GET /containers/json": answer(200, "hello")}), fleet.ReasonRuntimeError},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if c.endpoint == held {
				cancel() // as a deadline would
			}
			defer cancel()
			got, err := c.endpoint.List(ctx)
			if err == nil {
				t.Fatalf("listed %+v", got)
			}
			if f := containers.ReadFailure(err); f.Reason != c.want || !strings.Contains(f.Message, `endpoint "local"`) {
				t.Errorf("read failure %+v, want %s", f, c.want)
			}
		})
	}
}
