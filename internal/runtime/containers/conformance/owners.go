package conformance

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// foreignContainer: C7, P4.
func foreignContainer(x *trial) {
	doc := x.doc("cache", x.target.V1)
	owners := map[string]map[string]string{
		"not made by kurad": nil,
		"server acme/eu of environment production": {
			fleet.LabelEnvironment: "production", fleet.LabelAccount: "acme", fleet.LabelRegion: "eu", fleet.LabelDigest: doc.Digest,
		},
		"of no server of environment staging":   {fleet.LabelEnvironment: "staging"},
		"server acme/eu of environment staging": {fleet.LabelEnvironment: "staging", fleet.LabelAccount: "acme", fleet.LabelRegion: "eu"},
	}
	for _, who := range []string{"not made by kurad", "server acme/eu of environment production", "of no server of environment staging", "server acme/eu of environment staging"} {
		id := x.foreign(doc.Name, owners[who])
		before := x.inspect(id).Container.State
		got := x.list(x.staging, doc.Name)
		want := fleet.Container{Name: doc.Name, ID: id, State: fleet.ContainerRunning, Foreign: who}
		if labels := owners[who]; labels[fleet.LabelEnvironment] == "staging" && labels[fleet.LabelAccount] != "" {
			// A listing is of no server: one of the same environment shows whose it is.
			want.Foreign, want.Account, want.Region = "", "acme", "eu"
		}
		if d := cmp.Diff([]fleet.Container{want}, got, cmpopts.IgnoreFields(fleet.Container{}, "Image")); d != "" {
			x.Errorf("listing (-want +got):\n%s", d)
		}
		for _, task := range []fleet.Task{
			{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name, Digest: doc.Digest}},
			{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(1)}},
			{Effect: fleet.Effect{Kind: fleet.TaskRename, ContainerID: id, Name: doc.RetiredName()}},
			{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id}},
			{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}},
		} {
			o := x.do(x.staging, task, doc)
			x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForeignInstance, doc.Name)
		}
		after := x.inspect(id).Container
		if d := cmp.Diff(before, after.State); d != "" || after.Name != "/"+doc.Name {
			x.Errorf("the foreign container was touched: %s\n%s", after.Name, d)
		}
		if _, err := x.engine.ContainerRemove(x.ctx(), id, client.ContainerRemoveOptions{Force: true}); err != nil {
			x.Fatal(err)
		}
	}
}

// twoEnvironments: the daemons of two environments see each other's as foreign.
func twoEnvironments(x *trial) {
	staging := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) { d.Name += "-staging" })
	production := x.doc("cache", x.target.V2)
	stagingID := x.running(staging)
	create := fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: production.Name, Digest: production.Digest}}
	made := x.do(x.production, create, production)
	if made.Class != fleet.ClassOK {
		x.Fatalf("production's create: %+v", made)
	}
	x.wantOutcome(x.do(x.production, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: made.ContainerID}}, production), fleet.ClassOK, "")

	for _, c := range []struct {
		name string
		got  []fleet.Container
		id   string
	}{
		{"staging", x.list(x.staging), stagingID},
		{"production", x.list(x.production), made.ContainerID},
	} {
		if len(c.got) != 1 || c.got[0].ID != c.id {
			x.Errorf("%s sees %+v, want only %s", c.name, c.got, c.id)
		}
	}
	for _, kind := range []fleet.TaskKind{fleet.TaskStop, fleet.TaskRemove} {
		o := x.do(x.production, fleet.Task{Effect: fleet.Effect{Kind: kind, ContainerID: stagingID, Grace: grace(1)}}, production)
		x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForeignInstance, "environment staging")
	}
	x.wantAnswer(staging, "v1")
	x.wantAnswer(production, "v2")
}

// foreignVolume: a volume of somebody else under our name is not used.
func foreignVolume(x *trial) {
	name := x.name("data")
	if _, err := x.engine.VolumeCreate(x.ctx(), client.VolumeCreateOptions{Name: name}); err != nil {
		x.Fatal(err)
	}
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.Volumes = []fleet.VolumeDocument{{Source: name, Path: "/data"}}
	})
	o := x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name, Digest: doc.Digest}}, doc)
	x.wantOutcome(o, fleet.ClassRefused, fleet.ReasonForeignInstance, name, "not made by kurad")
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, nil)
	x.wantVolumes(name)
}

