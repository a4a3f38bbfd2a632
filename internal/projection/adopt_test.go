package projection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What is planned for an adopted container, which may bear another name than its service's.
func TestAdopt_planOfAnAdoptedContainer(t *testing.T) {
	const same, other = "c/v1//0", "c/v0//0"
	running, exited := fleet.ContainerRunning, fleet.ContainerExited
	for _, c := range []struct {
		name      string
		box       string
		tag, dig  string
		state     fleet.ContainerState
		foreign   bool // somebody's container bears the service's name
		want      string
		converged bool
	}{
		{"its service's name: left alone", carrierName, "v1", same, running, false, "-", true},
		{"its service's name, ended: started", carrierName, "v1", same, exited, false, "start cache", false},
		{"another name: renamed", "made-by-hand", "v1", same, running, false, "rename cache as itself", false},
		{"another name, ended: started and renamed", "made-by-hand", "v1", same, exited, false, "start cache; rename cache as itself", false},
		{"another document: renamed and replaced", "made-by-hand", "v0", other, running, false, "rename cache as itself; create cache as -next; stop cache; rename cache as -old; rename cache as itself; start cache; remove cache", false},
		{"the name is somebody's: nothing", "made-by-hand", "v1", same, running, true, "-", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(variant{})
			s.put(c.box, "cache", c.tag, c.dig, c.state, false)
			if c.foreign {
				s.put(carrierName, "", "v1", "", running, true)
			}
			in := adopting(s, c.box)
			out := Decide(in)
			if got := brief(out.Status.Runtime.Plan); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if resume(in, out).seen.converged != c.converged {
				t.Errorf("converged %t, want %t", resume(in, out).seen.converged, c.converged)
			}
			id := s.boxes[c.box].id
			if out.Status.Runtime.Plan == nil {
				return
			}
			for _, task := range out.Status.Runtime.Plan.Tasks {
				if task.Adopted != (task.ContainerID == id) {
					t.Errorf("%s is for an adopted container: %t", task.Describe(), task.Adopted)
				}
			}
		})
	}
}

// adopting is the input of a server whose record names a container of the model.
func adopting(s *sim, name string) Input {
	s.look()
	s.status = &fleet.Status{Status: fleet.StatusProvisioning, Generation: 1, Revision: s.desired().Revision,
		Adopted: map[string]fleet.Adoption{"cache": {ID: s.boxes[name].id, Name: name, Digest: s.boxes[name].dig}}}
	in := s.input()
	for i := range in.Seen.Instance.Containers {
		if c := &in.Seen.Instance.Containers[i]; c.Name == name {
			c.Adopted = true
		}
	}
	return in
}

func TestAdopt_theRecordEndsWithItsContainerAndNotBefore(t *testing.T) {
	s := newSim(variant{})
	s.put("made-by-hand", "cache", "v1", "c/v1//0", fleet.ContainerRunning, false)
	in := adopting(s, "made-by-hand")
	want := in.Prev.Adopted
	if out := Decide(in); cmp.Diff(want, out.Status.Adopted) != "" {
		t.Errorf("while it is there: %v", out.Status.Adopted)
	}
	gone := in
	gone.Seen.Instance.Containers = nil
	stale := gone
	until := in.Seen.Instance.Begun.Add(1)
	prev := in.Prev.Clone()
	prev.Runtime.EffectsUntil = &until
	stale.Prev = &prev
	if out := Decide(stale); len(out.Status.Adopted) != 1 || out.Status.Runtime.Plan != nil {
		t.Errorf("a read from before the adoption: records %v, plan %s", out.Status.Adopted, brief(out.Status.Runtime.Plan))
	}
	if out := Decide(gone); len(out.Status.Adopted) != 0 || brief(out.Status.Runtime.Plan) != "create cache as itself; start cache" {
		t.Errorf("when it is gone: records %v, plan %s", out.Status.Adopted, brief(out.Status.Runtime.Plan))
	}
	if len(in.Prev.Adopted) != 1 {
		t.Error("the input was changed")
	}
}

func TestS10_anObservingRegionRenamesNothingOnItsOwn(t *testing.T) {
	s := newSim(variant{})
	s.put("made-by-hand", "cache", "v1", "c/v1//0", fleet.ContainerRunning, false)
	s.observe = true
	s.latest.Status = fleet.DeploymentSucceeded
	in := adopting(s, "made-by-hand")
	in.Prev.Settled = fleet.Settled{Generation: 1, Revision: in.Prev.Revision}
	if out := Decide(in); out.Status.Runtime.Plan != nil || brief(out.Status.Runtime.Intended) != "rename cache as itself" {
		t.Errorf("plan %s, intended %s", brief(out.Status.Runtime.Plan), brief(out.Status.Runtime.Intended))
	}
}
