package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// events: C1.
func events(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.running(doc)
	ctx, cancel := context.WithCancel(x.ctx())
	names := make(chan string, 100)
	ended := make(chan error, 1)
	go func() { ended <- x.staging.Watch(ctx, func(name string) { names <- name }) }()
	// The stream has begun when it tells of something: ask until it does.
	probe := x.name("probe")
	x.foreign(probe, nil)
	x.await(names, probe, func() {
		_, err := x.engine.ContainerRestart(x.ctx(), probe, client.ContainerRestartOptions{Timeout: new(int)})
		if err != nil {
			x.Fatal(err)
		}
	})
	x.kill(id)
	x.await(names, doc.Name, func() {})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		x.Errorf("Watch ended with %v, want the end of its context", err)
	}
}

// await waits for the name of a container, and pokes the engine each second.
func (x *trial) await(names <-chan string, name string, poke func()) {
	x.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ctx := x.ctx()
	for {
		select {
		case got := <-names:
			if got == name {
				return
			}
		case <-tick.C:
			poke()
		case <-ctx.Done():
			x.Fatalf("no event named %s", name)
		}
	}
}

// killedAfterGrace: C6, L62.
func killedAfterGrace(x *trial) {
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.Env, d.GracePeriod = map[string]string{"WORKER_IGNORE_TERM": "1"}, grace(60) // which is not the task's
	})
	id := x.running(doc)
	began := time.Now()
	o := x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(2)}, Tries: 1}, doc)
	if took := time.Since(began); took < 2*time.Second || took > 30*time.Second {
		x.Errorf("the stop took %s, want its grace of 2 s and a little", took)
	}
	if !o.Forced {
		x.Error("a stop by SIGKILL does not say so")
	}
	x.wantState(doc.Name, id, fleet.ContainerExited)
	// A second try finds it killed, and cannot know who did it but by its own first.
	if o := x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(2)}, Tries: 2}, doc); !o.Forced {
		x.Error("the second try of a forced stop does not say so")
	}
}

// ownSignal: the worker ends by SIGUSR1, and ignores SIGTERM.
func ownSignal(x *trial) {
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.Env, d.StopSignal = map[string]string{"WORKER_IGNORE_TERM": "1"}, "SIGUSR1"
	})
	id := x.running(doc)
	if o := x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(30)}, Tries: 1}, doc); o.Forced {
		x.Error("the stop was forced")
	}
	if got := x.wantState(doc.Name, id, fleet.ContainerExited); got.ExitCode != 0 {
		x.Errorf("exit code %d, want 0", got.ExitCode)
	}
}

// frozen: a paused container gets its signal, and ends by it.
func frozen(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.running(doc)
	x.freeze(id)
	x.wantState(doc.Name, id, fleet.ContainerPaused)
	if o := x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(10)}, Tries: 1}, doc); o.Forced {
		x.Error("the stop was forced")
	}
	x.wantState(doc.Name, id, fleet.ContainerExited)
}

// goesOn: what is paused holds its port, is not removed, and is unpaused by a start.
func goesOn(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.running(doc)
	began := x.inspect(id).Container.State.StartedAt
	x.freeze(id)
	if got := x.wantState(doc.Name, id, fleet.ContainerPaused); got.Ports["8080/tcp"] != doc.Ports[0].Host {
		x.Errorf("a paused container publishes %v, want 8080/tcp on %d", got.Ports, doc.Ports[0].Host)
	}
	x.wantOutcome(x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc), fleet.ClassTransient, fleet.ReasonDrifted)
	for range 2 {
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc)
		x.wantState(doc.Name, id, fleet.ContainerRunning)
	}
	x.wantAnswer(doc, "v1")
	if now := x.inspect(id).Container.State.StartedAt; now != began {
		x.Errorf("it was started anew at %s, before at %s", now, began)
	}
}

