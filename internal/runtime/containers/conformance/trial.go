package conformance

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// trial is one rule tried on the engine, with a server of its own.
type trial struct {
	*testing.T
	target     Target
	engine     *client.Client
	key        fleet.ServerKey
	instance   string
	mounts     string // an allowed folder of the host
	staging    *containers.Endpoint
	production *containers.Endpoint
}

func newTrial(t *testing.T, target Target, engine *client.Client) *trial {
	x := &trial{T: t, target: target, engine: engine, mounts: t.TempDir()}
	account := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	// New in each run: on an engine that others use, too, only what is the trial's own is
	// listed as its own and removed.
	account = strings.ReplaceAll(account, "_", "-") + "-" + strings.ToLower(rand.Text()[:8])
	x.key = fleet.ServerKey{Account: account, Region: "eu"}
	x.instance = "kura-" + x.key.Account + "-eu"
	t.Cleanup(x.clear)
	staging, production := environments()
	x.staging, x.production = x.open(staging), x.open(production)
	return x
}

func (x *trial) config() containers.Config {
	c := x.target.Engine
	c.Name, c.Address = "local", "127.0.0.1"
	c.Ports, c.Mounts = containers.PortRange{First: 20000, Last: 29999}, []string{x.mounts}
	c.EnvSets = map[string]map[string]string{"secrets": {"TOKEN": "s3cret", "A": "of the set"}}
	return c
}

// ctx bounds every call, and lives through the cleanup.
func (x *trial) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	x.Cleanup(cancel)
	return ctx
}

// name makes a name that only this trial uses.
func (x *trial) name(s string) string { return x.instance + "-" + s }

// clear removes what the trial made; it looks by the names and labels it gave.
func (x *trial) clear() {
	ctx := x.ctx()
	listed, err := x.engine.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		x.Error(err)
	}
	for _, c := range listed.Items {
		if strings.HasPrefix(c.Names[0], "/"+x.instance) {
			if _, err := x.engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil && !errdefs.IsNotFound(err) {
				x.Error(err)
			}
		}
	}
	vols, err := x.engine.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		x.Error(err)
	}
	for _, v := range vols.Items {
		if strings.HasPrefix(v.Name, x.instance) {
			if _, err := x.engine.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true}); err != nil {
				x.Error(err)
			}
		}
	}
}

// doc is a document of a worker that publishes 8080 on a free port.
func (x *trial) doc(service, image string, change ...func(*fleet.ServiceDocument)) *fleet.ServiceDocument {
	x.Helper()
	d := &fleet.ServiceDocument{
		Service: service, Name: x.name(service), Image: image, Carrier: true,
		Ports:      []fleet.PortDocument{{Name: "http", Container: 8080, Host: x.freePort(), Protocol: "tcp"}},
		StopSignal: "SIGTERM", GracePeriod: grace(10), Pull: fleet.PullMissing,
	}
	for _, c := range change {
		c(d)
	}
	d.Digest = fleet.DigestService(*d)
	return d
}

func grace(seconds int) fleet.Duration { return fleet.Duration(time.Duration(seconds) * time.Second) }

// freePort is one that nobody listens on, and that the system gives to nobody who connects.
func (x *trial) freePort() int {
	x.Helper()
	var last error
	for range 1000 {
		port := 29000 + mathrand.IntN(1000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			x.Fatal(err)
		}
		return port
	}
	x.Fatalf("no port of 29000-29999 is free: %v", last)
	return 0
}

func (x *trial) do(e *containers.Endpoint, task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	x.Helper()
	return e.Execute(x.ctx(), x.key, x.instance, task, doc)
}

// ok runs a task of staging that must succeed.
func (x *trial) ok(task fleet.Task, doc *fleet.ServiceDocument) fleet.Outcome {
	x.Helper()
	o := x.do(x.staging, task, doc)
	if o.Class != fleet.ClassOK || !o.Answered || o.At.IsZero() {
		x.Fatalf("%s: %+v, want ok", task.Describe(), o)
	}
	return o
}

func (x *trial) create(doc *fleet.ServiceDocument, name string) string {
	x.Helper()
	o := x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Service: doc.Service, Name: name, Digest: doc.Digest}}, doc)
	if len(o.ContainerID) != 64 {
		x.Fatalf("create %s answered the id %q", name, o.ContainerID)
	}
	return o.ContainerID
}

