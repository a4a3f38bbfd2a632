package projection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Somebody has the server's port 1001: the engine refused its start.
func TestC12_whoNeverServedAsksForAnotherPort(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	move := func(to int) *fleet.PortMove {
		return &fleet.PortMove{Endpoint: "local", Need: "cache/http", From: 1001, To: to}
	}
	for name, c := range map[string]struct {
		change func(*Input, *fleet.Outcome)
		want   *fleet.PortMove
		status fleet.ServerStatus
	}{
		"no other is known yet":    {nil, move(0), fleet.StatusFailed},
		"there is another":         {func(in *Input, _ *fleet.Outcome) { in.NewPort = 1002 }, move(1002), fleet.StatusProvisioning},
		"refused for another port": {func(in *Input, o *fleet.Outcome) { in.NewPort, o.Port = 1002, 1003 }, nil, fleet.StatusFailed},
		"refused for another reason": {func(in *Input, o *fleet.Outcome) {
			in.NewPort, o.Reason = 1002, fleet.ReasonStartFailed
		}, nil, fleet.StatusFailed},
		"the port is declared": {func(in *Input, _ *fleet.Outcome) {
			in.NewPort = 1002
			in.Region.Containers.Services["cache"].Ports["http"] = fleet.Port{Container: 8080, Host: 1001}
		}, nil, fleet.StatusFailed},
		"it served": {func(in *Input, _ *fleet.Outcome) {
			in.NewPort, in.Prev.ServingImageTag, in.Prev.PublishedURL = 1002, "v0", in.Desired.URL
		}, nil, fleet.StatusFailed},
		"what was taken over serves": {func(in *Input, _ *fleet.Outcome) {
			in.NewPort, in.Prev.Adopted = 1002, map[string]fleet.Adoption{"cache": {ID: "0123"}}
			in.Seen.Instance.Begun = time.Time{}
			in.Seen.Instance.Unreadable = &fleet.ReadFailure{Reason: fleet.ReasonRuntimeError}
		}, nil, fleet.StatusProvisioning},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(variant{})
			s.look()
			s.store(Decide(s.input()))
			in := s.input()
			in.Intent.Ports = map[string]int{"cache/http": 1001}
			in.Region.Containers = &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"cache": {Ports: map[string]fleet.Port{"http": {Container: 8080}}}}}
			o := fleet.Outcome{Class: fleet.ClassRefused, Reason: fleet.ReasonPortTaken, Port: 1001, Answered: true, At: at, Message: "host port 1001/tcp is already in use by process 7 (nginx)"}
			prev := in.Prev.Clone()
			in.Prev = &prev
			if c.change != nil {
				c.change(&in, &o)
			}
			p := prev.Runtime.Plan
			for p.Tasks[p.Current()].Kind != fleet.TaskStart {
				p.Record(p.Current(), fleet.Outcome{Class: fleet.ClassOK, Answered: true, At: at})
			}
			i := p.Current()
			p.Claim(i, at.Add(time.Minute))
			p.Record(i, o)

			out := Decide(in)
			if diff := cmp.Diff(c.want, out.WantsPort); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			st := out.Status
			if moves := c.want != nil && c.want.To != 0; moves != (out.Port() != nil) || moves && (st.Runtime.Refusal != nil || st.Runtime.Failing != nil || st.Runtime.Plan != nil || out.Latest != nil && !out.Latest.Status.Open()) {
				t.Errorf("moves %t: stores %+v, refusal %+v, failing %+v, deployment %+v", moves, out.Port(), st.Runtime.Refusal, st.Runtime.Failing, out.Latest)
			}
			if st.Status != c.status || st.Status == fleet.StatusFailed && !strings.Contains(st.Message, o.Message) {
				t.Errorf("%s: %s, want %s", st.Status, st.Message, c.status)
			}
			told := 0
			for _, e := range out.Events {
				if e.Reason == "PortChanged" && e.Message == "cache/http from 1001 to 1002: "+o.Message {
					told++
				}
			}
			if (told == 1) != (out.Port() != nil) {
				t.Errorf("told %d times: %+v", told, out.Events)
			}
		})
	}
}