// volumes: C13.
func volumes(x *trial) {
	kept, lost, later, given := x.name("kept"), x.name("lost"), x.name("later-kept"), x.name("given-up")
	doc := x.doc("cache", x.target.V1, func(d *fleet.ServiceDocument) {
		d.Volumes = []fleet.VolumeDocument{
			{Source: kept, Path: "/kept", Retain: true},
			{Source: lost, Path: "/lost"},
			{Source: later, Path: "/later", ReadOnly: true},
			{Source: given, Path: "/given", Retain: true},
		}
	})
	id := x.running(doc)
	x.get(doc, "/write?name=/kept/file&text=data")
	if got := x.get(doc, "/write?name=/later/file&text=data"); got == "" {
		x.Error("a read-only volume was written to")
	}
	// In use: nothing is lost, and it is tried again.
	x.wantOutcome(x.do(x.staging, fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, nil), fleet.ClassTransient, fleet.ReasonRemoveFailed)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(10)}}, doc)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, doc)
	x.wantVolumes(kept, later, lost, given)

	next := x.doc("cache", x.target.V2, func(d *fleet.ServiceDocument) { d.Volumes = doc.Volumes })
	id = x.running(next)
	if got := x.get(next, "/file?name=/kept/file"); got != "data" {
		x.Errorf("the volume of the container before holds %q", got)
	}
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(10)}}, next)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id}}, next)

	// What the document says now counts, not what it said when the volume was made.
	present := *next
	present.Volumes = []fleet.VolumeDocument{{Source: later, Path: "/later", Retain: true}, {Source: given, Path: "/given"}}
	for range 2 {
		x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, &present)
		x.wantVolumes(kept, later)
	}
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, nil)
	x.wantVolumes(kept)
}

// wantVolumes compares the volumes whose names begin with the instance's.
func (x *trial) wantVolumes(want ...string) {
	x.Helper()
	listed, err := x.engine.VolumeList(x.ctx(), client.VolumeListOptions{})
	if err != nil {
		x.Fatal(err)
	}
	got := []string{}
	for _, v := range listed.Items {
		if len(v.Name) > len(x.instance) && v.Name[:len(x.instance)] == x.instance {
			got = append(got, v.Name)
		}
	}
	less := func(a, b string) bool { return a < b }
	if d := cmp.Diff(want, got, cmpopts.SortSlices(less)); d != "" {
		x.Errorf("volumes (-want +got):\n%s", d)
	}
}

// selfRun: C9.
func selfRun(x *trial) {
	for policy, adoptable := range map[container.RestartPolicyMode]bool{
		"": true, container.RestartPolicyDisabled: true, container.RestartPolicyAlways: false, container.RestartPolicyUnlessStopped: false, container.RestartPolicyOnFailure: false,
	} {
		id := x.unlabelled("by-hand-"+string(policy), &container.HostConfig{RestartPolicy: container.RestartPolicy{Name: policy}})
		if err := x.staging.Adoptable(x.ctx(), id); (err == nil) != adoptable || err != nil && fleet.CodeOf(err) != fleet.CodeInvalid {
			x.Errorf("restart policy %q: %v, want adoptable %t", policy, err, adoptable)
		}
	}
	id := x.unlabelled("removed", &container.HostConfig{AutoRemove: true})
	if err := x.staging.Adoptable(x.ctx(), id); fleet.CodeOf(err) != fleet.CodeInvalid {
		x.Errorf("--rm: %v", err)
	}
}

// adoptedVolumes: C13. What a person's container keeps stays when it is removed, in
// volumes without a name, too.
func adoptedVolumes(x *trial) {
	id := x.unlabelled("by-hand", nil)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStart, ContainerID: id, Adopted: true}}, nil)
	mounts := x.inspect(id).Container.Mounts
	if len(mounts) != 1 || mounts[0].Name == "" {
		x.Fatalf("mounts %+v, want one anonymous volume", mounts)
	}
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskStop, ContainerID: id, Grace: grace(5), Adopted: true}}, nil)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: id, Adopted: true}}, nil)
	x.ok(fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemoveVolumes}}, nil)
	if _, err := x.engine.VolumeInspect(x.ctx(), mounts[0].Name, client.VolumeInspectOptions{}); err != nil {
		x.Fatalf("the anonymous volume of an adopted container: %v", err)
	}
	if _, err := x.engine.VolumeRemove(x.ctx(), mounts[0].Name, client.VolumeRemoveOptions{}); err != nil {
		x.Error(err)
	}
}

// unlabelled makes a container as a person would, with an anonymous volume.
func (x *trial) unlabelled(name string, host *container.HostConfig) (id string) {
	x.Helper()
	made, err := x.engine.ContainerCreate(x.ctx(), client.ContainerCreateOptions{
		Name: x.name(name), Config: &container.Config{Image: x.target.V1, Volumes: map[string]struct{}{"/scratch": {}}}, HostConfig: host,
	})
	if err != nil {
		x.Fatal(err)
	}
	return made.ID
}