// hostPaths: C10.
func hostPaths(x *trial) {
	outside := x.TempDir()
	link, good := filepath.Join(x.mounts, "link"), filepath.Join(x.mounts, "good")
	if err := os.Symlink(outside, link); err != nil {
		x.Fatal(err)
	}
	if err := os.Mkdir(good, 0o777); err != nil {
		x.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(good, "hello"), []byte("from the host"), 0o644); err != nil {
		x.Fatal(err)
	}
	mounting := func(path string) *fleet.ServiceDocument {
		return x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
			d.Volumes = []fleet.VolumeDocument{{Source: path, HostPath: true, Path: "/host", ReadOnly: true}}
		})
	}
	for _, path := range []string{outside, link, x.mounts + "/../etc", x.mounts + "-other", "/", "relative"} {
		doc := mounting(path)
		for _, kind := range []fleet.TaskKind{fleet.TaskPull, fleet.TaskCreate} { // before anything is pulled
			o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: kind, Name: doc.Name, Digest: doc.Digest}}, doc)
			x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForbidden, path, x.mounts)
		}
	}
	if got := x.list(x.staging); len(got) != 0 {
		x.Errorf("a refused document left %+v", got)
	}

	doc := mounting(good)
	id := x.running(doc)
	if got := x.get(doc, "/file?name=/host/hello"); got != "from the host" {
		x.Errorf("the mounted file reads %q", got)
	}
	// The folder becomes a link to elsewhere while the container is stopped.
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(10)}}, doc)
	if err := os.RemoveAll(good); err != nil {
		x.Fatal(err)
	}
	if err := os.Symlink(outside, good); err != nil {
		x.Fatal(err)
	}
	x.wantOutcome(x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc), fleet.ClassRefused, fleet.ReasonForbidden, good)
}

// exchanged: C10. Somebody exchanges a folder for a link to elsewhere and back without a
// pause, while containers that mount it are created and started.
func exchanged(x *trial) {
	outside, path, link := x.TempDir(), filepath.Join(x.mounts, "x"), filepath.Join(x.mounts, "link")
	if err := errors.Join(os.Mkdir(path, 0o777), os.Symlink(outside, link),
		os.WriteFile(filepath.Join(path, "hello"), []byte("inside"), 0o644), os.WriteFile(filepath.Join(outside, "hello"), []byte("outside"), 0o644)); err != nil {
		x.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := exchange(path, link); err != nil {
				x.Errorf("exchange: %v", err)
				return
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	runs, refused, removed := 0, 0, 0
	for n := range 20 {
		doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
			d.RestartMark = fmt.Sprint(n)
			d.Volumes = []fleet.VolumeDocument{{Source: path, HostPath: true, Path: "/host", ReadOnly: true}}
		})
		create := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Service: doc.Service, Name: doc.Name, Digest: doc.Digest}}
		o := x.do(x.staging, create, doc)
		for ; o.Class != fleet.ClassOK; o = x.do(x.staging, create, doc) { // until it looks as it should
			x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForbidden, path)
		}
		id := o.ContainerID
		o = x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc)
		switch {
		case o.Class == fleet.ClassOK:
			runs++
			if got := x.get(doc, "/file?name=/host/hello"); got != "inside" {
				x.Fatalf("round %d: the container reads %q", n, got)
			}
			x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(10)}}, doc)
		case strings.Contains(o.Message, "was exchanged"):
			removed++
			if got := x.list(x.staging); len(got) != 0 {
				x.Fatalf("round %d: it was not removed: %+v", n, got)
			}
			continue
		default:
			refused++
		}
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	}
	x.Logf("of 20 containers %d ran, %d were removed after the engine had mounted something else, %d were refused", runs, removed, refused)
}

// confined: C9, C10.
func confined(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.running(doc)
	seen := x.inspect(id).Container
	if h := seen.HostConfig; h.Privileged || h.PidMode.IsHost() || h.NetworkMode.IsHost() || h.IpcMode.IsHost() ||
		h.RestartPolicy.Name != container.RestartPolicyDisabled && h.RestartPolicy.Name != "" ||
		!slices.Contains(h.SecurityOpt, "no-new-privileges") {
		x.Errorf("host config: privileged %v, pid %q, network %q, ipc %q, restart %q, security %v",
			h.Privileged, h.PidMode, h.NetworkMode, h.IpcMode, h.RestartPolicy.Name, h.SecurityOpt)
	}
	status := x.get(doc, "/file?name=/proc/self/status")
	for _, line := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !strings.Contains(status, line+":\t0000000000000000\n") {
			x.Errorf("the process has capabilities, %s:\n%s", line, status)
		}
	}
	if !strings.Contains(status, "NoNewPrivs:\t1\n") {
		x.Errorf("the process can gain privileges:\n%s", status)
	}
}

