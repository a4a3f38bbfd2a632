package conformance

import (
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

// Target is the engine to try.
type Target struct {
	// Engine is how it is reached; its name, ports and mounts are not used. An engine on
	// another machine cannot be tried: the trials ask its containers on Address, and give
	// it folders of this one.
	Engine containers.Config
	// V1 and V2 are images of internal/world/engine/worker that answer "v1" and "v2".
	V1, V2 string
}

// Run tries every rule on the engine. It leaves nothing behind.
func Run(t *testing.T, target Target) {
	engine, err := containers.NewClient(target.Engine)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name string
		try  func(*trial)
	}{
		{"C2_createdStartedEndedAndStartedAgain", lifecycle},
		{"C3_L59_listingsAndRepeatedTasksKeepTheContainer", listingsKeep},
		{"C4_replaceKeepsOneContainerAndItsPort", replace},
		{"C4_createUnderATakenName", createTaken},
		{"C4_goneContainersAreReplanned", gone},
		{"C4_renameToATakenName", renameTaken},
		{"C4_removeRefusesWhatRuns", removeRunning},
		{"C1_eventsNameTheContainerThatDied", events},
		{"C6_L62_ignoredStopSignalIsKilledAfterItsGraceAndSaid", killedAfterGrace},
		{"C6_stopSendsTheSignalOfTheContainer", ownSignal},
		{"C6_frozenContainerIsStopped", frozen},
		{"C2_pausedContainerGoesOn", goesOn},
		{"C7_foreignContainerIsNeverTouched", foreignContainer},
		{"C7_environmentsShareAnEngine", twoEnvironments},
		{"C9_whatTheEngineRunsByItselfIsNotAdopted", selfRun},
		{"C7_foreignVolumeIsNeverUsed", foreignVolume},
		{"C10_hostPathsOnlyBelowTheAllowedOnes", hostPaths},
		{"C10_aPathThatIsExchangedAllTheTimeIsNeverReadElsewhere", exchanged},
		{"C10_noCapabilitiesNoPrivilegesNoRestarts", confined},
		{"C10_variableSetsAndLimitsReachTheContainer", variablesAndLimits},
		{"C13_volumesGoWithTheServerUnlessRetained", volumes},
		{"C13_volumesOfAnAdoptedContainerStay", adoptedVolumes},
		{"refusals_missingImage", missingImage},
		{"refusals_commandUserAndPort", startRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.try(newTrial(t, target, engine))
		})
	}
}

// lifecycle: C2.
func lifecycle(x *trial) {
	doc := x.doc("cache", x.target.V1)
	if got := x.list(x.staging); len(got) != 0 {
		x.Fatalf("containers before the first: %+v", got)
	}
	id := x.create(doc, doc.Name)
	x.wantState(doc.Name, id, fleet.ContainerCreated)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc)
	x.wantAnswer(doc, "v1")
	got := x.wantState(doc.Name, id, fleet.ContainerRunning)
	if got.Service != "cache" || got.Digest != doc.Digest || got.Account != x.key.Account || got.Region != x.key.Region || got.Image != doc.Image || got.Foreign != "" {
		x.Errorf("a running container of ours reads %+v", got)
	}
	if want := doc.Ports[0].Host; got.Ports["8080/tcp"] != want {
		x.Errorf("published ports %v, want 8080/tcp on %d", got.Ports, want)
	}

	x.kill(id)
	got = x.wantState(doc.Name, id, fleet.ContainerExited)
	if got.ExitCode != 137 || got.Started == nil || got.Finished == nil || got.Finished.Before(*got.Started) {
		x.Errorf("a killed container reads exit %d, started %v, finished %v", got.ExitCode, got.Started, got.Finished)
	}
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc)
	x.wantAnswer(doc, "v1")
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}}, doc) // it runs already
}

// listingsKeep: C3, L59.
func listingsKeep(x *trial) {
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.Env = map[string]string{"B": "2", "A": "1"}
		d.Volumes = []fleet.VolumeDocument{{Source: x.name("data"), Path: "/data"}}
	})
	id := x.running(doc)
	began := x.inspect(id).Container.State.StartedAt
	for i := range 20 {
		got := x.wantState(doc.Name, id, fleet.ContainerRunning)
		if got.Digest != doc.Digest {
			x.Fatalf("listing %d: digest %s, want %s", i, got.Digest, doc.Digest)
		}
	}
	reordered := *doc
	reordered.Env = map[string]string{"A": "1", "B": "2"}
	reordered.Digest = fleet.DigestService(reordered)
	if again := x.create(&reordered, doc.Name); again != id {
		x.Errorf("the same document made container %s, want %s kept", again, id)
	}
	if now := x.inspect(id).Container.State.StartedAt; now != began {
		x.Errorf("the container was started again at %s, before at %s", now, began)
	}
}