func (x *trial) running(doc *fleet.ServiceDocument) string {
	x.Helper()
	id := x.create(doc, doc.Name)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, Service: doc.Service, ContainerID: id}}, doc)
	x.wantAnswer(doc, "")
	return id
}

func (x *trial) kill(id string) {
	x.Helper()
	if _, err := x.engine.ContainerKill(x.ctx(), id, client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		x.Fatal(err)
	}
	wait := x.engine.ContainerWait(x.ctx(), id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case <-wait.Result:
	case err := <-wait.Error:
		x.Fatal(err)
	}
}

// freeze pauses a container. runc gives up where the kernel needs longer than its patience to
// freeze all of it, and thaws it again: on a busy machine that takes a few tries.
func (x *trial) freeze(id string) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.ctx(), time.Minute)
	defer cancel()
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	for {
		_, err := x.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		if x.inspect(id).Container.State.Paused {
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			x.Fatalf("the engine does not pause container %s: %v", id, err)
		}
	}
}

func (x *trial) inspect(id string) client.ContainerInspectResult {
	x.Helper()
	seen, err := x.engine.ContainerInspect(x.ctx(), id, client.ContainerInspectOptions{})
	if err != nil {
		x.Fatal(err)
	}
	return seen
}

// foreign makes a running container that this environment's kurad did not make.
func (x *trial) foreign(name string, labels map[string]string) string {
	x.Helper()
	made, err := x.engine.ContainerCreate(x.ctx(), client.ContainerCreateOptions{
		Name: name, Config: &container.Config{Image: x.target.V1, Labels: labels},
	})
	if err != nil {
		x.Fatal(err)
	}
	if _, err := x.engine.ContainerStart(x.ctx(), made.ID, client.ContainerStartOptions{}); err != nil {
		x.Fatal(err)
	}
	return made.ID
}

// list returns what concerns the trial's server.
func (x *trial) list(e *containers.Endpoint, names ...string) []fleet.Container {
	x.Helper()
	all, err := e.List(x.ctx())
	if err != nil {
		x.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c fleet.Container) bool {
		own := c.Foreign == "" && c.Account == x.key.Account && c.Region == x.key.Region
		return !own && !slices.Contains(names, c.Name)
	})
}

func (x *trial) wantState(name, id string, state fleet.ContainerState) fleet.Container {
	x.Helper()
	got := x.list(x.staging, name)
	for _, c := range got {
		if c.Name == name {
			if c.ID != id || c.State != state {
				x.Fatalf("container %s is %s and %s, want %s and %s", name, c.ID, c.State, id, state)
			}
			return c
		}
	}
	x.Fatalf("no container %s among %+v", name, got)
	return fleet.Container{}
}

func (x *trial) wantOutcome(o fleet.Outcome, class fleet.Class, reason fleet.Reason, says ...string) {
	x.Helper()
	if o.Class != class || o.Reason != reason || !o.Answered {
		x.Errorf("outcome %+v, want answered, %s %s", o, class, reason)
	}
	for _, s := range says {
		if !strings.Contains(o.Message, s) {
			x.Errorf("message %q does not say %q", o.Message, s)
		}
	}
	if strings.Contains(o.Message, "\n") || len([]rune(o.Message)) > 600 {
		x.Errorf("message is not short: %q", o.Message)
	}
}

// get asks the worker on the document's port, until it answers at all.
func (x *trial) get(doc *fleet.ServiceDocument, path string) string {
	x.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d%s", doc.Ports[0].Host, path)
	ctx := x.ctx()
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		body, err := ask(ctx, web, url)
		if err == nil {
			return body
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			x.Fatalf("%s does not answer: %v", url, err)
		}
	}
}

func ask(ctx context.Context, web *http.Client, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := web.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// wantAnswer waits for the worker to answer, with version unless that is "".
func (x *trial) wantAnswer(doc *fleet.ServiceDocument, version string) {
	x.Helper()
	if got := x.get(doc, "/"); version != "" && got != version {
		x.Errorf("%s answers %q, want %q", doc.Name, got, version)
	}
}
