//go:build real

package containers_test

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime/containers"
)

func TestC4_pullPoliciesAgainstARegistry(t *testing.T) {
	e := open(t, containers.Config{Name: "local", Socket: podman.Socket()})
	offer := func(image string) {
		t.Helper()
		if err := registry.Add(t.Context(), podman, image, "kura/worker:stable"); err != nil {
			t.Fatal(err)
		}
	}
	name := registry.Addr() + "/kura/worker:stable"
	// create makes a container anew and returns the id of the image it is made of.
	create := func(pull fleet.PullPolicy) string {
		t.Helper()
		doc := &fleet.ServiceDocument{Service: "cache", Name: "kura-pull-eu-cache", Image: name, Digest: "d", StopSignal: "SIGTERM", Pull: pull}
		o := e.Execute(t.Context(), acme, "kura-pull-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskPull}}, doc)
		if o.Class == fleet.ClassOK {
			o = e.Execute(t.Context(), acme, "kura-pull-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskCreate, Name: doc.Name}}, doc)
		}
		if o.Class != fleet.ClassOK {
			t.Fatalf("pull %s: %+v", pull, o)
		}
		image, err := podman.Podman(t.Context(), "inspect", "--format", "{{.Image}}", doc.Name)
		if err != nil {
			t.Fatal(err)
		}
		if o := e.Execute(t.Context(), acme, "kura-pull-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskRemove, ContainerID: o.ContainerID}}, doc); o.Class != fleet.ClassOK {
			t.Fatal(o)
		}
		return strings.TrimSpace(image)
	}
	id := func(image string) string {
		t.Helper()
		out, err := podman.Podman(t.Context(), "image", "inspect", "--format", "{{.Id}}", image)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}

	offer(imageV1)
	if got := create(fleet.PullMissing); got != id(imageV1) {
		t.Errorf("pulled %s, want %s", got, id(imageV1))
	}
	offer(imageV2)
	for _, c := range []struct {
		pull fleet.PullPolicy
		want string
	}{
		{fleet.PullMissing, imageV1}, {fleet.PullNever, imageV1}, {fleet.PullAlways, imageV2},
	} {
		if got := create(c.pull); got != id(c.want) {
			t.Errorf("with pull %s made of %s, want %s", c.pull, got, id(c.want))
		}
	}

	doc := &fleet.ServiceDocument{Service: "cache", Name: "kura-pull-eu-cache", Image: registry.Addr() + "/kura/worker:v404", Digest: "d"}
	o := e.Execute(t.Context(), acme, "kura-pull-eu", fleet.Task{Effect: fleet.Effect{Kind: fleet.TaskPull}}, doc)
	if o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonImagePullFailed || !strings.Contains(o.Message, "manifest unknown") {
		t.Errorf("an unknown tag: %+v", o)
	}
	t.Log(o.Message)
}