// replace: C4 and C12. Every step is done twice, as after a crash between its effect
// and its record.
func replace(x *trial) {
	old := x.doc("cache", x.target.V1)
	oldID := x.running(old)
	next := x.doc("cache", x.target.V2, func(d *fleet.ServiceDocument) { d.Ports = old.Ports })

	nextID := x.create(next, next.TemporaryName())
	if nextID == oldID {
		x.Fatal("the new container is the old one")
	}
	x.wantAnswer(old, "v1") // what may fail has cost nobody anything
	steps := []fleet.Task{
		{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: oldID, Grace: grace(10)}},
		{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: oldID, Name: next.RetiredName()}},
		{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: nextID, Name: next.Name}},
		{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: nextID}},
		{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: oldID}},
	}
	for _, step := range steps {
		for range 2 {
			if o := x.ok(step, next); o.Forced {
				x.Errorf("%s was forced", step.Describe())
			}
		}
	}
	x.wantAnswer(next, "v2")
	got := x.list(x.staging)
	if len(got) != 1 || got[0].ID != nextID || got[0].Name != next.Name || got[0].Ports["8080/tcp"] != old.Ports[0].Host {
		x.Errorf("after the replace: %+v, want the one container %s named %s on port %d", got, nextID, next.Name, old.Ports[0].Host)
	}
}

// createTaken: a create takes nothing away; what has the name is for the planner.
func createTaken(x *trial) {
	first := x.doc("cache", x.target.V1)
	second := x.doc("cache", x.target.V2, func(d *fleet.ServiceDocument) { d.Ports = first.Ports })
	leftID := x.create(first, first.TemporaryName())
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: leftID}}, first)
	x.create(first, first.Name)
	for _, name := range []string{second.TemporaryName(), second.Name} {
		o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: name, Digest: second.Digest}}, second)
		x.wantOutcome(o, fleet.ClassTransient, fleet.ReasonDrifted)
	}
	x.wantState(second.TemporaryName(), leftID, fleet.ContainerRunning)
	o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: first.Name, Digest: "of yesterday"}}, first)
	x.wantOutcome(o, fleet.ClassTransient, fleet.ReasonDrifted)
}

// gone: what is gone is success for what takes away, and a new plan for the rest.
func gone(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.create(doc, doc.Name)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	for range 2 {
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(1)}}, doc)
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	}
	for _, kind := range []fleet.TaskKind{fleet.TaskStart, fleet.TaskRename} {
		o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: kind, ContainerID: id, Name: doc.Name}}, doc)
		x.wantOutcome(o, fleet.ClassTransient, fleet.ReasonDrifted)
	}
	x.wantOutcome(x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart}}, doc), fleet.ClassTransient, fleet.ReasonDrifted)
}

// renameTaken: the holder of the name decides.
func renameTaken(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.create(doc, doc.TemporaryName())
	x.create(doc, doc.Name)
	o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: id, Name: doc.Name}}, doc)
	x.wantOutcome(o, fleet.ClassTransient, fleet.ReasonDrifted)

	foreign := x.name("somebodys")
	x.foreign(foreign, nil)
	o = x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: id, Name: foreign}}, doc)
	x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForeignInstance)
}

// removeRunning: a remove never ends a process.
func removeRunning(x *trial) {
	doc := x.doc("cache", x.target.V1)
	id := x.running(doc)
	o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	x.wantOutcome(o, fleet.ClassTransient, fleet.ReasonDrifted)
	x.wantAnswer(doc, "v1")
}

// staging and production are two environments of one engine.
func environments() (staging, production fleet.Environment) {
	return fleet.Environment{Name: "staging", Suffix: "-staging"}, fleet.Environment{Name: "production"}
}

func (x *trial) open(env fleet.Environment) *containers.Endpoint {
	x.Helper()
	e, err := containers.Open(x.config(), env, nil)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() {
		if err := e.Close(); err != nil {
			x.Error(err)
		}
	})
	return e
}