// variablesAndLimits: the rest of the document.
func variablesAndLimits(x *trial) {
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.EnvFrom, d.Env = []string{"secrets"}, map[string]string{"A": "1"}
		d.MemoryBytes, d.CPUs, d.User = 64<<20, 0.5, "1000:1000"
		d.Labels = map[string]string{"team": "cache", fleet.LabelAccount: "somebody"}
	})
	id := x.running(doc)
	env := strings.Split(x.get(doc, "/env"), "\n")
	for _, want := range []string{"A=1", "TOKEN=s3cret"} {
		if !slices.Contains(env, want) {
			x.Errorf("environment %v lacks %s", env, want)
		}
	}
	if status := x.get(doc, "/file?name=/proc/self/status"); !strings.Contains(status, "Uid:\t1000\t1000\t") {
		x.Errorf("the process runs as another user:\n%s", status)
	}
	seen := x.inspect(id).Container
	if seen.HostConfig.Memory != 64<<20 || seen.HostConfig.NanoCPUs != 500_000_000 {
		x.Errorf("memory %d and cpus %d, want 64 MiB and half of one", seen.HostConfig.Memory, seen.HostConfig.NanoCPUs)
	}
	if l := seen.Config.Labels; l["team"] != "cache" || l[fleet.LabelAccount] != x.key.Account {
		x.Errorf("labels %v: want the document's, and ours above them", l)
	}

	unknown := x.doc("other", x.target.V1, func(d *fleet.ServiceDocument) { d.EnvFrom = []string{"nothing"} })
	o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: unknown.Name, Digest: unknown.Digest}}, unknown)
	x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonInvalid, "nothing", "secrets")
}

// missingImage: a refused pull says what the registry said, and soon.
func missingImage(x *trial) {
	for _, pull := range []fleet.PullPolicy{fleet.PullMissing, fleet.PullAlways, fleet.PullNever} {
		doc := x.doc("cache", "localhost:1/kura/nothing:v9", func(d *fleet.ServiceDocument) { d.Pull = pull })
		began := time.Now()
		o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskPull, Digest: doc.Digest}}, doc)
		x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonImagePullFailed, "localhost:1/kura/nothing:v9")
		x.Logf("pull %s, %s: %s", pull, time.Since(began).Round(time.Millisecond), o.Message)
	}
}

// startRefused: StartFailed with the engine's words, and PortTaken with who has the port: a
// container, or a process of the host, which here is the test (C12).
func startRefused(x *trial) {
	taken := x.doc("taken", x.target.V1)
	x.running(taken)
	mine := x.freePort()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", mine))
	if err != nil {
		x.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for says, c := range map[string]struct {
		change func(*fleet.ServiceDocument)
		port   int
	}{
		"nosuchuser": {func(d *fleet.ServiceDocument) { d.User = "nosuchuser" }, 0},
		"already in use by container " + taken.Name:             {func(d *fleet.ServiceDocument) { d.Ports = taken.Ports }, taken.Ports[0].Host},
		fmt.Sprintf("host port %d/tcp is already in use", mine): {func(d *fleet.ServiceDocument) { d.Ports[0].Host = mine }, mine},
	} {
		doc := x.doc("cache", x.target.V1, c.change)
		id := x.create(doc, doc.Name)
		o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc)
		reason := fleet.ReasonStartFailed
		if c.port != 0 {
			reason = fleet.ReasonPortTaken
		}
		x.wantOutcome(o, fleet.ClassRefused, reason, says)
		if o.Port != c.port {
			x.Errorf("port %d, want %d", o.Port, c.port)
		}
		x.Log(o.Message)
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(1)}}, doc)
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	}
	x.wantAnswer(taken, "v1")
}
